# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The vocabulary sizes of a draft, and whether its modules fit them.

Pure torch, no vLLM. Refusals are `ValueError`s that name the tensor or config key, what
was found, what is allowed and what to do.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import torch


class CheckpointTensor(NamedTuple):
    """A tensor beside the name that the checkpoint gave it."""

    name: str
    tensor: torch.Tensor


@dataclass(frozen=True, kw_only=True)
class VocabularySizes:
    """The three sizes that decide everything else, in ids.

    Attributes:
        target: `T`, what the target model verifies.
        embedded: `C`, `vocab_size` of the draft's config, rows of its embedding.
        draft: `D`, what the draft's head scores.
        declared: whether the draft's config sets `draft_vocab_size`.
    """

    target: int
    embedded: int
    draft: int
    declared: bool

    @classmethod
    def resolve(
        cls, *, target: int, embedded: int, draft_vocab_size: object
    ) -> "VocabularySizes":
        """Settle `D`: `draft_vocab_size`, or `C` where the key is absent or null.

        Raises:
            ValueError: `draft_vocab_size` is no positive integer, or larger than
                both vocabularies it could index.
        """
        declared = draft_vocab_size is not None
        draft = draft_vocab_size if declared else embedded
        if not isinstance(draft, int) or isinstance(draft, bool) or draft <= 0:
            raise ValueError(
                f"draft_vocab_size is {draft!r} in the draft's config. It must be a "
                "positive integer, the rows of the draft's lm_head, or be absent."
            )
        if draft > max(embedded, target):
            raise ValueError(
                f"draft_vocab_size is {draft}, more than the draft's vocab_size "
                f"{embedded} and the target's vocabulary {target}. Set it to the rows "
                "of the draft's lm_head."
            )
        return cls(target=target, embedded=embedded, draft=draft, declared=declared)

    @property
    def is_reduced(self) -> bool:
        return self.draft < self.target

    @property
    def scored(self) -> int:
        """Head rows that are ever used: padding past the target's ids is not."""
        return min(self.draft, self.target)

    @property
    def embeddable(self) -> int:
        """Embedding rows that are needed: the target's every id may come in."""
        return max(self.embedded, self.target)

    def size_source(self) -> str:
        """Where `D` comes from, in words for a message."""
        if self.declared:
            return f"draft_vocab_size is {self.draft}"
        return f"draft_vocab_size is not set and so taken as vocab_size {self.draft}"


def check_head_rows(sizes: VocabularySizes, head: CheckpointTensor) -> None:
    """Check that the draft's own head, `[D, hidden]`, scores `D` ids.

    Raises:
        ValueError: naming both numbers.
    """
    rows = head.tensor.shape[0] if head.tensor.ndim else 0
    if rows != sizes.draft:
        raise ValueError(
            f"{head.name} has {rows} rows, but {sizes.size_source()}. Set "
            f"draft_vocab_size in the draft's config to {rows}, or re-export the "
            "draft's lm_head."
        )


def check_sharing(
    sizes: VocabularySizes,
    own: Collection[str],
    *,
    mapped: bool,
    hidden_size: int,
    target_hidden_size: int,
) -> None:
    """Check that the target's modules can serve for those that the draft lacks.

    Args:
        own: which of `embed_tokens` and `lm_head` the checkpoint carries.
        mapped: whether the checkpoint carries `d2t` or `t2d`.
        hidden_size: of the draft.
        target_hidden_size: of the target.

    Raises:
        ValueError: naming the module that must be the draft's own.
    """
    if "lm_head" not in own and sizes.draft != sizes.target:
        raise ValueError(
            f"lm_head.weight is missing: {sizes.size_source()}, so the target's "
            f"lm_head of {sizes.target} rows cannot be shared. Re-export the draft "
            "with its lm_head."
        )
    # An unpadded draft lacks the ids that pad the target's vocabulary, no others.
    unpadded = sizes.embedded == sizes.draft and not mapped
    if "embed_tokens" in own and sizes.embedded < sizes.target and not unpadded:
        raise ValueError(
            f"embed_tokens.weight is the draft's own with {sizes.embedded} rows "
            f"(vocab_size), fewer than the target's vocabulary {sizes.target}: some "
            "tokens could not be embedded. Re-export the draft without embed_tokens, "
            "or with all rows."
        )
    missing = sorted({"embed_tokens", "lm_head"} - set(own))
    if missing and hidden_size != target_hidden_size:
        raise ValueError(
            f"{missing[0]}.weight is missing: the draft's hidden_size is {hidden_size} "
            f"and the target's {target_hidden_size}, so the target's cannot be shared. "
            f"Re-export the draft with its {missing[0]}."
        )
