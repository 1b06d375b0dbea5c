# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Public EAGLE-3 drafts, grouped by who exported them."""

from ..recipe import Recipe
from .angelslim import ANGELSLIM
from .latent import LATENT_DRAFTS
from .modelopt import MODELOPT
from .others import OTHERS
from .safeailab import SAFEAILAB
from .specforge import SPECFORGE
from .speculators import SPECULATORS

DRAFTS: tuple[Recipe, ...] = (
    *SAFEAILAB,
    *SPECFORGE,
    *SPECULATORS,
    *MODELOPT,
    *ANGELSLIM,
    *LATENT_DRAFTS,
    *OTHERS,
)
