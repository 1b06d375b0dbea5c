# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Replaces stock model files that were imported before the overlay.

This happens when a notebook, a test or another plugin imports a draft class or
the proposer first. Putting the fork's folder on the path is too late then: the
modules, and every name that other modules took from them, are already bound.

Of the two honest answers, repairing and refusing, each is right at times:

- Modules and names bound from them are plain values in module namespaces. All
  of them can be found and replaced, and vLLM's proposer is one of the holders.
- A subclass, a live model or a registered class object *is* a stock class and
  cannot be turned into another. Then nothing is touched at all, the process
  stays on stock as a whole, and the reason is logged.

So the check is complete before the first change is made, and a failing import
of the fork takes every change back.
"""

import gc
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from vllm_eagle3.subtree import REPLACED_MODULES


class CannotRebind(Exception):
    """Stock classes are in use in a way that cannot be repaired."""


@dataclass(frozen=True)
class _Binding:
    """A name in some module that is bound to a stock module or to part of one."""

    holder: ModuleType
    attribute: str
    value: Any
    origin: str
    defined_as: str | None  # None where the stock module itself is bound

    def replacement(self) -> Any:
        """Returns what the fork has in this place."""
        module = sys.modules[self.origin]
        if self.defined_as is None:
            return module
        if not hasattr(module, self.defined_as):
            raise CannotRebind(
                f"{self.holder.__name__} uses {self.origin}.{self.defined_as}, "
                "which the fork does not define"
            )
        return getattr(module, self.defined_as)


def loaded_stock_modules(folder: Path) -> dict[str, ModuleType]:
    """Returns the replaced modules that were loaded from elsewhere than ``folder``."""
    loaded = {}
    for name in REPLACED_MODULES:
        module = sys.modules.get(name)
        if module is not None and not _lies_in(module, folder):
            loaded[name] = module
    return loaded


def rebind(stock: dict[str, ModuleType], undo: ExitStack) -> None:
    """Replaces ``stock`` modules, and all that was bound from them.

    The fork's folder must be on the package's path already.

    Args:
        stock: What ``loaded_stock_modules`` returned.
        undo: Receives a callback for each change, also when this raises.

    Raises:
        CannotRebind: if something cannot be repaired.
    """
    _refuse_uses_beyond_names(stock)
    bindings = list(_bindings(stock))
    for binding in bindings:
        undo.callback(setattr, binding.holder, binding.attribute, binding.value)
    for name, module in stock.items():
        undo.callback(sys.modules.__setitem__, name, module)
        del sys.modules[name]
    for name in stock:
        importlib.import_module(name)
    for binding in bindings:
        setattr(binding.holder, binding.attribute, binding.replacement())
    _forget_cached_classes()


def _lies_in(module: ModuleType, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve().parent == folder


def _definitions(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) == module.__name__:
            yield name, value


def _bindings(stock: dict[str, ModuleType]) -> Iterator[_Binding]:
    """Finds each name outside ``stock`` that is bound to something of ``stock``."""
    origins: dict[int, tuple[str, str | None]] = {}
    for module_name, module in stock.items():
        origins[id(module)] = (module_name, None)
        for name, value in _definitions(module):
            origins[id(value)] = (module_name, name)
    for holder in list(sys.modules.values()):
        if not isinstance(holder, ModuleType) or holder in stock.values():
            continue
        for attribute, value in list(vars(holder).items()):
            if id(value) in origins:
                yield _Binding(holder, attribute, value, *origins[id(value)])


def _refuse_uses_beyond_names(stock: dict[str, ModuleType]) -> None:
    classes: set[type] = {
        value
        for module in stock.values()
        for _, value in _definitions(module)
        if isinstance(value, type)
    }
    for stock_class in classes:
        subclasses: list[type] = stock_class.__subclasses__()
        for subclass in subclasses:
            if subclass.__module__ not in stock:
                raise CannotRebind(
                    f"{subclass.__module__}.{subclass.__qualname__} was derived from "
                    f"the stock class {stock_class.__qualname__} before vllm-eagle3 "
                    "was loaded"
                )
    from vllm.model_executor.models.registry import ModelRegistry

    for architecture, entry in ModelRegistry.models.items():
        if getattr(entry, "model_cls", None) in classes:
            raise CannotRebind(f"a stock class was registered as {architecture}")
    for live in gc.get_objects():
        # type(), for isinstance() would run the properties of lazy objects.
        if type(live) in classes:
            raise CannotRebind(f"a stock {type(live).__qualname__} is already built")


def _forget_cached_classes() -> None:
    """Empties the registry's memory of classes that it has already resolved."""
    from vllm.model_executor.models import registry

    for name in ("_try_load_model_cls", "_try_inspect_model_cls"):
        clear: Callable[[], None] | None = getattr(
            getattr(registry, name, None), "cache_clear", None
        )
        if clear is not None:
            clear()
