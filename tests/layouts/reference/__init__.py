# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""EAGLE-3 drafts in plain PyTorch, written from the papers.

EAGLE-3 (arXiv 2503.01840) for the draft, P-EAGLE (arXiv 2602.01469) for parallel
drafting, DeepSeek-V2 (arXiv 2405.04434) for latent attention, YaRN (arXiv 2309.00071)
for long contexts. Shares no code with the models under test and imports no vLLM: what
a draft is gets decided by the tensors in its checkpoint wherever they can decide it.
"""

from .draft import Outputs, ReferenceDraft

__all__ = ["Outputs", "ReferenceDraft"]
