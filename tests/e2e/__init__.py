# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Whole engines on tiny model pairs whose acceptance is known exactly.

``language.py`` defines a synthetic language and what a draft knows of it;
``simulation.py`` computes from that, in plain Python, what an engine must count.
``features.py`` and ``attention.py`` turn the same knowledge into weights,
``checkpoints.py`` writes them for three model families. ``cases.py`` lists the
engines, ``run.py`` and ``engines.py`` run them in a process of their own.
"""
