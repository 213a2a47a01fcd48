"""A driver whose kernels are the plain twins of ``gradient_*.cu``, in NumPy: one formula each, fp32, on host memory.

It proves what the host does (arrays, addresses, arguments, order of launches) and says what each kernel computes. Tests
on a GPU compare the kernels themselves with torch.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.driver.arguments import PackedArguments
from gpu_backend.cuda.driver.interface import Driver, Event, Graph, LoadedKernel
from gpu_backend.gradients.gpu.kernels import kernels_of_step
from gpu_backend.ops.kernels.recipe import KernelRecipe

Array = NDArray[Any]
_SLOPE = np.float32(0.2)


def twin_kernels(taps: int) -> dict[KernelRecipe, LoadedKernel]:
    """Return the kernels of a network whose resampling filter has so many taps, as what a driver has loaded."""
    return {recipe: LoadedKernel(recipe, None, recipe.stem, 0, 0, 0) for recipe in kernels_of_step(taps)}


@dataclass
class TwinDriver:
    """Implements as much of `Driver` as gradients need.

    Attributes
    ----------
    memory
        Address -> bytes, of the device and pinned.
    launched
        Entries of all launches, in order.
    """

    memory: dict[int, Array] = field(default_factory=dict)
    launched: list[str] = field(default_factory=list)
    _captured: list[Callable[[], None]] | None = None

    def as_driver(self) -> Driver:
        """Return this, for what needs no more of a driver than it has."""
        return cast("Driver", self)

    def enter(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""

    def reserve(self, nbytes: int) -> int:
        """Memory full of NaN."""
        whole = np.full(nbytes + 512, 0xFF, np.uint8)
        address = -(-whole.ctypes.data // 256) * 256
        self.memory[address] = whole
        return address

    def release(self, address: int) -> None:
        """Free it; an address that is not taken is an error."""
        del self.memory[address]

    reserve_pinned, release_pinned = reserve, release

    def zero(self, address: int, nbytes: int) -> None:
        """Fill with zeros."""
        self._do(lambda: ctypes.memset(address, 0, nbytes))

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy bytes."""
        self._do(lambda: ctypes.memmove(target, source, nbytes))

    copy_out = copy

    def upload(self, target: int, array: Array) -> None:
        """Copy an array in."""
        assert array.flags.c_contiguous
        ctypes.memmove(target, array.ctypes.data, array.nbytes)

    def download(self, array: Array, source: int) -> None:
        """Fill an array."""
        assert array.flags.c_contiguous
        ctypes.memmove(array.ctypes.data, source, array.nbytes)

    def launch(
        self,
        kernel: LoadedKernel,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        shared: int,
        arguments: PackedArguments,
    ) -> None:
        """Run a twin."""
        values = [value.item() for value in arguments.values.values()]

        def run() -> None:
            self.launched.append(kernel.entry)
            _TWINS[kernel.entry](dict(kernel.function.defines), grid, *values)

        self._do(run)

    def capture(self, work: Callable[[], None]) -> Graph:
        """Keep what `work` does."""
        self._captured = []
        work()
        graph, self._captured = Graph(self._captured), None
        return graph

    def replay(self, graph: Any) -> None:
        """Do it."""
        for work in graph:
            work()

    def release_graph(self, graph: Graph) -> None:
        """Nothing to do."""

    def unload(self, kernel: LoadedKernel) -> None:
        """Nothing to do."""

    def make_event(self) -> Event:
        """An event that has always happened."""
        return Event(object())

    def record(self, event: Event) -> None:
        """Nothing to do."""

    wait = record

    def _do(self, work: Callable[[], object]) -> None:
        if self._captured is None:
            work()
        else:
            self._captured.append(lambda: (work(), None)[1])


def _at(address: int, shape: tuple[int, ...], dtype: str = "f4") -> Array:
    """An array over memory."""
    count = int(np.prod(shape))
    memory = (ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(address)
    return np.frombuffer(memoryview(memory), np.dtype(dtype)).reshape(shape)


def _added(parts: Iterable[Array]) -> Array:
    total: Array = functools.reduce(np.add, parts)
    return total


def _floats(halves: Array) -> Array:
    return halves.astype(np.float32)


def _bfloats(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _put_bfloats(to: Array, values: Array) -> None:
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    to[...] = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def _moved(x: Array, dy: int, dx: int) -> Array:
    """x[i + dy, j + dx], zeros outside."""
    height, width = x.shape[:2]
    found = np.zeros_like(x)
    rows = slice(max(0, -dy), min(height, height - dy))
    columns = slice(max(0, -dx), min(width, width - dx))
    if rows.start < rows.stop and columns.start < columns.stop:
        found[rows, columns] = x[rows.start + dy : rows.stop + dy, columns.start + dx : columns.stop + dx]
    return found


def _conv(
    macros: dict[str, str], grid: tuple[int, ...], x: int, weight: int, sums: int, parities: int, *sizes: int
) -> None:
    in_side, cin, cout, in_stride, out_stride, out_side, slices = sizes
    dtype = "u2" if macros["BFLOAT"] == "1" else "f2"
    read = _bfloats if macros["BFLOAT"] == "1" else _floats
    source = read(_at(x, (in_side, in_side, cin), dtype))
    to = _at(sums, (slices, out_side, out_side, cout))
    table = _at(parities, (grid[2] // slices, 32), "i4")
    kernels = read(_at(weight, (int(table[:, 7::3].max()) + 1, cout, cin), dtype))
    for count, rows, columns, r, q, *taps in table.tolist():
        i = in_stride * np.arange(rows)[:, None]
        j = in_stride * np.arange(columns)[None]
        found = np.zeros((rows, columns, cout), np.float32)
        for tap in range(count):
            dy, dx, index = taps[3 * tap : 3 * tap + 3]
            y, column = i + dy, j + dx
            inside = (y >= 0) & (y < in_side) & (column >= 0) & (column < in_side)
            picked = source[y.clip(0, in_side - 1), column.clip(0, in_side - 1)] * inside[..., None]
            found += picked @ kernels[index].T
        # K is cut anywhere: here into equal parts of the whole.
        to[:, r : r + out_stride * rows : out_stride, q : q + out_stride * columns : out_stride] = found / slices


def _reduce(macros: dict[str, str], grid: tuple[int, ...], sums: int, quads: int, slices: int) -> None:
    whole = _at(sums, (slices, 4 * quads))
    whole[0] = whole.sum(0)


def _layer(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    sums, taps_at, demod, noise, bias, style, z, x, slices, side, channels, left, unit, gain, clamp = values
    taps = int(macros["TAPS"])
    if taps:
        f, t = _at(taps_at, (taps,)), _at(sums, (side + 1, side + 1, channels))
        wide = np.zeros((side + 2 * taps + 1, side + 2 * taps + 1, channels), np.float32)
        wide[taps : taps + side + 1, taps : taps + side + 1] = t
        first = taps - left
        rows = _added(f[k] * wide[first + k : first + k + side] for k in range(taps))
        v = _added(f[k] * rows[:, first + k : first + k + side] for k in range(taps))
    else:
        v = _at(sums, (slices, side, side, channels)).sum(0)
    v = v * _at(demod, (channels,)) * unit + _at(bias, (channels,))
    if noise:
        v = v + _at(noise, (side, side, 1))
    v = (np.where(v > 0, v, _SLOPE * v) * gain).clip(-clamp, clamp)
    out = _at(z, (side, side, channels), "f2")
    out[...] = v.clip(-65504, 65504)
    if x:
        _at(x, (side, side, channels), "f2")[...] = out.astype(np.float32) * _at(style, (channels,))


def _activation(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    g, style, z, noise, bias, demod, u, style_sums, demod_sums, slices, pixels, channels, per_block, gain, clamp = (
        values
    )
    up = _at(g, (slices, pixels, channels)).sum(0)
    result = _at(z, (pixels, channels), "f2").astype(np.float32)

    def blocks(products: Array) -> Array:
        return np.stack([products[i : i + per_block].sum(0) for i in range(0, pixels, per_block)])

    if style_sums:
        _at(style_sums, (grid[0], channels))[...] = blocks(result * up)
    if not u:
        return
    slope = np.where(result > 0, gain, _SLOPE * gain)
    dv = up * (_at(style, (channels,)) if style else 1.0) * slope * (np.abs(result) < clamp)
    d = _at(demod, (channels,))
    v = result / slope - _at(bias, (channels,)) - (_at(noise, (pixels, 1)) if noise else 0.0)
    _at(demod_sums, (grid[0], channels))[...] = blocks(dv * v) / d
    _put_bfloats(_at(u, (pixels, channels), "u2"), dv * d)


def _filter(macros: dict[str, str], grid: tuple[int, ...], u: int, taps_at: int, t: int, *sizes: int) -> None:
    side, channels, left = sizes
    taps = int(macros["TAPS"])
    f, source = _at(taps_at, (taps,)), _bfloats(_at(u, (side, side, channels), "u2"))
    wide = np.zeros((side + 1, side + 1, channels), np.float32)
    wide[:side, :side] = source
    rows = _added(f[k] * _moved(wide, left - k, 0) for k in range(taps))
    _put_bfloats(_at(t, wide.shape, "u2"), _added(f[k] * _moved(rows, 0, left - k) for k in range(taps)))


def _table(address: int, layers: int) -> list[list[int]]:
    rows: list[list[int]] = _at(address, (layers, 12), "i4").tolist()
    return rows


def _styles(macros: dict[str, str], grid: tuple[int, ...], *values: int) -> None:
    ws, affine, affine_bias, table, styles, w_dim = values
    for inputs, _, style, _, first, _, w_row, *_rest in _table(table, grid[1]):
        matrix = _at(affine + 4 * first * w_dim, (inputs, w_dim))
        row = _at(ws + 4 * w_row * w_dim, (w_dim,))
        _at(styles + 4 * style, (inputs,))[...] = matrix @ row + _at(affine_bias + 4 * first, (inputs,))


def _demod(macros: dict[str, str], grid: tuple[int, ...], *values: int) -> None:
    styles, squares, table, demods, constant, x, size = values
    rows = _table(table, grid[1])
    for inputs, outputs, style, demod, _, square, *_rest in rows:
        s = _at(styles + 4 * style, (inputs,))
        q = _at(squares + 4 * square, (outputs, inputs))
        _at(demods + 4 * demod, (outputs,))[...] = 1.0 / np.sqrt(q @ (s * s) + 1e-8)
    inputs = rows[0][0]
    s = _at(styles + 4 * rows[0][2], (inputs,))
    shape = (size // inputs, inputs)
    _at(x, shape, "f2")[...] = _at(constant, shape, "f2").astype(np.float32) * s


def _sums(macros: dict[str, str], grid: tuple[int, ...], *values: int) -> None:
    sums, demods, table, style_gradients, demod_gradients = values
    for inputs, outputs, style, demod, _, _, _, style_sums, style_blocks, demod_sums, demod_blocks, _ in _table(
        table, grid[1]
    ):
        found = _at(sums + 4 * style_sums, (style_blocks, inputs)).sum(0)
        _at(style_gradients + 4 * style, (inputs,))[...] = found
        d = _at(demods + 4 * demod, (outputs,))
        found = _at(sums + 4 * demod_sums, (demod_blocks, outputs)).sum(0)
        _at(demod_gradients + 4 * demod, (outputs,))[...] = found * d**3


def _demod_adjoint(macros: dict[str, str], grid: tuple[int, ...], *values: int) -> None:
    styles, squares, demod_gradients, table, style_gradients = values
    for inputs, outputs, style, demod, _, square, *_rest in _table(table, grid[1]):
        e = _at(demod_gradients + 4 * demod, (outputs,))
        through = e @ _at(squares + 4 * square, (outputs, inputs))
        _at(style_gradients + 4 * style, (inputs,))[...] -= _at(styles + 4 * style, (inputs,)) * through


def _affine_adjoint(macros: dict[str, str], grid: tuple[int, ...], *values: int) -> None:
    style_gradients, affine, table, ws_gradient, w_dim, layers = values
    to = _at(ws_gradient, (grid[1], w_dim))
    to[...] = 0.0
    for inputs, _, style, _, first, _, w_row, *_rest in _table(table, layers):
        to[w_row] += _at(style_gradients + 4 * style, (inputs,)) @ _at(affine + 4 * first * w_dim, (inputs, w_dim))


def _picture(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    z, style, weight, bias, taps_at, before, picture, side, channels, taps, left, clamp = values
    x = _at(z, (side, side, channels), "f2").astype(np.float32) * _at(style, (channels,))
    y = (np.einsum("yxc,kc->kyx", x, _at(weight, (3, channels))) + _at(bias, (3,))[:, None, None]).clip(-clamp, clamp)
    if before:
        spread = np.zeros((side, side, 3), np.float32)
        spread[::2, ::2] = _at(before, (3, side // 2, side // 2)).transpose(1, 2, 0)
        f = _at(taps_at, (taps,))
        rows = _added(f[k] * _moved(spread, k - left, 0) for k in range(taps))
        y = y + _added(f[k] * _moved(rows, 0, k - left) for k in range(taps)).transpose(2, 0, 1)
    _at(picture, (3, side, side))[...] = y


def _loss(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    features, first, mask, gradient, parts, pixels, channels, faint, keep = values
    shape = (pixels, channels)
    difference = _at(features, shape, "f2").astype(np.float32) - _at(first, shape, "f2").astype(np.float32)
    weight = faint + (keep * _at(mask, (pixels, 1)) if mask else 0.0)
    _at(gradient, shape)[...] = weight * np.sign(difference)
    to = _at(parts, (grid[0],))
    to[...] = 0.0
    to[0] = (weight * np.abs(difference)).sum()


def _corners(x: float, y: float, side: int) -> list[tuple[int, int, float]]:
    x, y = min(max(x, 0.0), side - 1.0), min(max(y, 0.0), side - 1.0)
    left, top = int(x), int(y)
    u, v = x - left, y - top
    right, bottom = min(left + 1, side - 1), min(top + 1, side - 1)
    return [
        (top, left, (1 - u) * (1 - v)),
        (top, right, u * (1 - v)),
        (bottom, left, (1 - u) * v),
        (bottom, right, u * v),
    ]


def _patch(features: Array, x: float, y: float, radius: int) -> Array:
    """Samples (points, channels) around a point."""
    side, line = features.shape[0], range(-radius, radius + 1)
    return np.stack(
        [
            _added(share * features[r, c].astype(np.float32) for r, c, share in _corners(x + dx, y + dy, side))
            for dy in line
            for dx in line
        ]
    )


def _handles(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    features, states, templates, gradient, differences, side, channels, used, radius, unit, slack = values
    points, handles = grid[:2]
    f = _at(features, (side, side, channels), "f2")[..., :used]
    to = _at(gradient, (side, side, channels))
    line = range(-radius, radius + 1)
    for handle, state in enumerate(_at(states, (handles, 12))):
        if not state[6]:
            continue
        wanted = _at(templates, (handles, points, channels))[handle, :, :used]
        difference = _patch(f, state[0], state[1], radius) - wanted
        _at(differences, (handles, points))[handle] = np.abs(difference).sum(1)
        places = [(state[0] + dx, state[1] + dy) for dy in line for dx in line]
        for (x, y), found in zip(places, difference, strict=True):
            for r, c, share in _corners(x, y, side):
                to[r, c, :used] += unit * share * np.sign(found) * (np.abs(found) > slack)


def _motion(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    features, states, templates, differences, side, channels, used, radius, unit = values
    points = (2 * radius + 1) ** 2
    f = _at(features, (side, side, channels), "f2")[..., :used]
    for handle, state in enumerate(_at(states, (grid[0], 12))):
        if not state[6]:
            continue
        wanted = _at(templates, (grid[0], points, channels))[handle, :, :used]
        position, target, trail = state[0:2].copy(), state[2:4].copy(), state[4:6].copy()
        difference = float(_at(differences, (grid[0], points))[handle].sum() * unit)
        way = target - position
        length = float(np.linalg.norm(way))
        state[7] = difference
        state[10] = state[10] + 1 if length < 1e-3 else 0
        if state[10] and difference <= 0.3:
            continue
        state[9] += 1
        if state[9] == 1:
            state[8] = difference
        adapts = difference <= 0.3 or (state[9] >= 4 and difference <= state[8])
        if adapts:
            share = 0.5 / (1.0 + np.exp(8.0 * difference / 0.6 - 2.0))
            wanted += share * (_patch(f, position[0], position[1], radius) - wanted)

        def apart(place: Array, wanted: Array = wanted) -> float:
            return float(np.abs(_patch(f, place[0], place[1], radius) - wanted).sum() * unit)

        if difference <= 0.3:
            state[9] = 0
            if length < 1e-3:
                continue
            longest = min(length, 2.0)
            places = [position + longest / length * k / 16 * way for k in range(1, 17)]
            chosen = next((k for k, place in enumerate(places) if apart(place) >= 0.6), 15)
            state[4:6] = position
            state[0:2] = target if chosen == 15 and longest == length else places[chosen]
        elif state[9] >= 4:
            state[9] = 0
            if not adapts:
                places = [trail + k / 15 * (position - trail) for k in range(16)]
                state[0:2] = places[int(np.argmin([apart(place) for place in places]))]


def _adam(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    gradient, start, deviation, mean, square, count, shift, ws, first, w_dim, rate = values
    rows, offset = grid[0], 4 * first * w_dim
    unit = _at(deviation, (w_dim,))
    g = _at(gradient + offset, (rows, w_dim)) * unit
    m, v, n, moved = _at(mean, g.shape), _at(square, (rows, 1)), _at(count, (rows, 1)), _at(shift, g.shape)
    n += 1
    m += 0.1 * (g - m)
    v += 0.05 * ((g * g).mean(1, keepdims=True) - v)
    moved -= rate * m / (1 - 0.9**n) / (np.sqrt(v / (1 - 0.95**n)) + 1e-12)
    _at(ws + offset, g.shape)[...] = _at(start + offset, g.shape) + moved * unit


_TWINS: dict[str, Callable[..., None]] = {
    "gradient_conv": _conv,
    "gradient_reduce": _reduce,
    "gradient_layer": _layer,
    "gradient_activation": _activation,
    "gradient_filter": _filter,
    "gradient_styles": _styles,
    "gradient_demod": _demod,
    "gradient_sums": _sums,
    "gradient_demod_adjoint": _demod_adjoint,
    "gradient_affine_adjoint": _affine_adjoint,
    "gradient_picture": _picture,
    "gradient_loss": _loss,
    "gradient_handles": _handles,
    "gradient_motion": _motion,
    "gradient_adam": _adam,
}
