"""The layers, frequencies and filters of a StyleGAN-XL network that was grown stage by stage (Sauer et al. 2022).

The first network, the stem, is a StyleGAN3 of few layers. To double the resolution, its critically sampled layers and
the toRGB are cut off, and a head takes their place: the layers of a StyleGAN3 of `head_layers`, whose first one, that
is there already, is the last layer kept; its number is left out. The head's schedule continues from there::

    first_cutoff   = cutoff of the last layer kept
    first_stopband = that + half the width of its transition band
"""

from __future__ import annotations

from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from gpu_backend.model.spec import FilteredLayerSpec, FourierSpec
from gpu_backend.model.stylegan3_design import SidedLayer, StyleGAN3Design, filters_of
from gpu_backend.quick_dataclass import dataclass

STEM = StyleGAN3Design(16, channel_base=65536, channel_max=1024, num_layers=10)
"""The usual one."""


@dataclass(frozen=True, slots=True)
class StyleGANXLDesign:
    """What decides the layers; the defaults are those of the training tools, with configuration T.

    Attributes
    ----------
    stem
        The first network. Channels, kernels, margin and clamp of the heads are as its own.
    head_layers
        Layers of each head, the toRGB among them.
    """

    resolution: int
    stem: StyleGAN3Design = field(default=STEM)
    head_layers: int = 7

    def layers(self) -> tuple[FilteredLayerSpec, ...]:
        """List the layers in execution order."""
        return tuple(layer.spec for layer in self._sided_layers())

    def input(self) -> FourierSpec:
        """Return the input's grid and band."""
        return self.stem.input()

    def filters(self) -> dict[str, NDArray[np.float32]]:
        """Return every filter of the layers, by tensor name."""
        return filters_of(self._sided_layers())

    def _sided_layers(self) -> list[SidedLayer]:
        layers, resolution = self.stem.sided_layers(), self.stem.resolution
        while resolution < self.resolution:
            resolution *= 2
            kept = layers[: -self.stem.num_critical - 1]
            last = kept[-1].after
            head = replace(
                self.stem,
                resolution=resolution,
                num_layers=self.head_layers,
                first_cutoff=last.cutoff,
                first_stopband=last.cutoff + last.width / 2,
            )
            number = int(kept[-1].spec.name[1:].partition("_")[0])
            layers = [*kept, *head.layers_after(last, number + 1, len(kept) - 1)]
        return layers
