# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What becomes of every layout of this folder in stock vLLM, beside the fork, counted.

    python -m tests.layouts.stock            # counts and lists
    python -m tests.layouts.stock --write    # the same into docs/layouts.md

Takes five minutes on one core. The cases are those of the tests beside it, run once on
vLLM's own classes and once on the fork's; nothing is listed a second time here.
"""
