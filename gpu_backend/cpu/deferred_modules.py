"""Modules that are imported by name now and executed when their first attribute is read.

``import torch`` imports packages that rendering never uses: optimisers, distributions, quantisation, export. Python's
own `importlib.util.LazyLoader` executes a module at its second import already.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from gpu_backend.quick_dataclass import dataclass

_loading = threading.RLock()
"""Held while a module is executed: other threads that read its attributes wait."""


@dataclass(frozen=True, slots=True)
class Deferral:
    """A module to be deferred.

    Attributes
    ----------
    name
        Full name of a module written in Python.
    after
        Full name of a module to be imported before this one is executed; empty for none. Where modules import each
        other, only one order works.
    functions
        Names that other modules import from it. They get functions that execute the module when they are called.
    """

    name: str
    after: str = ""
    functions: tuple[str, ...] = ()


class DeferredModule(ModuleType):
    """A module that is not executed yet."""

    _is_loading = False
    _deferral = Deferral("")

    def __getattr__(self, name: str) -> Any:
        """Execute the module and return its attribute; special names that it lacks do not execute it."""
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name in self._deferral.functions and not self._is_loading:
            return _late_function(self, name)
        load(self)
        if type(self) is DeferredModule:  # a circular import, on this thread
            raise AttributeError(f"partially initialized module {self.__name__!r} has no attribute {name!r}")
        return getattr(self, name)


def _late_function(module: DeferredModule, name: str) -> Callable[..., Any]:
    """Return a function that executes the module and calls its function."""

    def call(*args: Any, **options: Any) -> Any:
        load(module)
        return module.__dict__[name](*args, **options)

    call.__name__ = call.__qualname__ = name
    call.__module__ = module.__name__
    return call


def load(module: ModuleType) -> None:
    """Execute a deferred module; does nothing for one that is executed, or is being executed by this thread."""
    with _loading:
        if not isinstance(module, DeferredModule) or module._is_loading:
            return
        if module._deferral.after:
            load(importlib.import_module(module._deferral.after))
        if type(module) is not DeferredModule:  # that one has used it
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
    deferrals
        The modules.
    """

    def __init__(self, deferrals: Iterable[Deferral]) -> None:
        self._deferrals = {deferral.name: deferral for deferral in deferrals}

    def defer_no_more(self) -> None:
        """Import modules as usual from now on; those that are deferred stay so until they are used."""
        self._deferrals = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a module to defer, or one that its package has imported already; None for all others."""
        package = sys.modules.get(name.rpartition(".")[0])
        if isinstance(package, DeferredModule):
            load(package)
            imported = sys.modules.get(name)
            if imported is not None:
                return already_imported(imported)
        deferral = self._deferrals.get(name)
        spec = None if deferral is None else PathFinder.find_spec(name, path)
        if deferral is not None and spec is not None and spec.loader is not None:
            spec.loader = _Deferring(spec.loader, deferral)
        return spec


def already_imported(module: ModuleType) -> ModuleSpec | None:
    """Return a spec whose import gives a module that is imported already; None if the module has no spec."""
    own = module.__spec__
    if own is None:
        return None
    # Otherwise Python would execute it a second time by its own spec. Modules of settings refuse new attributes.
    vars(module)["__spec__"] = None
    return ModuleSpec(module.__name__, _Imported(module, own))


class _Deferring(Loader):
    """Makes a module and leaves executing it to `load`."""

    def __init__(self, loader: Loader, deferral: Deferral) -> None:
        self._loader = loader
        self._deferral = deferral

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = DeferredModule(spec.name)
        module._deferral = self._deferral
        return module

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
        vars(module)["__spec__"] = self._spec


def forget(finder: MetaPathFinder) -> None:
    """Remove an import hook, if it is there."""
    with contextlib.suppress(ValueError):
        sys.meta_path.remove(finder)
