# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A Hub repository as a folder, without its weights.

Configs are downloaded into huggingface_hub's cache. Of weight files only the parts that
count are fetched, by HTTP range requests, and stand in sparse files of full size; so
whatever reads the folder sees the files that a server would see.
"""

import contextlib
import shutil
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import huggingface_hub
from huggingface_hub import HfApi, errors

from vllm_eagle3.check import partial_files
from vllm_eagle3.check.ranges import RemoteFile
from vllm_eagle3.check.report import Input
from vllm_eagle3.check.source import WEIGHTS, Folder

_CONFIGS = ("*.json", "*.py")
_NO_CONFIGS = ("tokenizer*.json", "vocab*.json", "added_tokens.json", "*/*")


def mirror_draft(name: str, revision: str | None, scratch: Path) -> Folder:
    """The draft's configs, and its weight files without the weights.

    Args:
        scratch: where the folder is made.

    Raises:
        ValueError: there is no such repository, or it cannot be reached.
    """
    with _in_words(name, revision):
        try:
            info = HfApi().model_info(name, revision=revision)
        except Exception as error:
            return _cached(name, revision, error)
        files = [sibling.rfilename for sibling in info.siblings or ()]
        folder = scratch / "draft"
        configs = huggingface_hub.snapshot_download(
            name,
            revision=info.sha,
            allow_patterns=list(_CONFIGS),
            ignore_patterns=list(_NO_CONFIGS),
        )
        shutil.copytree(configs, folder)
        for file in _weight_files(files):
            partial_files.mirror(
                RemoteFile(name, file, info.sha or "main"), folder / file
            )
    shown = Input(name, revision, f"Hub, commit {info.sha}")
    return Folder(folder, shown, scratch=True)


def configs_of(name: str, revision: str | None) -> Folder:
    """A folder with the configs of a model.

    Raises:
        ValueError: as `mirror_draft`.
    """
    with _in_words(name, revision):
        # Takes what is in the cache where the Hub cannot be asked.
        folder = huggingface_hub.snapshot_download(
            name,
            revision=revision,
            allow_patterns=list(_CONFIGS),
            ignore_patterns=list(_NO_CONFIGS),
        )
    return Folder(Path(folder), Input(name, revision, f"Hub, {Path(folder).name}"))


def _weight_files(files: list[str]) -> list[str]:
    """Those of the first kind that the repository holds, as vLLM's loader picks."""
    for kind in WEIGHTS:
        found = [name for name in files if fnmatch(name, kind) and "/" not in name]
        if found:
            return found
    return []


def _is_unreachable(error: Exception) -> bool:
    """Whether the Hub gave no answer at all, rather than one that refuses."""
    if isinstance(error, errors.OfflineModeIsEnabled | errors.LocalEntryNotFoundError):
        return True
    # Of the HTTP library that huggingface_hub uses, whichever that is.
    no_answer = isinstance(error, errors.HTTPError)
    return no_answer and not isinstance(error, errors.HfHubHTTPError)


def _cached(name: str, revision: str | None, error: Exception) -> Folder:
    """The draft as an earlier download left it, where the Hub cannot be asked.

    A check leaves configs alone.
    """
    if not _is_unreachable(error):
        raise error
    try:
        folder = Path(
            huggingface_hub.snapshot_download(
                name,
                revision=revision,
                allow_patterns=[*_CONFIGS, *WEIGHTS],
                local_files_only=True,
            )
        )
    except errors.LocalEntryNotFoundError:
        raise error from None
    if not any(any(folder.glob(kind)) for kind in WEIGHTS):
        raise error
    return Folder(folder, Input(name, revision, f"Hub cache, {folder.name}"))


@contextlib.contextmanager
def _in_words(name: str, revision: str | None) -> Iterator[None]:
    """Turn the Hub's errors into one sentence each."""
    asked = f"{name} at revision {revision}" if revision else name
    huggingface_hub.utils.disable_progress_bars()
    try:
        yield
    except errors.GatedRepoError:
        raise ValueError(
            f"{asked} is gated on the Hub. Accept its terms on its page, and log in "
            "with `hf auth login`."
        ) from None
    except errors.RevisionNotFoundError:
        raise ValueError(
            f"{name} has no revision {revision} on the Hub. Name a branch, tag or "
            "commit that it has."
        ) from None
    except errors.RepositoryNotFoundError:
        raise ValueError(
            f"{asked} is neither a folder here nor a model on the Hub that you can "
            "see. Correct the name, or log in with `hf auth login` if it is private."
        ) from None
    except (errors.HTTPError, OSError) as error:
        if not _is_unreachable(error):
            raise ValueError(
                f"The Hub did not deliver {asked}: {str(error).splitlines()[0]}. Try "
                "again."
            ) from None
        raise ValueError(
            f"{asked} is no folder here, and the Hub cannot be reached "
            f"({type(error).__name__}) and has left no copy in the cache. Give a "
            "folder, or try again with a network."
        ) from None
