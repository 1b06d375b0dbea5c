# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Rotary position embedding, in float64 and straight from the formulas."""

import math
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Rotation:
    """How queries and keys turn with their position.

    Attributes:
        frequencies: radians per position of each pair, `[size / 2]` float64.
        length: factor on rotated vectors.
        score: factor on attention scores beyond `1 / sqrt(size)`.
        interleaved: whether pairs are neighbours, else the halves' counterparts.
    """

    frequencies: torch.Tensor
    length: float = 1.0
    score: float = 1.0
    interleaved: bool = False

    def turn(self, vectors: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """`[tokens, heads, size]` by `positions`, `[tokens]`."""
        angles = positions.to(torch.float64)[:, None, None] * self.frequencies
        turned = torch.polar(torch.full_like(angles, self.length), angles)
        halves = vectors.to(torch.float64)
        if self.interleaved:
            pairs = halves.unflatten(-1, (-1, 2))
        else:
            pairs = halves.unflatten(-1, (2, -1)).transpose(-1, -2)
        result = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turned)
        if not self.interleaved:
            result = result.transpose(-1, -2)
        return result.flatten(-2).to(torch.float32)


def rotation(config: dict[str, Any], size: int, *, latent: bool) -> Rotation:
    """Of a draft with this flat config, for vectors of `size`."""
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    theta = scaling.get("rope_theta") or config.get("rope_theta") or 10_000.0
    kind = scaling.get("rope_type") or scaling.get("type") or "default"
    exponents = torch.arange(0, size, 2, dtype=torch.float64) / size
    plain = float(theta) ** -exponents
    if kind == "llama3":
        return Rotation(_llama3(plain, scaling), interleaved=latent)
    if kind == "yarn":
        frequencies = _yarn(plain, float(theta), size, scaling)
        return _yarn_scaled(frequencies, scaling, latent=latent)
    if kind not in ("default", "mrope"):
        raise ValueError(f"no formula for rope of type {kind}")
    return Rotation(plain, interleaved=latent)


def _llama3(plain: torch.Tensor, scaling: dict[str, Any]) -> torch.Tensor:
    """Long waves are stretched, short ones kept, those between blended."""
    turns = scaling["original_max_position_embeddings"] * plain / (2 * math.pi)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return plain * (kept + (1 - kept) / scaling["factor"])


def _yarn(
    plain: torch.Tensor, theta: float, size: int, scaling: dict[str, Any]
) -> torch.Tensor:
    """As `_llama3`, with the blend linear in the pair's number (YaRN, section 3.2)."""
    context = scaling["original_max_position_embeddings"]

    def pair_that_turns(times: float) -> float:
        wavelength = context / (times * 2 * math.pi)
        return size * math.log(wavelength) / (2 * math.log(theta))

    first = pair_that_turns(scaling.get("beta_fast", 32))
    last = pair_that_turns(scaling.get("beta_slow", 1))
    if scaling.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, size - 1)
    pairs = torch.arange(size // 2, dtype=torch.float64)
    stretched = ((pairs - first) / max(last - first, 1e-3)).clamp(0, 1)
    return plain * (1 - stretched + stretched / scaling["factor"])


def _yarn_scaled(
    frequencies: torch.Tensor, scaling: dict[str, Any], *, latent: bool
) -> Rotation:
    """Attention's temperature: on the vectors, or as DeepSeek does on the scores."""

    def temperature(factor: float) -> float:
        return 1 + 0.1 * factor * math.log(scaling["factor"])

    if not latent:
        return Rotation(frequencies, length=temperature(1))
    everywhere = temperature(scaling.get("mscale_all_dim", 0))
    return Rotation(
        frequencies,
        length=temperature(scaling.get("mscale", 1)) / everywhere,
        score=everywhere**2,
        interleaved=True,
    )
