# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Every number of the recipe, and where its files stand."""

import sys
from dataclasses import dataclass
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[1]
REPOSITORY = EXAMPLE.parents[1]
BACKBONE = EXAMPLE / "backbone"

# The scripts of the folder above say where the target is.
sys.path.append(str(EXAMPLE))


@dataclass(frozen=True)
class Recipe:
    """What decides the trained draft."""

    seed: int = 20251129
    # Data.
    written_prompts: int = 2400
    user_turns: int = 3840
    longest_turn: int = 80
    shortest_turn: int = 5
    longest_answer: int = 128
    generation_batch: int = 192
    answer_batches: int = 18
    feature_batch: int = 32
    # The draft. The layers whose inputs it reads are vLLM's choice for thirty layers.
    aux_layers: tuple[int, int, int] = (2, 15, 27)
    frequent_ids: int = 8192
    # Training.
    draft_steps: int = 3
    step_weights: tuple[float, ...] = (1.0, 0.8, 0.64)
    hard_weight: float = 0.2
    epochs: int = 5
    batch_tokens: int = 2048
    learning_rate: float = 1e-3
    warmup_steps: int = 40
    weight_decay: float = 0.01
    clip: float = 0.5
    checkpoint_steps: int = 200
    workers: int = 2


@dataclass(frozen=True)
class Places:
    """Files of the recipe's stages; `root` is a folder that git ignores."""

    target: Path = REPOSITORY / "build" / "smollm2" / "target"
    root: Path = REPOSITORY / "build" / "smollm2" / "training"
    output: Path = BACKBONE

    @property
    def turns(self) -> Path:
        """Sampled user turns, one file a batch."""
        return self.root / "turns"

    @property
    def answers(self) -> Path:
        """The target's greedy answers, one file a batch."""
        return self.root / "answers"

    @property
    def features(self) -> Path:
        """Tokens and hidden states as flat arrays."""
        return self.root / "features"

    @property
    def checkpoint(self) -> Path:
        """The training's state, from which it resumes."""
        return self.root / "checkpoint.pt"

    @property
    def meeting(self) -> Path:
        """Where the workers of a training find each other."""
        return self.root / "meeting"
