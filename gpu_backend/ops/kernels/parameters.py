"""A kernel's parameters, read from its entry point: names and types, as a structure of the host's memory.

The entry point is their only declaration. Launches give values by name; a structured dtype holds them in the order of
the parameters, and when a kernel is loaded the driver is asked whether it knows as many, of these sizes. In CUDA C++
the parameters stay separate: of pointers in a structure, the compiler knows neither that what they point to is only
read nor that they do not overlap, and makes other machine code (25 loads instead of 55 in a convolution).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

MAP_NBYTES = 128
"""Of a tensor map."""

_MAP_ALIGNMENT = 64
_TYPES = {"int": np.dtype(np.int32), "unsigned": np.dtype(np.uint32), "float": np.dtype(np.float32)}
_POINTER = np.dtype(np.uint64)
_MAP = np.dtype((np.void, MAP_NBYTES))
_LIST = re.compile(r"^\s*#define (\w+_PARAMETERS) ((?:.*\\\n)*.*)$", re.MULTILINE)
_CONDITION = re.compile(r"#if (!?)(\w+)(?: > (\d+))?$")


def declared_parameters(
    stem: str, text: str, headers: Mapping[str, str], macros: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Return type and name of every parameter of a kernel's entry point, in order.

    Lists that kernels share are macros ``..._PARAMETERS``. ``#if NAME``, ``#if !NAME`` and ``#if NAME > NUMBER`` stand
    on lines of their own; a macro that is not given is 0.

    Raises
    ------
    ValueError
        If there is no such entry point, or a condition that this does not understand.
    """
    found = re.search(rf'extern "C" __global__ [^;{{]*?\b{stem}\(([^{{]*)\)\s*\{{', text)
    if found is None:
        raise ValueError(f"{stem}.cu has no entry point {stem}")
    shared = dict(_LIST.findall("\n".join((*headers.values(), text))))
    listed = " ".join(_kept_lines(found[1], macros))
    whole = re.sub(r"\b\w+_PARAMETERS\b", lambda name: shared[name[0]].replace("\\\n", " "), listed)
    texts = (" ".join(one.split()) for one in whole.split(",") if one.strip())
    return [(one.rpartition(" ")[0], one.rpartition(" ")[2]) for one in texts]


def parameters_dtype(declared: list[tuple[str, str]]) -> np.dtype[Any]:
    """Return the structure of a kernel's parameters: pointers are uint64, each field at a multiple of its alignment.

    Raises
    ------
    ValueError
        If a parameter has a type that kernels do not take.
    """
    offsets: list[int] = []
    formats: list[np.dtype[Any]] = []
    end, widest = 0, 1
    field: np.dtype[Any]
    for kind, name in declared:
        word = kind.split()[-1]
        if "*" in kind:
            field, alignment = _POINTER, _POINTER.itemsize
        elif word == "TensorMap":
            field, alignment = _MAP, _MAP_ALIGNMENT
        elif word in _TYPES:
            field, alignment = _TYPES[word], _TYPES[word].itemsize
        else:
            raise ValueError(f"the parameter {name} has the type {kind!r}, which kernels do not take")
        offsets.append(-(-end // alignment) * alignment)
        formats.append(field)
        end, widest = offsets[-1] + field.itemsize, max(widest, alignment)
    names = [name for _, name in declared]
    nbytes = -(-end // widest) * widest
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": nbytes})


def _kept_lines(text: str, macros: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines that the preprocessor leaves, without comments."""
    holds = [True]
    for line in text.splitlines():
        code = line.split("//")[0].strip()
        if not code.startswith("#"):
            if all(holds):
                yield code
        elif code == "#endif":
            holds.pop()
        elif code == "#else":
            holds[-1] = not holds[-1]
        else:
            condition = _CONDITION.match(code)
            if condition is None:
                raise ValueError(f"parameters cannot depend on {code!r}")
            negation, name, least = condition.groups()
            holds.append((int(macros.get(name, "0")) > int(least or 0)) != bool(negation))
