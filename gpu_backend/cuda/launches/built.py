"""What a launch builder gives: launches in order, and the constants and regions that only it knows of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpu_backend.cuda.schedule import Constant, Launch, Region


@dataclass(frozen=True, slots=True)
class Built:
    """A piece of a schedule."""

    launches: tuple[Launch, ...]
    constants: tuple[Constant, ...] = ()
    regions: tuple[Region, ...] = ()

    @classmethod
    def joined(cls, parts: Iterable[Built]) -> Built:
        """Put pieces one after another."""
        listed = tuple(parts)
        return cls(
            tuple(launch for part in listed for launch in part.launches),
            tuple(constant for part in listed for constant in part.constants),
            tuple(region for part in listed for region in part.regions),
        )
