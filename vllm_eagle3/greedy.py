# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Makes greedy drafting pick its token without building logits over the target's ids.

Symptom: a draft of a reduced vocabulary proposes one id per token, and in every step
vLLM fills a new ``[tokens, T]`` tensor, scatters the draft's logits into it, and
searches all of it for that one id.

Cause: both runners can ask a draft for its best ids alone (``get_top_tokens``), but do
so only where ``use_local_argmax_reduction`` is set, and it is not by default.

Fix: set it when vLLM makes the speculative config, for the drafts that the fork serves
and wherever vLLM accepts it, see ``drafts_by_local_argmax``. The config travels to the
workers of both runners, at any tensor parallel size. What the user says about the
option, true or false, stands.
"""

from collections.abc import Mapping
from typing import Any

from vllm_eagle3 import subtree, switches

OPTION = "use_local_argmax_reduction"
OFF_SWITCH = "VLLM_EAGLE3_DISABLE_LOCAL_ARGMAX"


def drafts_by_local_argmax(config: Any) -> bool:
    """The rule: can this draft be asked for its best ids alone, with the same result?

    Args:
        config: A finished ``SpeculativeConfig``.
    """
    return (
        config.method == "eagle3"
        and is_served_by_the_fork(config.draft_model_config)
        # Probabilistic drafts and adaptive verification need whole logits.
        and config.draft_sample_method == "greedy"
        and not config.enable_adaptive_verification
        and _keeps_order(config.draft_model_config.hf_config)
    )


def decide(config: Any, given: Mapping[str, Any]) -> None:
    """Sets the option in a finished ``SpeculativeConfig`` where the rule says so.

    Args:
        given: Arguments that the config was made from. The config itself cannot tell a
            false that was given from the default.
    """
    if OPTION in given or switches.is_set(OFF_SWITCH):
        return
    if not drafts_by_local_argmax(config):
        return
    from vllm.logger import init_logger

    config.use_local_argmax_reduction = True
    # Only loggers below "vllm" have vLLM's handler and level.
    init_logger("vllm.vllm_eagle3").info_once(
        "vllm-eagle3 has set %s: greedy drafting takes the argmax over the draft's own "
        'vocabulary. "%s": false in --speculative-config, or %s=1, leaves it to vLLM.',
        OPTION,
        OPTION,
        OFF_SWITCH,
    )


def is_served_by_the_fork(draft: Any) -> bool:
    """Tells whether a draft's ``ModelConfig`` leads to one of the replaced files."""
    from vllm.model_executor.models.registry import ModelRegistry

    if draft is None:
        return False
    known = (ModelRegistry.models.get(name) for name in draft.architectures)
    served_by = next((entry for entry in known if entry is not None), None)
    return getattr(served_by, "module_name", None) in subtree.REPLACED_MODULES


def _keeps_order(hf_config: Any) -> bool:
    """Whether scaling leaves the greatest logit the greatest.

    vLLM's reduction over ranks refuses any other scale, at the first request.
    """
    scale = getattr(hf_config, "logit_scale", None)
    return scale is None or (isinstance(scale, (int, float)) and scale > 0)
