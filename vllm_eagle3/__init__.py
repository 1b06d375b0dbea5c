# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""EAGLE-3 draft models for vLLM, delivered to a stock vLLM as a plugin.

Importing this package imports neither vLLM nor torch; ``overlay.activate`` is
what vLLM calls, and what changes anything.
"""

from importlib import metadata

DISTRIBUTION = "vllm-eagle3"

try:
    __version__ = metadata.version(DISTRIBUTION)
except metadata.PackageNotFoundError:
    __version__ = "unknown (not installed)"
