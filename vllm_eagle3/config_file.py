# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Refuses a draft whose config file nothing can be built from, before vLLM reads it.

Symptom: vLLM takes up all memory and hangs before it has said a word about the draft,
or ends in a message that names neither the draft nor the key ("integer modulo by
zero", "'int' object has no attribute 'lower'", "KeyError: 'factor'").

Cause: transformers and vLLM compute with a file while they read it: a list with an
entry for each of ``num_hidden_layers``, quotients of sizes, names in lower case. No
check of the result comes in time.

Fix: look at the file as a whole first. What a size or a rope parameter may be is the
rule of the draft model, which looks again when it is built.
"""

from collections.abc import Mapping
from typing import Any


def check(given: Mapping[str, Any]) -> None:
    """Checks the ``config.json`` of an EAGLE-3 draft, if it has one.

    Args:
        given: Arguments of vLLM's ``SpeculativeConfig``.

    Raises:
        ValueError: as `check_file` does.
    """
    draft = given.get("model")
    if not draft or not _is_eagle3(given.get("method"), draft):
        return
    config = _read("config.json", draft, given.get("revision"))
    if not isinstance(config, dict):
        return
    if config.get("quantization_config") is None:
        # Where older exporters of ModelOpt put it, and vLLM looks next.
        found = _read("hf_quant_config.json", draft, given.get("revision"))
        config = config | {"quantization_config": found}
    check_file(config)


def check_file(config: Mapping[str, Any]) -> None:
    """Checks what stands in a file, before anything is filled in.

    Args:
        config: The keys of a ``config.json``.

    Raises:
        ValueError: vLLM or transformers could not read it, or no model has such sizes.
    """
    from vllm.model_executor.models.eagle3_config_keys import refuse_unset
    from vllm.model_executor.models.eagle3_rope import check_rope
    from vllm.model_executor.models.eagle3_sizes import REQUIRED_SIZES, check_sizes

    _check_quantization(config.get("quantization_config"))
    nested = config.get("transformer_layer_config")
    flat = {**config, **(nested if isinstance(nested, Mapping) else {})}
    for key in REQUIRED_SIZES:
        # transformers puts sizes of its own in place of absent keys, but not of nulls.
        if key in flat and flat[key] is None:
            refuse_unset(key)
    check_sizes(flat)
    check_rope(flat)


def _check_quantization(quantization: Any) -> None:
    if not isinstance(quantization, Mapping | None):
        raise ValueError(
            f"quantization_config is {quantization!r} in the draft's config. It must "
            "be an object with a quant_method, or be absent."
        )
    method = (quantization or {}).get("quant_method")
    if not isinstance(method, str | None):
        raise ValueError(
            f"quant_method is {method!r} in the draft's quantization_config. It must "
            "be the name of a method, or be absent."
        )


def _is_eagle3(method: str | None, draft: str) -> bool:
    """As vLLM decides; without a method, it goes by the draft's name."""
    return method == "eagle3" or (method is None and "eagle3" in draft.lower())


def _read(name: str, draft: str, revision: str | None) -> Any:
    from vllm.transformers_utils.repo_utils import get_hf_file_to_dict

    try:
        return get_hf_file_to_dict(name, draft, revision)
    except (OSError, ValueError):
        return None  # vLLM reads it next, and says what is wrong with it.
