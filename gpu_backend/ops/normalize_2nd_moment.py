"""x * rsqrt(mean(x^2) + 1e-8) over the features of each row."""

from __future__ import annotations

from gpu_backend.quick_dataclass import dataclass

EPSILON = 1e-8
"""Added to the mean square; the demodulation uses the same."""


@dataclass(frozen=True, slots=True)
class Normalize2ndMoment:
    """Parameters of the operation."""

    features: int

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, self.features)

    def flops(self, batch: int) -> int:
        """A square, an addition and a product a value."""
        return 3 * batch * self.features

    def nbytes(self, batch: int) -> int:
        """A read and a write for each value."""
        return 8 * batch * self.features
