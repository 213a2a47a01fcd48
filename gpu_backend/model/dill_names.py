"""Inert stand-ins for dill's helpers in StyleGAN-XL files.

dill 0.3.4, which StyleGAN-XL's training loop pins, stores NumPy's helpers as two calls,
``_get_attr(_import_module("numpy.core._multiarray_umath"), "scalar")``. In general the two allow arbitrary imports, so
only calls that lead to a known NumPy name are accepted. Helpers that create functions, types and the like appear in
discriminators. Their calls become inert records, which `modules.take_apart` refuses in a generator.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gpu_backend.model.names import Known
from gpu_backend.model.numpy_values import ArrayRecord
from gpu_backend.model.records import Foreign, Name
from gpu_backend.model.refusal import Refusal, shown
from gpu_backend.quick_dataclass import dataclass

DILL = "dill._dill"

_NUMPY_MODULES = {
    "numpy.core.multiarray": "numpy.core.multiarray",
    "numpy.core._multiarray_umath": "numpy.core.multiarray",
    "numpy._core.multiarray": "numpy._core.multiarray",
    "numpy._core._multiarray_umath": "numpy._core.multiarray",
}
"""Module in dill's files -> public module with the same contents."""

_NUMPY_NAMES = ("scalar", "_reconstruct")

_TYPES = re.compile(r"[A-Z][A-Za-z]{0,40}Type|type|object|frozenset|property|staticmethod|classmethod", re.ASCII)
"""Types that dill may look up by name outside the generator; ``set`` is read, and allowed inside."""

_CODE = (
    (DILL, "_create_function"),
    (DILL, "_create_code"),
    (DILL, "_create_cell"),
    (DILL, "_create_ftype"),
    ("functools", "partial"),
)


@dataclass(frozen=True, slots=True, eq=False)
class _Module:
    """A NumPy module, pending the `_get_attr` call."""

    name: str


class DillNames:
    """Makes the records for dill's calls in a file.

    Parameters
    ----------
    known
        The names of NumPy's helpers, and ``builtins set``.
    requested
        Receives the NumPy names that dill looks up.
    """

    def __init__(self, known: Known, requested: set[str]) -> None:
        self._known = known
        self._requested = requested
        self._waiting: dict[int, _Module] = {}

    def known(self) -> Known:
        """(module, name) -> what a call makes."""
        return {
            **{(module, name): _inert(module, name) for module, name in _CODE},
            (DILL, "_create_type"): lambda _: _callable(DILL, "_create_type"),
            (DILL, "_create_array"): self._array,
            (DILL, "_load_type"): self._type,
            (DILL, "_import_module"): self._module,
            (DILL, "_get_attr"): self._attribute,
        }

    def finish(self) -> None:
        """Refuse a module without a following `_get_attr` call."""
        for module in self._waiting.values():
            raise _import_refused(module.name)

    def _module(self, arguments: tuple[object, ...]) -> _Module:
        name = arguments[0] if arguments else None
        if len(arguments) != 1 or not isinstance(name, str) or name not in _NUMPY_MODULES:
            raise _import_refused(name)
        module = _Module(name)
        self._waiting[id(module)] = module
        return module

    def _attribute(self, arguments: tuple[object, ...]) -> Name:
        module, name = arguments if len(arguments) == 2 else (None, None)
        if not isinstance(module, _Module) or name not in _NUMPY_NAMES:
            owner = module.name if isinstance(module, _Module) else "something"
            argument = shown(f"{owner} {name}" if isinstance(name, str) else owner)
            raise Refusal(
                "a network and nothing that runs", f"it asks {DILL} _get_attr for {argument} (nothing was run)"
            )
        self._waiting.pop(id(module), None)
        public = _NUMPY_MODULES[module.name]
        self._requested.add(f"{public} {name}")
        return Name(public, name, self._known[public, name])

    def _type(self, arguments: tuple[object, ...]) -> Name:
        name = arguments[0] if len(arguments) == 1 else None
        if name == "set":
            return Name("builtins", "set", self._known["builtins", "set"])
        if not isinstance(name, str) or not _TYPES.fullmatch(name):
            raise Refusal("a network and nothing that runs", "it asks dill for a type (nothing was run)")
        return _callable(DILL, "_load_type")

    def _array(self, arguments: tuple[object, ...]) -> ArrayRecord:
        make = arguments[0].make if arguments and isinstance(arguments[0], Name) else None
        if len(arguments) != 4 or make is None or str(arguments[0]) not in _RECONSTRUCT:
            raise Refusal("plain NumPy arrays", "found another kind")
        array = make(arguments[1] if isinstance(arguments[1], tuple) else ())
        if not isinstance(array, ArrayRecord):
            raise Refusal("plain NumPy arrays", "found another kind")
        array.set_state(arguments[2])
        return array


_RECONSTRUCT = tuple(f"{module} _reconstruct" for module in dict.fromkeys(_NUMPY_MODULES.values()))


def is_code(name: Name) -> bool:
    """Return whether a name is a function, a type or a part of one, which no generator needs."""
    return name.module in (DILL, "functools")


def _inert(module: str, name: str) -> Callable[[tuple[object, ...]], Foreign]:
    return lambda _: Foreign(Name(module, name))


def _callable(module: str, name: str) -> Name:
    """Return an inert record in place of a type: what its calls make is inert too."""
    return Name(module, name, _inert(module, name))


def _import_refused(name: object) -> Refusal:
    argument = shown(name) if isinstance(name, str) else "something else"
    return Refusal("a network and nothing that runs", f"it asks {DILL} _import_module for {argument} (nothing was run)")
