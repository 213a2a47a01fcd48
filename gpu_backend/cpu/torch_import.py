"""Import of torch in the background, without the GIL where possible, and without what rendering does not need.

Packages of torch for training, export and quantisation take a quarter of the time of ``import torch``. They are
deferred until something reads an attribute of theirs.

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
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from gpu_backend.cpu.deferred_modules import DeferringFinder, already_imported, forget
from gpu_backend.driver_library import driver_is_installed

_LIBRARY = "libtorch_cpu.so"
"""torch's largest shared library: loading it takes a quarter of a second, and it does not use Python."""

_SHAPES = "torch._meta_registrations"
_BUILD_ON_SHAPES = ("torch._decomp", "torch._dynamo", "torch._inductor", "torch._prims", "torch._refs")

_UNUSED = (
    "torch.ao",
    "torch.distributions",
    "torch.export",
    "torch.masked",
    "torch.nn.intrinsic",
    "torch.nn.qat",
    "torch.nn.quantizable",
    "torch.nn.quantized",
    "torch.optim",
    "torch.profiler",
    "torch.quantization",
    "torch.utils.data",
)
"""Packages that rendering does not use and that nothing else of torch reads while torch is imported."""

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
            _import_in_part()
        importlib.import_module("gpu_backend.cpu.executor")


def _import_in_part() -> None:
    sys.modules[_SHAPES] = ModuleType(_SHAPES)
    deferring = DeferringFinder(_UNUSED)
    sys.meta_path.insert(0, deferring)
    try:
        with _without_driver_packages():
            torch = importlib.import_module("torch")
    finally:
        del sys.modules[_SHAPES]
        deferring.defer_no_more()
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

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec if importing the meta registrations loaded the module; None for all other modules."""
        if name not in _BUILD_ON_SHAPES:
            return None
        forget(self)
        importlib.import_module(_SHAPES)
        module = sys.modules.get(name)
        return None if module is None else already_imported(module)


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
