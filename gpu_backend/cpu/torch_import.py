"""Import of torch in the background, without the GIL where possible, and without what rendering does not need.

Packages of torch for training, export, compilation and quantisation take half of the time of ``import torch``. They are
deferred until something reads an attribute of theirs.

``torch._meta_registrations`` and the decompositions that it imports take a quarter of the time of ``import torch``.
``torch.compile`` and fake tensors need them, rendering does not. Their import is deferred until a module that depends
on them is imported.

torch also tries to import packages that speak to the NVIDIA driver, and does without where they are missing. Where no
driver is installed, they count as missing, and kernels of torch for NVIDIA GPUs are not registered.
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

from gpu_backend.cpu.deferred_modules import Deferral, DeferringFinder, already_imported, forget, load
from gpu_backend.driver_library import driver_is_installed

_LIBRARY = "libtorch_cpu.so"
"""torch's largest shared library: loading it takes a quarter of a second, and it does not use Python."""

_SHAPES = ("torch._meta_registrations", "torch.distributed._meta_registrations")
_BUILD_ON_SHAPES = ("torch._decomp", "torch._dynamo", "torch._inductor", "torch._prims", "torch._refs")

_BUILD_ON_TRANSFORMS = (
    "torch._dispatch",
    "torch._functorch.eager_transforms",
    "torch.fx.experimental.const_fold",
    "torch.fx.experimental.proxy_tensor",
    "torch.fx.passes",
)

_UNUSED = (
    Deferral("torch._higher_order_ops", after="torch.func", functions=("cond", "while_loop")),
    *map(
        Deferral,
        (
            "torch.ao",
            "torch.compiler",
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
            "torchgen.model",
            "unittest.mock",
        ),
    ),
    Deferral("torch._subclasses", after="torch.func"),
    Deferral("torch.func", functions=("vmap",)),
    Deferral("torch.utils.checkpoint", after="torch.func"),
)
"""Modules that rendering does not use and of which nothing else is read while torch is imported."""

_KERNELS_FOR_GPUS = Deferral("torch._native")
"""Registers kernels for NVIDIA GPUs in place of torch's own."""

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
    sys.modules.update({name: ModuleType(name) for name in _SHAPES})
    deferring = DeferringFinder(_UNUSED if driver_is_installed() else (*_UNUSED, _KERNELS_FOR_GPUS))
    sys.meta_path.insert(0, deferring)
    try:
        with _without_driver_packages():
            torch = importlib.import_module("torch")
        for deferral in _UNUSED:  # others count on them as attributes, which an import by what is deferred had made
            importlib.import_module(deferral.name)
    finally:
        for name in _SHAPES:
            del sys.modules[name]
        deferring.defer_no_more()
    if hasattr(torch, "_meta_registrations"):
        del torch._meta_registrations
    sys.meta_path[:0] = [_First(_SHAPES, _BUILD_ON_SHAPES), _First(["torch.func"], _BUILD_ON_TRANSFORMS)]


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


class _First(MetaPathFinder):
    """Import hook: imports some modules before the first of those that depend on them, once.

    Modules of torch import each other in circles, so that only the order of a whole import works.

    Parameters
    ----------
    first
        Full names of the modules to import.
    dependants
        Full names of those that depend on them.
    """

    def __init__(self, first: Sequence[str], dependants: Sequence[str]) -> None:
        self._first = first
        self._dependants = dependants

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec if importing the first modules loaded this one; None for all other modules."""
        if name not in self._dependants:
            return None
        forget(self)
        for first in self._first:
            load(importlib.import_module(first))
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
