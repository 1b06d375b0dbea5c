# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Weight files with holes where the weights are.

A mirrored file has the size of the original, its header or directory, and the few
tensors whose values a verdict depends on (`headers.py`), all at their places.
"""

import json
import struct
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from vllm_eagle3.check.headers import MOST_BYTES, is_read, item_bytes
from vllm_eagle3.check.ranges import RemoteFile

# What safetensors itself accepts as a header.
_LONGEST_HEADER = 100_000_000
# Ranges closer than this travel in one request.
_GAP = 64 * 1024
# Of a `pytorch_model.bin`: records up to here are fetched, which a map always is.
_LARGEST_RECORD = 4 * 2**20
# Holds the local header of any record, with its name and padding.
_RECORD_HEADER = 1024

Span = tuple[int, int]


def mirror(source: RemoteFile, path: Path) -> None:
    """Write `path` as `source` with holes.

    Raises:
        ValueError: the file is in a format of which no parts can be read.
    """
    safetensors = source.file.endswith(".safetensors")
    spans = _of_safetensors(source) if safetensors else _of_pickle(source)
    with path.open("wb") as file:
        file.truncate(source.size)
        for begin, end in _merged(spans):
            file.seek(begin)
            file.write(source.read_range(begin, end))


def _of_safetensors(source: RemoteFile) -> Iterator[Span]:
    """The header, and tensors of which the values count.

    A header that makes no sense is mirrored as it is: the reader of the mirror refuses
    it in the words in which a server would refuse the original.
    """
    start = source.read_range(0, 8)
    yield 0, len(start)
    length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
    if not 0 < length <= _LONGEST_HEADER:
        return
    begin = 8 + length
    yield 8, begin
    try:
        header = json.loads(source.read_range(8, begin))
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            shape = tuple(int(size) for size in entry["shape"])
            if is_read(name, shape, item_bytes(entry["dtype"])):
                first, last = (int(offset) for offset in entry["data_offsets"])
                # A tensor that claims more bytes than it has elements is not fetched.
                if 0 <= first <= last <= first + MOST_BYTES:
                    yield begin + first, begin + last
    except (ValueError, TypeError, KeyError, AttributeError):
        return


def _of_pickle(source: RemoteFile) -> Iterator[Span]:
    """Directory, pickled names, and small records of a zipped `pytorch_model.bin`."""
    try:
        archive = zipfile.ZipFile(source)  # type: ignore[arg-type]
    except zipfile.BadZipFile:
        raise ValueError(
            f"{source.file} on the Hub is in the format before torch 1.6, of which no "
            "part can be read alone. Download the draft, and check the folder."
        ) from None
    for record in archive.infolist():
        size = record.compress_size if record.file_size <= _LARGEST_RECORD else 0
        yield record.header_offset, record.header_offset + _RECORD_HEADER + size
    yield archive.start_dir, source.size


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    """Spans in order, those that nearly touch as one."""
    begin = end = 0
    for first, last in sorted(spans):
        if first > end + _GAP:
            if begin < end:
                yield begin, end
            begin = first
        end = max(end, last)
    if begin < end:
        yield begin, end
