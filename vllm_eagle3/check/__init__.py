# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""``vllm-eagle3 check``: what a server would say about a draft, without the server.

The check makes the server's own engine config, builds the draft class on torch's meta
device and runs vLLM's loader over tensors that have names, shapes and dtypes but no
values. So its verdicts are the server's own code speaking, and take no GPU and no
weights.
"""
