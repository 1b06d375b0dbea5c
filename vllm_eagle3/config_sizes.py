# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Refuses a draft whose config has sizes beyond reason, before vLLM reads it.

Symptom: vLLM takes up all memory and hangs before it has said a word about the draft,
or ends in a message that names neither the draft nor the key ("integer modulo by
zero").

Cause: transformers makes a list with an entry for each of ``num_hidden_layers`` when
it reads the config of some model types (``qwen3``), and divides by others of the sizes,
so no check of the result comes in time.

Fix: look at the numbers in the file first, by the rule that the draft model applies
when it is built.
"""

from collections.abc import Mapping
from typing import Any


def check_sizes(given: Mapping[str, Any]) -> None:
    """Checks the sizes in a draft's ``config.json``, if it has one.

    Args:
        given: Arguments of vLLM's ``SpeculativeConfig``.

    Raises:
        ValueError: a size is beyond reason.
    """
    from vllm.model_executor.models.eagle3_sizes import check_file
    from vllm.transformers_utils.repo_utils import get_hf_file_to_dict

    draft = given.get("model")
    if not draft or not _is_eagle3(given.get("method"), draft):
        return
    try:
        config = get_hf_file_to_dict("config.json", draft, given.get("revision"))
    except (OSError, ValueError):
        return  # vLLM reads it next, and says what is wrong with it.
    if isinstance(config, dict):
        check_file(config)


def _is_eagle3(method: str | None, draft: str) -> bool:
    """As vLLM decides; without a method, it goes by the draft's name."""
    return method == "eagle3" or (method is None and "eagle3" in draft.lower())
