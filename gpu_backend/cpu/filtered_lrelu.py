"""Filtered leaky ReLU (upsampling FIR, activation, downsampling FIR), in tiles.

Each tile of the output runs through all stages for a group of channels: its input is copied to a contiguous piece with
zero padding; transposed depthwise convolutions upsample it along each axis; the activation works in place; strided
depthwise convolutions downsample it. The samples at the higher rate, the largest data, therefore stay in the shared
cache. oneDNN's depthwise kernels need channels-last pictures and do about as many multiplications as the filters have
taps. Nanoseconds for each output value on one AVX-512 core, with 12 taps, upsampling and downsampling by 2:

    up, columns 0.7    up, rows 1.5    down, columns 0.7    down, rows 0.7    the rest 1.5        radial: down 2.8

The activation's gain is folded into the first filter, because the activation is homogeneous.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from functools import partial

import torch
from torch import Tensor

from gpu_backend.cpu.activation import finish_in_place, split_gain
from gpu_backend.cpu.convolution import Convolution, make_depthwise, make_transposed_depthwise
from gpu_backend.cpu.kernel import Kernel, Site
from gpu_backend.cpu.team import spans
from gpu_backend.ops.filtered_lrelu import FilteredLrelu
from gpu_backend.plan.plan import Step
from gpu_backend.quick_dataclass import dataclass

_TILE_FLOATS = 1 << 20
"""Values at the higher rate in a tile, for each thread that torch splits an operation over."""
_MOST_CHANNELS = 64
"""Channels of a tile: more channels mean a smaller side, and a larger fraction of halo."""
_VECTOR = 16
"""Channels of a SIMD vector."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Input range of a range of output samples along one axis.

    Attributes
    ----------
    first, end
        Input samples; some may be outside the picture.
    cut, count, rest
        Numbers of samples at the higher rate: cropped at the beginning, used, and cropped at the end.
    """

    first: int
    end: int
    cut: int
    count: int
    rest: int


def reach_of(attributes: FilteredLrelu, first: int, end: int) -> Reach:
    """Return the input range of outputs first..end - 1; see `gpu_backend.ops.filtered_lrelu` for the indices.

    Sample t at the higher rate multiplies input a by filter tap t + Tu - 1 - lo - up a, so it depends on inputs
    ceil((t - lo) / up) .. floor((t + Tu - 1 - lo) / up).
    """
    up, taps, low = attributes.up, attributes.up_taps, attributes.pads[0]
    start = first * attributes.down
    count = (end - 1 - first) * attributes.down + attributes.down_taps
    before = -((low - start) // up)
    after = (start + count - 1 + taps - 1 - low) // up + 1
    cut = start + taps - 1 - low - up * before
    return Reach(before, after, cut, count, up * (after - before - 1) + taps - cut - count)


@dataclass(frozen=True, slots=True, eq=False)
class _Filters:
    """Packed convolutions for a group size of channels."""

    up_columns: Convolution
    up_rows: Convolution
    down: tuple[Convolution, ...]


@dataclass(frozen=True, slots=True)
class _Tile:
    rows: tuple[int, int]
    columns: tuple[int, int]
    channels: tuple[int, int]


class FilteredLreluKernel(Kernel):
    """Kernel of `gpu_backend.ops.filtered_lrelu`."""

    def __init__(self, step: Step, site: Site) -> None:
        self._attributes: FilteredLrelu = step.attributes
        self._x, self._out = site.buffers[step.inputs[0]], site.buffers[step.outputs[0]]
        self._team = site.team
        groups = _channel_groups(self._attributes.channels)
        widths = sorted({end - first for first, end in groups})
        sides = _sides(self._attributes, widths[-1], site.team.width)
        self._reach = {side: reach_of(self._attributes, *side) for side in sides}
        self._crop = min(min(reach.cut, reach.rest) for reach in self._reach.values())
        self._filters = {width: self._packed(step, site, width) for width in widths}
        tiles = [_Tile(rows, columns, group) for rows in sides for columns in sides for group in groups]
        self._lanes = [tiles[first:end] for first, end in spans(len(tiles), site.team.lanes)]
        self._piece = max(self._floats(tile) for tile in tiles)
        self.scratch_floats = self._piece * site.team.lanes

    def attach(self, scratch: Tensor) -> None:
        """Take working memory, a piece for each lane."""
        self._pieces = [scratch[lane * self._piece : (lane + 1) * self._piece] for lane in range(self._team.lanes)]

    def run(self) -> None:
        self._team.run(self._lane)

    def replay_key(self) -> Hashable:
        return "always"

    def layer_output(self) -> Tensor:
        return self._out.permute(0, 3, 1, 2)

    def _lane(self, lane: int) -> None:
        for tile in self._lanes[lane]:
            for x, out in zip(self._x, self._out, strict=True):
                self._make(tile, x, out, self._pieces[lane])

    def _make(self, tile: _Tile, x: Tensor, out: Tensor, memory: Tensor) -> None:
        rows, columns = self._reach[tile.rows], self._reach[tile.columns]
        first, end = tile.channels
        filters = self._filters[end - first]
        y = filters.up_columns(_dense(x[..., first:end], rows, columns, memory))
        y = y.narrow(3, columns.cut - self._crop, columns.count)
        y = filters.up_rows(y)
        y = y.narrow(2, rows.cut - self._crop, rows.count)
        finish_in_place(y, self._attributes.act)
        for convolve in filters.down:
            y = convolve(y)
        out[slice(*tile.rows), slice(*tile.columns), first:end].copy_(y[0].permute(1, 2, 0))

    def _floats(self, tile: _Tile) -> int:
        rows, columns = self._reach[tile.rows], self._reach[tile.columns]
        return (rows.end - rows.first) * (columns.end - columns.first) * (tile.channels[1] - tile.channels[0])

    def _packed(self, step: Step, site: Site, width: int) -> _Filters:
        make = partial(_make_filters, step, site, width, self._crop)
        parts: tuple[Convolution, ...] = site.packed.get((step.layer, "filters", width, self._crop), make)
        return _Filters(parts[0], parts[1], parts[2:])


def _make_filters(step: Step, site: Site, width: int, crop: int) -> tuple[Convolution, ...]:
    """Return the upsampling convolutions of columns and rows and the downsampling ones, for `width` channels."""
    attributes: FilteredLrelu = step.attributes
    up, down = attributes.up, attributes.down
    before = _taps(step, site, "up_filter") * up
    gain, _ = split_gain(attributes.act)
    after = _taps(step, site, "down_filter").flip(0)  # torch's convolutions are correlations
    ups = (
        make_transposed_depthwise(before[None], width, (1, up), (0, crop)),
        make_transposed_depthwise(before[:, None] * gain, width, (up, 1), (crop, 0)),
    )
    if attributes.is_radial:
        return (*ups, make_depthwise(after.flip(1), width, (down, down)))
    return (*ups, make_depthwise(after[None], width, (1, down)), make_depthwise(after[:, None], width, (down, 1)))


def _taps(step: Step, site: Site, role: str) -> Tensor:
    return site.weight(step, role) if role in step.weights else torch.ones(1)


def _channel_groups(channels: int) -> list[tuple[int, int]]:
    """Divide channels into groups of whole SIMD vectors; the last group may be smaller."""
    vectors = -(-channels // _VECTOR)
    count = -(-vectors * _VECTOR // _MOST_CHANNELS)
    return [(first * _VECTOR, min(end * _VECTOR, channels)) for first, end in spans(vectors, count)]


def _sides(attributes: FilteredLrelu, channels: int, width: int = 1) -> list[tuple[int, int]]:
    """Divide an output axis so that a square tile of `channels` channels has at most the maximum tile size.

    Tile boundaries fall where input and output samples are in the same phase, so all tiles are cropped equally.
    """
    size, step = attributes.out_size, attributes.up // math.gcd(attributes.up, attributes.down)
    most = max(step, int((math.sqrt(_TILE_FLOATS * width / channels) - attributes.down_taps) / attributes.down))
    side = -(-size // -(-size // most))
    side = -(-side // step) * step
    return [(first, min(first + side, size)) for first in range(0, size, side)]


def _dense(x: Tensor, rows: Reach, columns: Reach, memory: Tensor) -> Tensor:
    """Copy a region of (height, width, channels), zero-padded, to (1, channels, rows, columns), channels-last."""
    height, width, channels = x.shape
    shape = rows.end - rows.first, columns.end - columns.first, channels
    piece = memory[: math.prod(shape)].view(shape)
    top, bottom = max(rows.first, 0), min(rows.end, height)
    left, right = max(columns.first, 0), min(columns.end, width)
    inside = piece[max(top - rows.first, 0) : bottom - rows.first, max(left - columns.first, 0) : right - columns.first]
    if inside.shape != piece.shape:
        piece.zero_()
    if inside.numel():
        inside.copy_(x[top:bottom, left:right])
    return piece[None].permute(0, 3, 1, 2)
