"""Twins of what ends a layer of a network, and of the ways back through these ends and filters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.helpers.discriminator_twins import check_strips
from tests.helpers.host_arrays import Array, added, at, floats

_SLOPE = np.float32(0.2)


def moved(x: Array, dy: int, dx: int) -> Array:
    """x[i + dy, j + dx], zeros outside."""
    height, width = x.shape[:2]
    found = np.zeros_like(x)
    rows = slice(max(0, -dy), min(height, height - dy))
    columns = slice(max(0, -dx), min(width, width - dx))
    if rows.start < rows.stop and columns.start < columns.stop:
        found[rows, columns] = x[rows.start + dy : rows.stop + dy, columns.start + dx : columns.stop + dx]
    return found


def _reduce(macros: dict[str, str], grid: tuple[int, ...], sums: int, quads: int, slices: int) -> None:
    whole = at(sums, (slices, 4 * quads))
    whole[0] = whole.sum(0)


def end_of_layer(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
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


def way_back(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
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
        lines = added(f[k] * moved(wide, left - k, 0) for k in range(taps))
        to[...] = added(f[k] * moved(lines, 0, left - k) for k in range(taps)).clip(-65504, 65504)


LAYER_TWINS: dict[str, Callable[..., None]] = {
    "gradient_reduce": _reduce,
    "gradient_layer": end_of_layer,
    "gradient_activation": way_back,
    "gradient_filter": _filter,
}
