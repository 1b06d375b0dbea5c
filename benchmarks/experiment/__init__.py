# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The experiment of vLLM PR #53458, repeated on a model that a laptop can run.

The pull request says that leaving out the remap of a full-vocabulary draft changes no
token and no acceptance count. `rows.py` lists the engines that this takes; `worker.py`
runs some of them in a process of their own, `launch.py` starts these processes;
`checks.py` says whether the claim holds, `table.py` and `plot.py` show the counts.
`../acceptance.py` is the command.
"""
