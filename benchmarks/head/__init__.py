# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What `benchmarks/draft_head.py` is made of.

`cases.py` says for what sizes, `variants.py` which ways there are, `timing.py` and
`memory.py` measure, `measuring.py` brings them together, `results.py` is what comes
out.
"""
