# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What is compared: one engine per row, one process per group. Imports no vLLM."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SPEC_TOKENS = 3
VOCABULARIES = ("full", "default", "full-d2t", "reduced")
# What stock vLLM says to a draft that has both all ids and a d2t.
STOCK_REFUSAL = "no module or parameter named 'draft_id_to_target_id'"


@dataclass(frozen=True)
class Row:
    """One engine.

    Attributes:
        implementation: `fork`, or `stock` with the fork switched off.
        runner: `v1`, or `v2` for Model Runner V2.
        draft: Vocabulary of the draft; `none` for no speculation.
        remapped: The remap of before PR #53458 is forced on the draft.
        refusal: What the engine must say when it refuses to start; empty where it
            must start.
    """

    implementation: str
    runner: str
    draft: str
    remapped: bool = False
    refusal: str = ""

    @property
    def kind(self) -> str:
        """What the row is, whoever runs it."""
        return self.draft + ("-remapped" if self.remapped else "")

    @property
    def name(self) -> str:
        return f"{self.implementation}/{self.runner}/{self.kind}"

    @property
    def logits(self) -> str:
        """Rows of equal logits: the reduced vocabulary's, and all the others'."""
        return self.draft if self.draft in ("none", "reduced") else "full"


@dataclass(frozen=True)
class Form:
    """How long the experiment is.

    Attributes:
        prompts: Number of questions.
        max_tokens: Longest answer.
        sequences: Answers that an engine works on at a time.
    """

    prompts: int
    max_tokens: int
    sequences: int


@dataclass(frozen=True)
class Group:
    """Rows that share a process, which runs them one after the other."""

    rows: tuple[Row, ...]
    form: Form

    @property
    def implementation(self) -> str:
        return self.rows[0].implementation

    @property
    def runner(self) -> str:
        return self.rows[0].runner

    @property
    def name(self) -> str:
        return f"{self.implementation}-{self.runner}-{self.form.max_tokens}"


LONG = Form(prompts=80, max_tokens=48, sequences=80)
# On a CPU, Model Runner V2 runs in Triton's interpreter, which is slow.
LONG_V2 = Form(prompts=80, max_tokens=8, sequences=80)
SHORT = Form(prompts=8, max_tokens=32, sequences=8)


def every_row(implementation: str, runner: str) -> tuple[Row, ...]:
    """Returns all rows of one implementation and one runner."""
    refusal = STOCK_REFUSAL if implementation == "stock" else ""
    return (
        Row(implementation, runner, "none"),
        Row(implementation, runner, "full"),
        Row(implementation, runner, "full", remapped=True),
        Row(implementation, runner, "default"),
        Row(implementation, runner, "full-d2t", refusal=refusal),
        Row(implementation, runner, "reduced"),
    )


def long_form() -> list[Group]:
    """Returns all rows, V1 before V2 and the fork before stock.

    Without a draft, no file runs that the fork replaces: there is one such row for
    each runner. What V2 answers briefly, V1 answers as briefly to be compared.
    """
    return [
        Group(every_row("fork", "v1"), LONG),
        Group(every_row("stock", "v1")[1:], LONG),
        Group(every_row("fork", "v1"), LONG_V2),
        Group(every_row("fork", "v2"), LONG_V2),
        Group(every_row("stock", "v2")[1:], LONG_V2),
    ]


def short_form() -> list[Group]:
    """Returns what the tests run: every row on V1, and beside it a few of the rest."""
    return [
        Group(every_row("fork", "v1"), SHORT),
        Group(pick(every_row("fork", "v2"), ("full",)), SHORT),
        Group(pick(every_row("stock", "v1"), ("full", "full-d2t")), SHORT),
    ]


def pick(rows: Sequence[Row], kinds: Iterable[str]) -> tuple[Row, ...]:
    """Returns the rows of these kinds."""
    wanted = set(kinds)
    return tuple(row for row in rows if row.kind in wanted)
