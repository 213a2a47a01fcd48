"""What a renderer holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """Bytes that a renderer takes for itself.

    Attributes
    ----------
    weights
        The model's weights in the form that kernels want, and other constants; on the device.
    plans
        Working buffers of all plans that stand ready; on the device.
    pinned
        Memory of the host that the device copies from and to.
    """

    weights: int
    plans: int
    pinned: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.plans + self.pinned
