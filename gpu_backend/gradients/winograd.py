"""Wide 3 x 3 convolutions and their gradients on the processor, by Winograd's minimal filtering F(4 x 4, 3 x 3).

The formula is that of `gpu_backend.cpu.winograd`. Both axes are transformed by one product with a 36 x 36 matrix, which
leaves 36 products of channels::

    V = (B^T x B^T) d,    M_k = U_k V_k,    Y = (A^T x A^T) M           d: 6 x 6 tiles, (36, channels * tiles)

The gradient of a convolution with respect to its input is one with the filters turned by half a turn, inputs and
outputs exchanged. Direct convolutions by oneDNN take 1.6 to 1.8 times as long for 256 channels and sides of 16 to 64.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from gpu_backend.cpu.winograd import INPUT_TRANSFORM, OUTPUT_TRANSFORM, TILE, transform_weight

_LEAST_CHANNELS = 192
"""With fewer channels the transforms cost more than the products save."""
_LEAST_SIDE, _MOST_SIDE = 16, 64
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
        is_wide = weight.shape[2:] == (3, 3) and min(weight.shape[:2]) >= _LEAST_CHANNELS
        is_simple = weight.dtype == torch.float32 and weight.device.type == "cpu"
        return is_wide and is_simple and _LEAST_SIDE <= side <= _MOST_SIDE

    def __call__(self, x: Tensor) -> Tensor:
        """(batch, in_channels, height, width) to (batch, out_channels, height, width)."""
        y: Tensor = _Convolve.apply(x, self)  # type: ignore[no-untyped-call]
        return y

    def run(self, x: Tensor, *, backward: bool) -> Tensor:
        """Convolve, or compute the gradient of the input from that of the output."""
        batch, channels, height, width = x.shape
        rows, columns = -(-height // TILE), -(-width // TILE)
        padded = functional.pad(x, (1, TILE * columns + 1 - width, 1, TILE * rows + 1 - height))
        tiles = padded.unfold(2, _SIDE, TILE).unfold(3, _SIDE, TILE).permute(4, 5, 1, 0, 2, 3)
        v = self._input @ tiles.reshape(_SIDE * _SIDE, -1)
        m = torch.bmm(self._transformed(backward=backward), v.view(_SIDE * _SIDE, channels, -1))
        y = (self._output @ m.view(_SIDE * _SIDE, -1)).view(TILE, TILE, -1, batch, rows, columns)
        whole = y.permute(3, 2, 4, 0, 5, 1).reshape(batch, -1, TILE * rows, TILE * columns)
        return whole[:, :, :height, :width].contiguous()

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
