# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What `benchmarks/serve.py` is made of.

`plan.py` says what is asked of whom, `server.py` runs a `vllm serve`, `client.py` sends
what `vllm bench serve` sends, `turns.py` asks stock and fork in turn, `results.py` is
what comes out.
"""
