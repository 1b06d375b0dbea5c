# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What a walk showed about a draft, apart from faults: the facts of a report.

Everything is read from the objects that the server's code made, or from the
checkpoint's names; nothing is decided here a second time.
"""

from collections.abc import Iterator
from typing import Any

from vllm_eagle3.check.cost import Row
from vllm_eagle3.check.dry_run import DryRun
from vllm_eagle3.check.report import (
    AuxiliaryLayers,
    Model,
    Quantisation,
    StepCost,
    Vocabulary,
)

_FAMILIES = {
    "llama_eagle3": "Llama (grouped-query attention)",
    "qwen3_eagle3": "Qwen3 (grouped-query attention, norms on queries and keys)",
    "deepseek_eagle3": "DeepSeek (multi-head latent attention)",
}
_SCALES = ("weight_scale", "weight_packed", "weight_scale_inv", "qweight", "scales")


def model(run: DryRun) -> Model | None:
    """The draft model, if it was built."""
    if run.model is None:
        return None
    draft = run.model.draft
    module = type(run.model).__module__.rpartition(".")[2]
    return Model(
        family=_FAMILIES[module],
        model_class=type(run.model).__name__,
        layers=draft.num_layers,
        hidden_size=draft.hidden_size,
        target_hidden_size=draft.target_hidden_size,
        parallel_drafting=draft.parallel_drafting,
        norms=tuple(_norms(draft)),
        auxiliary=_auxiliary(draft),
    )


def _norms(draft: Any) -> Iterator[str]:
    if draft.use_aux_hidden_state and draft.norm_before_fc:
        yield "norm_before_fc: one norm over all auxiliary states (input_norm)"
    if draft.use_aux_hidden_state and draft.fc_norm:
        yield "fc_norm: a norm for each auxiliary state"
    if draft.norm_before_residual:
        yield "norm_before_residual: the residual is taken after hidden_norm"
    if draft.norm_output:
        yield "norm_output: the next step reads normed hidden states"


def _auxiliary(draft: Any) -> AuxiliaryLayers:
    if not draft.use_aux_hidden_state:
        return AuxiliaryLayers(
            0, None, "use_aux_hidden_state is false: the target's last hidden states"
        )
    states = draft.aux
    source = states.source or "vLLM's own choice; the draft's config names none"
    return AuxiliaryLayers(states.count, states.layer_ids, source)


def vocabulary(sizes: Any, checkpoint: Any) -> Vocabulary | None:
    """Sizes, and the case of the vocabulary contract that applies.

    Args:
        sizes: the server's `VocabularySizes`.
        checkpoint: the server's `Eagle3Checkpoint`, with the maps' values.
    """
    if sizes is None:
        return None
    case, path, source = None, "contradictory, see the errors", None
    if checkpoint is not None:
        case, path, source = _case(sizes, checkpoint)
    return Vocabulary(sizes.target, sizes.embedded, sizes.draft, case, path, source)


def _case(sizes: Any, checkpoint: Any) -> tuple[str | None, str, str | None]:
    from vllm.model_executor.models.draft_vocabulary import read_vocabulary

    try:
        found = read_vocabulary(sizes, checkpoint.d2t, checkpoint.t2d)
    except ValueError:
        return None, "contradictory, see the errors", None
    source = None
    if found.offsets is not None:
        tensor = checkpoint.d2t or checkpoint.t2d
        source = tensor.name if tensor is not None else None
    return found.case.name.lower(), str(found), source


def costs(run: DryRun, found: Vocabulary | None) -> tuple[StepCost, ...]:
    """Bytes of a draft step, see `cost.py`, where it is settled how ids map."""
    if run.config is None or found is None or found.case is None:
        return ()
    speculative = run.config.speculative_config
    row = Row(
        draft=found.draft,
        target=found.target,
        embedded=found.draft_config,
        mapped=found.map_source is not None,
        logit_bytes=run.draft_config.dtype.itemsize,
    )
    widened = _widening(row)
    if speculative.use_local_argmax_reduction:
        look_up = ", then one look-up" if row.mapped else ""
        greedy = row.greedy(), f"argmax over the draft's own ids{look_up}"
    else:
        greedy = row.probabilistic(), f"{widened}, then argmax over the target's ids"
    return (
        StepCost("greedy", row.stock(), *greedy),
        StepCost("probabilistic", row.stock(), row.probabilistic(), widened),
    )


def _widening(row: Row) -> str:
    if row.mapped:
        return "logits spread over the target's ids in one pass"
    if row.draft < row.target:
        return "logits padded to the target's ids"
    return "the head's own logits, no copy"


def quantisation(run: DryRun, checkpoint: Any) -> Quantisation:
    """The draft's quantised modules, as vLLM decided or as the names say."""
    method = run.draft_config.quantization if run.config is not None else None
    if run.model is not None and method is not None and checkpoint is not None:
        modules = _quantised_modules(run.model)
        return Quantisation(method, tuple(map(checkpoint.spell, modules)))
    names = checkpoint.weights if checkpoint is not None else {}
    scaled = dict.fromkeys(
        name.rpartition(".")[0] for name in names if name.endswith(_SCALES)
    )
    return Quantisation(method, tuple(scaled), by="names")


def _quantised_modules(draft: Any) -> Iterator[str]:
    """Modules by canonical names, those that vLLM stacks one by one."""
    from vllm.model_executor.layers.linear import UnquantizedLinearMethod
    from vllm.model_executor.layers.quantization.base_config import QuantizeMethodBase
    from vllm.model_executor.layers.quantization.kv_cache import BaseKVCacheMethod
    from vllm.model_executor.layers.vocab_parallel_embedding import (
        UnquantizedEmbeddingMethod,
    )

    plain = UnquantizedLinearMethod | UnquantizedEmbeddingMethod | BaseKVCacheMethod
    for path, module in draft.named_modules():
        method = getattr(module, "quant_method", None)
        if isinstance(method, QuantizeMethodBase) and not isinstance(method, plain):
            parent, _, last = path.removeprefix("model.").rpartition(".")
            for part in draft.stacked_modules(draft.draft).get(last, (last,)):
                yield f"{parent}.{part}" if parent else part


def sharing(run: DryRun, checkpoint: Any) -> dict[str, str]:
    """Where the draft's embedding and head come from."""
    if checkpoint is None or run.config is None:
        return {}
    return {
        name: _origin(run, checkpoint, name) for name in ("embed_tokens", "lm_head")
    }


def _origin(run: DryRun, checkpoint: Any, module: str) -> str:
    if checkpoint.has_module(module):
        return "the draft's own (vLLM shares the target's if they are equal)"
    if run.loaded and getattr(run.model, f"has_own_{module}"):
        return "the draft's embed_tokens (tie_word_embeddings)"
    return "the target's; the checkpoint has none"
