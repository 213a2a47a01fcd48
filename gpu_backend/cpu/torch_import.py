"""Import of torch in the background, without the GIL where possible, and without what rendering does not need.

``torch._meta_registrations`` and the decompositions that it imports take a quarter of the time of ``import torch``.
``torch.compile`` and fake tensors need them, rendering does not. Their import is deferred until a module that depends
on them is imported.

torch also tries to import packages that speak to the NVIDIA driver, and does without where they are missing. Where no
driver is installed, they count as missing.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from gpu_backend.driver_library import driver_is_installed

_LIBRARY = "libtorch_cpu.so"
"""torch's largest shared library: loading it takes a quarter of a second, and it does not use Python."""

_SHAPES = "torch._meta_registrations"
_BUILD_ON_SHAPES = ("torch._decomp", "torch._dynamo", "torch._inductor", "torch._prims", "torch._refs")

_OF_THE_DRIVER = ("cuda.bindings", "pynvml")

_KNOWN_VERSIONS = ("2.13.",)
"""torch versions that can be imported without the meta registrations; other versions are imported as a whole."""


def preload_library() -> None:
    """Load torch's largest library into the process without importing torch, if it is found.

    ctypes releases the GIL while it loads the library; an import does not.
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
    """Import torch and the modules that render with it. A failure is reported when a renderer is made."""
    with contextlib.suppress(ImportError):
        if "torch" not in sys.modules and _version().startswith(_KNOWN_VERSIONS):
            _import_without_shapes()
        importlib.import_module("gpu_backend.cpu.executor")


def _import_without_shapes() -> None:
    sys.modules[_SHAPES] = ModuleType(_SHAPES)
    try:
        with _without_driver_packages():
            torch = importlib.import_module("torch")
    finally:
        del sys.modules[_SHAPES]
    if hasattr(torch, "_meta_registrations"):
        del torch._meta_registrations
    sys.meta_path.insert(0, _ShapesFirst())


@contextlib.contextmanager
def _without_driver_packages() -> Iterator[None]:
    """Let imports of the driver's packages fail within this block, if there is no driver."""
    absent = () if driver_is_installed() else [name for name in _OF_THE_DRIVER if name not in sys.modules]
    for name in absent:
        sys.modules[name] = None  # type: ignore[assignment] # an import of it raises ModuleNotFoundError
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


class _ShapesFirst(MetaPathFinder):
    """Import hook: imports the meta registrations before the first module that depends on them, once."""

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return a spec if importing the meta registrations loaded the module; None for all other modules."""
        if name not in _BUILD_ON_SHAPES:
            return None
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(self)
        importlib.import_module(_SHAPES)
        module = sys.modules.get(name)
        if module is None or module.__spec__ is None:
            return None
        loaded = ModuleSpec(name, _AlreadyLoaded(module, module.__spec__))
        module.__spec__ = None  # otherwise Python would load it a second time by its own spec
        return loaded


class _AlreadyLoaded(Loader):
    """Returns the module that is already loaded. Loading it twice would register every operation twice."""

    def __init__(self, module: ModuleType, spec: ModuleSpec) -> None:
        self._module = module
        self._spec = spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the loaded module."""
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own spec."""
        module.__spec__ = self._spec


def _folder() -> Path | None:
    """Return torch's package folder; None if torch is not installed."""
    spec = importlib.util.find_spec("torch")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _version() -> str:
    """Return torch's version without importing it; empty if unknown."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        folder = _folder()
        if folder is not None:
            found = re.search(r"^__version__ = '([^']*)'", (folder / "version.py").read_text("utf-8"), re.MULTILINE)
            return found[1] if found else ""
    return ""
