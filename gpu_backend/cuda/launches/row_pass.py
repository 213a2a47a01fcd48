"""How many vectors one reading of a table of rows serves; see ``ops/kernels/parts/rows.cuh``."""

from __future__ import annotations

from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.errors import DeviceError

_SHARED_NBYTES = 47 * 1024
"""Dynamic shared memory that every GPU grants a block by default, less some for static shared memory."""


def rows_of_a_pass(columns: int, batch: int) -> int:
    """Return macro BATCH, 1, 2, 4 or 8: the least that `batch` needs, or as many as shared memory holds.

    Raises
    ------
    DeviceError
        If not even one vector fits.
    """
    most = _SHARED_NBYTES // shared_nbytes(columns, 1)
    if most == 0:
        raise DeviceError(
            f"The GPU takes up to {_SHARED_NBYTES // 4} features a layer, but this network has {columns}; render on "
            "the CPU."
        )
    return max(size for size in (1, 2, 4, 8) if size == 1 or (size < 2 * batch and size <= most))


def shared_nbytes(columns: int, rows: int) -> int:
    """Return the dynamic shared memory of `rows` vectors."""
    return 4 * rows * pad8(columns)
