"""What a format's reader finds before any tensor is decoded: everything but the numbers, and the way to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpu_backend.model.spec import NetworkSpec
from gpu_backend.model.tensors import Loaded
from gpu_backend.model.watch import Watch


@dataclass(frozen=True, slots=True)
class Found:
    """A network in a file: its spec, what decodes its tensors, and what the file said besides."""

    spec: NetworkSpec
    load: Callable[[Watch], Loaded]
    container: str
    flavour: str
    requested: frozenset[str] = frozenset()
    ignored: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
