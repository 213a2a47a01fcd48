"""Arguments of a kernel, laid out once as the driver wants them: an array of pointers to values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gpu_backend.cuda.schedule import Address, Argument

_SLOT_NBYTES = 8

Value = np.uint64 | np.int32 | np.uint32 | np.float32


class PackedArguments:
    """Values of a kernel's arguments, and where they lie.

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
        self._slots = np.zeros(max(len(values), 1) * _SLOT_NBYTES, np.uint8)
        for index, value in enumerate(values):
            start = index * _SLOT_NBYTES
            self._slots[start : start + value.itemsize] = np.frombuffer(value.tobytes(), np.uint8)
        first = self._slots.ctypes.data
        self._pointers = first + _SLOT_NBYTES * np.arange(max(len(values), 1), dtype=np.uint64)
        self.address = int(self._pointers.ctypes.data)


def pack_arguments(
    arguments: Sequence[Argument], regions: Mapping[str, int], constants: Mapping[str, int]
) -> PackedArguments:
    """Resolve a launch's arguments, given where regions and constants lie.

    Raises
    ------
    ValueError
        If an argument names a region or a constant that is not there, or has a type that kernels do not take.
    """
    return PackedArguments([_value(argument, regions, constants) for argument in arguments])


def _value(argument: Argument, regions: Mapping[str, int], constants: Mapping[str, int]) -> Value:
    if argument is None:
        return np.uint64(0)
    if isinstance(argument, Address):
        places = regions if argument.kind == "region" else constants
        if argument.name not in places:
            raise ValueError(f"the schedule has no {argument.kind} {argument.name!r}")
        return np.uint64(places[argument.name] + argument.offset)
    if not isinstance(argument, (np.int32, np.uint32, np.float32)):
        raise ValueError(f"a kernel takes no argument like {argument!r}")
    return argument
