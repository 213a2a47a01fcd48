"""How the persistent kernel of a StyleGAN2's first layers divides its work: the sizes of ``first_layers.cu``."""

from __future__ import annotations

from gpu_backend.quick_dataclass import dataclass

LAYERS = 5
"""Most layers: the convolution at 4 x 4, two each at 8 x 8 and 16 x 16."""

WARPS, STYLE_WARPS = 8, 4
_GROUP = 8
_CELL_NBYTES = 16
TABLE_WIDTH = 4
ROWS = 4
"""Rows of styles or demodulation of an item."""


@dataclass(frozen=True, slots=True)
class FirstLayersGeometry:
    """The kernel of the first `layers` layers, of `channels` input and output channels each."""

    channels: int
    layers: int = LAYERS

    @property
    def groups(self) -> int:
        """Groups of eight output channels; two blocks share one. Also the parts of toRGB's products."""
        return self.channels // _GROUP

    @property
    def pictures(self) -> int:
        """Pictures of toRGB that one more block adds up: those before an up-convolution."""
        return self.layers // 2

    @property
    def blocks(self) -> int:
        """Blocks, all of which must be resident at once."""
        return 2 * self.groups + (1 if self.pictures else 0)

    @property
    def threads(self) -> int:
        """Of a block."""
        return 32 * (WARPS + STYLE_WARPS)

    def styles_offset(self, picture_channels: int) -> int:
        """Return the bytes of ``kept`` before the styles: activations between the layers, and parts of pictures."""
        areas = sum(self.side(layer) ** 2 for layer in range(self.layers - 1))
        parts = sum(16 << 2 * picture for picture in range(self.pictures))
        return self.groups * (areas * _CELL_NBYTES + parts * picture_channels * 4)

    @property
    def dynamic_nbytes(self) -> int:
        """Dynamic shared memory of a block."""
        ups = range(1, self.layers, 2)
        t_end = max(map(self._x_end, ups), default=0) + max(map(self._sums_nbytes, ups), default=0)
        return max(t_end, *map(self._x_end, range(self.layers)))

    @property
    def static_nbytes(self) -> int:
        """Shared memory that the kernel itself declares, at most: with the most channels and colours."""
        return 8192

    @staticmethod
    def side(layer: int) -> int:
        """Side of a layer's output."""
        return int(4 << (layer + 1) // 2)

    @property
    def _weight_nbytes(self) -> int:
        return 2 * 9 * _GROUP * self.channels

    def _x_end(self, layer: int) -> int:
        """Return where the input of a layer ends in shared memory."""
        is_up, side = layer % 2 == 1, self.side(layer)
        side_in = side // 2 if is_up else side
        rows = side_in // 2 + (2 if is_up else 1)
        area = max(self.groups // WARPS * rows * side_in * _CELL_NBYTES, self._sums_nbytes(layer))
        return (1 if side == 16 and not is_up else 2) * self._weight_nbytes + WARPS * area

    def _sums_nbytes(self, layer: int) -> int:
        """Return the bytes of a warp's partial sums, which are as many as those of t."""
        side = self.side(layer)
        positions = (side // 4 + 2) * (side // 2 + 1) * 4 if layer % 2 == 1 else side * side // 2
        return 4 * _GROUP * positions
