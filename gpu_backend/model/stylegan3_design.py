"""The layers, frequencies and filters of a StyleGAN3 network of a size, by the formulas of its paper.

With N layers before the toRGB, M of them critically sampled, and e_i = min(i / (N - M), 1) (Karras et al. 2021,
section 3.2)::

    cutoff_i    = first_cutoff (resolution / 2 / first_cutoff)^e_i
    stopband_i  = first_stopband (resolution / 2 last_stopband_rel / first_stopband)^e_i
    rate_i      = 2^ceil(log2(min(2 stopband_i, resolution)))
    width_i     = 2 (max(stopband_i, rate_i / 2) - cutoff_i)                 of the transition band
    size_i      = rate_i + 2 margin                                          the last two: resolution
    channels_i  = round(min(channel_base / 2 / cutoff_i, channel_max))       the last: those of the picture

A layer works between the sides i - 1 and i, at twice the higher of their rates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gpu_backend.model.spec import FilteredLayerSpec, FourierSpec
from gpu_backend.model.stylegan3_filters import low_pass, radial_low_pass
from gpu_backend.quick_dataclass import dataclass

_NEARLY = 1e-9
"""An exponent this little above a whole number is that number, rounded."""


@dataclass(frozen=True, slots=True)
class Side:
    """Where one layer ends and the next one begins. Cutoff and width are in cycles across the picture."""

    cutoff: float
    width: float
    rate: int
    size: int
    channels: int


@dataclass(frozen=True, slots=True)
class SidedLayer:
    """A layer, and the sides that its filters are for."""

    spec: FilteredLayerSpec
    before: Side
    after: Side


@dataclass(frozen=True, slots=True)
class StyleGAN3Design:
    """Parameters that determine the layers; the defaults are those of configuration T.

    Attributes
    ----------
    kernel, is_radial
        3 and separable filters (T), or 1 and filters that are the same in all directions (R).
    num_critical
        How many layers before the toRGB are sampled as coarsely as can be.
    first_cutoff, first_stopband
        In cycles across the picture, of the first layer.
    last_stopband_rel
        Stopband over cutoff in the last layers.
    margin
        Samples beyond the picture on each side.
    filter_size
        Taps for each sample between two of the finer side's.
    num_fp16_res
        How many doublings of the sampling rate below the full one run in half precision.
    """

    resolution: int
    img_channels: int = 3
    channel_base: int = 32768
    channel_max: int = 512
    kernel: int = 3
    is_radial: bool = False
    num_layers: int = 14
    num_critical: int = 2
    first_cutoff: float = 2.0
    first_stopband: float = 2**2.1
    last_stopband_rel: float = 2**0.3
    margin: int = 10
    filter_size: int = 6
    conv_clamp: float | None = 256.0
    num_fp16_res: int = 4

    def layers(self) -> tuple[FilteredLayerSpec, ...]:
        """List the layers in execution order."""
        return tuple(layer.spec for layer in self.sided_layers())

    def input(self) -> FourierSpec:
        """Return the input's grid and band."""
        first = self._side(0)
        return FourierSpec(first.channels, first.size, float(first.rate), self.first_cutoff)

    def filters(self) -> dict[str, NDArray[np.float32]]:
        """Return every filter of the layers, by tensor name."""
        return filters_of(self.sided_layers())

    def sided_layers(self) -> list[SidedLayer]:
        """List the layers with their input and output bands."""
        first = self._side(0)
        return [self._layer(0, 0, 0, first, first), *self.layers_after(first, 0, 0)]

    def layers_after(self, first: Side, number: int, row: int) -> list[SidedLayer]:
        """List the layers from the second on, after a first one of this side, number and row of w."""
        sides = [first, *(self._side(index) for index in range(1, self.num_layers + 1))]
        pairs = enumerate(pairwise(sides), 1)
        return [self._layer(index, number + index, row + index, *pair) for index, pair in pairs]

    def _layer(self, index: int, number: int, row: int, before: Side, after: Side) -> SidedLayer:
        is_picture = index == self.num_layers
        rate = max(before.rate, after.rate) * (1 if is_picture else 2)
        taps = [self.filter_size * factor if factor > 1 else 1 for factor in (rate // before.rate, rate // after.rate)]
        spec = FilteredLayerSpec(
            name=f"L{number}_{after.size}_{after.channels}",
            kind="to_rgb" if is_picture else "conv",
            w_index=row + 1,
            in_channels=before.channels,
            out_channels=after.channels,
            kernel=1 if is_picture else self.kernel,
            in_size=before.size,
            out_size=after.size,
            in_rate=before.rate,
            out_rate=after.rate,
            rate=rate,
            up_taps=1 if is_picture else taps[0],
            down_taps=1 if is_picture else taps[1],
            is_radial=self.is_radial and not self._is_critical(index),
            conv_clamp=self.conv_clamp,
            use_fp16=after.rate * 2**self.num_fp16_res > self.resolution,
        )
        return SidedLayer(spec, before, after)

    def _is_critical(self, index: int) -> bool:
        return index >= self.num_layers - self.num_critical

    def _side(self, index: int) -> Side:
        exponent = min(index / (self.num_layers - self.num_critical), 1.0)
        last = self.resolution / 2
        cutoff = self.first_cutoff * (last / self.first_cutoff) ** exponent
        stopband = self.first_stopband * (last * self.last_stopband_rel / self.first_stopband) ** exponent
        rate = 2 ** math.ceil(math.log2(min(2 * stopband, self.resolution)) - _NEARLY)
        channels = round(min(self.channel_base / 2 / cutoff, self.channel_max))
        is_last = index >= self.num_layers - 1
        return Side(
            cutoff=cutoff,
            width=2 * (max(stopband, rate / 2) - cutoff),
            rate=rate,
            size=self.resolution if is_last else rate + 2 * self.margin,
            channels=self.img_channels if index == self.num_layers else channels,
        )


def filters_of(layers: Iterable[SidedLayer]) -> dict[str, NDArray[np.float32]]:
    """Return every filter of some layers, by tensor name."""
    found: dict[str, NDArray[np.float64]] = {}
    for layer in layers:
        spec, before, after = layer.spec, layer.before, layer.after
        prefix = f"synthesis.{spec.name}"
        if spec.up_taps > 1:
            found[f"{prefix}.up_filter"] = low_pass(spec.up_taps, before.cutoff, before.width, spec.rate)
        if spec.down_taps > 1:
            design = radial_low_pass if spec.is_radial else low_pass
            found[f"{prefix}.down_filter"] = design(spec.down_taps, after.cutoff, after.width, spec.rate)
    return {name: taps.astype(np.float32) for name, taps in found.items()}
