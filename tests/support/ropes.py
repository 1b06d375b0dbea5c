# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Rope parameters of drafts, as configs state them."""

NAN = float("nan")
ORIGINAL = "original_max_position_embeddings"
SHARE = "partial_rotary_factor"
# Of heads with 32 features that are turned, two by two.
LISTS = {"short_factor": [1.0] * 16, "long_factor": [2.0] * 16, ORIGINAL: 512}
SECTION = {"mrope_section": [4, 6, 6]}
YARN = {"rope_type": "yarn", "factor": 4.0, ORIGINAL: 512}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    ORIGINAL: 512,
}
LONG = {"rope_type": "longrope", **LISTS}
# What any type with a factor reads, and more.
ALL = {**LLAMA3, **LISTS, **SECTION, "mrope_interleaved": True}
# Parameters that are numbers above zero.
ABOVE_ZERO = (
    "alpha",
    "attention_factor",
    "beta_fast",
    "beta_slow",
    "factor",
    "high_freq_factor",
    "long_mscale",
    "low_freq_factor",
    "max_trained_positions",
    ORIGINAL,
    "rope_theta",
    "short_mscale",
)
