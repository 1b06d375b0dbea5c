# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Builds EAGLE-3 drafts for the example's target, in one or more vocabularies.

The trained part is in the folder backbone/; what a vocabulary needs beside it comes
from the target. assembly.py says which vocabularies there are.

    python examples/smollm2_eagle3/build_draft.py --vocab reduced
"""

import argparse
import sys
from pathlib import Path

import folders
from build_target import TARGET

VOCABULARIES = ("full", "default", "reduced", "full-d2t")
BACKBONE = folders.EXAMPLE / "backbone"
BACKBONE_FILES = ("config.json", "model.safetensors", "frequent_ids.json")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--vocab",
        action="append",
        choices=VOCABULARIES,
        help="may be given more than once (default: full)",
    )
    parser.add_argument("--all", action="store_true", help="build all vocabularies")
    parser.add_argument("--target", type=Path, default=TARGET, help="model folder")
    parser.add_argument("--backbone", type=Path, default=BACKBONE, help="its folder")
    parser.add_argument(
        "--output",
        type=Path,
        default=folders.MODELS,
        help="receives a folder for each draft",
    )
    options = parser.parse_args()
    target = options.target.absolute()
    if folders.recipe_in(target) is None:
        print(f"There is no target in {target}; run build_target.py.", file=sys.stderr)
        return 1
    chosen = VOCABULARIES if options.all else options.vocab or VOCABULARIES[:1]
    for vocabulary in chosen:
        output = draft_folder(vocabulary, options.output.absolute())
        build(vocabulary, options.backbone, target, output)
    return 0


def draft_folder(vocabulary: str, models: Path = folders.MODELS) -> Path:
    """Returns where the draft of a vocabulary is, or will be."""
    return models / f"draft-{vocabulary}"


def build(vocabulary: str, backbone: Path, target: Path, output: Path) -> None:
    """Builds one draft, unless it is there in its newest form."""
    own = folders.recipe_of(
        (
            Path(__file__),
            folders.EXAMPLE / "assembly.py",
            *(backbone / name for name in BACKBONE_FILES),
        )
    )
    recipe = f"{own} for {folders.recipe_in(target)}"
    with folders.lock(output):
        if folders.recipe_in(output) == recipe:
            print(f"The draft is there: {output}")
            return
        # Here, so that a draft that is there costs no import.
        from assembly import write_draft

        with folders.build(output, recipe) as partial:
            write_draft(vocabulary, backbone, target, partial)
    print(f"The draft is ready: {output}")


if __name__ == "__main__":
    sys.exit(main())
