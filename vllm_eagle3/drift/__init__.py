# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Drift watch: what the fork rests on in vLLM, and what of it another vLLM has moved.

``vllm-eagle3 drift`` compares a tree of vLLM with ``table.json``, which ``make
drift-table`` derives from the fork's own source and from the trees of the supported
versions. Both are read as source: nothing of the tree is imported, so one that needs a
GPU, another torch or another Python can be looked at anywhere.
"""
