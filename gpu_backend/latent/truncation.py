"""Truncation: moves rows of w towards the average of w, or towards that of the class if there is one for each class."""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import RequestError


def truncate(
    ws: NDArray[np.floating], w_avg: NDArray[np.floating], psi: float = 1.0, cutoff: int | None = None
) -> NDArray[np.float64]:
    """Return w_avg + psi * (ws - w_avg) on rows [0, cutoff) and ws on the others.

    Parameters
    ----------
    ws
        (..., num_ws, w_dim).
    w_avg
        (w_dim,), or with as many axes as ws, such as (batch, 1, w_dim).
    psi
        1 changes nothing, bit for bit; 0 gives the average.
    cutoff
        Number of rows that are truncated; None means all.

    Returns
    -------
    (..., num_ws, w_dim) float64, a new array.

    Raises
    ------
    RequestError
        If psi is not finite, the cutoff is not in 0..num_ws, or the average is needed and not finite.
    """
    num_ws = ws.shape[-2]
    check_truncation(psi, cutoff, num_ws)
    rows = np.array(ws, dtype=np.float64)
    count = num_ws if cutoff is None else cutoff
    if psi == 1.0 or count == 0:
        return rows
    if not np.isfinite(w_avg).all():
        refuse_average()
    rows[..., :count, :] = w_avg + float(psi) * (rows[..., :count, :] - w_avg)
    return rows


def label_averages(w_avg: NDArray[np.floating], labels: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the centre of truncation for labels (n, c_dim), (n, w_dim).

    Parameters
    ----------
    w_avg
        (w_dim,) for all classes, or (c_dim, w_dim) with one for each. A label with several classes gets their mean,
        weighted by the magnitudes of the label's entries. An all-zero label means class 0.
    """
    if w_avg.ndim == 1:
        return np.repeat(w_avg.astype(np.float64)[None], len(labels), axis=0)
    averages = np.empty((len(labels), w_avg.shape[1]))
    for average, label in zip(averages, labels, strict=True):
        (classes,) = np.nonzero(label)
        if len(classes) > 1:
            weights = np.abs(label[classes]).astype(np.float64)
            average[:] = weights @ w_avg[classes].astype(np.float64) / weights.sum()
        else:
            average[:] = w_avg[classes[0] if len(classes) else 0]
    return averages


def check_truncation(psi: float, cutoff: int | None, num_ws: int) -> None:
    """Raise RequestError if psi is not finite or the cutoff is not in 0..num_ws; TypeError if they are no numbers."""
    try:
        is_finite = math.isfinite(psi)
    except TypeError:
        raise TypeError(f"The truncation psi is a number, not {psi!r:.40}.") from None
    except OverflowError:
        is_finite = False
    if not is_finite:
        raise RequestError(f"The truncation psi must be a finite number, not {psi!s:.40}.")
    if cutoff is not None and not hasattr(cutoff, "__index__"):
        raise TypeError(f"The truncation cutoff is a whole number or None, not {cutoff!r:.40}.")
    if cutoff is not None and not 0 <= cutoff <= num_ws:
        raise RequestError(f"The truncation cutoff must be in 0..{num_ws} for this network, not {cutoff}.")


def refuse_average() -> NoReturn:
    """Raise RequestError, because the average is needed but not finite."""
    raise RequestError("Truncation needs the average of w, which is not finite in this model; set psi to 1.")
