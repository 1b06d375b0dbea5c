# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Environment variables that turn parts of the fork off."""

import os

_OFF = ("", "0", "false", "no", "off")


def is_set(variable: str) -> bool:
    """Tells whether the user has set a switch, to anything but a word for no.

    vLLM complains about variables beginning with VLLM_ that it does not know, and
    refuses to start with --fail-on-environ-validation; so it is told about a switch,
    but only where it is set: known variables are part of vLLM's compile cache keys.
    """
    value = os.environ.get(variable)
    if value is None:
        return False
    from vllm.envs import environment_variables

    environment_variables.setdefault(variable, lambda: os.environ.get(variable))
    return value.strip().lower() not in _OFF
