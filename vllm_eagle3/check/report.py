# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What a check found, as data: the one thing that all ways of printing read."""

import dataclasses
import enum
from dataclasses import dataclass, field
from typing import Any

# Of `--json`. Grows when a key is renamed or removed, not when one is added.
SCHEMA_VERSION = 1


class Severity(enum.StrEnum):
    """How bad a finding is."""

    ERROR = "error"  # the server would refuse the draft
    WARNING = "warning"  # it would run worse than it should
    NOTE = "note"  # what could not be judged here


class Stage(enum.StrEnum):
    """When a server would come across a finding, in its own order."""

    CONFIG = "config"
    CONSTRUCTION = "construction"
    LOADING = "loading"
    PROPOSER = "proposer"
    # Behind the server's first refusal; it would speak up once that is mended.
    BEYOND = "beyond the first error"


@dataclass(frozen=True)
class Finding:
    """One sentence about the draft, in the server's words where it has any."""

    severity: Severity
    stage: Stage
    message: str


@dataclass(frozen=True)
class Input:
    """A model that was looked at.

    Attributes:
        name: as the user gave it.
        revision: of a Hub repository, where the user named one.
        where: the folder, or the Hub and the commit.
    """

    name: str
    revision: str | None
    where: str


@dataclass(frozen=True)
class Exporter:
    """Who seems to have written a checkpoint, and what says so."""

    name: str
    evidence: str


@dataclass(frozen=True)
class Vocabulary:
    """Sizes in ids, and how draft ids become target ids.

    Attributes:
        target: `T`; draft_config: `C`, `vocab_size` of the draft; draft: `D`.
        case: the row of the vocabulary contract, or `None` where the checkpoint
            contradicts itself.
        path: that row in words.
        map_source: the checkpoint tensor that ids are mapped by, if any.
    """

    target: int
    draft_config: int
    draft: int
    case: str | None
    path: str
    map_source: str | None


@dataclass(frozen=True)
class StepCost:
    """Bytes that one request's draft step moves behind the head's matmul.

    Attributes:
        sampling: `greedy` or `probabilistic`.
        stock, here: of vLLM's own files, and of the fork's.
        route: what the fork does, in words.
    """

    sampling: str
    stock: int
    here: int
    route: str


@dataclass(frozen=True)
class AuxiliaryLayers:
    """The layers of the target that the draft reads.

    Attributes:
        count: how many hidden states `fc` takes; 0 without auxiliary states.
        ids: as vLLM counts them, or `None` where neither config nor target says.
        source: the config key, or who guesses.
    """

    count: int
    ids: tuple[int, ...] | None
    source: str


@dataclass(frozen=True)
class Quantisation:
    """The draft's own quantisation.

    Attributes:
        method: vLLM's name of the format, or `None` for a plain draft.
        modules: what is quantised, by the checkpoint's names.
        by: `config` where vLLM's quantisation config decided, `names` where only the
            tensors' names could be read here.
    """

    method: str | None = None
    modules: tuple[str, ...] = ()
    by: str = "config"


@dataclass(frozen=True)
class Model:
    """The draft model that would run."""

    family: str
    model_class: str
    layers: int
    hidden_size: int
    target_hidden_size: int
    parallel_drafting: bool
    norms: tuple[str, ...]
    auxiliary: AuxiliaryLayers


@dataclass(frozen=True)
class Seconds:
    """Wall time: vLLM's and torch's imports, and all the rest."""

    imports: float
    check: float


@dataclass(frozen=True)
class Report:
    """Everything that a check has to say; what it could not establish is `None`."""

    draft: Input
    target: Input
    seconds: Seconds
    findings: tuple[Finding, ...]
    speculative_config: dict[str, Any]
    exporter: Exporter | None = None
    model: Model | None = None
    vocabulary: Vocabulary | None = None
    costs: tuple[StepCost, ...] = ()
    quantisation: Quantisation | None = None
    sharing: dict[str, str] = field(default_factory=dict)

    def of(self, severity: Severity) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.severity is severity)

    @property
    def verdict(self) -> str:
        """`refused`, `serves with warnings` or `serves`."""
        if self.of(Severity.ERROR):
            return "refused"
        return "serves with warnings" if self.of(Severity.WARNING) else "serves"

    def exit_code(self, *, strict: bool) -> int:
        """2 where the server would refuse, 1 for warnings if `strict`, else 0."""
        if self.of(Severity.ERROR):
            return 2
        return 1 if strict and self.of(Severity.WARNING) else 0

    def to_json(self) -> dict[str, Any]:
        """The report as plain values for `json.dumps`."""
        return {
            "schema_version": SCHEMA_VERSION,
            "verdict": self.verdict,
            **dataclasses.asdict(self),
        }
