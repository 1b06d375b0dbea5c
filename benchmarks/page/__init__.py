# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Turns the reports of the benchmarks of speed into `docs/performance.md`.

`reports.py` reads them, `goals.py` holds them against the goals, `head_tables.py` and
`tables.py` make tables, `plots.py` pictures, `publish.py` puts all into the text of
`performance.md` beside this file. Imports neither torch nor vLLM.
"""
