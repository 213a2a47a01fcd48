"""Modules that are imported by name now and executed when their first attribute is read.

``import torch`` imports packages that rendering never uses: optimisers, distributions, quantisation, export. Python's
own `importlib.util.LazyLoader` executes a module at its second import already.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_loading = threading.RLock()
"""Held while a module is executed: other threads that read its attributes wait."""


class DeferredModule(ModuleType):
    """A module that is not executed yet."""

    _is_loading = False

    def __getattr__(self, name: str) -> Any:
        """Execute the module and return its attribute; special names that it lacks do not execute it."""
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        load(self)
        if type(self) is DeferredModule:  # a circular import, on this thread
            raise AttributeError(f"partially initialized module {self.__name__!r} has no attribute {name!r}")
        return getattr(self, name)


def load(module: ModuleType) -> None:
    """Execute a deferred module; does nothing for one that is executed, or is being executed by this thread."""
    with _loading:
        if not isinstance(module, DeferredModule) or module._is_loading:
            return
        spec = module.__spec__
        assert spec is not None
        assert spec.loader is not None
        module._is_loading = True
        try:
            spec.loader.exec_module(module)
            module.__class__ = ModuleType  # type: ignore[assignment] # no longer deferred
        finally:
            del module._is_loading


class DeferringFinder(MetaPathFinder):
    """Import hook: defers the modules of some names, and executes a deferred package before its first submodule.

    Parameters
    ----------
    names
        Full names of modules written in Python.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)

    def defer_no_more(self) -> None:
        """Import modules as usual from now on; those that are deferred stay so until they are used."""
        self._names = frozenset()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a module to be deferred, or that its package has imported by now; None for all others."""
        package = sys.modules.get(name.rpartition(".")[0])
        if isinstance(package, DeferredModule):
            load(package)
            imported = sys.modules.get(name)
            if imported is not None:
                return already_imported(imported)
        spec = PathFinder.find_spec(name, path) if name in self._names else None
        if spec is not None and spec.loader is not None:
            spec.loader = _Deferring(spec.loader)
        return spec


def already_imported(module: ModuleType) -> ModuleSpec | None:
    """Return a spec whose import gives a module that is imported already; None if the module has no spec."""
    own = module.__spec__
    if own is None:
        return None
    module.__spec__ = None  # otherwise Python would execute it a second time by its own spec
    return ModuleSpec(module.__name__, _Imported(module, own))


class _Deferring(Loader):
    """Makes a module and leaves executing it to `load`."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return DeferredModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader


class _Imported(Loader):
    """Returns a module that is imported already."""

    def __init__(self, module: ModuleType, spec: ModuleSpec) -> None:
        self._module = module
        self._spec = spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


def forget(finder: MetaPathFinder) -> None:
    """Remove an import hook, if it is there."""
    with contextlib.suppress(ValueError):
        sys.meta_path.remove(finder)
