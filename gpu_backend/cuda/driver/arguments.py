"""Arguments of a kernel: the structure of its parameters filled in by name, and the pointers that the driver takes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.schedule import Address, Argument, TensorMap
from gpu_backend.ops.kernels.recipe import KernelRecipe

_ALIGNMENT = 64

Value = np.uint64 | np.int32 | np.uint32 | np.float32 | np.void | int | float | None
"""np.uint64 is a pointer and None the null pointer; np.void a tensor map, its bytes as they are."""

EncodeMap = Callable[[int, TensorMap], bytes]
"""Takes the activations' address and returns the tensor map that a kernel takes: `Driver.tensor_map`."""


class PackedArguments:
    """Values of a kernel's arguments and their addresses.

    Parameters
    ----------
    parameters
        Of the kernel, `KernelRecipe.parameters`.
    values
        One for each parameter, by name, in any order. Python's numbers become the parameter's type.

    Attributes
    ----------
    values
        By name, as the kernel gets them and in the order of its parameters; pointers are uint64.
    address
        Of the array of pointers; valid as long as this object lives.

    Raises
    ------
    ValueError
        If values are missing or unknown, or one has not the type of its parameter.
    """

    __slots__ = ("_pointers", "_structure", "address", "values")

    def __init__(self, parameters: np.dtype[Any], values: Mapping[str, Value]) -> None:
        layout = _layout(parameters)
        if values.keys() != layout.fields.keys():
            missing, unknown = (
                sorted(layout.fields.keys() - values.keys()),
                sorted(values.keys() - layout.fields.keys()),
            )
            raise ValueError(f"a kernel's arguments lack {missing} and have {unknown} too many")
        self._structure = np.zeros(parameters.itemsize + _ALIGNMENT, np.uint8)
        begin = _address(self._structure)
        first = -begin % _ALIGNMENT
        self.values = {name: _typed(name, values[name], wanted) for name, (wanted, _) in layout.fields.items()}
        memory = self._structure.data
        for (_, offset), value in zip(layout.fields.values(), self.values.values(), strict=True):
            place = first + offset
            memory[place : place + value.itemsize] = value.tobytes()
        self._pointers = layout.offsets + np.uint64(begin + first)
        self.address = _address(self._pointers)


def pack_arguments(
    recipe: KernelRecipe,
    arguments: Mapping[str, Argument],
    regions: Mapping[str, int],
    constants: Mapping[str, int],
    encode: EncodeMap,
) -> PackedArguments:
    """Resolve a launch's arguments from the addresses of its regions and constants.

    Raises
    ------
    ValueError
        If an argument names a region or a constant that is not there, or if arguments do not fit the parameters.
    """
    values = {name: _value(argument, regions, constants, encode) for name, argument in arguments.items()}
    return PackedArguments(recipe.parameters, values)


def sizes_of(parameters: np.dtype[Any]) -> tuple[int, ...]:
    """Return the bytes of every parameter, in order."""
    return tuple(parameters[name].itemsize for name in parameters.names or ())


class _Layout(NamedTuple):
    """Types and offsets of a structure's fields by name, and the offsets alone."""

    fields: Mapping[str, tuple[np.dtype[Any], int]]
    offsets: NDArray[np.uint64]


@functools.cache
def _layout(parameters: np.dtype[Any]) -> _Layout:
    fields: Mapping[str, Any] = parameters.fields or {}
    found = {name: (fields[name][0], int(fields[name][1])) for name in parameters.names or ()}
    return _Layout(found, np.array([offset for _, offset in found.values()] or [0], np.uint64))


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]  # half as long as by ctypes, and a launch needs it twice
    return address


def _typed(name: str, value: Value, wanted: np.dtype[Any]) -> Any:
    if type(value) is wanted.type and wanted.kind != "V":
        return value
    if wanted.kind == "u" and wanted.itemsize == np.dtype(np.uint64).itemsize:
        if value is None:
            return np.uint64(0)
        fits = isinstance(value, np.uint64)
    elif isinstance(value, np.generic):
        fits = value.dtype == wanted
    else:
        fits = isinstance(value, int) or (isinstance(value, float) and wanted.kind == "f")
    if not fits:
        raise ValueError(f"the parameter {name} is {wanted}, and takes no {value!r}")
    return value if isinstance(value, np.generic) else wanted.type(value)


def _value(argument: Argument, regions: Mapping[str, int], constants: Mapping[str, int], encode: EncodeMap) -> Value:
    if isinstance(argument, TensorMap):
        address = _value(argument.address, regions, constants, encode)
        assert isinstance(address, np.uint64)
        return np.void(encode(int(address), argument))
    if isinstance(argument, Address):
        places = regions if argument.kind == "region" else constants
        if argument.name not in places:
            raise ValueError(f"the schedule has no {argument.kind} {argument.name!r}")
        return np.uint64(places[argument.name] + argument.offset)
    return argument
