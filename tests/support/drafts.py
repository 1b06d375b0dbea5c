# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Loading a draft through vLLM's own loader without starting an engine.

An engine start takes tens of seconds; the engine's config, one process group and
vLLM's `get_model` are what loading needs, and take about one.
"""

from pathlib import Path
from typing import Any
from unittest import mock

from torch import nn

from vllm_eagle3.check.runtime import one_rank as draft_environment

from .checkpoints import target_config, write_checkpoint


def _attention_backend(draft: Path) -> dict[str, str]:
    """Latent attention in float32: vLLM prefers a bfloat16 kernel where AMX is."""
    latent = "kv_lora_rank" in (draft / "config.json").read_text()
    return {"attention_backend": "CPU_MLA"} if latent else {}


def engine_config(
    draft: Path,
    target: dict[str, Any] | None = None,
    *,
    engine: dict[str, Any] | None = None,
    **speculative: Any,
) -> Any:
    """The engine's config for `draft` before a tiny Llama target, as drafts see it."""
    from vllm.engine.arg_utils import EngineArgs

    target_folder = write_checkpoint(
        draft.parent / f"{draft.name}-target", target or target_config(), {}
    )
    arguments = {
        "model": str(target_folder),
        "skip_tokenizer_init": True,
        "dtype": "float32",
        "max_model_len": 512,
        "enforce_eager": True,
        "speculative_config": {
            "method": "eagle3",
            "model": str(draft),
            "num_speculative_tokens": 3,
            **_attention_backend(draft),
            **speculative,
        },
    }
    config = EngineArgs(**(arguments | (engine or {}))).create_engine_config()
    return config.speculative_config.apply_draft_overrides(config)


def load_draft(
    draft: Path,
    target: dict[str, Any] | None = None,
    *,
    engine: dict[str, Any] | None = None,
    **speculative: Any,
) -> nn.Module:
    """Load the checkpoint folder `draft` as vLLM's proposers do.

    Raises:
        ValueError: as the draft model's constructor and `load_weights` do.
    """
    from vllm.model_executor.model_loader import get_model

    config = engine_config(draft, target, engine=engine, **speculative)
    with draft_environment(config):
        return get_model(
            vllm_config=config,
            model_config=config.speculative_config.draft_model_config,
        )


def own_rope_tables() -> Any:
    """Lets a draft make its rope table anew.

    vLLM keeps one for all models of a process that ask alike; a test that leaves a
    model in the middle of a reload would leave the table without values.
    """
    return mock.patch.dict(
        "vllm.model_executor.layers.rotary_embedding._ROPE_DICT", clear=True
    )
