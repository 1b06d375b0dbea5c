# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Files made to harm: nothing in them runs, none of them takes the memory."""

import contextlib
import json
import os
import pickle
import re
import struct
from pathlib import Path

import pytest
import torch

from .small import REDUCED, every_family, refusal, serve, small

MANY = 2**40
MEGABYTES = 128
UNREADABLE = "The draft checkpoint cannot be read"


def write(draft, folder):
    """Its folder, written."""
    return draft.write(folder / "draft")


def refused_in_place(draft, folder):
    """The refusal of what lies in the folder, not of what `draft` would write."""
    draft.write = lambda _: folder / "draft"
    return refusal(draft, folder)


class Payload:
    """Unpickling this makes a folder."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


@every_family
def test_a_pickle_does_not_run(family, tmp_path):
    draft = small(family, {"files": "bin"})
    folder, trap = write(draft, tmp_path), tmp_path / "sprung"
    torch.save(draft.tensors | {"d2t": Payload(trap)}, folder / "pytorch_model.bin")
    sentence = refused_in_place(draft, tmp_path)
    assert not trap.exists()
    assert sentence.startswith(UNREADABLE)


def test_a_bare_pickle_does_not_run(tmp_path):
    draft, trap = small("llama", {"files": "bin"}), tmp_path / "sprung"
    (write(draft, tmp_path) / "pytorch_model.bin").write_bytes(
        pickle.dumps({"d2t": Payload(trap)})
    )
    assert refused_in_place(draft, tmp_path).startswith(UNREADABLE)
    assert not trap.exists()
    pickle.loads(pickle.dumps(Payload(trap)))
    assert trap.exists()  # the trap works


@contextlib.contextmanager
def little_memory():
    """Fails if the process holds much more at any time than it does at first."""
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    yield
    assert resident("VmHWM") - before < MEGABYTES * 1024


def resident(key):
    """Kibibytes that Linux counts for this process."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{key}:\s+(\d+) kB", status)[1])


def rewrite_header(file, change):
    """Let `change` edit a safetensors header; returns where the data starts."""
    content = file.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    change(header)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size :])
    return 8 + len(text)


@pytest.mark.parametrize("name", ["d2t", "t2d", "fc.weight"])
def test_a_header_that_claims_more_than_the_file_holds(name, tmp_path):
    draft = small("llama")
    file = write(draft, tmp_path) / "model.safetensors"
    rewrite_header(file, lambda header: header[name].update(shape=[MANY]))
    with little_memory():
        assert refused_in_place(draft, tmp_path).startswith(UNREADABLE)


@every_family
@pytest.mark.parametrize(
    ("name", "dtype", "size", "entries"),
    [
        ("d2t", "I64", 8, MANY),
        ("t2d", "BOOL", 1, 2**33),  # fails in seconds, not hours, if it is read
        ("norm.bias", "BF16", 2, 2**33),
    ],
)
def test_a_tensor_as_large_as_no_memory(family, name, dtype, size, entries, tmp_path):
    """A file of holes: its tensor is there, and must not be read."""
    draft = small(family)
    draft.tensors.pop(name, None)
    file = write(draft, tmp_path) / "model.safetensors"
    held = max(v["data_offsets"][1] for v in header_of(file).values())
    entry = {
        "dtype": dtype,
        "shape": [entries],
        "data_offsets": [held, held + size * entries],
    }
    start = rewrite_header(file, lambda header: header.update({name: entry}))
    os.truncate(file, start + held + size * entries)
    with little_memory():
        sentence = refused_in_place(draft, tmp_path)
    # Some systems do not even map it.
    assert name in sentence or "Cannot allocate memory" in sentence


def header_of(file):
    found = {}
    rewrite_header(file, lambda header: found.update(header))
    found.pop("__metadata__", None)
    return found


@pytest.mark.parametrize("name", ["d2t", "t2d", "norm.bias"])
def test_a_view_as_large_as_no_memory(name, tmp_path):
    """A pickled tensor may repeat one element for ever."""
    draft = small("llama", {"files": "bin"})
    folder = write(draft, tmp_path)
    endless = torch.zeros(1, dtype=torch.int64).expand(MANY)
    torch.save(draft.tensors | {name: endless}, folder / "pytorch_model.bin")
    with little_memory():
        assert name in refused_in_place(draft, tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00",
        b"version https://git-lfs.github.com/spec/v1\n",
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 2) + b"{}" + b"left over",
        struct.pack("<Q", 9) + b'{"a": [1]}',
        struct.pack("<Q", 2**20) + b"[" * 2**20,
    ],
    ids=["empty", "one byte", "LFS pointer", "huge header", "rest", "odd", "nested"],
)
def test_what_is_no_safetensors_file(content, tmp_path):
    draft = small("llama")
    (write(draft, tmp_path) / "model.safetensors").write_bytes(content)
    assert refused_in_place(draft, tmp_path).startswith(UNREADABLE)


@every_family
@pytest.mark.parametrize("files", ["safetensors", "bin"])
def test_a_file_cut_short(family, files, tmp_path):
    draft = small(family, {"files": files})
    folder = write(draft, tmp_path)
    (file,) = (f for f in folder.iterdir() if f.name != "config.json")
    os.truncate(file, file.stat().st_size - 100)
    assert refused_in_place(draft, tmp_path).startswith(UNREADABLE)


@every_family
def test_an_index_of_shards_that_are_not_there(family, tmp_path):
    draft = small(family, {"files": "shards"})
    (write(draft, tmp_path) / "model-00002-of-00002.safetensors").unlink()
    sentence = refused_in_place(draft, tmp_path)
    assert sentence.startswith(UNREADABLE)
    assert "model-00002-of-00002.safetensors" in sentence


def test_an_index_that_leads_out_of_the_folder(tmp_path):
    """The file outside is whole and would do; it is not read."""
    draft = small("llama", {"files": "shards"})
    folder = write(draft, tmp_path)
    name = "model-00002-of-00002.safetensors"
    (folder / name).rename(tmp_path / name)
    index = folder / "model.safetensors.index.json"
    index.write_text(index.read_text().replace(name, f"../{name}"))
    assert refused_in_place(draft, tmp_path).startswith(UNREADABLE)


def test_a_folder_without_weights(tmp_path):
    draft = small("llama")
    (write(draft, tmp_path) / "model.safetensors").unlink()
    assert "Cannot find any model weights" in refused_in_place(draft, tmp_path)


@pytest.mark.parametrize("content", ["", "{", '["a", "list"]'])
def test_a_damaged_config(content, tmp_path):
    """Refused by whoever reads it first, and not with a crash."""
    draft = small("llama")
    (write(draft, tmp_path) / "config.json").write_text(content)
    draft.write = lambda _: tmp_path / "draft"
    with pytest.raises((OSError, ValueError, TypeError, AttributeError)):
        serve(draft, tmp_path)


def test_the_draft_of_this_file_is_sound(tmp_path):
    """Without which the refusals above would prove little."""
    model = serve(small("llama"), tmp_path)
    assert len(model.draft_id_to_target_id) == REDUCED
