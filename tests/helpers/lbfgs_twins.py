"""What the kernels ``lbfgs_*.cu`` compute, one formula each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.helpers.host_arrays import at

_THREADS = 256
_HALVED, _ACCEPTED, _GIVEN_UP = range(3)


def _blocks(vector: Any) -> list[slice]:
    return [slice(first, first + _THREADS) for first in range(0, vector.shape[-1], _THREADS)]


def _products(macros: dict[str, str], grid: tuple[int, ...], *values: int) -> None:
    point, base, fresh, gradient, direction, steps, changes, products, variables = values
    samples, pairs = grid[1], int(macros["PAIRS"])
    vectors = [at(address, (samples, variables)) for address in (point, base, fresh, gradient, direction)]
    for sample in range(samples):
        x, begin, g, before, d = (vector[sample] for vector in vectors)
        kept = [at(address, (samples, pairs, variables))[sample] for address in (steps, changes)]
        s, y = x - begin, g - before
        news = ((s, y), (s, g), (y, y), (y, g), (g, g), (before, before), (before, d))
        found = at(products, (samples, grid[0], 4 * pairs + 8))[sample]
        for block, part in enumerate(_blocks(x)):
            columns = [old[:, part] @ new[part] for old in kept for new in (y, g)]
            numbers = [a[part] @ b[part] for a, b in news] + [np.count_nonzero(~np.isfinite(g[part]))]
            found[block] = np.concatenate([*columns, numbers])
    assert grid[0] == len(_blocks(vectors[0]))


def _solve(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    products, losses, matrices, numbers, counters, coefficients, *sizes, decrease, first = values
    blocks, variables, most_halvings = sizes
    samples, pairs = grid[0], int(macros["PAIRS"])
    for sample in range(samples):
        sums = at(products, (samples, blocks, 4 * pairs + 8))[sample].astype(np.float64).sum(0)
        of_pairs, new = sums[: 4 * pairs].reshape(4, pairs), sums[4 * pairs :]
        curvature, with_step, square, with_change, new_square, old_square, slope, not_finite = new
        upper, squares = at(matrices, (samples, 2, pairs, pairs), "f8")[sample]
        own, state = at(numbers, (samples, 2))[sample], at(counters, (samples, 5), "i4")[sample]
        value, (before, length) = at(losses, (samples,))[sample], own.copy()
        is_enough = value <= before + decrease * length * np.float32(slope) and not not_finite
        is_halved = not is_enough and state[2] < most_halvings
        is_kept = is_enough and curvature > 1e-10 * square
        decision = _ACCEPTED if is_enough else _HALVED if is_halved else _GIVEN_UP
        state[2:] = state[2] + 1 if is_halved else 0, decision, -1
        if is_kept:
            of_pairs[:, state[0]] = curvature, with_step, square, with_change
            upper[:, state[0]] = of_pairs[0]
            squares[:, state[0]] = squares[state[0]] = of_pairs[2]
            state[4], state[:2] = state[0], ((state[0] + 1) % pairs, min(state[1] + 1, pairs))
        if is_enough:
            own[0] = value
        own[1] = 1.0
        if is_halved:
            curve = value - before - length * slope
            best = -0.5 * slope * length**2 / curve if curve > 0 else 0.0
            own[1] = min(max(best, 0.1 * length), 0.5 * length)
            continue
        if state[3] == _GIVEN_UP:
            state[1] = 0
        found = at(coefficients, (samples, 1 + 2 * pairs))[sample]
        found[:] = 0.0
        if not state[1]:
            size = np.sqrt((new_square if is_enough else old_square) / variables)
            found[0] = first / max(size, 1e-30)
            continue
        places = (state[0] + np.arange(pairs - state[1], pairs)) % pairs
        r, q = np.triu(upper[np.ix_(places, places)]), squares[np.ix_(places, places)]
        scale = r[-1, -1] / q[-1, -1]
        u = np.linalg.solve(r, of_pairs[1, places])
        found[0] = scale
        found[1 + places] = np.linalg.solve(r.T, np.diag(r) * u + scale * (q @ u - of_pairs[3, places]))
        found[1 + pairs + places] = -scale * u


def _direction(macros: dict[str, str], grid: tuple[int, ...], *values: int) -> None:
    point, fresh, counters, coefficients, base, gradient, direction, steps, changes, squares, variables = values
    samples, pairs = grid[1], int(macros["PAIRS"])
    vectors = [at(address, (samples, variables)) for address in (point, fresh, base, gradient, direction)]
    for sample in range(samples):
        x, new, begin, g, d = (vector[sample] for vector in vectors)
        kept = [at(address, (samples, pairs, variables))[sample] for address in (steps, changes)]
        decision, place = at(counters, (samples, 5), "i4")[sample, 3:]
        if decision == _HALVED:
            continue
        if decision == _ACCEPTED:
            if place >= 0:
                kept[0][place], kept[1][place] = x - begin, new - g
            begin[:], g[:] = x, new
        factors = at(coefficients, (samples, 1 + 2 * pairs))[sample]
        d[:] = -(factors[0] * g + factors[1 : 1 + pairs] @ kept[0] + factors[1 + pairs :] @ kept[1])
        at(squares, (samples, grid[0]))[sample] = [d[part] @ d[part] for part in _blocks(d)]


def _move(macros: dict[str, str], grid: tuple[int, ...], *values: Any) -> None:
    base, squares, counters, numbers, direction, point, variables, longest = values
    samples = grid[1]
    for sample in range(samples):
        d = at(direction, (samples, variables))[sample]
        if at(counters, (samples, 5), "i4")[sample, 3] != _HALVED:
            size = np.sqrt(at(squares, (samples, grid[0]))[sample].sum() / variables)
            d *= longest / max(size, longest)
        length = at(numbers, (samples, 2))[sample, 1]
        at(point, (samples, variables))[sample] = at(base, (samples, variables))[sample] + length * d


LBFGS_TWINS: dict[str, Callable[..., None]] = {
    "lbfgs_products": _products,
    "lbfgs_solve": _solve,
    "lbfgs_direction": _direction,
    "lbfgs_move": _move,
}
