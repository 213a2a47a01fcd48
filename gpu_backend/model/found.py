"""Result of a format's reader before any tensor is decoded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpu_backend.model.spec import NetworkSpec
from gpu_backend.model.tensors import Loaded
from gpu_backend.model.watch import Watch
from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Found:
    """A network in a file: its spec, a decoder for its tensors, and further facts from the file.

    `base` is the path and the SHA-256 of the model that a tuned one changes, whose directions and readouts it shares.
    """

    spec: NetworkSpec
    load: Callable[[Watch], Loaded]
    container: str
    flavour: str
    requested: frozenset[str] = frozenset()
    ignored: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    base: tuple[Path, str] | None = None
