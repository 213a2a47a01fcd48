"""Plain twins of the kernels that a discriminator's features have for themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.helpers.host_arrays import Array, added, at, floats

_SLOPE = np.float32(0.2)


def _halves(v: Array) -> Array:
    """Numbers of fp16 that are stored."""
    return v.clip(-65504, 65504)


def check_strips(blocks: int, side: int, channels: int, rows: int) -> None:
    """Check that there is a thread for four channels of each two columns and so many rows, and no idle block."""
    threads = len(range(0, side, 2)) * len(range(0, side, rows)) * channels // 4
    assert 0 <= 128 * blocks - threads < 128


def end_channels(macros: dict[str, str], found: Array, *values: Any, beside: Array | float = 0.0) -> None:
    """What becomes of sums (samples, side, side, channels), and of fp32 numbers that are added after the activation."""
    bias, mask, add, out, signs, u, unit, slope, *joined = values
    shape = found.shape
    v = unit * found + (at(bias, shape[-1:]) if bias else 0.0)
    v = np.where(v > 0, v, slope * v)
    if mask:
        _put_signs(mask, v)
    v = v + beside
    if add:
        v = v + at(add, shape, "f2")
    if (taps := int(macros["TAPS"])) > 0:
        v = v + _joined(taps, shape, *joined)
    if out:
        at(out, shape, "f2")[...] = _halves(v)
    if u:
        at(u, shape, "f2")[...] = _halves(v * np.where(_signs(signs, shape), 1, _SLOPE))


def _put_signs(mask: int, v: Array) -> None:
    """Write where numbers (..., channels) are positive, a byte for eight channels."""
    at(mask, (v.size // 8,), "u1")[...] = np.packbits((v > 0).reshape(-1), bitorder="little")


def _signs(mask: int, shape: tuple[int, ...]) -> Array:
    bits = np.unpackbits(at(mask, (int(np.prod(shape)) // 8,), "u1"), bitorder="little")
    return bits.reshape(shape) > 0


def _joined(taps: int, shape: tuple[int, ...], *values: Any) -> Array:
    """What is added to the gradient of a block's input."""
    source, taps_at, map_at, wanted, numbers, scale, left, level = values
    samples, side, _, channels = shape
    v = np.zeros(shape, np.float32)
    if source:
        f = at(taps_at, (taps,))
        spread = np.zeros((samples, side + 2 * taps, side + 2 * taps, channels), np.float32)
        spread[:, taps : taps + side : 2, taps : taps + side : 2] = at(
            source, (samples, side // 2, side // 2, channels), "f2"
        )
        first = taps - left
        lines = added(f[k] * spread[:, first + k : first + k + side] for k in range(taps))
        v += added(f[k] * lines[:, :, first + k : first + k + side] for k in range(taps))
    if map_at:
        factor = level * at(scale, (samples, 1, 1))[..., None] * at(numbers, (samples, side, side, 2))
        v += factor[..., :1] * at(map_at, shape, "f2") + factor[..., 1:] * at(wanted, shape, "f2")
    return v


def _end(macros: dict[str, str], grid: tuple[int, ...], sums: int, *values: Any) -> None:
    *end, slices, groups, side, channels = values
    assert 0 <= 128 * grid[0] - groups < 128
    shape = groups * 8 // channels // side**2, side, side, channels
    end_channels(macros, at(sums, (slices, *shape)).sum(0) if slices else np.zeros(shape, np.float32), *end)


def _filter_adjoint(macros: dict[str, str], grid: tuple[int, ...], *values: int) -> None:
    t, taps_at, z, u, side, channels, rows, left = values
    taps, samples = int(macros["TAPS"]), grid[1]
    check_strips(grid[0], side, channels, rows)
    f = at(taps_at, (taps,))
    wide = np.pad(
        floats(at(t, (samples, side + 1, side + 1, channels), "f2")), ((0, 0), (taps, taps), (taps, taps), (0, 0))
    )
    first = taps - left
    lines = added(f[k] * wide[:, first + k : first + k + side] for k in range(taps))
    v = added(f[k] * lines[:, :, first + k : first + k + side] for k in range(taps))
    shape = v.shape
    at(u, shape, "f2")[...] = _halves(v * np.where(at(z, shape, "f2") > 0, 1, _SLOPE))


def _distance(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    *of_maps, parts, most, maps, places, first, blocks, least, weight, level = values
    samples, end = grid[1], first + grid[0]
    for x_at, wanted, numbers, channels in list(zip(*(of_maps[i : i + 8] for i in range(0, 32, 8)), strict=True))[
        :maps
    ]:
        x, w = (floats(at(address, (samples, places, channels), "f2")) for address in (x_at, wanted))
        r, s = (1.0 / np.sqrt((v * v).sum(2, keepdims=True) + least) for v in (x, w))
        n, cosine = (x * x).sum(2, keepdims=True), (x * w).sum(2, keepdims=True) * r * s
        along, across = 2 * r * r * (1 - n * r * r + cosine), -2 * r * s
        at(numbers, (samples, places, 2))[...] = weight * np.concatenate([along, across], 2)
        lanes = 32 if channels > 128 else 16 if channels > 64 else 8
        own = -(-places * lanes // 1024)
        sums, lengths = (at(address, (samples, blocks))[:, first : first + own] for address in (parts, most))
        sums[...] = lengths[...] = 0.0
        sums[:, 0] = weight * ((x * r - w * s) ** 2).sum((1, 2))
        lengths[:, 0] = weight * level * np.linalg.norm(along * x + across * w, axis=2).max(1)
        first, places, weight, level = first + own, places // 4, 4 * weight, level / 2
    assert first == end


def _rgb(macros: dict[str, str], grid: tuple[int, ...], *values: int) -> None:
    picture, weight, bias, out, mask, pixels, channels = values
    colours, samples = int(macros["COLOURS"]), grid[1]
    assert 0 <= 256 * grid[0] - pixels * channels // 32 < 256
    v = np.einsum("skp,kc->spc", at(picture, (samples, colours, pixels)), at(weight, (colours, channels)))
    v = v + at(bias, (channels,))
    at(out, (samples, pixels, channels), "f2")[...] = _halves(np.where(v > 0, v, _SLOPE * v))
    _put_signs(mask, v)


def _rgb_adjoint(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    u, weight, scale, to, pixels, channels, level = values
    colours, samples = int(macros["COLOURS"]), grid[1]
    assert 0 <= 256 * grid[0] - pixels < 256
    v = floats(at(u, (samples, pixels, channels), "f2"))
    found = np.einsum("spc,kc->skp", v, at(weight, (colours, channels)))
    at(to, (samples, colours, pixels))[...] = found / (level * at(scale, (samples, 1, 1)))


DISCRIMINATOR_TWINS: dict[str, Callable[..., None]] = {
    "discriminator_end": _end,
    "discriminator_filter_adjoint": _filter_adjoint,
    "discriminator_distance": _distance,
    "discriminator_rgb": _rgb,
    "discriminator_rgb_adjoint": _rgb_adjoint,
}
"""By the names of their kernels, but for the convolution, which is that of a step with another end."""
