# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Names, shapes and dtypes without weights, out of each kind of file."""

import json
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from tests.check.conftest import MakePair, Pair, check_folders, errors
from vllm_eagle3.check import headers

HEADERS = {
    "safetensors": lambda path: _safetensors(path),
    "bin": lambda path: headers.load_headers(path),
    "old bin": lambda path: headers.load_headers(path),
}


def _safetensors(path: Path) -> dict[str, torch.Tensor]:
    with headers.HeaderOnly(str(path)) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def _tensors() -> dict[str, torch.Tensor]:
    return {
        "fc.weight": torch.ones(8, 4, dtype=torch.bfloat16),
        "norm.weight": torch.ones(4, dtype=torch.float16),
        "norm.bias": torch.tensor([0.5, 0.25]),
        "model.d2t": torch.tensor([3, 1, 4]),
        "t2d": torch.tensor([True, False]),
        "layers.0.mlp.up_proj.weight_scale": torch.tensor([0.125]),
        "layers.0.mlp.up_proj.weight": torch.ones(2, 2).to(torch.float8_e4m3fn),
    }


@pytest.mark.parametrize("kind", HEADERS)
def test_only_what_is_judged_by_value_has_values(tmp_path: Path, kind: str):
    path, tensors = tmp_path / "file", _tensors()
    if kind == "old bin":  # torch itself does not write fp8 into those
        del tensors["layers.0.mlp.up_proj.weight"]
    if kind == "safetensors":
        save_file(tensors, path)
    else:
        zipped = kind == "bin"
        torch.save(tensors, path, _use_new_zipfile_serialization=zipped)
    found = HEADERS[kind](path)
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert (found[name].shape, found[name].dtype) == (tensor.shape, tensor.dtype)
    real = {name for name, tensor in found.items() if not tensor.is_meta}
    assert real == {
        "norm.bias",
        "model.d2t",
        "t2d",
        "layers.0.mlp.up_proj.weight_scale",
    }
    for name in real:
        assert torch.equal(found[name], tensors[name])


@pytest.mark.parametrize("name", headers._DTYPES)
def test_dtypes_are_those_of_safetensors(tmp_path: Path, name: str):
    """Told by name, from a file that safetensors itself has written."""
    dtype = headers._DTYPES[name]
    packed = 2 if name == "F4" else 1  # two elements in a byte
    tensor = torch.zeros(4 * dtype.itemsize, dtype=torch.uint8).view(dtype)
    save_file({"x.t2d": tensor}, tmp_path / "file")
    (length,) = struct.unpack("<Q", (tmp_path / "file").read_bytes()[:8])
    header = json.loads((tmp_path / "file").read_bytes()[8 : 8 + length])
    assert header["x.t2d"]["dtype"] == name
    assert _safetensors(tmp_path / "file")["x.t2d"].dtype == dtype
    assert header["x.t2d"]["shape"] == [4 * packed]


def test_a_tensor_without_elements(tmp_path: Path):
    save_file({"d2t": torch.zeros(0, dtype=torch.int64)}, tmp_path / "file")
    assert _safetensors(tmp_path / "file")["d2t"].shape == (0,)


def write_huge(pair: Pair, gigabytes: int) -> Path:
    """The pair's draft with `fc.weight` a hole, of a wrong shape, of that many GB.

    Nobody's disk or memory holds it; a reader of weights would notice.
    """
    path = pair.write().draft_folder / "model.safetensors"
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header, body = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    del header["fc.weight"], header["__metadata__"]
    rows = gigabytes * 2**30 // (4 * 384)
    begin = len(body)
    end = begin + rows * 384 * 4
    header["fc.weight"] = {
        "dtype": "F32",
        "shape": [rows, 384],
        "data_offsets": [begin, end],
    }
    # The bytes of the real fc.weight need an owner: safetensors allows no gaps.
    owned = sorted(entry["data_offsets"] for entry in header.values())
    gap = next(
        [last, first]
        for (_, last), (first, _) in zip(
            [(0, 0), *map(tuple, owned)], owned, strict=False
        )
        if last != first
    )
    header["unknown"] = {
        "dtype": "U8",
        "shape": [gap[1] - gap[0]],
        "data_offsets": gap,
    }
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)
        file.truncate(8 + len(text) + end)
    return path


def test_a_checkpoint_larger_than_memory_is_checked_in_full(make_pair: MakePair):
    pair = make_pair("llama", 256)
    path = write_huge(pair, 200)
    assert path.stat().st_size > 200 * 2**30
    assert path.stat().st_blocks * 512 < 2**24
    report = check_folders(pair.draft_folder, _target(pair))
    said = " ".join(errors(report))
    assert "unknown" in said
    assert report.vocabulary is not None and report.vocabulary.case == "reduced"


def _target(pair: Pair) -> Path:
    return pair.target_folder


@pytest.mark.parametrize("layout", ["shards", "bin"])
def test_other_files_than_one_of_safetensors(make_pair: MakePair, layout: str):
    pair = make_pair("llama", 256).write()
    folder = pair.draft_folder
    (folder / "model.safetensors").unlink()
    if layout == "bin":
        torch.save(pair.tensors, folder / "pytorch_model.bin")
    else:
        names = sorted(pair.tensors)
        parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
        for file, part in parts.items():
            save_file({name: pair.tensors[name] for name in part}, folder / file)
        index = {name: file for file, part in parts.items() for name in part}
        (folder / "model.safetensors.index.json").write_text(
            json.dumps({"metadata": {}, "weight_map": index})
        )
    report = check_folders(folder, pair.target_folder)
    assert report.findings == ()
    assert report.vocabulary is not None
    assert report.vocabulary.map_source == "d2t"


def test_a_map_that_claims_a_tebibyte_is_not_read(make_pair: MakePair):
    assert not headers.is_read("d2t", (2**40,), 8)
    assert headers.is_read("d2t", (2**20,), 8)


def test_code_in_a_pickle_is_not_run(make_pair: MakePair, tmp_path: Path):
    class Attack:
        def __reduce__(self) -> tuple:
            return (Path.touch, (tmp_path / "attacked",))

    pair = make_pair().write()
    (pair.draft_folder / "model.safetensors").unlink()
    torch.save({"fc.weight": Attack()}, pair.draft_folder / "pytorch_model.bin")
    report = check_folders(pair.draft_folder, pair.target_folder)
    assert report.verdict == "refused"
    assert not (tmp_path / "attacked").exists()
