"""Twins of convolutions and their adjoints, and of the ends that they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.helpers.discriminator_twins import end_channels
from tests.helpers.host_arrays import Array, at, floats
from tests.helpers.layer_twins import end_of_layer, way_back


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
    groups, cin = int(macros["GROUPS"]), int(np.frombuffer(x_map, np.int64)[1])
    cout = 32 * groups
    assert 0 < 2 * grid[0] < all_tiles + 2
    assert grid[1] == groups == -(-cin // 64)
    x = _mapped(x_map, (cin, side, side, samples), (64, 15, 10))
    weight = _mapped(weight_map, (cin, cout, 9, 1), (64, 32, 1))
    extents, box = ((64, side), (64, 14, 18)) if groups == 1 else ((cout, whole), (32, 28, 18))
    assert _mapped(t_map, (*extents, whole, samples), box, row=cout * whole) == t
    source = floats(at(x, (samples, side, side, cin), "f2"))
    found = np.zeros((samples, whole, whole, cout), np.float32)
    for tap, kernel in enumerate(floats(at(weight, (9, cout, cin), "f2"))):
        y, column = divmod(tap, 3)
        found[:, y : y + 2 * side : 2, column : column + 2 * side : 2] += source @ kernel.T
    factors = [unit * (at(demod + 4 * i * demod_count, (cout,)) if demod else np.ones(cout)) for i in range(samples)]
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
    way_back(macros, (blocks, 1, samples), whole.ctypes.data, *before, *numbers)
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
    end_of_layer(layer, (blocks, samples), whole.ctypes.data, 0, *ends, *numbers)


CONV_TWINS: dict[str, Callable[..., None]] = {
    "gradient_conv": _conv,
    "gradient_patch_conv": _patch_conv,
    "gradient_streaming_conv": _streaming_conv,
    "gradient_up_adjoint": _up_adjoint,
    "gradient_up_conv": _up_conv,
    "gradient_narrow_up_conv": _narrow_up_conv,
    "gradient_narrow_up_adjoint": _narrow_up_adjoint,
    "discriminator_conv": _ended_conv,
    "discriminator_skip": _skip_conv,
}
