# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Generated checkpoints, most of them broken, and what may come of each.

A checkpoint has two possible fates: the model's outputs equal the reference's, or
loading ends in a `ValueError` of the fork that says what is wrong.
"""
