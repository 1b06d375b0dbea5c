# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""From what a user types to folders that can be read: a path, or a Hub repository.

A Hub repository becomes a folder of the same layout (`hub.py`), so everything behind
this module reads folders.
"""

import contextlib
import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vllm_eagle3.check.report import Input

# As huggingface_hub accepts them: `name` or `owner/name`.
_HUB_ID = re.compile(r"[\w.-]+(?:/[\w.-]+)?")
# In the order in which vLLM's loader looks for them.
WEIGHTS = ("*.safetensors", "*.bin", "*.pt")


@dataclass(frozen=True)
class Folder:
    """A model on disk.

    Attributes:
        path: holds `config.json`, and the weight files of a draft.
        shown: what to say about it.
        scratch: whether the folder was made for this check.
    """

    path: Path
    shown: Input
    scratch: bool = False

    def config(self) -> dict[str, Any]:
        """`config.json`, unchanged.

        Raises:
            ValueError: it is no JSON object.
        """
        path = self.path / "config.json"
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{self.shown.name}: config.json is no valid JSON ({error}). Download "
                "or export the model again."
            ) from None
        if not isinstance(config, dict):
            raise ValueError(
                f"{self.shown.name}: config.json holds a {type(config).__name__}, not "
                "an object of keys and values. Export the model again."
            )
        return config


def refuse_at_sight(argument: str, name: str, revision: str | None) -> None:
    """Refuse what is neither a model's folder nor can be a Hub id.

    Args:
        argument: of the command line, for the message.

    Raises:
        ValueError: saying what to give instead.
    """
    path = _path(name)
    if path.is_dir():
        if revision is not None:
            raise ValueError(
                f"{argument} {name} is a folder, and a folder has no revisions. Leave "
                "the revision out, or give a Hub id."
            )
        _require_config(_local(name))
    elif path.exists():
        raise ValueError(
            f"{argument} {name} is a file. Give the folder that holds config.json."
        )
    elif not _HUB_ID.fullmatch(name) or name.startswith("."):
        raise ValueError(
            f"{argument} {name} is neither a folder here nor a Hub id (owner/name)."
        )


def draft_folder(name: str, revision: str | None, scratch: Path) -> Folder:
    """The draft's folder, with weight files whose headers can be read.

    Args:
        scratch: a folder for what comes from the Hub.

    Raises:
        ValueError: there is no such model, or it is no draft.
    """
    if _path(name).is_dir():
        folder = _local(name)
    else:
        from vllm_eagle3.check import hub

        folder = hub.mirror_draft(name, revision, scratch)
    _require_config(folder)
    if not any(path for kind in WEIGHTS for path in folder.path.glob(kind)):
        raise ValueError(
            f"{name} holds no weights (*.safetensors, *.bin or *.pt). Give the folder "
            "that the draft was exported to."
        )
    return folder


def target_folder(name: str, revision: str | None) -> Folder:
    """The target's folder; its config is all that is looked at.

    Raises:
        ValueError: there is no such model.
    """
    if _path(name).is_dir():
        folder = _local(name)
    else:
        from vllm_eagle3.check import hub

        folder = hub.configs_of(name, revision)
    _require_config(folder)
    return folder


def _path(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError:  # ~user, and there is no such user
        return Path(name)


def _local(name: str) -> Folder:
    path = _path(name)
    return Folder(path, Input(name, None, str(path.resolve())))


def _require_config(folder: Folder) -> None:
    if not (folder.path / "config.json").is_file():
        raise ValueError(
            f"{folder.shown.name} holds no config.json, so it is no model that vLLM "
            "can read. Give the folder (or Hub id) of the model itself."
        )


@contextlib.contextmanager
def bare_target(folder: Folder, config: dict[str, Any]) -> Iterator[Path]:
    """A folder with nothing but the target's configs, unquantised.

    How a target is quantised decides nothing about its draft, but vLLM would refuse
    formats that this machine does not run.
    """
    kept = {k: v for k, v in config.items() if k not in _QUANTISATION_KEYS}
    with tempfile.TemporaryDirectory(prefix="vllm-eagle3-check-") as scratch:
        path = Path(scratch)
        (path / "config.json").write_text(json.dumps(kept))
        for kind in ("*.json", "*.py"):  # of processors; for --trust-remote-code
            for file in folder.path.glob(kind):
                if file.name in _LEFT_OUT or not file.is_file():
                    continue
                if file.stat().st_size < _LARGEST_CONFIG:
                    (path / file.name).write_bytes(file.read_bytes())
        yield path


_QUANTISATION_KEYS = frozenset({"quantization_config", "compression_config"})
_LEFT_OUT = frozenset({"config.json", "hf_quant_config.json"})
_LARGEST_CONFIG = 2**20
