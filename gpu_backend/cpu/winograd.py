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
from gpu_backend.cpu.weight_stack import MIN_PACKED_SIZE, WeightStack

TILE = 4
_SIDE = TILE + 2
_STRIP_NBYTES = 5 << 18
"""Bytes of transformed input in a strip, for each thread: near the size of a core's L2 cache."""
MIN_TILES, MIN_TILES_OF_LARGE = 64, 128
"""Minimum number of tiles in a matrix product, the second if its weights are large enough for `WeightStack` to pack
them: fewer would read the weights too often. A layer of 64 x 64 x 256 takes 9.8 ms with 128 tiles, 10.7 with 64."""
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
    """(out, in, 3, 3) to (36, in, out): index 6 b + a is column transform b, row transform a."""
    filters = torch.tensor(_FILTER, dtype=torch.float64)
    return transform_taps(torch.kron(filters, filters), weight.permute(3, 2, 1, 0), team)


def transform_taps(matrix: Tensor, taps: Tensor, team: Team | None = None) -> Tensor:
    """Multiply an (n, k k) matrix by (k, k, in, out) taps in double precision: (n, in, out) float32.

    The lanes of a team divide the pieces; the result does not depend on their number.
    """
    inputs, outputs = taps.shape[2:]
    transformed = torch.empty(matrix.shape[0], inputs, outputs)
    pieces = range(0, inputs, _PIECE)

    def transform(lane: int) -> None:
        for first in pieces[lane :: 1 if team is None else team.lanes]:
            some = slice(first, first + _PIECE)
            piece = taps[:, :, some].reshape(matrix.shape[1], -1).double()
            transformed[:, some] = (matrix @ piece).view(matrix.shape[0], -1, outputs)

    if team is None:
        transform(0)
    else:
        team.run(transform)
    return transformed


class InputTiles:
    """Transforms rows of tiles of a layer's input.

    Parameters
    ----------
    inputs
        Number of channels.
    resolution
        Side of the output.
    strip
        Rows of tiles that `run` transforms.
    pad
        Zero padding around the input.
    """

    def __init__(self, inputs: int, resolution: int, strip: int, pad: int) -> None:
        self._inputs, self._strip, self._pad = inputs, strip, pad
        self._in_side = resolution + 2 - 2 * pad
        self._tiles = -(-resolution // TILE)
        self._matrix = torch.tensor(INPUT_TRANSFORM, dtype=torch.float32)
        clips = {self._clip(tile) for tile in range(self._tiles + strip)}
        self._clipped = {clip: self._matrix[:, clip[0] : _SIDE - clip[1]].contiguous() for clip in clips}

    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the shapes of the working memory: transformed rows, and gathered tiles."""
        strip, tiles, inputs = self._strip, self._tiles, self._inputs
        return (strip, _SIDE, tiles * TILE + 2, inputs), (_SIDE, _SIDE, strip, tiles, inputs)

    def attach(self, y: Tensor, g: Tensor, v: Tensor) -> None:
        """Set the working memory, and `v` for the transformed tiles: (6, 6, strip, tiles, inputs), strides are free."""
        self._y, self._g = y, g
        row = (self._tiles * TILE + 2) * self._inputs
        left, right = self._pad * self._inputs, (self._pad + self._in_side) * self._inputs
        self._y_inner = [y[t].view(_SIDE, row)[:, left:right] for t in range(self._strip)]
        # (column in tile, transformed row, tile row, tile column, channel)
        strides = (self._inputs, row, _SIDE * row, TILE * self._inputs, 1)
        self._gathered = y.as_strided(g.shape, strides, y.storage_offset())
        parts = [slice(None)] if v.is_contiguous() else [slice(a, a + 1) for a in range(_SIDE)]
        self._columns = [(g[:, part].flatten(1), v[:, part].flatten(1)) for part in parts]

    def run(self, x: Tensor, style: Tensor | None, first: int) -> None:
        """Transform the tiles from row `first` of tiles on; `x` is (side, side, inputs), `style` (inputs,)."""
        self._y[:, :, : self._pad].zero_()
        self._y[:, :, self._pad + self._in_side :].zero_()
        flat = x.view(self._in_side, -1)
        for t in range(self._strip):
            low, high = self._clip(first + t)
            top = (first + t) * TILE - self._pad
            torch.mm(self._clipped[low, high], flat[top + low : top + _SIDE - high], out=self._y_inner[t])
        if style is None:
            self._g.copy_(self._gathered)
        else:
            torch.mul(self._gathered, style, out=self._g)
        for gathered, transformed in self._columns:
            torch.mm(self._matrix, gathered, out=transformed)

    def _clip(self, tile: int) -> tuple[int, int]:
        """Return the number of rows of a tile above and below the picture."""
        top = tile * TILE - self._pad
        return min(_SIDE, max(0, -top)), min(_SIDE, max(0, top + _SIDE - self._in_side))


class OutputTiles:
    """Multiplies transformed tiles by weights, transforms the products back, and ends the layer.

    Parameters
    ----------
    weights
        From `transform_weight`, or a range of their output channels.
    resolution
        Side of the output.
    rows
        Range of output rows; both ends are multiples of the tile size, or the last is the end.
    strip
        Rows of tiles that `run` computes.
    """

    def __init__(self, weights: WeightStack, resolution: int, rows: tuple[int, int], strip: int) -> None:
        self._weights, self._side, self._end_row, self._strip = weights, resolution, rows[1], strip
        self._tiles = -(-resolution // TILE)
        count = -(-rows[1] // TILE) - rows[0] // TILE
        self._is_whole = resolution % TILE == 0 and count % strip == 0
        self._matrix = torch.tensor(OUTPUT_TRANSFORM, dtype=torch.float32)
        self._matrices = self._matrix.expand(TILE, TILE, _SIDE)

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the working memory: products, half transformed products, and incomplete strips."""
        count = self._strip * self._tiles
        outputs = self._weights.outputs
        spare = () if self._is_whole else ((self._strip * TILE, self._tiles * TILE, outputs),)
        return (_SIDE * _SIDE, count, outputs), (TILE, _SIDE, count, outputs), *spare

    def attach(self, v: Tensor, m: Tensor, o: Tensor, spare: Tensor | None = None) -> None:
        """Set the transformed tiles, (6, 6, strip, tiles, inputs), and the working memory. `o` may overlap `v`."""
        outputs = self._weights.outputs
        self._v, self._m, self._spare = v.view(_SIDE * _SIDE, -1, self._weights.inputs), m, spare
        self._m_flat, self._o_flat, self._o = m.view(_SIDE, -1), o.view(TILE, -1), o.view(TILE, _SIDE, -1)
        self._p = piece_of(m.view(-1), TILE, TILE, self._strip * self._tiles * outputs)
        self._raw = self._p.view(TILE, TILE, self._strip, self._tiles, outputs).permute(2, 1, 3, 0, 4)

    def run(self, first: int, epilogue: LayerEnd, out: Tensor) -> None:
        """Compute the output of the strip whose first row of tiles is `first`; `out` is (side, side, out_channels)."""
        self._weights.multiply(0, self._v, self._m)
        torch.mm(self._matrix, self._m_flat, out=self._o_flat)
        torch.bmm(self._matrices, self._o, out=self._p)
        row = first * TILE
        if self._spare is None:
            epilogue.finish(self._raw, row, out[row : row + self._strip * TILE])
        else:
            epilogue.finish(self._raw, row, self._spare)
            part = out[row : min(row + self._strip * TILE, self._end_row)]
            part.copy_(self._spare[: part.shape[0], : self._side])


class WinogradConvolution:
    """A layer's convolution with its style and epilogue, for one sample at a time, in strips of tile rows.

    Parameters
    ----------
    weights, resolution
        As for `OutputTiles`.
    rows
        Range of output rows; both ends are multiples of the tile size, or the last is the end. None for all.
    pad
        Zero padding around the input.
    width
        Threads that torch splits each operation over.
    """

    def __init__(
        self,
        weights: WeightStack,
        resolution: int,
        rows: tuple[int, int] | None = None,
        pad: int = 1,
        *,
        width: int = 1,
    ) -> None:
        self._tiles = -(-resolution // TILE)
        rows = (0, resolution) if rows is None else rows
        strip = strip_of(rows, self._tiles, weights.inputs, weights.outputs, width)
        self._firsts = range(rows[0] // TILE, -(-rows[1] // TILE), strip)
        self._input = InputTiles(weights.inputs, resolution, strip, pad)
        self._output = OutputTiles(weights, resolution, rows, strip)

    @property
    def scratch_floats(self) -> int:
        """Size of the working memory, in floats."""
        return allocated_floats(*self._shapes())

    def attach(self, scratch: Tensor) -> None:
        """Take working memory and lay out the views that `run` uses."""
        carver = BumpAllocator(scratch)
        y, one, two, *spare = (carver.take(*shape) for shape in self._shapes())
        # The stages alternate between two pieces, which keeps the working set small.
        gathered, (products, half, *_) = self._input.shapes()[1], self._output.shapes()
        v = piece_of(two, *gathered)
        self._input.attach(y, piece_of(one, *gathered), v)
        self._output.attach(v, piece_of(one, *products), piece_of(two, *half), *spare)

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
        for first in self._firsts:
            self._input.run(x, style, first)
            self._output.run(first, epilogue, out)

    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        y, gathered = self._input.shapes()
        products, _, *spare = self._output.shapes()
        piece = max(math.prod(gathered), math.prod(products))
        return y, (piece,), (piece,), *spare


def strip_of(rows: tuple[int, int], tiles: int, inputs: int, outputs: int, width: int = 1) -> int:
    """Return the tile rows of a strip: about as many as fit, in strips of equal size; powers of two stay so."""
    count = -(-rows[1] // TILE) - rows[0] // TILE
    row_nbytes = 4 * _SIDE * _SIDE * tiles * max(inputs, outputs)
    least = MIN_TILES_OF_LARGE if inputs * outputs >= MIN_PACKED_SIZE else MIN_TILES
    wanted = max(1, min(count, max(least // tiles, _STRIP_NBYTES * width // row_nbytes)))
    if count & (count - 1) == 0:
        return 1 << (wanted.bit_length() - 1)
    return -(-count // -(-count // wanted))


def piece_of(memory: Tensor, *shape: int) -> Tensor:
    """Return the first elements of flat memory in a shape."""
    return memory[: math.prod(shape)].view(shape)
