"""Style mixing: one latent laid over another, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import RequestError

_MANY_RUNS = 6
"""With more runs of one strength than this, all rows at once take less time than run after run."""


def mix_rows(rows: NDArray[np.float64], source: NDArray[np.float64], strengths: Sequence[float]) -> None:
    """Make rows[i] + strengths[i] * (source[i] - rows[i]) of rows, in place; rows past the strengths' end stay.

    Strength 0 keeps a row and 1 replaces it, both bit for bit.

    Parameters
    ----------
    rows
        (num_ws, w_dim).
    source
        The same, or (1, w_dim) for one that is the same in all rows.
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
    """Rows of one strength above 0 that stand together: (first, end, strength)."""
    runs: list[tuple[int, int, float]] = []
    for row, strength in enumerate(strengths):
        if not 0.0 <= strength <= 1.0:
            raise RequestError(f"A mix strength must be in 0..1, but that of row {row} is {strength}.")
        if runs and runs[-1][1:] == (row, strength):
            runs[-1] = (runs[-1][0], row + 1, strength)
        elif strength != 0.0:
            runs.append((row, row + 1, strength))
    return tuple(runs)
