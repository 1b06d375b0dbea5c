# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Builds an EAGLE-3 draft for the example's target: full vocabulary, untrained.

The draft is one Llama layer with weights derived from the target's (induction.py says
how). It proposes what followed the newest token earlier in the text. It shares the
target's embeddings and head, so the folder is small.

    python examples/smollm2_eagle3/build_draft.py
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import folders
from build_target import TARGET

DRAFT = folders.MODELS / "draft"
# The hidden states that the target hands over: after so many layers. These three are
# vLLM's choice for a target of thirty; the draft relies on the first.
AUX_LAYERS = (2, 15, 27)
# Byte-pair vocabularies number frequent tokens first.
COMMON_TOKENS = 4096
BATCH = 256


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--target", type=Path, default=TARGET, help="model folder")
    parser.add_argument("--output", type=Path, default=DRAFT, help="draft folder")
    options = parser.parse_args()
    target, output = options.target.absolute(), options.output.absolute()
    target_recipe = folders.recipe_in(target)
    if target_recipe is None:
        print(f"There is no target in {target}; run build_target.py.", file=sys.stderr)
        return 1
    own = folders.recipe_of((Path(__file__), folders.EXAMPLE / "induction.py"))
    recipe = f"{own} for {target_recipe}"
    with folders.lock(output):
        if folders.recipe_in(output) == recipe:
            print(f"The draft is there: {output}")
            return 0
        print(f"Building the draft: {output}", flush=True)
        with folders.build(output, recipe) as partial:
            write_draft(target, partial)
    print(f"The draft is ready: {output}")
    return 0


def write_draft(target: Path, folder: Path) -> None:
    """Writes config and weights of the draft for the model in `target`."""
    # Here, so that a draft that is there costs no import.
    import torch
    from induction import Shape, build_layer
    from safetensors.torch import save_file

    config = json.loads((target / "config.json").read_text())
    shape = Shape(
        hidden=config["hidden_size"],
        heads=config["num_attention_heads"],
        kv_heads=config["num_key_value_heads"],
        head_dim=config["head_dim"],
        intermediate=config["intermediate_size"],
        aux_states=len(AUX_LAYERS),
    )
    embeddings, states = look_at_tokens(target, AUX_LAYERS[0], config["bos_token_id"])
    weights = build_layer(shape, embeddings, states)
    weights = {name: weight.to(torch.bfloat16) for name, weight in weights.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    text = json.dumps(draft_config(config), indent=2)
    (folder / "config.json").write_text(text + "\n")


def draft_config(target: dict[str, Any]) -> dict[str, Any]:
    """Returns the draft's config for a target's."""
    taken_over = (
        "bos_token_id",
        "dtype",
        "eos_token_id",
        "head_dim",
        "hidden_act",
        "hidden_size",
        "intermediate_size",
        "max_position_embeddings",
        "num_attention_heads",
        "num_key_value_heads",
        "rms_norm_eps",
        "rope_parameters",
        "vocab_size",
    )
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "num_hidden_layers": 1,
        "draft_vocab_size": target["vocab_size"],
        "tie_word_embeddings": False,
        # The next draft step starts from normed states, so that its residual is as
        # small beside the guess as the first step's.
        "norm_output": True,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": list(AUX_LAYERS)},
    } | {key: target[key] for key in taken_over}


def look_at_tokens(target: Path, layers: int, bos: int) -> "tuple[Any, Any]":
    """Shows the target each common token once, after a beginning of text.

    Returns:
        Embeddings and hidden states after `layers` layers, `[tokens, hidden]` both.
    """
    import torch
    from tqdm import tqdm
    from transformers import AutoModel

    model = AutoModel.from_pretrained(target, dtype=torch.float32)
    model.layers = model.layers[:layers]
    model.norm = torch.nn.Identity()
    states = []
    with torch.inference_mode():
        batches = torch.arange(COMMON_TOKENS).split(BATCH)
        for batch in tqdm(batches, desc="Looking at tokens"):
            text = torch.stack((torch.full_like(batch, bos), batch), dim=1)
            states.append(model(text).last_hidden_state[:, 1])
        return model.get_input_embeddings().weight[:COMMON_TOKENS], torch.cat(states)


if __name__ == "__main__":
    sys.exit(main())
