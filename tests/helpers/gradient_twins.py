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
from tests.helpers.discriminator_twins import DISCRIMINATOR_TWINS, check_strips, end_channels
from tests.helpers.host_arrays import Array, added, at, floats
from tests.helpers.lbfgs_twins import LBFGS_TWINS
from tests.helpers.objective_twins import OBJECTIVE_TWINS, update_rows

_SLOPE = np.float32(0.2)


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
    in_side, cin, cout, in_stride, out_stride, out_side, slices, samples = sizes
    source = floats(at(x, (samples, in_side, in_side, cin), "f2"))
    to = at(sums, (slices, samples, out_side, out_side, cout))
    table = at(parities, (grid[2] // slices, 32), "i4")
    kernels = floats(at(weight, (int(table[:, 7::3].max()) + 1, cout, cin), "f2"))
    for count, rows, columns, r, q, *taps in table.tolist():
        i = in_stride * np.arange(rows)[:, None]
        j = in_stride * np.arange(columns)[None]
        found = np.zeros((samples, rows, columns, cout), np.float32)
        for tap in range(count):
            dy, dx, index = taps[3 * tap : 3 * tap + 3]
            y, column = i + dy, j + dx
            inside = (y >= 0) & (y < in_side) & (column >= 0) & (column < in_side)
            picked = source[:, y.clip(0, in_side - 1), column.clip(0, in_side - 1)] * inside[..., None]
            found += picked @ kernels[index].T
        # K is cut anywhere: here into equal parts of the whole.
        to[:, :, r : r + out_stride * rows : out_stride, q : q + out_stride * columns : out_stride] = found / slices


def _mapped(written: bytes, extents: tuple[int, ...], box: tuple[int, ...], step: int = 1, row: int = 0) -> int:
    """The address of a tensor map, which must be of such an array and such boxes."""
    address, *numbers = np.frombuffer(written, np.int64).tolist()
    assert numbers[:8] == [*extents, *box, step]
    assert numbers[12] == (row or extents[0] * extents[1])
    return int(address)


def _ended_conv(macros: dict[str, str], grid: tuple[int, ...], x: int, weight: int, *values: Any) -> None:
    *end, parities, in_side, cin, cout, in_stride, out_stride, out_side, samples = values
    found = np.zeros((samples, out_side, out_side, cout), np.float32)
    sizes = in_side, cin, cout, in_stride, out_stride, out_side, 1, samples
    _conv(macros, grid, x, weight, found.ctypes.data, parities, *sizes)
    columns = int(macros["COLUMNS"])
    assert 0 <= grid[1] * columns - cout < columns
    end_channels(macros, found, *end)


def _patch_conv(macros: dict[str, str], grid: tuple[int, ...], x_map: bytes, weight_map: bytes, *values: Any) -> None:
    *end, side, cin, cout, _, is_adjoint = values
    samples = grid[0] // (-(-side // 16)) ** 2
    x = _mapped(x_map, (cin, side, side, samples), (64, 18, 18))
    weight = _mapped(weight_map, (cin, cout, 9, 1), (64, int(macros["COLUMNS"]), 1))
    source = np.pad(floats(at(x, (samples, side, side, cin), "f2")), ((0, 0), (1, 1), (1, 1), (0, 0)))
    kernels = floats(at(weight, (9, cout, cin), "f2"))[:: -1 if is_adjoint else 1]
    found = np.zeros((samples, side, side, cout), np.float32)
    for tap, kernel in enumerate(kernels):
        y, column = divmod(tap, 3)
        found += source[:, y : y + side, column : column + side] @ kernel.T
    _tile_end(macros, grid, found, *end)


def _streaming_conv(macros: dict[str, str], grid: tuple[int, ...], x_map: bytes, weight: int, *values: Any) -> None:
    *end, side, cin, cout, strip_rows, is_adjoint = values
    channels, samples = int(macros["CHANNELS"]), grid[2]
    assert max(cin, cout) <= channels == int(macros["DEPTH"])
    x = _mapped(x_map, (cin, side, side, samples), (channels, 66, 1))
    strips = -(-side // 64) * -(-side // strip_rows)
    assert grid[0] == -(-strips // int(macros["WARPGROUPS"]))
    source = np.pad(floats(at(x, (samples, side, side, cin), "f2")), ((0, 0), (1, 1), (1, 1), (0, 0)))
    found = np.zeros((samples, side, side, cout), np.float32)
    for tap, kernel in enumerate(floats(at(weight, (9, cout, cin), "f2"))[:: -1 if is_adjoint else 1]):
        y, column = divmod(tap, 3)
        found += source[:, y : y + side, column : column + side] @ kernel.T
    if macros.get("LAYER_END") == "1":
        _end_layer(found, *end)
    elif macros.get("WAY_BACK") == "1":
        style, demod, noise, bias, *others = end
        _go_back(found, grid[0], demod, noise, bias, style, *others)
    elif "TAPS" in macros:
        out, unit, signs, u, *joined = end
        end_channels(macros, found, 0, 0, 0, out, signs, u, unit, 1.0, *joined)
    else:
        out, unit = end
        at(out, found.shape, "f2")[...] = (unit * found).clip(-65504, 65504)


def _up_adjoint(macros: dict[str, str], grid: tuple[int, ...], x_map: bytes, weight_map: bytes, *values: Any) -> None:
    *end, side, cin, cout, _ = values
    samples, whole = grid[0] // (-(-side // 16)) ** 2, 2 * side + 1
    x = _mapped(x_map, (cin, whole, whole, samples), (64, 17, 17), 2)
    weight = _mapped(weight_map, (cin, cout, 9, 1), (64, int(macros["COLUMNS"]), 1))
    source = floats(at(x, (samples, whole, whole, cin), "f2"))
    found = np.zeros((samples, side, side, cout), np.float32)
    for tap, kernel in enumerate(floats(at(weight, (9, cout, cin), "f2"))):
        y, column = divmod(tap, 3)
        found += source[:, y : y + 2 * side : 2, column : column + 2 * side : 2] @ kernel.T
    _tile_end(macros, grid, found, *end)


def _runs(written: bytes) -> tuple[Array, Callable[..., Array]]:
    """The array that a tensor map names, and what copies successive pixels of a sample within its bounds."""
    address, *numbers = np.frombuffer(written, np.int64)[:13].tolist()
    channels, columns, rows, samples, depth, _, run, step, left, top, right, bottom = numbers
    assert depth == 64
    assert step == 1
    assert 8 <= run <= 256
    assert run % 8 == 0
    assert all(-128 <= bound < 128 for bound in (left, top, right, bottom))
    source = floats(at(address, (samples, rows, columns, channels), "f2"))
    assert left <= 0
    assert top <= 0
    margins = (0, 0), (-top, bottom), (-left, right), (0, 0)
    area = np.pad(source, margins)
    width, height = area.shape[2], area.shape[1]

    def copied(sample: int, column: int, row: int) -> Array:
        first = (row - top) * width + column - left
        assert left <= column < left + width
        assert first >= 0
        assert first + run <= width * height, "a run stays in its sample"
        found: Array = area[sample].reshape(-1, channels)[first : first + run]
        return found

    return source, copied


def _up_conv(
    macros: dict[str, str],
    grid: tuple[int, ...],
    x: int,
    weight: int,
    x_map: bytes,
    weight_map: bytes,
    demod: int,
    t: int,
    *rest: Any,
) -> None:
    side, cin, cout, tiles, run, runs, demod_count, unit = rest
    samples, whole, pitch = grid[0] // tiles, 2 * side + 1, side + 1
    assert _mapped(weight_map, (cin, cout, 9, 1), (64, int(macros["COLUMNS"]), 1)) == weight
    assert _mapped(x_map, (cin, side, side, samples), (64, 1, run)) == x
    assert grid[2] == int(macros["CLUSTER"]) <= -(-cin // 64)
    source, copied = _runs(x_map)
    kernels = floats(at(weight, (9, cout, cin), "f2"))
    to = at(t, (samples, whole, whole, cout), "f2")
    factors = [unit * (at(demod + 4 * i * demod_count, (cout,)) if demod else np.ones(cout)) for i in range(samples)]
    written = np.zeros((samples, whole, whole), int)
    for sample, tile in np.ndindex(samples, tiles):
        starts = [128 * tile + pitch - 1 + i * run for i in range(runs)]
        patch = np.concatenate([copied(sample, start % pitch, start // pitch - 2) for start in starts])
        found = np.zeros((4, 128, cout), np.float32)
        for tap, kernel in enumerate(kernels):
            y, column = divmod(tap, 3)
            first = pitch + 1 - (y // 2) * pitch - column // 2
            found[y % 2 * 2 + column % 2] += patch[first : first + 128] @ kernel.T
        for place in range(128):
            i, j = divmod(128 * tile + place, pitch)
            for parity, results in enumerate(found):
                y, column = 2 * i + parity // 2, 2 * j + parity % 2
                if y < whole and column < whole:
                    to[sample, y, column] = results[place] * factors[sample]
                    written[sample, y, column] += 1
    if 128 * tiles <= side * (side + 2):
        to[:, -1, -1] = source[:, -1, -1] @ kernels[8].T * np.stack(factors)
        written[:, -1, -1] += 1
    assert np.all(written == 1)


def _narrow_up_conv(
    macros: dict[str, str], grid: tuple[int, ...], x_map: bytes, weight_map: bytes, t_map: bytes, *rest: Any
) -> None:
    demod, t, side, across, tiles, all_tiles, demod_count, unit = rest
    samples, whole = all_tiles // tiles, 2 * side + 1
    assert (across, tiles // across) == (-(-(side + 1) // 14), -(-(side + 1) // 9))
    assert 0 < grid[0] <= all_tiles
    cin = int(np.frombuffer(x_map, np.int64)[1])
    x = _mapped(x_map, (cin, side, side, samples), (64, 15, 10))
    weight = _mapped(weight_map, (cin, 32, 9, 1), (64, 32, 1))
    assert _mapped(t_map, (64, side, whole, samples), (64, 14, 18), row=32 * whole) == t
    source = floats(at(x, (samples, side, side, cin), "f2"))
    found = np.zeros((samples, whole, whole, 32), np.float32)
    for tap, kernel in enumerate(floats(at(weight, (9, 32, cin), "f2"))):
        y, column = divmod(tap, 3)
        found[:, y : y + 2 * side : 2, column : column + 2 * side : 2] += source @ kernel.T
    factors = [unit * (at(demod + 4 * i * demod_count, (32,)) if demod else np.ones(32)) for i in range(samples)]
    at(t, found.shape, "f2")[...] = found * np.stack(factors)[:, None, None]


def _narrow_up_adjoint(macros: dict[str, str], grid: tuple[int, ...], x_map: bytes, weight: int, *rest: Any) -> None:
    out, *skip, side, cout, across, tiles, all_tiles, unit = rest
    assert bool(skip) == (macros["SKIP"] == "1")
    samples, whole = all_tiles // tiles, 2 * side + 1
    assert (across, tiles // across) == (-(-side // 16), -(-side // 4))
    assert 0 < 4 * grid[0] < all_tiles + 4
    x = _mapped(x_map, (64, side + 1, whole, samples), (64, 17, 9), row=32 * whole)
    source = floats(at(x, (samples, whole, whole, 32), "f2"))
    found = np.zeros((samples, side, side, cout), np.float32)
    for tap, kernel in enumerate(floats(at(weight, (9, cout, 32), "f2"))):
        y, column = divmod(tap, 3)
        found += source[:, y : y + 2 * side : 2, column : column + 2 * side : 2] @ kernel.T
    if not skip:
        at(out, found.shape, "f2")[...] = (unit * found).clip(-65504, 65504)
        return
    halved_map, skip_weight, bias, mask, slope, skip_unit = skip
    halved = _mapped(halved_map, (32, side, side, samples), (32, 16, 4))
    sums = floats(at(halved, (samples, side, side, 32), "f2")) @ floats(at(skip_weight, (cout, 32), "f2")).T
    end_channels({"TAPS": "0"}, found, bias, mask, 0, out, 0, 0, unit, slope, beside=skip_unit * sums)


def _skip_conv(macros: dict[str, str], grid: tuple[int, ...], x_map: bytes, weight: int, *rest: Any) -> None:
    out, pixels, cin, cout, unit = rest
    columns = int(macros["COLUMNS"])
    assert 0 <= grid[1] * columns - cout < columns
    assert 0 < grid[0] * 256 < pixels + 256
    x = _mapped(x_map, (cin, pixels, 1, 1), (64, 64, 1))
    found = floats(at(x, (pixels, cin), "f2")) @ floats(at(weight, (cout, cin), "f2")).T
    at(out, (pixels, cout), "f2")[...] = (unit * found).clip(-65504, 65504)


def _tile_end(macros: dict[str, str], grid: tuple[int, ...], found: Array, *values: Any) -> None:
    """What becomes of the sums (samples, side, side, channels) of a convolution on Hopper."""
    if "DISCRIMINATOR" in macros:
        assert grid[2] == 1
        end_channels({"TAPS": "0", **macros}, found, *values)
        return
    sums, style, demod, noise, bias, z, to, style_sums, demod_sums, *rest = values
    style_count, demod_count, sum_count, unit, gain, clamp = rest
    side, slices = found.shape[1], grid[2]
    if macros["LAYER_END"] == macros["WAY_BACK"] == "0":
        at(sums, (slices, *found.shape))[...] = found / slices
        return
    assert slices == int(macros["CLUSTER"])
    counts = style_count, demod_count
    if macros["LAYER_END"] == "1":
        _end_layer(found, style, demod, noise, bias, z, to, *counts, unit, gain, clamp)
        return
    before = demod, noise, bias, style, z, to, style_sums, demod_sums
    _go_back(found, (-(-side // 16)) ** 2 * slices, *before, *counts, sum_count, unit, gain, clamp)


def _go_back(found: Array, rows: int, *values: Any) -> None:
    """The way back from the sums of one slice, by blocks that leave so many rows of sums."""
    demod, noise, bias, style, z, to, style_sums, demod_sums, *numbers = values
    samples, side, _, channels = found.shape
    whole = np.ascontiguousarray(found)
    # Each block has a row of sums: here a part of the pixels in their order, of the last blocks none.
    pixels, sum_count = side * side, numbers[2]
    some = -(-pixels // rows)
    blocks = -(-pixels // some)
    before = style, z, noise, bias, demod, to, style_sums, demod_sums, 1, pixels, channels, some
    macros = {"RGB": "0", "SKIP": "0", "HALF_G": "0"}
    _activation(macros, (blocks, 1, samples), whole.ctypes.data, *before, *numbers)
    for sample in range(samples):
        for sums in filter(None, (style_sums, demod_sums)):
            at(sums + 4 * sample * sum_count, (rows, channels))[blocks:] = 0.0


def _end_layer(found: Array, style: int, demod: int, noise: int, bias: int, z: int, to: int, *numbers: Any) -> None:
    """The end of a layer from the sums of one slice."""
    samples, side, _, channels = found.shape
    whole = np.ascontiguousarray(found)
    layer = {"TAPS": "0", "HALF_T": "0"}
    blocks = -(-side * side * channels // 16 // 256)
    ends = demod, noise, bias, style, z, to, 1, side, channels, 1, 0
    _layer(layer, (blocks, samples), whole.ctypes.data, 0, *ends, *numbers)


def _reduce(macros: dict[str, str], grid: tuple[int, ...], sums: int, quads: int, slices: int) -> None:
    whole = at(sums, (slices, 4 * quads))
    whole[0] = whole.sum(0)


def _layer(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    reads_half = macros["HALF_T"] == "1"
    if reads_half:  # of results that are demodulated already
        sums, taps_at, noise, bias, style, z, x, slices, side, channels, rows, *rest = values
        left, style_count, gain, clamp = rest
        demod, demod_count, unit = 0, 0, 1.0
    else:
        sums, taps_at, demod, noise, bias, style, z, x, slices, side, channels, rows, *rest = values
        left, style_count, demod_count, unit, gain, clamp = rest
    taps, samples = int(macros["TAPS"]), grid[1]
    if taps:
        check_strips(grid[0], side, channels, rows)
    else:
        assert 0 <= 256 * grid[0] - side * side * channels // (16 if slices == 1 else 4) < 256
    shape = 1 if taps else slices, samples, side + bool(taps), side + bool(taps), channels
    whole = at(sums, shape, "f2" if reads_half else "f4").sum(0, dtype=np.float32)
    for sample, t in enumerate(whole):
        v = _filtered(t, at(taps_at, (taps,)), side, left) if taps else t
        v = v * (unit * at(demod + 4 * sample * demod_count, (channels,)) if demod else 1.0) + at(bias, (channels,))
        if noise:
            v = v + at(noise, (side, side, 1))
        v = (np.where(v > 0, v, _SLOPE * v) * gain).clip(-clamp, clamp)
        out = at(z, (samples, side, side, channels), "f2")[sample]
        out[...] = v.clip(-65504, 65504)
        if x:
            scaled = v * at(style + 4 * sample * style_count, (channels,))
            at(x, (samples, side, side, channels), "f2")[sample] = scaled


def _filtered(t: Array, f: Array, side: int, left: int) -> Array:
    """Filter (side + 1, side + 1, channels) to (side, side, channels)."""
    taps = len(f)
    wide = np.zeros((side + 2 * taps + 1, side + 2 * taps + 1, t.shape[-1]), np.float32)
    wide[taps : taps + side + 1, taps : taps + side + 1] = t
    first = taps - left
    rows = added(f[k] * wide[first + k : first + k + side] for k in range(taps))
    return added(f[k] * rows[:, first + k : first + k + side] for k in range(taps))


def _activation(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    g, style, z, noise, bias, demod, u, style_sums, demod_sums, *rest = values
    rgb, rest = (rest[:7], rest[7:]) if macros["RGB"] == "1" else (None, rest)
    skip, rest = (rest[:4], rest[4:]) if macros["SKIP"] == "1" else (None, rest)
    slices, pixels, channels, per_block, style_count, demod_count, sum_count, unit, gain, clamp = rest
    samples = grid[2]
    shape = samples, pixels, channels
    kind = "f2" if macros["HALF_G"] == "1" else "f4"
    whole = unit * floats(at(g, (slices, *shape), kind)).sum(0) if g else np.zeros(shape, "f4")

    def put(address: int, sample: int, products: Array) -> None:
        """Write the sums of each block of pixels."""
        to = at(address + 4 * sample * sum_count, (grid[0], channels))
        to[...] = np.stack([products[i : i + per_block].sum(0) for i in range(0, pixels, per_block)])

    for sample, up in enumerate(whole):
        result = at(z, (samples, pixels, channels), "f2")[sample].astype(np.float32)
        output = result if skip is None else at(skip[0], (samples, pixels, channels), "f2")[sample].astype(np.float32)
        if style_sums:
            put(style_sums, sample, output * up)
        if not u:
            continue
        dz = up * (at(style + 4 * sample * style_count, (channels,)) if style else 1.0)
        if rgb is not None:
            picture_gradient, planes, rgb_weight, rgb_style, rgb_sums, rgb_clamp, rgb_unit = rgb
            is_inside = np.abs(at(planes, (samples, 3, pixels))[sample]) < rgb_clamp
            t = (at(picture_gradient, (samples, 3, pixels))[sample] * rgb_unit * is_inside).T @ at(
                rgb_weight, (3, channels)
            )
            put(rgb_sums, sample, output * t)
            dz = dz + t * at(rgb_style + 4 * sample * style_count, (channels,))
        if skip is not None:
            _, skip_sums, block_gradient, skip_unit = skip
            if skip_sums:
                dz = dz + skip_unit * at(skip_sums, shape)[sample]
            if block_gradient:
                at(block_gradient, shape, "f2")[sample] = dz.clip(-65504, 65504)
        slope = np.where(result > 0, gain, _SLOPE * gain)
        dv = dz * slope * (np.abs(result) < clamp)
        d = at(demod + 4 * sample * demod_count, (channels,))
        v = result / slope - at(bias, (channels,)) - (at(noise, (pixels, 1)) if noise else 0.0)
        put(demod_sums, sample, dv * v / d)
        at(u, (samples, pixels, channels), "f2")[sample] = (dv * d).clip(-65504, 65504)


def _filter(macros: dict[str, str], grid: tuple[int, ...], u: int, taps_at: int, t: int, *sizes: int) -> None:
    side, channels, rows, left = sizes
    taps, samples = int(macros["TAPS"]), grid[1]
    check_strips(grid[0], side + 1, channels, rows)
    f, sources = at(taps_at, (taps,)), floats(at(u, (samples, side, side, channels), "f2"))
    for source, to in zip(sources, at(t, (samples, side + 1, side + 1, channels), "f2"), strict=True):
        wide = np.zeros((side + 1, side + 1, channels), np.float32)
        wide[:side, :side] = source
        lines = added(f[k] * _moved(wide, left - k, 0) for k in range(taps))
        to[...] = added(f[k] * _moved(lines, 0, left - k) for k in range(taps)).clip(-65504, 65504)


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
    rows = added(f[k] * _moved(spread, k - left, 0) for k in range(len(f)))
    return added(f[k] * _moved(rows, 0, k - left) for k in range(len(f)))


def _halved(whole: Array, f: Array, left: int) -> Array:
    """The adjoint of `_doubled`."""
    rows = added(f[k] * _moved(whole, left - k, 0) for k in range(len(f)))
    return added(f[k] * _moved(rows, 0, left - k) for k in range(len(f)))[::2, ::2]


def _skip_adjoint(macros: dict[str, str], grid: tuple[int, ...], source: int, taps_at: int, *values: int) -> None:
    to, side, channels, rows, left = values
    samples, f = grid[1], at(taps_at, (int(macros["TAPS"]),))
    check_strips(grid[0], side // 2, channels, rows)
    whole = floats(at(source, (samples, side, side, channels), "f2"))
    found = at(to, (samples, side // 2, side // 2, channels), "f2")
    for sample in range(samples):
        found[sample] = _halved(whole[sample], f, left).clip(-65504, 65504)


_TWINS: dict[str, Callable[..., None]] = {
    "gradient_conv": _conv,
    "gradient_patch_conv": _patch_conv,
    "gradient_streaming_conv": _streaming_conv,
    "gradient_up_adjoint": _up_adjoint,
    "gradient_up_conv": _up_conv,
    "gradient_narrow_up_conv": _narrow_up_conv,
    "gradient_narrow_up_adjoint": _narrow_up_adjoint,
    "gradient_reduce": _reduce,
    "gradient_layer": _layer,
    "gradient_activation": _activation,
    "gradient_filter": _filter,
    "gradient_styles": _styles,
    "gradient_demod": _demod,
    "gradient_rows": _rows,
    "gradient_picture": _picture,
    "gradient_picture_adjoint": _picture_adjoint,
    "gradient_largest": _largest,
    "gradient_scaled": _scaled,
    "gradient_skip": _skip,
    "gradient_skip_adjoint": _skip_adjoint,
    "discriminator_conv": _ended_conv,
    "discriminator_skip": _skip_conv,
    **DISCRIMINATOR_TWINS,
    **OBJECTIVE_TWINS,
    **LBFGS_TWINS,
}
