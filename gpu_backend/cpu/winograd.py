"""3 x 3 convolution by Winograd's minimal filtering, F(4 x 4, 3 x 3): 36 multiplications for 16 outputs, not 144.

    Y = A^T [ (G g G^T) * (B^T d B) ] A       for each 6 x 6 tile d and 4 x 4 outputs (Lavin and Gray 2016, eq. 8)

summed over input channels, which gives 36 matrix products. The transforms are matrix products too, arranged so that
their inner dimension is long and contiguous in channels-last memory:

    rows      Y[t] = B^T x[4 t - p .. 4 t - p + 5]       one for each row of tiles, over columns and channels at once;
                                                         p zeros of padding
    gather    G[j, a, t, u] = s * Y[t, a, 4 u + j]       applies the style
    columns   V = B^T G                                  over everything else at once
    products  M[b, a] = V[b, a] U[b, a]                  36 of (tiles, in) x (in, out)
    inverse   A^T over b, then over a; the epilogue interleaves the outputs as it reads them

The stages process one strip of tile rows at a time, which fits the cache. In float32 the largest error is about four
times that of direct convolution, for unit-variance data and 64 to 512 channels.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gpu_backend.cpu.epilogue import LayerEnd
from gpu_backend.cpu.kernel import BumpAllocator, allocated_floats
from gpu_backend.cpu.team import Team

TILE = 4
_SIDE = TILE + 2
_STRIP_NBYTES = 5 << 18
"""Bytes of transformed input in a strip: near the size of a core's L2 cache."""
_MIN_TILES = 64
"""Minimum number of tiles in a matrix product; fewer would read the weights too often."""
_PIECE = 8
"""Input channels whose weights are transformed at a time, in double precision and within the cache."""

INPUT_TRANSFORM = (
    (4, 0, -5, 0, 1, 0),
    (0, -4, -4, 1, 1, 0),
    (0, 4, -4, -1, 1, 0),
    (0, -2, -1, 2, 1, 0),
    (0, 2, -1, -2, 1, 0),
    (0, 4, 0, -5, 0, 1),
)
_FILTER = (
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)
OUTPUT_TRANSFORM = ((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1))


def transform_weight(weight: Tensor, team: Team | None = None) -> Tensor:
    """(out, in, 3, 3) to (36, in, out): index 6 b + a is column transform b, row transform a.

    The lanes of a team divide the pieces; the result does not depend on their number.
    """
    filters = torch.tensor(_FILTER, dtype=torch.float64)
    both = torch.kron(filters, filters)
    outputs, inputs = weight.shape[:2]
    taps = weight.permute(3, 2, 1, 0)
    transformed = torch.empty(_SIDE * _SIDE, inputs, outputs)
    pieces = range(0, inputs, _PIECE)

    def transform(lane: int) -> None:
        for first in pieces[lane :: 1 if team is None else team.lanes]:
            some = slice(first, first + _PIECE)
            piece = taps[:, :, some].reshape(both.shape[1], -1).double()
            transformed[:, some] = (both @ piece).view(_SIDE * _SIDE, -1, outputs)

    if team is None:
        transform(0)
    else:
        team.run(transform)
    return transformed


class WinogradConvolution:
    """A layer's convolution with its style and epilogue, for one sample at a time.

    Parameters
    ----------
    transformed
        Weights from `transform_weight`, or a range of their output channels.
    resolution
        Side of the output.
    rows
        Range of output rows; both ends are multiples of the tile size, or the last is the end. None for all.
    pad
        Zero padding around the input.
    """

    def __init__(self, transformed: Tensor, resolution: int, rows: tuple[int, int] | None = None, pad: int = 1) -> None:
        self._weight = transformed
        self._side = resolution
        self._pad = pad
        self._in_side = resolution + 2 - 2 * pad
        _, self._inputs, self._outputs = transformed.shape
        self._tiles = -(-resolution // TILE)
        self._rows = (0, resolution) if rows is None else rows
        self._first, self._end = self._rows[0] // TILE, -(-self._rows[1] // TILE)
        self._strip = self._strip_of()
        self._is_whole = resolution % TILE == 0 and (self._end - self._first) % self._strip == 0
        self._input = torch.tensor(INPUT_TRANSFORM, dtype=torch.float32)
        self._output = torch.tensor(OUTPUT_TRANSFORM, dtype=torch.float32)
        self._output_rows = self._output.expand(TILE, TILE, _SIDE)
        self._clipped = {clip: self._input[:, clip[0] : _SIDE - clip[1]].contiguous() for clip in self._clips()}

    @property
    def scratch_floats(self) -> int:
        """Size of the working memory, in floats."""
        return allocated_floats(*self._shapes())

    def attach(self, scratch: Tensor) -> None:
        """Take working memory and lay out the views that `run` uses."""
        carver = BumpAllocator(scratch)
        strip, tiles, inputs, outputs = self._strip, self._tiles, self._inputs, self._outputs
        self._y, one, two, *rest = (carver.take(*shape) for shape in self._shapes())
        self._spare = rest[0] if rest else None
        # The stages alternate between two pieces, which keeps the working set small.
        self._g = _piece(one, _SIDE, _SIDE, strip, tiles, inputs)
        self._v = _piece(two, _SIDE, _SIDE * strip * tiles * inputs)
        self._m = _piece(one, _SIDE * _SIDE, strip * tiles, outputs)
        self._o = _piece(two, TILE, _SIDE * strip * tiles * outputs)
        self._p = _piece(one, TILE, TILE, strip * tiles * outputs)
        row = (tiles * TILE + 2) * inputs
        left, right = self._pad * inputs, (self._pad + self._in_side) * inputs
        self._y_inner = [self._y[t].view(_SIDE, row)[:, left:right] for t in range(strip)]
        # (column in tile, transformed row, tile row, tile column, channel)
        self._gathered = self._y.as_strided(
            (_SIDE, _SIDE, strip, tiles, inputs), (inputs, row, _SIDE * row, TILE * inputs, 1), self._y.storage_offset()
        )
        self._raw = self._p.view(TILE, TILE, strip, tiles, self._outputs).permute(2, 1, 3, 0, 4)

    def run(self, x: Tensor, style: Tensor | None, epilogue: LayerEnd, out: Tensor) -> None:
        """Convolve.

        Parameters
        ----------
        x
            (side, side, in_channels) of the input, contiguous.
        style
            (in_channels,); None for none.
        epilogue
            `begin` was already called for this sample.
        out
            (side, side, out_channels).
        """
        self._y[:, :, : self._pad].zero_()
        self._y[:, :, self._pad + self._in_side :].zero_()
        flat = x.view(self._in_side, -1)
        products = (_SIDE * _SIDE, self._strip * self._tiles)
        for first in range(self._first, self._end, self._strip):
            for t in range(self._strip):
                low, high = self._clip(first + t)
                top = (first + t) * TILE - self._pad
                torch.mm(self._clipped[low, high], flat[top + low : top + _SIDE - high], out=self._y_inner[t])
            if style is None:
                self._g.copy_(self._gathered)
            else:
                torch.mul(self._gathered, style, out=self._g)
            torch.mm(self._input, self._g.view(_SIDE, -1), out=self._v)
            torch.bmm(self._v.view(*products, self._inputs), self._weight, out=self._m)
            torch.mm(self._output, self._m.view(_SIDE, -1), out=self._o)
            torch.bmm(self._output_rows, self._o.view(TILE, _SIDE, -1), out=self._p)
            row = first * TILE
            if self._spare is None:
                epilogue.finish(self._raw, row, out[row : row + self._strip * TILE])
            else:
                epilogue.finish(self._raw, row, self._spare)
                part = out[row : min(row + self._strip * TILE, self._rows[1])]
                part.copy_(self._spare[: part.shape[0], : self._side])

    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        strip, tiles, inputs, outputs = self._strip, self._tiles, self._inputs, self._outputs
        piece = _SIDE * _SIDE * strip * tiles * max(inputs, outputs)
        spare = () if self._is_whole else ((strip * TILE, tiles * TILE, outputs),)
        return (strip, _SIDE, tiles * TILE + 2, inputs), (piece,), (piece,), *spare

    def _strip_of(self) -> int:
        """Return the tile rows of a strip: about as many as fit, in strips of equal size; powers of two stay so."""
        rows = self._end - self._first
        row_nbytes = 4 * _SIDE * _SIDE * self._tiles * max(self._inputs, self._outputs)
        wanted = max(1, min(rows, max(_MIN_TILES // self._tiles, _STRIP_NBYTES // row_nbytes)))
        if rows & (rows - 1) == 0:
            return 1 << (wanted.bit_length() - 1)
        return -(-rows // -(-rows // wanted))

    def _clip(self, tile: int) -> tuple[int, int]:
        """Return the number of tile rows above and below the picture."""
        top = tile * TILE - self._pad
        return min(_SIDE, max(0, -top)), min(_SIDE, max(0, top + _SIDE - self._in_side))

    def _clips(self) -> set[tuple[int, int]]:
        return {self._clip(tile) for tile in range(self._tiles + self._strip)}


def _piece(memory: Tensor, *shape: int) -> Tensor:
    return memory[: math.prod(shape)].view(shape)
