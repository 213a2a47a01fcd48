"""Plain twins of the kernels that a step has besides the network: losses, handles and their motion; and Adam's step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.helpers.host_arrays import Array, added, at


def _box(x: Array, across: int) -> Array:
    """Sums over windows of the last two axes."""
    view = np.lib.stride_tricks.sliding_window_view(x, (across, across), (-2, -1))
    found: Array = view.sum((-2, -1), dtype=np.float32)
    return found


def _put_parts(parts: int, grid: tuple[int, ...], totals: Array) -> None:
    """Write each plane's sum as that of its first block."""
    to = at(parts, (grid[2], grid[0] * grid[1]))
    to[...] = 0.0
    to[:, 0] = totals


def _pixels(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    found, wanted, means, variances, gradient, parts, side, square_weight, window_weight = values
    planes, across = grid[2], min(7, side)
    windows, margin = side - across + 1, across - 1
    assert grid[:2] == (-(-side // 64), -(-side // 36))
    v, w = (at(picture, (planes, side, side)) for picture in (found, wanted))
    f, g = v * 0.5 + 0.5, w * 0.5 + 0.5
    m, q, c = (_box(x, across) / across**2 for x in (f, f * f, f * g))
    mg, vg = (at(numbers, (planes, windows, windows)) for numbers in (means, variances))
    d1, d2 = m * m + mg * mg + 1e-4, q - m * m + vg + 9e-4
    luminance, structure = (2 * m * mg + 1e-4) / d1, (2 * (c - m * mg) + 9e-4) / d2
    by_q, by_c = -luminance * structure / d2, 2 * luminance / d2
    by_m = structure * 2 * (mg - luminance * m) / d1 - by_c * mg - 2 * by_q * m
    pads = (0, 0), (margin, margin), (margin, margin)
    of_m, of_q, of_c = (_box(np.pad(x, pads), across) for x in (by_m, by_q, by_c))
    of_windows = of_m + 2 * f * of_q + g * of_c
    to = at(gradient, (planes, side, side))
    to[...] = 2 * square_weight * (v - w) - 0.5 * window_weight / across**2 * of_windows
    losses = square_weight * ((v - w) ** 2).sum((1, 2)) - window_weight * (luminance * structure).sum((1, 2))
    _put_parts(parts, grid, losses)


def _map(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    x_at, wanted, gradient, parts, channels, places, channels_last, least, weight = values
    shape = (grid[1], places, channels) if channels_last else (grid[1], channels, places)
    order = (0, 2, 1) if channels_last else (0, 1, 2)
    x, w = (at(address, shape).transpose(order) for address in (x_at, wanted))
    r = 1.0 / np.sqrt((x * x).sum(1, keepdims=True) + least)
    n, p = (x * x).sum(1, keepdims=True), (x * w).sum(1, keepdims=True)
    at(gradient, shape).transpose(order)[...] = weight * (2 * r * (r - n * r**3 + p * r**2) * x - 2 * r * w)
    to = at(parts, (grid[1], grid[0]))
    to[...] = 0.0
    to[:, 0] = ((x * r - w) ** 2).sum((1, 2))


def _loss(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    features, first, mask, gradient, parts, pixels, channels, faint, keep, unit = values
    assert 0 <= 512 * grid[0] - pixels * channels // 8 < 512
    shape = (pixels, channels)
    difference = at(features, shape, "f2").astype(np.float32) - at(first, shape, "f2").astype(np.float32)
    weight = faint + (keep * at(mask, (pixels, 1)) if mask else 0.0)
    at(gradient, shape, "f2")[...] = weight / unit * np.sign(difference)
    to = at(parts, (grid[0],))
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
            added(share * features[r, c].astype(np.float32) for r, c, share in _corners(x + dx, y + dy, side))
            for dy in line
            for dx in line
        ]
    )


def _handles(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    features, states, templates, gradient, side, channels, used, radius, unit, level, slack = values
    points, handles = (2 * radius + 1) ** 2, grid[0]
    f = at(features, (side, side, channels), "f2")[..., :used]
    to = at(gradient, (side, side, channels), "f2")
    line = range(-radius, radius + 1)
    for handle, state in enumerate(at(states, (handles, 12))):
        if not state[6]:
            continue
        wanted = at(templates, (handles, points, channels))[handle, :, :used]
        difference = _patch(f, state[0], state[1], radius) - wanted
        places = [(state[0] + dx, state[1] + dy) for dy in line for dx in line]
        for (x, y), found in zip(places, difference, strict=True):
            for r, c, share in _corners(x, y, side):
                to[r, c, :used] += level * share * np.sign(found) * (np.abs(found) > slack)
        _move(f, state, wanted, float(np.abs(difference).sum() * unit), radius, unit)


def _move(f: Array, state: Array, wanted: Array, difference: float, radius: int, unit: float) -> None:
    """Judge a handle's difference from its template, and move the handle."""
    position, target, trail = state[0:2].copy(), state[2:4].copy(), state[4:6].copy()
    way = target - position
    length = float(np.linalg.norm(way))
    state[7] = difference
    state[10] = state[10] + 1 if length < 1e-3 else 0
    if state[10] and difference <= 0.3:
        return
    state[9] += 1
    if state[9] == 1:
        state[8] = difference
    adapts = difference <= 0.3 or (state[9] >= 4 and difference <= state[8])
    if adapts:
        share = 0.5 / (1.0 + np.exp(8.0 * difference / 0.6 - 2.0))
        wanted += share * (_patch(f, position[0], position[1], radius) - wanted)

    def apart(place: Array) -> float:
        return float(np.abs(_patch(f, place[0], place[1], radius) - wanted).sum() * unit)

    if difference <= 0.3:
        state[9] = 0
        if length < 1e-3:
            return
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


def update_rows(
    gradient: Array,
    start: int,
    deviation: int,
    mean: int,
    square: int,
    count: int,
    shift: int,
    ws: int,
    first_row: int,
    rate: float,
) -> None:
    """Do a step of Adam on rows of w, from their gradient (rows, w_dim)."""
    rows, w_dim = gradient.shape
    offset = 4 * first_row * w_dim
    unit = at(deviation, (w_dim,))
    g = gradient * unit
    m, v, n, moved = at(mean, g.shape), at(square, (rows, 1)), at(count, (rows, 1)), at(shift, g.shape)
    n += 1
    m += 0.1 * (g - m)
    v += 0.05 * ((g * g).mean(1, keepdims=True) - v)
    moved -= rate * m / (1 - 0.9**n) / (np.sqrt(v / (1 - 0.95**n)) + 1e-12)
    at(ws + offset, g.shape)[...] = at(start + offset, g.shape) + moved * unit


OBJECTIVE_TWINS: dict[str, Callable[..., None]] = {
    "gradient_pixels": _pixels,
    "gradient_map": _map,
    "gradient_loss": _loss,
    "gradient_handles": _handles,
}
"""By the names of their kernels."""
