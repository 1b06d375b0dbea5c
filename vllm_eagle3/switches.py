# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Environment variables that turn parts of the fork off."""

import os
from functools import partial

_OFF = ("", "0", "false", "no", "off")


def is_set(variable: str) -> bool:
    """Tells whether the user has set a switch, to anything but a word for no."""
    return os.environ.get(variable, "").strip().lower() not in _OFF


def make_known(*variables: str) -> None:
    """Tells vLLM about the switches that the user has set.

    vLLM complains about variables beginning with VLLM_ that it does not know, and
    refuses to start with --fail-on-environ-validation. It looks after it has loaded the
    plugins and before it makes a config. Known variables are part of its compile cache
    keys, so those that are not set stay unknown.
    """
    from vllm.envs import environment_variables

    for variable in variables:
        if variable in os.environ:
            environment_variables.setdefault(variable, partial(os.getenv, variable))
