# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The constructors decide on a vocabulary map from sizes, against the *target's*.

The three parametrised cases that vLLM PR #53458 went without: full, default and reduced
vocabulary at real sizes. They fail when a constructor makes the map unconditionally,
and when it compares with the draft's own `vocab_size`.
"""

import pytest
import torch

from tests.support.checkpoints import (
    FAMILIES,
    draft_config,
    target_config,
    write_checkpoint,
)
from tests.support.drafts import load_draft

LLAMA2, LLAMA3 = 32000, 128256
# Real vocabularies on a model of almost no width.
NARROW = {"hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 1}

# target's vocabulary, draft's vocab_size, draft_vocab_size, whether ids are mapped
CASES = {
    "full": (LLAMA2, LLAMA2, LLAMA2, False),
    "full, draft's own vocab_size larger": (LLAMA2, LLAMA3, LLAMA2, False),
    "default": (LLAMA2, LLAMA2, None, False),
    "reduced": (LLAMA3, LLAMA3, LLAMA2, True),
    "reduced, draft's own vocab_size as small": (LLAMA3, LLAMA2, LLAMA2, True),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("case", CASES)
def test_draft_id_to_target_id_exists_only_where_vocabularies_differ(
    tmp_path, family, case
):
    target_vocab, vocab_size, draft_vocab_size, mapped = CASES[case]
    draft = draft_config(
        family,
        vocab_size=vocab_size,
        draft_vocab_size=draft_vocab_size,
        **NARROW,
        num_key_value_heads=1,
    )
    folder = write_checkpoint(tmp_path / "draft", draft, {})
    target = target_config(
        vocab_size=target_vocab, **NARROW, num_key_value_heads=1, head_dim=32
    )
    model = load_draft(folder, target, engine={"load_format": "dummy"})
    offsets = model.draft_id_to_target_id
    if not mapped:
        assert offsets is None
        return
    assert isinstance(offsets, torch.nn.Parameter)
    assert (offsets.dtype, offsets.shape) == (torch.int64, (LLAMA2,))
    assert not offsets.requires_grad and not offsets.any()
