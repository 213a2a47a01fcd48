"""Layout of each layer's styles and demodulation coefficients in GPU memory.

A layer's slot takes its channels rounded up to a multiple of 8 and starts at a multiple of 8, so that a kernel reads
styles in whole 16-byte groups, as it reads activations. Padding holds zeros.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from gpu_backend.ops.styles import Styles
from gpu_backend.quick_dataclass import dataclass


def pad8(channels: int) -> int:
    """Round up to a multiple of 8."""
    return -(-channels // 8) * 8


@dataclass(frozen=True, slots=True)
class StyleLayout:
    """Offsets, in floats, within one sample's row of the regions ``styles`` and ``demod``."""

    attributes: Styles
    style_width: int = field(init=False)
    """Floats of a sample in ``styles``; the stride between samples."""
    demod_width: int = field(init=False)
    """Floats of a sample in ``demod``; at least 8, so that the region exists in a network that demodulates nothing."""
    _style_offsets: Mapping[str, int] = field(init=False, repr=False, compare=False)
    _demod_offsets: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        styles: dict[str, int] = {}
        demods: dict[str, int] = {}
        style_width = demod_width = 0
        for slot in self.attributes.slots:
            styles[slot.layer] = style_width
            style_width += pad8(slot.in_channels)
            if slot.demod_offset >= 0:
                demods[slot.layer] = demod_width
                demod_width += pad8(slot.out_channels)
        for name, value in (
            ("style_width", style_width),
            ("demod_width", max(demod_width, 8)),
            ("_style_offsets", styles),
            ("_demod_offsets", demods),
        ):
            object.__setattr__(self, name, value)

    def style_offset(self, layer: str) -> int:
        """Return where the layer's styles begin; a KeyError if the layer has none."""
        return self._style_offsets[layer]

    def demod_offset(self, layer: str) -> int:
        """Return where the layer's coefficients begin; a KeyError if the layer is not demodulated."""
        return self._demod_offsets[layer]
