"""Style mixing: row-wise interpolation between two latents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import RequestError

_MANY_RUNS = 6
"""With more runs of equal strength than this, one vectorised pass over all rows is faster than one pass per run."""


def mix_rows(rows: NDArray[np.float64], source: NDArray[np.float64], strengths: Sequence[float]) -> None:
    """Compute rows[i] += strengths[i] * (source[i] - rows[i]) in place; rows without a strength stay.

    Strength 0 keeps a row and 1 replaces it, both bit for bit.

    Parameters
    ----------
    rows
        (num_ws, w_dim).
    source
        (num_ws, w_dim), or (1, w_dim) for the same row everywhere.
    strengths
        At most num_ws numbers in 0..1.

    Raises
    ------
    RequestError
        If there are more strengths than rows, or one is not in 0..1.
    """
    if len(strengths) > rows.shape[0]:
        raise RequestError(
            f"A mix source may have a strength for each of the {rows.shape[0]} rows of w, but has {len(strengths)}."
        )
    runs = _runs(tuple(strengths))
    is_same = source.shape[0] == 1
    if len(runs) > _MANY_RUNS:
        every = np.array(strengths)[:, None]
        part = rows[: len(strengths)]
        step = source - part if is_same else source[: len(strengths)] - part
        step *= every
        np.add(part, step, out=part, where=every != 0.0)
    for first, end, strength in runs:
        if strength == 1.0:
            rows[first:end] = source if is_same else source[first:end]
        elif len(runs) <= _MANY_RUNS:
            part = rows[first:end]
            step = source - part if is_same else source[first:end] - part
            step *= strength
            part += step


@lru_cache(maxsize=256)
def _runs(strengths: tuple[float, ...]) -> tuple[tuple[int, int, float], ...]:
    """Return ranges of consecutive rows with equal strength above 0: (first, end, strength)."""
    runs: list[tuple[int, int, float]] = []
    for row, strength in enumerate(strengths):
        if not 0.0 <= strength <= 1.0:
            raise RequestError(f"A mix strength must be in 0..1, but that of row {row} is {strength}.")
        if runs and runs[-1][1:] == (row, strength):
            runs[-1] = (runs[-1][0], row + 1, strength)
        elif strength != 0.0:
            runs.append((row, row + 1, strength))
    return tuple(runs)
