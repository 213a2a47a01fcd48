"""Filtered leaky ReLU of a StyleGAN3 layer: upsampling FIR, activation, downsampling FIR, which suppresses aliasing.

Per axis, with Tu taps fu, Td taps fd, x zero outside its n samples, lo = pads[0]::

    u[t] = up   sum_a fu[t + Tu - 1 - lo - up a] x[a]               0 <= t < (out_size - 1) down + Td
    v    = clamp(act(u) gain)
    y[q] =      sum_j fd[j] v[down q + Td - 1 - j]

Both are true convolutions. The first filter is separable with equal taps on both axes, the second too unless it is
radial (two-dimensional) (Karras et al. 2021, section 3.1 and appendix D). The bias is added before the padding, so that
samples beyond the border are zero.
"""

from __future__ import annotations

from gpu_backend.model.spec import FilteredLayerSpec
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FilteredLrelu:
    """Parameters of the operation. Negative `pads` crop."""

    channels: int
    in_size: int
    out_size: int
    up: int
    down: int
    pads: tuple[int, int]
    up_taps: int
    down_taps: int
    is_radial: bool
    act: BiasAct

    @classmethod
    def of_layer(cls, layer: FilteredLayerSpec) -> FilteredLrelu:
        """Return the parameters for the activation of a layer."""
        return cls(
            channels=layer.out_channels,
            in_size=layer.conv_size,
            out_size=layer.out_size,
            up=layer.up,
            down=layer.down,
            pads=layer.pads,
            up_taps=layer.up_taps,
            down_taps=layer.down_taps,
            is_radial=layer.is_radial,
            act=BiasAct.of_layer("lrelu", clamp=layer.conv_clamp),
        )

    @property
    def size(self) -> int:
        """Side of the activation's input, at the higher rate."""
        return (self.out_size - 1) * self.down + self.down_taps

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, self.out_size, self.out_size, self.channels)

    def flops(self, batch: int) -> int:
        """Two for each multiply-add of the filters, without the inserted zeros."""
        per_sample = -(-self.up_taps // self.up)
        before = per_sample * (self.in_size * self.size + self.size**2)
        after = self.down_taps * (self.out_size * self.size + self.out_size**2)
        if self.is_radial:
            after = self.down_taps**2 * self.out_size**2
        return 2 * batch * self.channels * (before + after)

    def nbytes(self, batch: int) -> int:
        """Input and output, each once."""
        return 4 * batch * self.channels * (self.in_size**2 + self.out_size**2)
