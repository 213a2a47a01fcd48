"""A GPU kernel before it is compiled: the name of its source, and its macros."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from gpu_backend.ops.kernels import KernelSource, kernel_source
from gpu_backend.ops.kernels.parameters import declared_parameters, parameters_dtype
from gpu_backend.quick_dataclass import dataclass

_WAITS = 900
"""LEVEL of parts/types.cuh from which on kernels wait by themselves."""


@dataclass(frozen=True, slots=True)
class KernelRecipe:
    """A kernel to compile. Equal recipes are one kernel, whichever layers use it.

    Attributes
    ----------
    stem
        ``gpu_backend/ops/kernels/<stem>.cu``; its entry point has the same name.
    defines
        Macros, in a fixed order: ``(("TILE_ROWS", "8"), ("HAS_NOISE", "1"))``.
    """

    stem: str
    defines: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, stem: str, **macros: int) -> Self:
        """Return a kernel with these macros, in their order; a bool becomes 0 or 1."""
        return cls(stem, tuple((name, str(int(value))) for name, value in macros.items()))

    @property
    def package(self) -> str:
        """Package that holds the source."""
        return "gpu_backend.ops.kernels"

    @property
    def source(self) -> str:
        """Text for the compiler: the macros, then the kernel, whose lines count from 1."""
        macros = "".join(f"#define {name} {value}\n" for name, value in self.defines)
        return f'{macros}#line 1 "{self.stem}.cu"\n{kernel_source(self.stem, self.package).text}'

    @property
    def headers(self) -> Mapping[str, str]:
        """Texts that the source includes, by name."""
        return kernel_source(self.stem, self.package).headers

    @property
    def parameters(self) -> np.dtype[Any]:
        """The structure of the kernel's parameters: a structured dtype with their names in order."""
        return _parameters(self)

    @property
    def waits_by_itself(self) -> bool:
        """Whether the kernel waits for the one before it, so that it may start early: parts/previous_kernel.cuh."""
        return "parts/previous_kernel.cuh" in self.headers and int(dict(self.defines).get("LEVEL", _WAITS)) >= _WAITS

    @property
    def digest(self) -> str:
        """SHA-256 of the source and what it includes, in hexadecimal."""
        return hashlib.sha256(KernelSource(self.source, self.headers).whole.encode()).hexdigest()

    @property
    def title(self) -> str:
        """Readable name: the stem and the macros that differ from 0."""
        shown = " ".join(f"{name.lower()}={value}" for name, value in self.defines if value != "0")
        return f"{self.stem} ({shown})" if shown else self.stem


@functools.cache
def _parameters(recipe: KernelRecipe) -> np.dtype[Any]:
    return parameters_dtype(declared_parameters(recipe.stem, recipe.source, recipe.headers, dict(recipe.defines)))
