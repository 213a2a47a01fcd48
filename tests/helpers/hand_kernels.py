"""Kernels with their source in a test instead of ``gpu_backend/ops/kernels``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpu_backend.ops.kernels.recipe import KernelRecipe


@dataclass(frozen=True, slots=True)
class _HandKernel(KernelRecipe):
    text: str = ""

    @property
    def source(self) -> str:
        """The text as the test wrote it."""
        return "".join(f"#define {name} {value}\n" for name, value in self.defines) + self.text

    @property
    def headers(self) -> Mapping[str, str]:
        """None."""
        return {}


def hand_kernel(stem: str, text: str, defines: tuple[tuple[str, str], ...] = ()) -> KernelRecipe:
    """A recipe whose entry point is `stem` and whose source is `text`."""
    return _HandKernel(stem, defines, text)
