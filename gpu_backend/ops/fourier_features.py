"""Fourier feature input of StyleGAN3: sines on a grid, transformed by the first row of w and by the user's transform.

With t = affine(w), divided by |(t0, t1)|, and points (x, y, 1) of a grid on which the picture fills [-1/2, 1/2]::

    M         = [[t0, -t1, 0], [t1, t0, 0], [0, 0, 1]] [[1, 0, -t2], [0, 1, -t3], [0, 0, 1]] transform
    freq_c'   = freq_c M[:2, :2]              phase_c' = phase_c + freq_c M[:2, 2]
    amp_c     = clip(1 - (|freq_c'| - bandwidth) / (sampling_rate / 2 - bandwidth), 0, 1)
    y[o]      = sum_c W[o, c] / sqrt(channels) amp_c sin(2 pi (freq_c' . (x, y) + phase_c'))

(Karras et al. 2021, section 3.2 and appendix F). Row vectors are multiplied from the left. `transform` maps an
output position to the untransformed picture, so it is the inverse of the visible motion.
"""

from __future__ import annotations

from gpu_backend.model.spec import StyleGAN3Spec
from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FourierFeatures:
    """Parameters: `size` is the side of the grid, `w_index` the row of w."""

    w_dim: int
    w_index: int
    channels: int
    size: int
    sampling_rate: float
    bandwidth: float

    @classmethod
    def of_network(cls, spec: StyleGAN3Spec) -> FourierFeatures:
        """Return the parameters for the input of a network."""
        grid = spec.input
        return cls(spec.w_dim, 0, grid.channels, grid.size, grid.sampling_rate, grid.bandwidth)

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, self.size, self.size, self.channels)

    def flops(self, batch: int) -> int:
        """The matrix product; the sines are negligible."""
        return 2 * batch * self.size**2 * self.channels**2

    def nbytes(self, batch: int) -> int:
        """Weights and result, each once."""
        return 4 * self.channels * (self.channels + batch * self.size**2)
