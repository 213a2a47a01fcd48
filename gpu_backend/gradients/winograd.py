"""Wide 3 x 3 convolutions and their gradients on the processor, by Winograd's minimal filtering F(4 x 4, 3 x 3).

The formula is that of `gpu_backend.cpu.winograd`. Both axes are transformed by one product with a 36 x 36 matrix, which
leaves 36 products of channels::

    V = (B^T x B^T) d,    M_k = U_k V_k,    Y = (A^T x A^T) M           d: 6 x 6 tiles, (36, channels * tiles)

The gradient of a convolution with respect to its input is one with the filters turned by half a turn, inputs and
outputs exchanged. Pictures are computed in strips of rows of tiles, so that what lies between these products stays
in the cache. Milliseconds of processor time of one core of an AMD EPYC, direct convolution by oneDNN, then this:

    32 x 32 x 256  10.8 / 7.2    64 x 64 x 128  10.9 / 7.5    64 x 64 x 256  43 / 25     128 x 128 x 96  26 / 20
    128 x 128 x 128  44 / 31     128 x 128 x 256  172 / 117   256 x 256 x 128  229 / 158   256 x 256 x 64  46 / 42
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from gpu_backend.cpu.winograd import INPUT_TRANSFORM, OUTPUT_TRANSFORM, TILE, transform_weight

_LEAST_CHANNELS = {16: 192, 64: 96}
"""By the least side: with fewer channels the transforms cost more than the products save."""
_LEAST_TILES, _TILES_OF_WEIGHTS = 64, 512
"""Of a strip, for each thread, and one for so many weights: with fewer they would be read too often."""
_SIDE = TILE + 2


class WinogradConvolution:
    """A correlation with zero padding 1 that torch differentiates with respect to its input.

    Parameters
    ----------
    weight
        (out_channels, in_channels, 3, 3), float32 on the processor. Transformed filters, four times as large, are made
        at the first use in either direction.
    """

    def __init__(self, weight: Tensor) -> None:
        self._weight = weight
        self._filters: dict[bool, Tensor] = {}
        one, other = torch.tensor(INPUT_TRANSFORM), torch.tensor(OUTPUT_TRANSFORM)
        self._input = torch.kron(one, one).float()
        self._output = torch.kron(other, other).float()

    @staticmethod
    def pays_off(weight: Tensor, side: int) -> bool:
        """Return whether it is faster than a direct convolution of this side."""
        least = min((channels for start, channels in _LEAST_CHANNELS.items() if start <= side), default=math.inf)
        is_wide = weight.shape[2:] == (3, 3) and min(weight.shape[:2]) >= least
        return is_wide and weight.dtype == torch.float32 and weight.device.type == "cpu"

    def __call__(self, x: Tensor) -> Tensor:
        """(batch, in_channels, height, width) to (batch, out_channels, height, width)."""
        y: Tensor = _Convolve.apply(x, self)  # type: ignore[no-untyped-call]
        return y

    def run(self, x: Tensor, *, backward: bool) -> Tensor:
        """Convolve, or compute the gradient of the input from that of the output."""
        batch, channels, height, width = x.shape
        filters = self._transformed(backward=backward)
        outputs = filters.shape[1]
        rows, columns = -(-height // TILE), -(-width // TILE)
        padded = functional.pad(x, (1, TILE * columns + 1 - width, 1, TILE * rows + 1 - height))
        whole = x.new_empty(batch, outputs, TILE * rows, TILE * columns)
        tiles = max(_LEAST_TILES * torch.get_num_threads(), channels * outputs // _TILES_OF_WEIGHTS)
        strip = max(1, tiles // (columns * batch))
        for first in range(0, rows, strip):
            part = padded[:, :, TILE * first : TILE * (first + strip) + 2]
            y = self._strip(part.unfold(2, _SIDE, TILE).unfold(3, _SIDE, TILE).permute(4, 5, 1, 0, 2, 3), filters)
            to = whole[:, :, TILE * first : TILE * (first + strip)].unflatten(3, (columns, TILE))
            to.unflatten(2, (-1, TILE)).copy_(y.permute(3, 2, 4, 0, 5, 1))
        return whole[:, :, :height, :width].contiguous()

    def _strip(self, tiles: Tensor, filters: Tensor) -> Tensor:
        """Return (4, 4, outputs, batch, rows, columns) of tiles (6, 6, channels, batch, rows, columns)."""
        channels, *places = tiles.shape[2:]
        v = self._input @ tiles.reshape(_SIDE * _SIDE, -1)
        m = torch.bmm(filters, v.view(_SIDE * _SIDE, channels, -1))
        return (self._output @ m.view(_SIDE * _SIDE, -1)).view(TILE, TILE, -1, *places)

    def _transformed(self, *, backward: bool) -> Tensor:
        """Return the filters (36, out, in) of a direction."""
        found = self._filters.get(backward)
        if found is None:
            weight = self._weight.flip(2, 3).transpose(0, 1) if backward else self._weight
            outputs, inputs = weight.shape[:2]
            # (columns, rows, in, out) -> (rows, columns, out, in)
            by_axis = transform_weight(weight).view(_SIDE, _SIDE, inputs, outputs).permute(1, 0, 3, 2)
            found = self._filters[backward] = by_axis.reshape(_SIDE * _SIDE, outputs, inputs)
        return found


class _Convolve(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, convolution: WinogradConvolution) -> Tensor:
        ctx.convolution = convolution
        return convolution.run(x, backward=False)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return ctx.convolution.run(gradients[0], backward=True), None
