"""A fully connected layer with equalised learning rate.

y = act(x @ (W * lr / sqrt(in_features))^T + b * lr) * gain
"""

from __future__ import annotations

from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FullyConnected:
    """Parameters of the operation."""

    in_features: int
    out_features: int
    lr_multiplier: float
    act: BiasAct

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, self.out_features)

    def flops(self, batch: int) -> int:
        """Two operations for each multiply-add."""
        return 2 * batch * self.in_features * self.out_features

    def nbytes(self, batch: int) -> int:
        """Rows and weights, each once."""
        return 4 * ((batch + self.out_features) * self.in_features + (batch + 1) * self.out_features)
