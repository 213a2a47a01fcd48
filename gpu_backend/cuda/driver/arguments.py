"""Arguments of a kernel, packed once in the driver's format: an array of pointers to values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gpu_backend.cuda.schedule import Address, Argument, TensorMap

_SLOT_NBYTES = 8
_MAP_ALIGNMENT = 64

Value = np.uint64 | np.int32 | np.uint32 | np.float32 | np.void
"""A tensor map is np.void, its bytes as they are."""

EncodeMap = Callable[[int, TensorMap], bytes]
"""Takes the activations' address and returns the tensor map that a kernel takes: `Driver.tensor_map`."""


class PackedArguments:
    """Values of a kernel's arguments and their addresses.

    Attributes
    ----------
    values
        As the kernel gets them; pointers are uint64.
    address
        Of the array of pointers; valid as long as this object lives.
    """

    __slots__ = ("_pointers", "_slots", "address", "values")

    def __init__(self, values: Sequence[Value]) -> None:
        self.values = tuple(values)
        starts, end = [], 0
        for value in values:
            unit = _MAP_ALIGNMENT if isinstance(value, np.void) else _SLOT_NBYTES
            starts.append(-(-end // unit) * unit)
            end = starts[-1] + max(value.itemsize, _SLOT_NBYTES)
        self._slots = np.zeros(end + _MAP_ALIGNMENT, np.uint8)
        first = -self._slots.ctypes.data % _MAP_ALIGNMENT
        for start, value in zip(starts, values, strict=True):
            place = first + start
            self._slots[place : place + value.itemsize] = np.frombuffer(value.tobytes(), np.uint8)
        self._pointers = self._slots.ctypes.data + first + np.array(starts or [0], np.uint64)
        self.address = int(self._pointers.ctypes.data)


def pack_arguments(
    arguments: Mapping[str, Argument], regions: Mapping[str, int], constants: Mapping[str, int], encode: EncodeMap
) -> PackedArguments:
    """Resolve a launch's arguments from the addresses of its regions and constants.

    Raises
    ------
    ValueError
        If an argument names a region or a constant that is not there, or has a type that kernels do not take.
    """
    return PackedArguments([_value(argument, regions, constants, encode) for argument in arguments.values()])


def _value(argument: Argument, regions: Mapping[str, int], constants: Mapping[str, int], encode: EncodeMap) -> Value:
    if argument is None:
        return np.uint64(0)
    if isinstance(argument, TensorMap):
        return np.void(encode(int(_value(argument.address, regions, constants, encode)), argument))
    if isinstance(argument, Address):
        places = regions if argument.kind == "region" else constants
        if argument.name not in places:
            raise ValueError(f"the schedule has no {argument.kind} {argument.name!r}")
        return np.uint64(places[argument.name] + argument.offset)
    if not isinstance(argument, (np.int32, np.uint32, np.float32)):
        raise ValueError(f"a kernel takes no argument like {argument!r}")
    return argument
