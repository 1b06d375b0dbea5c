# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""How long requests may be, and for which of them a draft proposes tokens.

Draft and target share positions, so vLLM makes most drafts' rope tables as long as the
target is served (vLLM #48894). Its V1 runner still goes by the length in the draft's
config, as short as 2048 in public drafts; Model Runner V2 drafts for all.
"""

from dataclasses import dataclass

from vllm.config import SpeculativeConfig, VllmConfig
from vllm.logger import init_logger

logger = init_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class RequestLengths:
    """Tokens of the longest request.

    Attributes:
        served: that the engine takes, `--max-model-len`.
        drafted: that the draft sees, and proposes tokens for.
        chosen: whether `max_model_len` of `--speculative-config` says so.
    """

    served: int
    drafted: int
    chosen: bool

    @classmethod
    def resolve(
        cls, vllm_config: VllmConfig, speculative: SpeculativeConfig
    ) -> "RequestLengths":
        """Both lengths, as the engine's runner goes by them."""
        served = vllm_config.model_config.max_model_len
        own = speculative.draft_model_config.max_model_len
        return cls(
            served=served,
            drafted=served if vllm_config.use_v2_model_runner else min(own, served),
            chosen=speculative.max_model_len is not None,
        )

    def log_doubts(self) -> None:
        """Warn of requests that are served without a draft, unless chosen so."""
        if self.chosen or self.drafted == self.served:
            return
        logger.warning(
            "The target is served with %d tokens, and the draft's config is for %d: "
            "while a longer request runs, vLLM's V1 runner proposes no draft tokens, "
            "for this and for all other requests in its batch. Raise "
            "max_position_embeddings in the draft's config, or lower --max-model-len.",
            self.served,
            self.drafted,
        )
