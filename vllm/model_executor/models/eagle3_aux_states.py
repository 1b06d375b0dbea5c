# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Which of the target's layers a draft looks at: their number and their ids.

vLLM's runners read the ids from the draft's config, and fall back to three layers of
their own choice. A draft that was trained on others then proposes next to nothing that
is accepted, with no word in the log (vLLM PR #50170), so all of that is said at load.
"""

from dataclasses import dataclass
from typing import Any

from vllm.logger import init_logger

from .eagle3_config_keys import ConfigKeys

logger = init_logger(__name__)

IDS = "eagle_aux_hidden_state_layer_ids"
_COUNTS = ("num_aux_hidden_states", "num_aux_layers")


@dataclass(frozen=True)
class AuxHiddenStates:
    """What the target hands over to a draft.

    Attributes:
        layer_ids: hidden states of the target: `i` is what layer `i` reads, so the
            number of layers stands for what the last one writes.
        source: the config key that names them, or `None` where vLLM chooses.
    """

    layer_ids: tuple[int, ...]
    source: str | None

    @classmethod
    def none(cls) -> "AuxHiddenStates":
        """For drafts that take the target's last hidden states as they are."""
        return cls((), None)

    @property
    def count(self) -> int:
        return len(self.layer_ids)

    @classmethod
    def resolve(cls, keys: ConfigKeys, target_layers: int) -> "AuxHiddenStates":
        """Bring together what the keys say.

        Read: `eagle_aux_hidden_state_layer_ids` at the top level and in `eagle_config`,
        `num_aux_hidden_states`, `num_aux_layers`. The width of `fc.weight` is held
        against the result at load.

        Raises:
            ValueError: the keys contradict each other, name layers that the target
                lacks, or state a number of layers that vLLM will not choose.
        """
        found = {
            key: _layer_ids(key, value, target_layers)
            for key, value in (
                (IDS, keys.top(IDS)),
                (f"eagle_config.{IDS}", keys.nested(IDS)),
            )
            if value
        }
        counts = {key: count for key in _COUNTS if (count := keys.count(key))}
        _refuse_contradictions(found, counts)
        if not found:
            return cls._chosen_by_vllm(counts, target_layers)
        source, ids = next(iter(found.items()))
        return cls(ids, source)

    @classmethod
    def _chosen_by_vllm(
        cls, counts: dict[str, int], target_layers: int
    ) -> "AuxHiddenStates":
        # SupportsEagle3.get_eagle3_default_aux_hidden_state_layers
        chosen = (2, target_layers // 2, target_layers - 3)
        if len({i for i in chosen if 0 <= i <= target_layers}) < len(chosen):
            raise ValueError(
                f"{IDS} is not set in the draft's config, and a target of "
                f"{target_layers} layers lacks some of vLLM's own choice, the hidden "
                f"states {list(chosen)}. Set the key to those that the draft was "
                "trained on."
            )
        for key, count in counts.items():
            if count != len(chosen):
                raise ValueError(
                    f"{key} is {count} in the draft's config, but {IDS} is not set, "
                    "and without it vLLM hands over three hidden states of the target, "
                    f"{list(chosen)}. Set {IDS} to the {count} that the draft was "
                    "trained on."
                )
        return cls(chosen, None)

    def log_doubts(self) -> None:
        """Warn of what loads well and may still be accepted badly."""
        if not self.layer_ids:
            return
        if self.source is None:
            logger.warning(
                "%s is not set in the draft's config, neither at the top level nor in "
                "eagle_config: vLLM will hand over the target's hidden states %s (i is "
                "what layer i reads). If the draft was trained on others, few of its "
                "tokens will be accepted; set the key to those.",
                IDS,
                list(self.layer_ids),
            )
        elif list(self.layer_ids) != sorted(self.layer_ids):
            logger.warning(
                "%s is %s in the draft's config, but vLLM hands hidden states over by "
                "increasing layer, %s. If the draft was trained with them in another "
                "order, few of its tokens will be accepted.",
                self.source,
                list(self.layer_ids),
                sorted(self.layer_ids),
            )


def _layer_ids(key: str, value: Any, target_layers: int) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or any(type(i) is not int for i in value):
        raise ValueError(
            f"{key} is {value!r} in the draft's config. It must be a list of integers, "
            "the target's hidden states that the draft was trained on."
        )
    for layer_id in value:
        if not 0 <= layer_id <= target_layers:
            raise ValueError(
                f"{key} names {layer_id} in the draft's config, but the target has "
                f"{target_layers} layers, so 0 to {target_layers} are allowed. Serve "
                "the draft with the target that it was trained for."
            )
    if len(set(value)) < len(value):
        raise ValueError(
            f"{key} is {list(value)} in the draft's config and names one layer twice. "
            "vLLM hands each over once; correct the key."
        )
    return tuple(value)


def _refuse_contradictions(
    found: dict[str, tuple[int, ...]], counts: dict[str, int]
) -> None:
    if len(set(found.values())) > 1:
        listed = " and ".join(f"{key} says {list(ids)}" for key, ids in found.items())
        raise ValueError(
            "The draft's config contradicts itself on the auxiliary hidden states: "
            f"{listed}. Keep those that the draft was trained on."
        )
    stated = {key: len(ids) for key, ids in found.items()} | counts
    if len(set(stated.values())) > 1:
        listed = ", ".join(f"{key} says {count}" for key, count in stated.items())
        raise ValueError(
            "The draft's config contradicts itself on the number of auxiliary hidden "
            f"states: {listed}. Keep the one that fc.weight was trained with."
        )
