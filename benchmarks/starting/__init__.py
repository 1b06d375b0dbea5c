# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What `benchmarks/startup.py` is made of.

`probe.py` runs in a process of its own and takes the times, `results.py` is what they
come to.
"""
