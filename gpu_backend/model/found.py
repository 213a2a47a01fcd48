"""What a format's reader finds before any tensor is decoded: everything but the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpu_backend.model.records import TensorRecord
from gpu_backend.model.spec import NetworkSpec


@dataclass(frozen=True, slots=True)
class Found:
    """A network in a file: its spec, where its tensors are, and what the file said besides."""

    spec: NetworkSpec
    tensors: Mapping[str, TensorRecord]
    container: str
    flavour: str
    requested: frozenset[str] = frozenset()
    ignored: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
