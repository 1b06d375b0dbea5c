# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The plugin that makes a stock vLLM use the fork's EAGLE-3 model files.

vLLM calls ``activate`` in each of its processes (API server, engine core,
workers, and the process that inspects model classes). It puts the fork's folder
first on the path of the package ``vllm.model_executor.models``. From then on
``vllm.model_executor.models.llama_eagle3`` *is* the fork's file, for the registry,
for the proposer's ``isinstance`` checks and for everybody else. No file of vLLM
is touched, and no other model resolves differently.

Whatever speaks against it leaves stock in place as a whole: an exception that
left a plugin would end the process, so ``activate`` logs one line instead.
"""

import logging
import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from vllm_eagle3 import (
    __version__,
    aliases,
    aux_layer_ids,
    config_class,
    config_file,
    draft_config,
    greedy,
    native,
    null_quantization,
    ranks,
    rebind,
    speculative_config,
    speculators_keys,
    subtree,
    switches,
    symbols,
    versions,
)

OFF_SWITCH = "VLLM_EAGLE3_DISABLE"
# Set by the process that logged the line, inherited by its children. It must not
# begin with VLLM_, see switches.py.
_ANNOUNCED = "_VLLM_EAGLE3_ANNOUNCED"


@dataclass(frozen=True)
class Outcome:
    """What activation came to in this process.

    ``reason`` says why the overlay is inactive; it is empty when it is active.
    """

    active: bool
    reason: str = ""
    wanted: bool = True  # False where the user has switched it off


NOT_LOADED = Outcome(
    False,
    "vLLM did not load the plugin; see that the entry point `eagle3` is installed "
    "and that VLLM_PLUGINS, if set, names it",
)
_outcome = NOT_LOADED


def outcome() -> Outcome:
    """Returns what the last activation in this process came to."""
    return _outcome


def is_active() -> bool:
    """Tells whether EAGLE-3 drafts run the fork's files in this process."""
    return _outcome.active


def activate() -> None:
    """Entry point of the group ``vllm.general_plugins``; safe to call again."""
    global _outcome
    if _outcome.active:
        return
    try:
        _outcome = _try_to_activate()
    except Exception as error:
        _outcome = Outcome(False, f"{type(error).__name__}: {error}")
    _announce(_outcome)


def _try_to_activate() -> Outcome:
    # Also where the plugin is off, for others of them may be set as well.
    switches.make_known(OFF_SWITCH, greedy.OFF_SWITCH, native.OFF_SWITCH)
    if switches.is_set(OFF_SWITCH):
        return Outcome(False, f"switched off by {OFF_SWITCH}", wanted=False)
    folder = subtree.models_folder()
    reason = (
        versions.unsupported_reason()
        or _shadowing_reason(folder)
        or _missing_symbols_reason(folder)
    )
    if reason is not None:
        return Outcome(False, reason)
    try:
        _apply(folder)
    except rebind.CannotRebind as error:
        return Outcome(
            False,
            f"{error}; import vLLM's EAGLE-3 classes only after vLLM has loaded its "
            "plugins (vllm.plugins.load_general_plugins())",
        )
    return Outcome(True)


def _shadowing_reason(folder: Path) -> str | None:
    """Says if the fork's folder would hide any other file than the three."""
    import vllm.model_executor.models as package

    stock: set[str] = set()
    for path in package.__path__:
        if Path(path).resolve() != folder:
            stock |= subtree.module_names(Path(path))
    own = subtree.module_names(folder)
    hidden = own & stock
    if hidden == set(subtree.REPLACED):
        return None
    if hidden == own:
        return "this vLLM was built with the fork's patches, and has the files itself"
    difference = ", ".join(sorted(hidden ^ set(subtree.REPLACED)))
    return (
        "the model files of this vLLM are laid out differently than expected "
        f"(they differ in: {difference})"
    )


def _missing_symbols_reason(folder: Path) -> str | None:
    needed = symbols.needed_symbols(folder, subtree.PACKAGE)
    needed |= symbols.needed_symbols(Path(__file__).parent, __package__)
    missing = symbols.missing_symbols(needed, folder)
    if not missing:
        return None
    return f"this vLLM lacks what the fork imports from it: {', '.join(missing)}"


def _apply(folder: Path) -> None:
    """Makes all changes, or none of them if one fails."""
    import vllm.model_executor.models as package

    with ExitStack() as undo:
        if str(folder) not in package.__path__:
            package.__path__.insert(0, str(folder))
            undo.callback(package.__path__.remove, str(folder))
        stock = rebind.loaded_stock_modules(folder)
        if stock:
            rebind.rebind(stock, undo)
        aliases.register(undo)
        # LLM() sets up logging only after it has loaded the plugins, so the line
        # gets a second chance when the draft's config is made.
        config_class.watch(undo)
        null_quantization.watch(undo)
        speculators_keys.watch(undo)
        draft_config.watch(
            undo,
            lambda draft: aliases.check_architectures(draft.architectures),
            aux_layer_ids.drop_null_flag,
            aux_layer_ids.lift_layer_ids,
            lambda _: _announce(_outcome),
        )
        speculative_config.watch(
            undo, before=[config_file.check], after=[greedy.decide, ranks.mark]
        )
        ranks.watch(undo)
        native.load()
        undo.pop_all()


def _announce(result: Outcome) -> None:
    """Logs the outcome through vLLM, once for a whole tree of processes."""
    from vllm.logger import init_logger

    # Only loggers below "vllm" have vLLM's handler and level.
    logger = init_logger("vllm.vllm_eagle3")
    wanted_level = logging.WARNING
    if result.active or not result.wanted:
        wanted_level = logging.INFO
    if os.environ.get(_ANNOUNCED) or not logger.isEnabledFor(wanted_level):
        return
    os.environ[_ANNOUNCED] = "1"
    vllm = versions.vllm_version() or "of unknown version"
    if result.active:
        logger.log(
            wanted_level,
            "vllm-eagle3 %s is active on vLLM %s: it replaces three model files "
            "(llama_eagle3, qwen3_eagle3, deepseek_eagle3).",
            __version__,
            vllm,
        )
        return
    logger.log(
        wanted_level,
        "vllm-eagle3 %s is inactive on vLLM %s, whose own EAGLE-3 model files stay "
        "in place: %s.",
        __version__,
        vllm,
        result.reason,
    )
