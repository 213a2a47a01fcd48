"""Style mixing: one latent laid over another, row by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import RequestError


def mix_rows(rows: NDArray[np.float64], source: NDArray[np.float64], strengths: Sequence[float]) -> NDArray[np.float64]:
    """Return rows[i] + strengths[i] * (source[i] - rows[i]); rows past the strengths' end stay.

    Strength 0 keeps a row and 1 replaces it, both bit for bit.

    Parameters
    ----------
    rows, source
        (num_ws, w_dim).
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
    for row, strength in enumerate(strengths):
        if not 0.0 <= strength <= 1.0:
            raise RequestError(f"A mix strength must be in 0..1, but that of row {row} is {strength}.")
    mixed = rows.copy()
    for row, strength in enumerate(strengths):
        if strength == 1.0:
            mixed[row] = source[row]
        elif strength != 0.0:
            mixed[row] += strength * (source[row] - rows[row])
    return mixed
