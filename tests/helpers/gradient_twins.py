"""A driver whose kernels are the plain twins of ``gradient_*.cu``, in NumPy: one formula each, fp32, on host memory.

It proves what the host does (arrays, addresses, arguments, order of launches) and says what each kernel computes. Tests
on a GPU compare the kernels themselves with torch.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from gpu_backend.cuda.driver.arguments import PackedArguments
from gpu_backend.cuda.driver.interface import Driver, Event, Graph, LoadedKernel
from gpu_backend.cuda.schedule import TensorMap
from gpu_backend.gradients.gpu.kernels import kernels_of_step
from gpu_backend.ops.kernels.parameters import MAP_NBYTES
from gpu_backend.ops.kernels.recipe import KernelRecipe
from tests.helpers.conv_twins import CONV_TWINS
from tests.helpers.discriminator_twins import DISCRIMINATOR_TWINS, check_strips
from tests.helpers.host_arrays import Array, added, at, floats
from tests.helpers.layer_twins import LAYER_TWINS, moved
from tests.helpers.lbfgs_twins import LBFGS_TWINS
from tests.helpers.objective_twins import OBJECTIVE_TWINS, update_rows


def twin_kernels(taps: int, architecture: str = "sm_80") -> dict[KernelRecipe, LoadedKernel]:
    """Return the kernels of a network whose resampling filter has so many taps, as what a driver has loaded."""
    recipes = kernels_of_step(taps, architecture, with_skips=True)
    return {recipe: LoadedKernel(recipe, None, recipe.stem, 0, 0, 0) for recipe in recipes}


@dataclass
class TwinDriver:
    """Implements as much of `Driver` as gradients need.

    Attributes
    ----------
    memory
        Address -> bytes, of the device and pinned.
    launched, recipes, grids
        Entries, recipes and grids of all launches, in order.
    follow
        Whether each launch came right after another one.
    """

    memory: dict[int, Array] = field(default_factory=dict)
    launched: list[str] = field(default_factory=list)
    recipes: list[KernelRecipe] = field(default_factory=list)
    grids: list[tuple[int, ...]] = field(default_factory=list)
    follow: list[bool] = field(default_factory=list)
    _after_kernel: bool = False
    _captured: list[Callable[[], None]] | None = None

    def as_driver(self) -> Driver:
        """Return this, for what needs no more of a driver than it has."""
        return cast("Driver", self)

    def enter(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""

    def on_stream(self, stream: int) -> contextlib.AbstractContextManager[None]:
        """What the stream's owner enqueued is no kernel of ours."""
        self._after_kernel = False
        return contextlib.nullcontext()

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
        self._after_kernel = False
        ctypes.memmove(target, array.ctypes.data, array.nbytes)

    def download(self, array: Array, source: int) -> None:
        """Fill an array."""
        assert array.flags.c_contiguous
        self._after_kernel = False
        ctypes.memmove(array.ctypes.data, source, array.nbytes)

    def launch(
        self,
        kernel: LoadedKernel,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        shared: int,
        arguments: PackedArguments,
        *,
        follows_kernel: bool = False,
    ) -> None:
        """Run a twin."""
        assert self._after_kernel or not follows_kernel, "there is no kernel just before"
        self.follow.append(follows_kernel)
        values = [value.item() for value in arguments.values.values()]

        def run() -> None:
            self.launched.append(kernel.entry)
            self.recipes.append(kernel.function)
            self.grids.append(grid)
            _TWINS[kernel.entry](dict(kernel.function.defines), grid, *values)

        self._do(run)
        self._after_kernel = True

    def tensor_map(self, address: int, described: TensorMap) -> bytes:
        """Say where the array is, and what is copied of it."""
        (left, top), (right, bottom) = described.bounds or ((0, 0), (0, 0))
        bounds = left, top, right, bottom
        row = described.row or described.extents[0] * described.extents[1]
        numbers = np.array([address, *described.extents, *described.box, described.step, *bounds, row], np.int64)
        return numbers.tobytes().ljust(MAP_NBYTES, b"\0")

    def capture(self, work: Callable[[], None]) -> Graph:
        """Keep what `work` does."""
        self._captured, self._after_kernel = [], False
        work()
        graph, self._captured, self._after_kernel = Graph(self._captured), None, False
        return graph

    def replay(self, graph: Any) -> None:
        """Do it."""
        self._after_kernel = False
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
        self._after_kernel = False
        if self._captured is None:
            work()
        else:
            self._captured.append(lambda: (work(), None)[1])


def _table(address: int, layers: int) -> list[list[int]]:
    rows: list[list[int]] = at(address, (layers, 12), "i4").tolist()
    return rows


def _styles(macros: dict[str, str], grid: tuple[int, ...], *values: int) -> None:
    ws, affine, affine_bias, table, styles, w_dim, w_rows, style_count = values
    for sample in range(grid[2]):
        for inputs, _, style, _, first, _, w_row, *_rest in _table(table, grid[1]):
            matrix = at(affine + 4 * first * w_dim, (inputs, w_dim))
            row = at(ws, (grid[2], w_rows, w_dim))[sample, w_row]
            to = at(styles + 4 * (sample * style_count + style), (inputs,))
            to[...] = matrix @ row + at(affine_bias + 4 * first, (inputs,))


def _demod(macros: dict[str, str], grid: tuple[int, ...], *values: int) -> None:
    styles, squares, table, demods, constant, x, size, style_count, demod_count = values
    rows = _table(table, grid[1])
    for sample in range(grid[2]):
        for inputs, outputs, style, demod, _, square, *rest in rows:
            s = at(styles + 4 * (sample * style_count + style), (inputs,))
            q = at(squares + 2 * square, (outputs, inputs), "f2") * _unit(rest)
            to = at(demods + 4 * (sample * demod_count + demod), (outputs,))
            to[...] = 1.0 / np.sqrt(q @ (s * s) + 1e-8)
        inputs = rows[0][0]
        s = at(styles + 4 * (sample * style_count + rows[0][2]), (inputs,))
        shape = (size // inputs, inputs)
        at(x, (grid[2], *shape), "f2")[sample] = at(constant, shape, "f2").astype(np.float32) * s


def _unit(columns: list[int]) -> np.float32:
    """What the fp16 sums of squares are divided by, the last column of a layer's row."""
    return np.int32(columns[-1]).view(np.float32)


def _rows(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    sums, styles, demods, squares, affine, table, ws_gradient, *adam, ws, depth, first_row, rows = values[:17]
    w_rows, w_dim, w_pitch, widest, style_count, demod_count, sum_count, unit, rate = values[17:]
    clusters, samples, cluster = grid
    assert cluster == int(macros["CLUSTER"])
    assert clusters <= rows <= clusters + (clusters + 1) // 2
    found = np.zeros((samples, rows, w_dim), np.float32)
    for sample in range(samples):
        for row in range(rows):
            for layer in at(table, (w_rows, depth, 12), "i4")[first_row + row].tolist():
                inputs, outputs, style, demod, first, square, w_row, style_sums, style_blocks, *rest = layer
                if not inputs:
                    continue
                assert w_row == first_row + row
                assert widest >= max(inputs, outputs)
                partials = sums + 4 * sample * sum_count
                gradient = at(partials + 4 * style_sums, (style_blocks, inputs)).sum(0)
                if outputs:
                    d = at(demods + 4 * (sample * demod_count + demod), (outputs,))
                    e = at(partials + 4 * rest[0], (rest[1], outputs)).sum(0) * d**3
                    q = at(squares + 2 * square, (outputs, inputs), "f2") * _unit(rest)
                    gradient = gradient - at(styles + 4 * (sample * style_count + style), (inputs,)) * (e @ q)
                matrix = at(affine + 2 * first * w_pitch, (inputs, w_pitch), "f2")[:, :w_dim]
                found[sample, row] += unit * (gradient @ matrix.astype(np.float32))
    start, deviation, mean, square, count, shift = adam
    if not start:
        at(ws_gradient, (samples, w_rows, w_dim))[:, first_row : first_row + rows] = found
        return
    assert samples == 1
    update_rows(found[0], start, deviation, mean, square, count, shift, ws, first_row, rate)


def _picture(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    z, style, weight, bias, taps_at, before, planes, picture, side, channels, left, style_count, clamp = values
    taps, samples = int(macros["TAPS"]), grid[1]
    assert 0 <= grid[0] * (1024 // int(macros["LANES"])) - side * side < 1024 // int(macros["LANES"])
    for sample in range(samples):
        scale = at(style + 4 * sample * style_count, (channels,))
        x = at(z, (samples, side, side, channels), "f2")[sample].astype(np.float32) * scale
        y = np.einsum("yxc,kc->kyx", x, at(weight, (3, channels))) + at(bias, (3,))[:, None, None]
        at(planes, (samples, 3, side, side))[sample] = y
        y = y.clip(-clamp, clamp)
        if before:
            small = at(before, (samples, 3, side // 2, side // 2))[sample].transpose(1, 2, 0)
            y = y + _doubled(small, at(taps_at, (taps,)), left).transpose(2, 0, 1)
        at(picture, (samples, 3, side, side))[sample] = y


def _picture_adjoint(macros: dict[str, str], grid: tuple[int, ...], source: int, taps_at: int, *values: int) -> None:
    to, side, left = values
    whole = at(source, (grid[1], side, side)).transpose(1, 2, 0)
    at(to, (grid[1], side // 2, side // 2))[...] = _halved(whole, at(taps_at, (int(macros["TAPS"]),)), left).transpose(
        2, 0, 1
    )


def _largest(macros: dict[str, str], grid: tuple[int, ...], source: int, parts: int, quads: int) -> None:
    numbers = np.abs(at(source, (grid[1], 4 * quads)))
    at(parts, grid[1::-1])[...] = [[part.max(initial=0) for part in np.array_split(one, grid[0])] for one in numbers]


def _scaled(macros: dict[str, str], grid: tuple[int, ...], source: int, parts: int, *values: Any) -> None:
    largest, to, quads, least = values
    divisors = at(largest, (grid[1], 1))
    divisors[:] = at(parts, grid[1::-1]).max(1, keepdims=True).clip(least)
    at(to, (grid[1], 4 * quads))[...] = at(source, (grid[1], 4 * quads)) / divisors


def _skip(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    sums, taps_at, z, style, h, x, side, channels, left, style_count, unit = values
    samples = grid[1]
    assert 0 <= 128 * grid[0] - side * side * channels // 4 < 128
    small = at(sums, (samples, side // 2, side // 2, channels))
    f = at(taps_at, (int(macros["TAPS"]),))
    for sample in range(samples):
        out = floats(at(z, (samples, side, side, channels), "f2"))[sample] + unit * _doubled(small[sample], f, left)
        at(h, (samples, side, side, channels), "f2")[sample] = out.clip(-65504, 65504)
        if x:
            scaled = out * at(style + 4 * sample * style_count, (channels,))
            at(x, (samples, side, side, channels), "f2")[sample] = scaled.clip(-65504, 65504)


def _doubled(small: Array, f: Array, left: int) -> Array:
    """Double (side, side, channels) with turned taps."""
    spread = np.zeros((2 * small.shape[0], 2 * small.shape[1], small.shape[2]), np.float32)
    spread[::2, ::2] = small
    rows = added(f[k] * moved(spread, k - left, 0) for k in range(len(f)))
    return added(f[k] * moved(rows, 0, k - left) for k in range(len(f)))


def _halved(whole: Array, f: Array, left: int) -> Array:
    """The adjoint of `_doubled`."""
    rows = added(f[k] * moved(whole, left - k, 0) for k in range(len(f)))
    return added(f[k] * moved(rows, 0, left - k) for k in range(len(f)))[::2, ::2]


def _skip_adjoint(macros: dict[str, str], grid: tuple[int, ...], source: int, taps_at: int, *values: int) -> None:
    to, side, channels, rows, left = values
    samples, f = grid[1], at(taps_at, (int(macros["TAPS"]),))
    check_strips(grid[0], side // 2, channels, rows)
    whole = floats(at(source, (samples, side, side, channels), "f2"))
    found = at(to, (samples, side // 2, side // 2, channels), "f2")
    for sample in range(samples):
        found[sample] = _halved(whole[sample], f, left).clip(-65504, 65504)


_TWINS: dict[str, Callable[..., None]] = {
    "gradient_styles": _styles,
    "gradient_demod": _demod,
    "gradient_rows": _rows,
    "gradient_picture": _picture,
    "gradient_picture_adjoint": _picture_adjoint,
    "gradient_largest": _largest,
    "gradient_scaled": _scaled,
    "gradient_skip": _skip,
    "gradient_skip_adjoint": _skip_adjoint,
    **CONV_TWINS,
    **LAYER_TWINS,
    **DISCRIMINATOR_TWINS,
    **OBJECTIVE_TWINS,
    **LBFGS_TWINS,
}
