# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Parts of a file on the Hub, by HTTP range requests."""

import functools
import io

from huggingface_hub import hf_hub_url
from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

_TIMEOUT_SECONDS = 30
# Header and directory of most files fit; one request costs more than these bytes.
_FIRST = 128 * 1024


class RemoteFile(io.RawIOBase):
    """Reads bytes of a file on the Hub; seekable, so that `zipfile` can use it.

    Args:
        repository: of a model, `owner/name`.
        file: name in the repository.
        commit: of the revision.
    """

    def __init__(self, repository: str, file: str, commit: str) -> None:
        super().__init__()
        self.file = file
        self._url = hf_hub_url(repository, file, revision=commit)
        self._position = 0

    @functools.cached_property
    def _first(self) -> tuple[bytes, int]:
        """The first bytes, and the size of the whole file."""
        content, size = self._fetch(0, _FIRST)
        return content, size

    @property
    def size(self) -> int:
        return self._first[1]

    def read_range(self, begin: int, end: int) -> bytes:
        """Bytes from `begin` to `end`, as far as the file goes."""
        end = min(end, self.size)
        first = self._first[0]
        if end <= len(first):
            return first[begin:end]
        return self._fetch(begin, end)[0] if begin < end else b""

    def _fetch(self, begin: int, end: int) -> tuple[bytes, int]:
        headers = {**build_hf_headers(), "Range": f"bytes={begin}-{end - 1}"}
        response = get_session().get(
            self._url, headers=headers, timeout=_TIMEOUT_SECONDS, follow_redirects=True
        )
        hf_raise_for_status(response)
        span = response.headers.get("Content-Range", "")
        if response.status_code != 206 or "/" not in span:
            # The whole file has come: a small one, or a server without ranges.
            return response.content[begin:end], len(response.content)
        return response.content, int(span.rpartition("/")[2])

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}
        self._position = max(0, base[whence] + offset)
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        end = self.size if size is None or size < 0 else self._position + size
        content = self.read_range(self._position, end)
        self._position += len(content)
        return content
