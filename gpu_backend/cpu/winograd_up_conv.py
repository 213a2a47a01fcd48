"""Up-convolution by Toom and Cook's evaluation and interpolation: 81 multiplications for a tile of 4 x 4, not 144.

Along one axis, the stride-2 transposed convolution with W of a tile x[0 .. 3] is

    t[2 i] += c[i],  c(p) = (W[0] + W[2] p) (x[0] + x[1] p + x[2] p^2 + x[3] p^3);      t[2 i + 1] = W[1] x[i]

The even samples are a product of polynomials of degree 4: five multiplications instead of eight at the points 0,
infinity, -1, 1/2 and 2 (Toom 1963, Cook 1966; with 1 for 1/2, errors are half as large again). The odd samples take
four. At 0 and infinity, the value is x[0] or x[3] itself, so that seven planes for each axis are enough: x[0 .. 3] and
the values at -1, 1/2 and 2. Tiles do not overlap in the input but in t, whose sample 8 both tiles share. Stages, in
channels-last memory:

    gather     V[a, b, t, u] = s * x[4 t + a, 4 u + b]                planes of pixels; applies the style
    evaluate   V[4 .. 6] = E V[0 .. 3] along both axes
    products   M[a, b] = V[a, b] U[a, b]                              81 of (tiles, in) x (in, out), 36 weights
    rows       R[r] = sum over a of F[r, a] M[a]                      interpolation and FIR filter in one 12 x 9 matrix
    columns    Z[r, s] = sum over b of F[s, b] R[r, b]                the same for the columns

A tile reaches 12 rows of the filtered layer, two before its own eight and two after them; neighbours' contributions
are added. Rows of tiles follow each other, so a row of tiles completes the rows from two before its own on, and the
last four of its twelve rows are carried to the next one. In float32 the largest error is one to four times that of the
direct sum, for unit-variance data and 64 to 512 channels.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import torch
from torch import Tensor

from gpu_backend.cpu.epilogue import Epilogue, LayerEnd, MakeEnd
from gpu_backend.cpu.kernel import BumpAllocator, Kernel, Site, allocated_floats
from gpu_backend.cpu.modulated_conv import input_style
from gpu_backend.cpu.team import Team, spans
from gpu_backend.cpu.weight_stack import WeightStack
from gpu_backend.cpu.winograd import TILE, piece_of, transform_taps
from gpu_backend.ops.adain_up_conv import AdainUpConv
from gpu_backend.ops.modulated_up_conv import ModulatedUpConv
from gpu_backend.plan.plan import Step

MIN_SIDE = 16
"""Minimum side of the input: fewer tiles would read the transformed weights too often."""
MIN_CHANNELS = 64
CHANNEL_SPLIT_MAX_SIDE = 64
"""Layers up to this side are split by output channels, because weights dominate: they are four times as large."""

_TAPS = 4
_OUT_TILE = 2 * TILE
_PLANES = 7
_POINTS = 5
_PRODUCTS = _POINTS + TILE
_REACH = _OUT_TILE + 4
"""Rows of the filtered layer that a tile reaches."""
_STRIP_TILES = 128
"""Tiles of a strip for each thread, about: enough rows for a matrix product, in few calls."""

_EVALUATION = ((-1, 1, 1, -1), (1 / 2, 1 / 4, 1, 1 / 8), (2, 4, 1, 8))
"""Values at -1, 1 / 2 and 2 of the planes x[1], x[2], x[0], x[3]. In this order, the planes of the odd samples (0 .. 3)
and those of the points (2 .. 6) are contiguous."""
_ODD = (1, 2, 0, 3)
_VALUES = ((1, 0, 0, 0, 0), (0, 0, 0, 0, 1), (1, -1, 1, -1, 1), (1, 1 / 2, 1 / 4, 1 / 8, 1 / 16), (1, 2, 4, 8, 16))
"""Coefficients c[0 .. 4] to the products at 0, infinity, -1, 1 / 2 and 2."""
_FILTER = ((1, 0, 0), (0, 0, 1), (1, 0, -1), (1, 0, 1 / 2), (1, 0, 2), (0, 1, 0))
"""Taps W[0 .. 2] to the weights of the points, and of the odd samples."""
_PIXELS = ((slice(0, 2), slice(1, 3)), (slice(2, 4), slice(0, 4, 3)))
"""Pairs of planes, and the pixels of a tile that they hold."""


def suits_winograd(attributes: ModulatedUpConv | AdainUpConv) -> bool:
    """Return whether the layer has the usual kernel and filter, and is large enough for the transforms to pay off."""
    side = attributes.resolution // 2
    return (
        attributes.kernel == 3
        and len(attributes.taps) == _TAPS
        and side % TILE == 0
        and side >= MIN_SIDE
        and min(attributes.in_channels, attributes.out_channels) >= MIN_CHANNELS
    )


def transform_up_weight(weight: Tensor, team: Team | None = None) -> Tensor:
    """(out, in, 3, 3) to (36, in, out): index 6 a + b is row a, column b of the points and the odd samples."""
    filters = torch.tensor(_FILTER, dtype=torch.float64)
    return transform_taps(torch.kron(filters, filters), weight.permute(2, 3, 1, 0), team)


def filter_matrix(taps: Sequence[float]) -> Tensor:
    """Return the (12, 9) matrix that takes a tile's products along one axis to the filtered samples -2 .. 9."""
    samples = torch.zeros(_PRODUCTS, _PRODUCTS, dtype=torch.float64)
    samples[0::2, :_POINTS] = torch.linalg.inv(torch.tensor(_VALUES, dtype=torch.float64))
    for plane, pixel in enumerate(_ODD):
        samples[2 * pixel + 1, _POINTS + plane] = 1.0
    fir = torch.zeros(_REACH, _PRODUCTS, dtype=torch.float64)
    for k, tap in enumerate(taps):
        # z[u] = sum over k of 2 f[k] t[u + 2 - k], as `up_conv_left_pad` says for four taps
        fir.diagonal(-k)[:] += 2.0 * tap
    return (fir @ samples).float()


@dataclass(frozen=True, eq=False)
class _InputViews:
    """Views of some rows of tiles of the input, and of their evaluated planes; made once, since lanes share Python.

    Attributes
    ----------
    pixels
        Pixels of the input, and the planes that hold them.
    products
        Planes that the evaluation matrix multiplies, and those that it gives.
    """

    pixels: list[tuple[Tensor, Tensor]]
    products: list[tuple[Tensor, Tensor]]


class UpInputTiles:
    """Evaluates rows of tiles of an up-convolution's input.

    Parameters
    ----------
    inputs
        Number of channels.
    tiles
        Tiles of a row.
    """

    def __init__(self, inputs: int, tiles: int) -> None:
        self._inputs, self._tiles = inputs, tiles
        self._matrix = torch.tensor(_EVALUATION, dtype=torch.float32)

    def shape(self, rows: int) -> tuple[int, ...]:
        """Return the shape of the evaluated planes of some rows of tiles."""
        return _PLANES, _PLANES, rows, self._tiles, self._inputs

    def views(self, x: Tensor, v: Tensor) -> _InputViews:
        """Return the views of the memory that `run` needs.

        Parameters
        ----------
        x
            (4 rows, 4 tiles, inputs), contiguous.
        v
            Of `shape`, which `run` writes; may be some rows of a larger tensor.
        """
        source = x.view(v.shape[2], TILE, self._tiles, TILE, self._inputs).permute(1, 3, 0, 2, 4)
        pixels = [(source[y, z], v[rows, columns]) for rows, y in _PIXELS for columns, z in _PIXELS]
        planes = [v[row].flatten(1) for row in range(TILE)]
        if v.is_contiguous():
            planes.append(v.view(_PLANES, -1))
        else:
            planes += [v[:, column].flatten(1) for column in range(_PLANES)]
        return _InputViews(pixels, [(plane[:TILE], plane[TILE:]) for plane in planes])

    def run(self, views: _InputViews, style: Tensor | None) -> None:
        """Evaluate rows of tiles, with a style (inputs,) or None."""
        for source, target in views.pixels:
            if style is None:
                target.copy_(source)
            else:
                torch.mul(source, style, out=target)
        for values, evaluated in views.products:
            torch.mm(self._matrix, values, out=evaluated)


@dataclass(frozen=True, eq=False)
class _Views:
    """Views of the working memory for a number of rows of tiles.

    Attributes
    ----------
    products
        For each of 9 rows of products: its first weight, the factors and the products of the points along columns,
        (5, tiles, channels), and of the odd samples, (1, 4 tiles, channels).
    m, r
        (9, 9, rows, tiles * out_channels) and (12, 9, rows, tiles * out_channels).
    m_flat, r_flat
        The same as matrices of 9 and of 12 rows.
    inner
        First filtered rows of all rows of tiles but the first, and what the rows of tiles above contribute to these;
        None for a single row.
    top, bottom
        First four filtered rows, and those that the next row of tiles completes, (4, 9, tiles * out_channels).
    complete
        For a number of skipped rows, the rows that the first row of tiles completes; for 0 those of each.
    """

    products: list[tuple[int, Tensor, Tensor, Tensor, Tensor]]
    m: Tensor
    r: Tensor
    m_flat: Tensor
    r_flat: Tensor
    inner: tuple[Tensor, Tensor] | None
    top: Tensor
    bottom: Tensor
    complete: dict[int, list[Tensor]]


@dataclass(frozen=True, eq=False)
class _Columns:
    """Views of the working memory for a number of filtered rows.

    Attributes
    ----------
    matrices
        The filter matrix for each row.
    z
        (rows, 12, tiles * out_channels), written by the filter.
    overlaps
        Columns of tiles, and what the tiles beside them contribute to these.
    edges
        First and last column of the picture.
    raw
        (rows, tiles, 8, out_channels).
    """

    matrices: Tensor
    z: Tensor
    overlaps: list[tuple[Tensor, Tensor]]
    edges: tuple[Tensor, Tensor]
    raw: Tensor


class UpOutputTiles:
    """Multiplies evaluated tiles by weights, interpolates and filters the products, and ends the layer.

    Rows of tiles are computed in order. Between two lanes that divide the rows, `run` leaves a seam of four rows, which
    `finish_seam` computes once both lanes are done.

    Parameters
    ----------
    weights
        From `transform_up_weight`, or a range of their output channels.
    rows, tiles
        Rows of tiles that the lane computes (first and end), and tiles of a row.
    taps
        Taps of the FIR filter.
    edge
        Weight of t's first and last sample that the first and last filtered sample have in excess.
    group
        Rows of tiles whose columns are added and ended together: more take fewer calls, and more of the cache.
    """

    def __init__(
        self,
        weights: WeightStack,
        rows: tuple[int, int],
        tiles: int,
        taps: Sequence[float],
        edge: float,
        group: int = 1,
    ) -> None:
        self._weights, self._rows, self._tiles, self._edge = weights, rows, tiles, edge
        self._group = min(group, rows[1] - rows[0])
        self._matrix = filter_matrix(taps)
        self._row = tiles * weights.outputs

    def sizes(self, strip: int) -> tuple[int, int]:
        """Return the floats of the products, and of the rows, of a strip of some rows of tiles."""
        return _PRODUCTS * _PRODUCTS * strip * self._row, _REACH * _PRODUCTS * strip * self._row

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the working memory besides: columns, and both sides of the seams."""
        columns = self._group * _OUT_TILE, _REACH, self._row
        return columns, (4, _PRODUCTS, self._row), (4, _PRODUCTS, self._row)

    def attach(self, v: Tensor, m: Tensor, r: Tensor, z: Tensor, head: Tensor, carry: Tensor) -> None:
        """Set the flat memory of evaluated tiles and of `sizes`, where `r` may overlap `v`, and that of `shapes`."""
        self._v, self._m, self._r = v, m, r
        self._head, self._carry = head, carry
        self._z = z
        self._columns: dict[int, _Columns] = {}
        self._views: dict[int, _Views] = {}

    def run(self, first: int, count: int, epilogue: LayerEnd, out: Tensor) -> None:
        """Compute what `count` rows of tiles from `first` on complete; `out` is (side, side, out_channels)."""
        if count not in self._views:
            self._views[count] = self._views_of(count)
        views = self._views[count]
        m, r = views.m, views.r
        for weight, points, even, pixels, odd in views.products:
            self._weights.multiply(weight, points, even)
            self._weights.multiply(weight + _POINTS, pixels, odd)
        torch.mm(self._matrix, views.m_flat, out=views.r_flat)
        if self._edge:
            if first == 0:
                r[2, :, 0].sub_(m[0, :, 0], alpha=self._edge)
            if first + count == self._tiles:
                r[1 + _OUT_TILE, :, -1].sub_(m[1, :, -1], alpha=self._edge)
        if views.inner is not None:
            own, above = views.inner
            own.add_(above)
        skipped = 0
        if first > self._rows[0]:
            views.top.add_(self._carry)
        elif first:
            self._head.copy_(views.top)
            skipped = 4
        else:
            skipped = 2  # above the picture
        self._carry.copy_(views.bottom)
        row = _OUT_TILE * first - 2 + skipped
        for t in range(0, count, self._group):
            completed = views.complete[0][t : t + self._group]
            if t == 0:
                completed = [views.complete[skipped][0], *completed[1:]]
            row = self._finish(completed, row, epilogue, out)
        if first + count == self._tiles:
            self._finish([self._carry[:2]], row, epilogue, out)

    def finish_seam(self, above: UpOutputTiles, epilogue: LayerEnd, out: Tensor) -> None:
        """Compute the first four rows of the lane, to which the lane above contributes."""
        self._head.add_(above._carry)
        self._finish([self._head], _OUT_TILE * self._rows[0] - 2, epilogue, out)

    def _views_of(self, count: int) -> _Views:
        inputs, outputs, tiles = self._weights.inputs, self._weights.outputs, count * self._tiles
        planes = piece_of(self._v, _PLANES, _PLANES, tiles, inputs)
        m = piece_of(self._m, _PRODUCTS, _PRODUCTS, count, self._row)
        r = piece_of(self._r, _REACH, _PRODUCTS, count, self._row)
        products = []
        for a in range(_PRODUCTS):
            plane = planes[a + _PLANES - _POINTS if a < _POINTS else a - _POINTS]
            even, odd = m[a, :_POINTS].view(_POINTS, tiles, outputs), m[a, _POINTS:].view(1, -1, outputs)
            first = (_POINTS + 1) * min(a, _POINTS)
            products.append((first, plane[-_POINTS:], even, plane[:TILE].view(1, -1, inputs), odd))
        return _Views(
            products,
            m,
            r,
            m.view(_PRODUCTS, -1),
            r.view(_REACH, -1),
            (r[:4, :, 1:], r[_OUT_TILE:, :, :-1]) if count > 1 else None,
            r[:4, :, 0],
            r[_OUT_TILE:, :, -1],
            {
                skipped: [r[skipped:_OUT_TILE, :, t] for t in range(count if not skipped else 1)]
                for skipped in (0, 2, 4)
            },
        )

    def _columns_of(self, z: Tensor) -> _Columns:
        split = z.view(z.shape[0], _REACH, self._tiles, -1)
        ends = 2 + _OUT_TILE
        overlaps = [(split[:, 8:ends, :-1], split[:, :2, 1:]), (split[:, 2:4, 1:], split[:, ends:, :-1])]
        edges = split[:, 2, 0], split[:, ends - 1, -1]
        return _Columns(
            self._matrix.expand(z.shape[0], -1, -1), z, overlaps, edges, split[:, 2:ends].permute(0, 2, 1, 3)
        )

    def _finish(self, parts: Sequence[Tensor], row: int, epilogue: LayerEnd, out: Tensor) -> int:
        """Filter some rows along columns, and end them; return the row after these.

        The rows from `row` on are in parts that follow each other, (rows, 9, tiles * out_channels).
        """
        ends = list(accumulate(part.shape[0] for part in parts))
        count = ends[-1]
        if count not in self._columns:
            self._columns[count] = self._columns_of(self._z[:count])
        columns = self._columns[count]
        for part, end in zip(parts, ends, strict=True):
            some = slice(end - part.shape[0], end)
            torch.bmm(columns.matrices[some], part, out=columns.z[some])
        for own, neighbour in columns.overlaps:
            own.add_(neighbour)
        if self._edge:
            for part, end in zip(parts, ends, strict=True):
                some, products = slice(end - part.shape[0], end), part.unflatten(2, (self._tiles, -1))
                columns.edges[0][some].sub_(products[:, 0, 0], alpha=self._edge)
                columns.edges[1][some].sub_(products[:, 1, -1], alpha=self._edge)
        epilogue.finish(columns.raw, row, out[row : row + count])
        return row + count


@dataclass(frozen=True, eq=False)
class _Lane:
    """The rows of tiles (first and end) and output channels of one lane, in strips of rows of tiles."""

    tiles: UpOutputTiles
    rows: tuple[int, int]
    strip: int
    epilogue: LayerEnd
    out: Tensor


class _Layer(Kernel):
    """An up-convolution layer whose lanes have some rows of tiles and channels, `parts`."""

    def __init__(
        self, step: Step, site: Site, make_end: MakeEnd, parts: Sequence[tuple[tuple[int, int], tuple[int, int]]]
    ) -> None:
        attributes: ModulatedUpConv | AdainUpConv = step.attributes
        self._x, self._style = site.buffers[step.inputs[0]], input_style(step, site)
        self._out, self._team = site.buffers[step.outputs[0]], site.team
        self._tiles = attributes.resolution // _OUT_TILE
        self._input = UpInputTiles(attributes.in_channels, self._tiles)
        self._views: dict[tuple[int, int], _InputViews] = {}
        """By sample and first row of tiles."""
        edge = attributes.edge_tap if isinstance(attributes, AdainUpConv) else 0.0
        self._lanes: list[_Lane] = []
        for rows, channels in parts:
            if rows[0] == rows[1] or channels[0] == channels[1]:
                continue
            strip = strip_of(rows[1] - rows[0], self._tiles, site.team.width)
            weights = _transformed(step, site, channels)
            ended = max(0, _OUT_TILE * rows[0] - 2), _OUT_TILE * rows[1] - (2 if rows[1] < self._tiles else 0)
            epilogue = make_end(step, site, ended, channels)
            tiles = UpOutputTiles(weights, rows, self._tiles, attributes.taps, edge, site.team.width)
            self._lanes.append(_Lane(tiles, rows, strip, epilogue, self._out[..., slice(*channels)]))

    def replay_key(self) -> Hashable:
        return self._lanes[0].epilogue.replay_key()

    def layer_output(self) -> Tensor:
        return self._out.permute(0, 3, 1, 2)

    def _evaluate_rows(self, sample: int, rows: tuple[int, int], v: Tensor) -> None:
        """Evaluate some rows of tiles into planes of `shape`, the same memory for the same rows."""
        views = self._views.get((sample, rows[0]))
        if views is None:
            views = self._input.views(self._x[sample, TILE * rows[0] : TILE * rows[1]], v)
            self._views[sample, rows[0]] = views
        self._input.run(views, self._style_of(sample))

    def _style_of(self, sample: int) -> Tensor | None:
        return None if self._style is None else self._style[sample]


class RowUpConv(_Layer):
    """A large up-convolution layer: the lanes divide its rows of tiles."""

    def __init__(self, step: Step, site: Site, make_end: MakeEnd = Epilogue) -> None:
        every = (0, step.attributes.out_channels)
        tiles = step.attributes.resolution // _OUT_TILE
        super().__init__(step, site, make_end, [(rows, every) for rows in spans(tiles, site.team.lanes)])
        self.scratch_floats = allocated_floats(*(shape for lane in self._lanes for shape in self._shapes(lane)))

    def attach(self, scratch: Tensor) -> None:
        carver = BumpAllocator(scratch)
        self._v: list[Tensor] = []
        for lane in self._lanes:
            one, two, *rest = (carver.take(*shape) for shape in self._shapes(lane))
            self._v.append(two)
            lane.tiles.attach(two, one, two, *rest)

    def run(self) -> None:
        for sample in range(self._x.shape[0]):
            self._team.run(partial(self._compute, sample))
            if len(self._lanes) > 1:
                self._team.run(partial(self._finish_seam, sample))

    def _compute(self, sample: int, number: int) -> None:
        if number >= len(self._lanes):
            return
        lane, v, out = self._lanes[number], self._v[number], self._lanes[number].out[sample]
        lane.epilogue.begin(sample)
        for first in range(*lane.rows, lane.strip):
            count = min(lane.strip, lane.rows[1] - first)
            self._evaluate_rows(sample, (first, first + count), piece_of(v, *self._input.shape(count)))
            lane.tiles.run(first, count, lane.epilogue, out)

    def _finish_seam(self, sample: int, number: int) -> None:
        if 0 < number < len(self._lanes):
            lane, above = self._lanes[number], self._lanes[number - 1]
            lane.tiles.finish_seam(above.tiles, lane.epilogue, lane.out[sample])

    def _shapes(self, lane: _Lane) -> tuple[tuple[int, ...], ...]:
        products, rows = lane.tiles.sizes(lane.strip)
        evaluated = math.prod(self._input.shape(lane.strip))
        return (products,), (max(rows, evaluated),), *lane.tiles.shapes()


class ChannelUpConv(_Layer):
    """A small up-convolution layer: the lanes divide its rows of tiles to evaluate the input, then its channels."""

    def __init__(self, step: Step, site: Site, make_end: MakeEnd = Epilogue) -> None:
        every = (0, step.attributes.resolution // _OUT_TILE)
        parts = [(every, channels) for channels in spans(step.attributes.out_channels, site.team.lanes)]
        super().__init__(step, site, make_end, parts)
        self._rows = spans(self._tiles, site.team.lanes)
        self.scratch_floats = allocated_floats(*self._shapes())

    def attach(self, scratch: Tensor) -> None:
        carver = BumpAllocator(scratch)
        self._v, *pieces = (carver.take(*shape) for shape in self._shapes())
        for number, lane in enumerate(self._lanes):
            lane.tiles.attach(self._v.view(-1), *pieces[5 * number : 5 * number + 5])

    def run(self) -> None:
        for sample in range(self._x.shape[0]):
            self._team.run(partial(self._evaluate, sample))
            self._team.run(partial(self._compute, sample))

    def _evaluate(self, sample: int, number: int) -> None:
        first, end = self._rows[number]
        if first < end:
            self._evaluate_rows(sample, (first, end), self._v[:, :, first:end])

    def _compute(self, sample: int, number: int) -> None:
        if number < len(self._lanes):
            lane = self._lanes[number]
            lane.epilogue.begin(sample)
            lane.tiles.run(0, self._tiles, lane.epilogue, lane.out[sample])

    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        shapes = [self._input.shape(self._tiles)]
        for lane in self._lanes:
            products, rows = lane.tiles.sizes(self._tiles)
            shapes += [(products,), (rows,), *lane.tiles.shapes()]
        return tuple(shapes)


def make_winograd_up_conv(step: Step, site: Site, make_end: MakeEnd = Epilogue) -> Kernel:
    """Return the kernel that suits the layer's size."""
    is_small = step.attributes.resolution <= CHANNEL_SPLIT_MAX_SIDE
    return (ChannelUpConv if is_small else RowUpConv)(step, site, make_end)


def strip_of(rows: int, tiles: int, width: int = 1) -> int:
    """Return the rows of tiles of a strip: about as many as fit, in strips of nearly equal size."""
    wanted = max(1, min(rows, _STRIP_TILES * width // tiles))
    return -(-rows // -(-rows // wanted))


def _transformed(step: Step, site: Site, channels: tuple[int, int]) -> WeightStack:
    weight = site.weight(step, "weight")[slice(*channels)]
    tiles = (step.attributes.resolution // _OUT_TILE) ** 2
    return site.packed.get(
        (step.weights["weight"], "winograd up", channels),
        lambda: WeightStack(
            transform_up_weight(weight, site.team), min(tiles, _STRIP_TILES * site.team.width), site.team
        ),
    )
