# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Makes both model runners see the layer ids that a draft keeps in eagle_config.

Symptom: a draft whose ``eagle_aux_hidden_state_layer_ids`` stand inside
``eagle_config`` (ModelOpt exports) runs on Model Runner V2 with the target's
default layers. Nothing is logged; the draft sees hidden states that it was not
trained on, and its acceptance falls.

Cause: the V1 runner looks at the top level of the draft's config and then inside
``eagle_config``. Model Runner V2 looks at the top level only, and inside
``eagle_config`` for ``layer_ids``, which is another key.

Fix: when vLLM makes the config of an EAGLE-3 draft, copy the nested ids to the
top level, where both runners look first (and where vLLM's compile cache key is
taken from). Ids at the top level win over nested ones, as they do in V1.
"""

from typing import Any

KEY = "eagle_aux_hidden_state_layer_ids"


def lift_layer_ids(config: Any) -> None:
    """Copies nested auxiliary layer ids of a draft's config to its top level."""
    nested = getattr(config, "eagle_config", None)
    if getattr(config, KEY, None) or not isinstance(nested, dict):
        return
    if nested.get(KEY):
        setattr(config, KEY, list(nested[KEY]))


def drop_null_flag(config: Any) -> None:
    """Removes a null ``use_aux_hidden_state``, which the V1 runner takes for no.

    ModelOpt writes null where a key is not set, and means its default, yes.
    """
    nested = getattr(config, "eagle_config", None)
    if isinstance(nested, dict) and nested.get("use_aux_hidden_state", True) is None:
        config.eagle_config = {
            key: value for key, value in nested.items() if key != "use_aux_hidden_state"
        }
