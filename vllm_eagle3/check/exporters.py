# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Which program seems to have written a draft checkpoint.

Nothing is decided by the answer; it tells a user whose export to mend. Exporters sign
by config keys, by the spelling of layer names and by the tensors they always or never
write. The first that fits is named, with what gave it away.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from vllm_eagle3.check.report import Exporter

UNKNOWN = Exporter("not recognised", "no exporter's keys or names")


@dataclass(frozen=True)
class Traces:
    """What there is to go by.

    Attributes:
        config: the draft's `config.json`.
        names: of all tensors.
        files: names in the draft's folder.
    """

    config: dict[str, Any]
    names: frozenset[str]
    files: frozenset[str]

    @property
    def architectures(self) -> tuple[str, ...]:
        names = self.config.get("architectures")
        return tuple(map(str, names)) if isinstance(names, list) else ()

    def begins(self, prefix: str) -> bool:
        return any(name.startswith(prefix) for name in self.names)

    @property
    def has_maps(self) -> bool:
        return {"d2t", "t2d"} <= self.names


def recognise(
    config: dict[str, Any], names: Collection[str], files: Collection[str]
) -> Exporter:
    """Name the exporter of a draft from what it left behind."""
    traces = Traces(config, frozenset(names), frozenset(files))
    for name, look in _EXPORTERS:
        evidence = look(traces)
        if evidence:
            return Exporter(name, evidence)
    return UNKNOWN


def _speculators(traces: Traces) -> str | None:
    kind = traces.config.get("speculators_model_type")
    return f"speculators_model_type is {kind}" if kind else None


def _automodel(traces: Traces) -> str | None:
    if "LlamaEagle3DraftModel" in traces.architectures:
        return "architectures is LlamaEagle3DraftModel"
    if traces.begins("model.layers.") and "model.embed_tokens.weight" in traces.names:
        return "every name begins with model., and embed_tokens is there"
    return None


def _modelopt(traces: Traces) -> str | None:
    if "hf_quant_config.json" in traces.files:
        return "hf_quant_config.json"
    nested = traces.config.get("eagle_config")
    keys = ("use_input_layernorm_in_first_layer", "next_layer_regular")
    found = [key for key in keys if isinstance(nested, dict) and key in nested]
    return f"eagle_config holds {found[0]}" if found else None


def _amazon(traces: Traces) -> str | None:
    if "ptd_token_id" in traces.config and traces.begins("mask_hidden"):
        return "ptd_token_id and mask_hidden"
    return None


def _latent_attention(traces: Traces) -> str | None:
    if traces.begins("layers.0.self_attn.kv_a_proj_with_mqa"):
        return "latent attention under layers.0, as Kimi's drafts"
    return None


def _safeailab(traces: Traces) -> str | None:
    if "pytorch_model.bin" in traces.files and traces.begins("midlayer."):
        return "pytorch_model.bin with midlayer names"
    return None


def _angelslim(traces: Traces) -> str | None:
    if "Eagle3LlamaForCausalLM" in traces.architectures and traces.begins("midlayer."):
        return "architectures is Eagle3LlamaForCausalLM, with midlayer names"
    return None


def _specforge(traces: Traces) -> str | None:
    if "PEagleDraftModel" in traces.architectures and traces.has_maps:
        return "architectures is PEagleDraftModel, with d2t and t2d"
    if traces.begins("midlayer.") and traces.has_maps:
        return "midlayer names with d2t and t2d in safetensors"
    return None


_EXPORTERS: tuple[tuple[str, Callable[[Traces], str | None]], ...] = (
    ("vLLM speculators", _speculators),
    ("NVIDIA NeMo Automodel", _automodel),
    ("NVIDIA ModelOpt", _modelopt),
    ("amazon P-EAGLE", _amazon),
    ("SafeAILab EAGLE", _safeailab),
    ("Tencent AngelSlim", _angelslim),
    ("SpecForge (or AngelSlim)", _specforge),
    ("MLA draft, as lightseek's and NVIDIA's for Kimi", _latent_attention),
)
