# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Whether a draft's head is quantised: by its tensors, where its config leaves it open.

`targets: [Linear]` means the head in the checkpoint, but vLLM's head is not one of its
linear layers. The other way round, an exporter may copy the target's head, in floating
point, into a draft that it has quantised without one. A config that names the head is
taken at its word; `eagle3_quant_dtypes.py` refuses tensors that contradict it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.logger import init_logger
from vllm.model_executor.layers.quantization import QuantizationConfig
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
from vllm.model_executor.model_loader.reload import record_metadata_for_reloading

from .draft_vocabulary import CheckpointTensor
from .eagle3_config import Eagle3DraftConfig
from .eagle3_quant_formats import ignore_key, names_head, quantise_head
from .eagle3_slots import is_quantised
from .utils import maybe_prefix

logger = init_logger(__name__)


@dataclass(frozen=True)
class HeadBuilder:
    """Builds the head of one draft, as often as needed.

    Attributes:
        prefix: of the draft among all modules of the engine.
        dtype: of the head's weights where they are not quantised.
    """

    vllm_config: VllmConfig
    draft: Eagle3DraftConfig
    prefix: str
    dtype: torch.dtype = field(default_factory=torch.get_default_dtype)

    def __call__(self, config: QuantizationConfig | None) -> ParallelLMHead:
        """A head that is quantised as `config` says, on the default device."""
        with set_current_vllm_config(self.vllm_config):
            return ParallelLMHead(
                self.draft.vocabulary.scored,
                self.draft.hidden_size,
                params_dtype=self.dtype,
                quant_config=config,
                prefix=maybe_prefix(self.prefix, "lm_head"),
            )


def fitting_head(
    head: ParallelLMHead,
    weights: Mapping[str, CheckpointTensor],
    config: QuantizationConfig | None,
    build: HeadBuilder,
) -> ParallelLMHead:
    """`head`, or one built anew that fits the checkpoint's.

    Args:
        head: as built by the config alone.
        weights: of the checkpoint, by canonical name.
        config: of the draft.
    """
    tensors = {
        name.removeprefix("lm_head."): found.tensor
        for name, found in weights.items()
        if name.startswith("lm_head.")
    }
    quantised = _are_quantised(tensors)
    if config is None or not tensors or quantised == is_quantised(head):
        return head
    if quantised:
        quantise_head(config)
        return _rebuild(head, build, config)
    if names_head(config):
        return head
    logger.warning(
        "lm_head.weight of the draft is %s without a scale: it is served as it is, "
        "although %s in the draft's quantization_config does not list lm_head.",
        str(tensors["weight"].dtype).removeprefix("torch."),
        ignore_key(config),
    )
    return _rebuild(head, build, None)


def _rebuild(
    head: ParallelLMHead, build: HeadBuilder, config: QuantizationConfig | None
) -> ParallelLMHead:
    with next(head.parameters()).device:
        built = build(config)
        # As vLLM does with every module when it has built a model.
        record_metadata_for_reloading(built)
    return built


def _are_quantised(tensors: Mapping[str, torch.Tensor]) -> bool:
    weight = tensors.get("weight")
    if tensors.keys() - {"weight", "bias"} or weight is None:
        return True
    return not weight.is_floating_point() or weight.itemsize == 1
