"""Styles and demodulation coefficients of all layers from the w rows, in one step.

    s      = w[row] @ (A / sqrt(w_dim))^T + a                              a is about 1
    s      = s / sqrt(in_channels)                                         toRGB only; no d
    d[o]   = rsqrt(sum_i s[i]^2 * sum_k W[o, i, k]^2 + 1e-8)               (Karras et al. 2020b, section 2.2)

StyleGAN3 normalises style and weights first, and divides by the root mean square of the layer's input in training
(Karras et al. 2021, appendix D; magnitude_ema is the mean square)::

    s      = s * rsqrt(mean_i s[i]^2)
    W[o]   = W[o] * rsqrt(mean W[o]^2)                                     then d as above, with these
    d[o]   = d[o] * rsqrt(mean W[o]^2) * rsqrt(magnitude_ema)              so that d goes with W as stored
    s      = s / sqrt(in_channels) * rsqrt(magnitude_ema)                  toRGB

With local edits, an input holds a number for each style that is added to s before d is made from it (of StyleGAN3 to
the style of unit size, of toRGB to the style with its gain)::

    s      = s + offset

Both are small and depend only on w, so on a GPU one kernel computes all of them.
"""

from __future__ import annotations

from gpu_backend.quick_dataclass import dataclass

OFFSETS_INPUT = "style_offsets"
"""Input with the numbers that are added, (style_width,), in plans that have it."""


@dataclass(frozen=True, slots=True)
class StyleSlot:
    """Offsets and factors of one layer.

    Weights are looked up as ``<layer>.affine.weight``, ``<layer>.affine.bias`` and ``<layer>.weight`` among the step's
    weights, and with `is_normalized` (StyleGAN3) as ``<layer>.magnitude_ema``. `demod_offset` -1 means no demodulation
    (toRGB).
    """

    layer: str
    w_index: int
    in_channels: int
    out_channels: int
    style_offset: int
    demod_offset: int
    style_gain: float = 1.0
    is_normalized: bool = False


@dataclass(frozen=True, slots=True)
class Styles:
    """Parameters; the outputs are (batch, style_width) and (batch, demod_width)."""

    w_dim: int
    slots: tuple[StyleSlot, ...]
    style_width: int
    demod_width: int

    def output_shapes(self, batch: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shapes of the styles and of the demodulation coefficients."""
        return (batch, self.style_width), (batch, self.demod_width)

    def flops(self, batch: int) -> int:
        """Affines and demodulation; tap sums are precomputed."""
        return 2 * batch * (self.w_dim * self.style_width + self._demod_products())

    def nbytes(self, batch: int) -> int:
        """Weights once, results once."""
        return 4 * (
            self.w_dim * self.style_width + self._demod_products() + batch * (self.style_width + self.demod_width)
        )

    def _demod_products(self) -> int:
        return sum(slot.in_channels * slot.out_channels for slot in self.slots if slot.demod_offset >= 0)
