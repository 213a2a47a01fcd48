"""What a GPU kernel is before it is compiled: its source by name, and the constants that shape it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from gpu_backend.ops.kernels import kernel_source


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

    @property
    def source(self) -> str:
        """The whole text that the compiler gets: the macros, then the kernel with its parts. Includes nothing."""
        macros = "".join(f"#define {name} {value}\n" for name, value in self.defines)
        return macros + kernel_source(self.stem)

    @property
    def digest(self) -> str:
        """SHA-256 of the source, in hexadecimal."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    @property
    def title(self) -> str:
        """For people: the stem and the macros that differ from 0."""
        shown = " ".join(f"{name.lower()}={value}" for name, value in self.defines if value != "0")
        return f"{self.stem} ({shown})" if shown else self.stem
