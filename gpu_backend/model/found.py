"""Result of a format's reader before any tensor is decoded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpu_backend.model.spec import NetworkSpec
from gpu_backend.model.tensors import Loaded
from gpu_backend.model.watch import Watch


@dataclass(frozen=True, slots=True)
class Found:
    """A network in a file: its spec, a decoder for its tensors, and further facts from the file."""

    spec: NetworkSpec
    load: Callable[[Watch], Loaded]
    container: str
    flavour: str
    requested: frozenset[str] = frozenset()
    ignored: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
