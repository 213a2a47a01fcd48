"""CUDA C++ sources of the kernels, one stem an operation.

Kernels and parts include ``"parts/NAME.cuh"``, which the compiler gets under that name, and nothing else: no toolkit is
needed. Other compilers and editors find the parts with this folder as include path.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib import resources

from gpu_backend.quick_dataclass import dataclass

_INCLUDE = re.compile(r'^#include "(parts/\w+\.cuh)"$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class KernelSource:
    """Text of a kernel.

    Attributes
    ----------
    headers
        Name as in ``#include`` -> text, of all parts that the kernel includes, in the order of the first inclusion.
    """

    text: str
    headers: Mapping[str, str]

    @property
    def whole(self) -> str:
        """All that the machine code depends on besides macros."""
        return "\0".join((self.text, *(f"{name}\0{text}" for name, text in self.headers.items())))


@functools.cache
def kernel_source(stem: str, package: str = __name__) -> KernelSource:
    """Return the text of a kernel of a package, and the parts that it includes.

    Raises
    ------
    ValueError
        If there is no such kernel or part.
    """
    text = _text(f"{stem}.cu", package)
    headers: dict[str, str] = {}
    _collect(text, package, headers)
    return KernelSource(text, headers)


def _collect(text: str, package: str, headers: dict[str, str]) -> None:
    for match in _INCLUDE.finditer(text):
        name = match[1]
        if name not in headers:
            headers[name] = _text(name, package)
            _collect(headers[name], package, headers)


def _text(path: str, package: str) -> str:
    """Return a text of a package; parts that it lacks are those here."""
    for place in (package, __name__) if path.startswith("parts/") else (package,):
        file = resources.files(place).joinpath(path)
        if file.is_file():
            return file.read_text("utf-8")
    raise ValueError(f"there is no kernel source {path!r}")
