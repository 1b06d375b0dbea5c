# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Trains the draft on texts with features, with training-time test.

Every draw depends on the seed and the step alone, so a training that was stopped and
resumed ends in the same weights as one that was not.

Workers, one a core, share out the texts of each batch and add up their gradients. They
meet once a step, where the threads of one process would meet at each operation.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from batches import collate, group
from draft import Draft
from features import Text
from loss import Head, loss_of
from settings import Recipe
from torch import Tensor, distributed
from tqdm import tqdm


class Training:
    """A draft with its optimizer, at some step of the recipe."""

    def __init__(
        self,
        draft: Draft,
        head: Head,
        texts: Sequence[Text],
        recipe: Recipe,
        worker: int = 0,
    ) -> None:
        """Stands at the beginning of the recipe.

        Args:
            draft: begins with these weights, and is changed.
            head: the target's.
            texts: all of them, whichever are this worker's.
            recipe: if it has several workers, they are a process group already.
            worker: which of them this is.
        """
        self.draft, self.head, self.texts, self.recipe = draft, head, texts, recipe
        self.worker = worker
        self.step = 0
        self.optimizer = torch.optim.AdamW(
            draft.parameters(),
            lr=recipe.learning_rate,
            betas=(0.9, 0.95),
            weight_decay=recipe.weight_decay,
        )
        lengths = [len(text.tokens) for text in texts]
        self.plan = [
            indices
            for epoch in range(recipe.epochs)
            for indices in group(lengths, recipe.batch_tokens, recipe.seed + epoch)
        ]

    def run(self, checkpoint: Path | None = None, steps: int | None = None) -> None:
        """Trains to the end of the plan, or for `steps` steps.

        Args:
            checkpoint: is continued if it exists, and written now and then.
            steps: how many steps to take at most.
        """
        if checkpoint and checkpoint.exists():
            self.load(checkpoint)
        last = min(len(self.plan), self.step + (steps or len(self.plan)))
        bar = tqdm(
            desc="Training",
            total=last,
            initial=self.step,
            unit="step",
            disable=self.worker > 0,
        )
        smooth: list[float] = []
        with bar:
            while self.step < last:
                fresh = self._train_once()
                smooth = [
                    0.98 * old + 0.02 * new
                    for old, new in zip(smooth or fresh, fresh, strict=True)
                ]
                bar.update()
                bar.set_postfix_str(
                    f"loss {smooth[0]:.3f}, right "
                    + ", ".join(f"{share:.3f}" for share in smooth[1:])
                )
                due = self.step % self.recipe.checkpoint_steps == 0
                if checkpoint and (due or self.step == last) and self.worker == 0:
                    self.save(checkpoint)

    def _train_once(self) -> list[float]:
        """Takes one step; returns its loss and each draft step's share of hits."""
        for options in self.optimizer.param_groups:
            options["lr"] = self._learning_rate()
        weights = list(self.draft.parameters())
        sums = self._sums(self.plan[self.step][self.worker :: self.recipe.workers])
        if self.recipe.workers > 1:
            distributed.all_reduce(sums)
        means = sums[1:] / sums[0]
        sizes = [weight.numel() for weight in weights]
        gradients, report = means.split([sum(sizes), len(means) - sum(sizes)])
        for weight, gradient in zip(weights, gradients.split(sizes), strict=True):
            weight.grad = gradient.view_as(weight)
        torch.nn.utils.clip_grad_norm_(weights, self.recipe.clip)
        self.optimizer.step()
        self.step += 1
        return report.tolist()

    def _sums(self, indices: list[int]) -> Tensor:
        """Returns number of guesses, gradients, loss and hits, summed over guesses."""
        size = sum(weight.numel() for weight in self.draft.parameters())
        if not indices:
            return torch.zeros(2 + size + self.recipe.draft_steps)
        batch = collate([self.texts[i] for i in indices])
        with torch.autocast("cpu", torch.bfloat16):
            loss, hits = loss_of(self.draft, batch, self.head, self.recipe)
        gradients = torch.autograd.grad(loss, list(self.draft.parameters()))
        report = torch.tensor([float(loss.detach()), *hits])
        means = torch.cat([*(each.flatten() for each in gradients), report])
        guesses = len(batch.rows)
        return torch.cat((torch.tensor([float(guesses)]), guesses * means))

    def _learning_rate(self) -> float:
        """Warms up, then falls like a cosine to a fiftieth."""
        warmup = self.recipe.warmup_steps
        if self.step < warmup:
            return self.recipe.learning_rate * (self.step + 1) / warmup
        done = (self.step - warmup) / max(1, len(self.plan) - warmup)
        return self.recipe.learning_rate * (0.51 + 0.49 * math.cos(math.pi * done))

    def save(self, file: Path) -> None:
        """Writes everything that a resumed training needs."""
        partial = file.with_suffix(".partial")
        state = {
            "step": self.step,
            "draft": self.draft.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "recipe": repr(self.recipe),
            "texts": len(self.texts),
        }
        torch.save(state, partial)
        partial.rename(file)

    def load(self, file: Path) -> None:
        """Continues from `file`.

        Raises:
            ValueError: another recipe or other data made the file.
        """
        state = torch.load(file, weights_only=True)
        found = state["recipe"], state["texts"]
        if found != (repr(self.recipe), len(self.texts)):
            raise ValueError(
                f"{file} belongs to another training ({found[1]} texts, {found[0]}), "
                f"not to this one ({len(self.texts)} texts, {self.recipe!r}). "
                "Remove the file to start anew."
            )
        self.step = state["step"]
        self.draft.load_state_dict(state["draft"])
        self.optimizer.load_state_dict(state["optimizer"])
