"""torch, imported beside everything else: what takes long is done without holding Python's lock where that can be.

A quarter of the time of ``import torch`` goes into shapes of operations for tensors without data
(``torch._meta_registrations`` and the decompositions that it imports). ``torch.compile`` and fake tensors need them,
rendering does not, so they are left for later: whoever imports a module that builds on them gets them first.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import os
import re
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

_LIBRARY = "libtorch_cpu.so"
"""The largest of torch's libraries: linking it takes a quarter of a second. It needs no Python."""

_SHAPES = "torch._meta_registrations"
_BUILD_ON_SHAPES = ("torch._decomp", "torch._dynamo", "torch._inductor", "torch._prims", "torch._refs")

_KNOWN_VERSIONS = ("2.13.",)
"""Of torch, in which nothing else needs the shapes while it is imported; other versions are imported as a whole."""


def preload_library() -> None:
    """Load torch's largest library into the process without importing torch; nothing happens where it is not found.

    A call by ctypes lets other threads run Python meanwhile, which an import that links a library does not.
    """
    if sys.platform != "linux" or "torch" in sys.modules:
        return
    with contextlib.suppress(ImportError, OSError, ValueError, AttributeError):
        folder = _folder()
        if folder is None:
            return
        dlopen = ctypes.CDLL(None).dlopen
        dlopen.restype, dlopen.argtypes = ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_int)
        dlopen(os.fsencode(folder / "lib" / _LIBRARY), os.RTLD_NOW | os.RTLD_LOCAL)


def import_torch() -> None:
    """Import torch and what renders with it; whoever makes a renderer is told if that fails."""
    with contextlib.suppress(ImportError):
        if "torch" not in sys.modules and _version().startswith(_KNOWN_VERSIONS):
            _import_without_shapes()
        importlib.import_module("gpu_backend.cpu.executor")


def _import_without_shapes() -> None:
    sys.modules[_SHAPES] = ModuleType(_SHAPES)
    try:
        torch = importlib.import_module("torch")
    finally:
        del sys.modules[_SHAPES]
    if hasattr(torch, "_meta_registrations"):
        del torch._meta_registrations
    sys.meta_path.insert(0, _ShapesFirst())


class _ShapesFirst(MetaPathFinder):
    """Imports the shapes as soon as a module is asked for that builds on them, once."""

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the module that came with the shapes, None for every other."""
        if name not in _BUILD_ON_SHAPES:
            return None
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(self)
        importlib.import_module(_SHAPES)
        module = sys.modules.get(name)
        if module is None or module.__spec__ is None:
            return None
        loaded = ModuleSpec(name, _AlreadyLoaded(module, module.__spec__))
        module.__spec__ = None  # or Python would load it a second time by the spec that it has
        return loaded


class _AlreadyLoaded(Loader):
    """Gives the module that the import of the shapes has loaded; loading it twice would register everything twice."""

    def __init__(self, module: ModuleType, spec: ModuleSpec) -> None:
        self._module = module
        self._spec = spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return it."""
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Give it back its own spec."""
        module.__spec__ = self._spec


def _folder() -> Path | None:
    """Return the folder of torch, None where there is none."""
    spec = importlib.util.find_spec("torch")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _version() -> str:
    """Return torch's version without importing it, empty where it is not found out."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        folder = _folder()
        if folder is not None:
            found = re.search(r"^__version__ = '([^']*)'", (folder / "version.py").read_text("utf-8"), re.MULTILINE)
            return found[1] if found else ""
    return ""
