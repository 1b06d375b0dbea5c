# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The environment before vLLM was imported.

vLLM's CPU backend writes to its own process's environment (`LD_PRELOAD`, thread
counts). A server that a test starts must get what a user's shell would give it.
Imported by `tests/conftest.py` before vLLM.
"""

import os

AT_START = dict(os.environ)
