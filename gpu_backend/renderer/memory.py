"""Memory use of a renderer."""

from __future__ import annotations

from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """Memory that a renderer allocates, in bytes.

    Attributes
    ----------
    weights
        Device memory of packed weights and other constants.
    plans
        Device memory of the working buffers of all cached plans.
    pinned
        Page-locked host memory.
    """

    weights: int
    plans: int
    pinned: int

    @property
    def total(self) -> int:
        """Sum of all three."""
        return self.weights + self.plans + self.pinned
