"""Scales of a network's searches for pictures, learnt once and kept in the encoder's file.

The variables z of a search's rows of w follow from the mean of J'J, J the picture's Jacobian with respect to the rows::

    w = mean_w + coordinates @ axes
    coordinates = rows * (z + (z D') (factors - 1) D) + shared z'

with D the directions, orthonormal over all rows together, and z' one row of variables that moves all rows alike. See
`gpu_backend.gradients.row_scales` for their use and `gpu_backend.gradients.scale_learning` for their origin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.model.refusal import Refusal
from gpu_backend.quick_dataclass import dataclass

PREFIX = "scales."
"""Of the names of the tensors."""
MAX_PROBES = 2048
_MAX_W_DIM = 1024
"""The axes are square, and have to fit into the file."""
_NAMES = ("axes", "rows", "shared", "directions", "factors")
_HALVES = ("rows", "directions")
"""Stored in half precision. Axes have the scale of w, and coordinates along the short ones need them orthogonal."""
_MAX_DIRECTIONS = 256
_MAX_DIRECTIONS_BYTES = 4 << 20
"""Of the directions in half precision."""
_MAX_NUMBER = 1e4
_ORTHONORMAL = 1e-2
"""Largest entry by which products of rows differ from those of orthonormal ones; half precision gives 1e-4."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchScales:
    """Learnt scales.

    Attributes
    ----------
    axes
        (w_dim, w_dim), orthogonal.
    rows, shared
        (num_ws, w_dim) and (w_dim,), units of coordinates: of each row, and of what moves all rows alike; positive.
    directions
        (count, num_ws * w_dim), orthonormal, in coordinates over their units: those along which pictures change most.
    factors
        (count,), in 0..1: units of these directions.
    probes
        Backward passes that they were learnt from.
    """

    axes: NDArray[np.float32]
    rows: NDArray[np.float32]
    shared: NDArray[np.float32]
    directions: NDArray[np.float32]
    factors: NDArray[np.float32]
    probes: int

    def stored(self) -> dict[str, NDArray[Any]]:
        """Return the tensors by their names in a file: in half precision where that changes nothing."""
        return {
            PREFIX + name: np.ascontiguousarray(getattr(self, name), np.float16 if name in _HALVES else np.float32)
            for name in _NAMES
        }


def most_directions(num_ws: int, w_dim: int) -> int:
    """Return how many directions are kept at most, so that a file stays small; 0 where scales cannot be kept."""
    if w_dim > _MAX_W_DIM:
        return 0
    return min(_MAX_DIRECTIONS, _MAX_DIRECTIONS_BYTES // (2 * num_ws * w_dim))


def parsed_scales(tensors: Mapping[str, NDArray[Any]], probes: object, num_ws: int, w_dim: int) -> SearchScales:
    """Return the scales that a file holds.

    Parameters
    ----------
    tensors
        Those of the file whose names begin with `PREFIX`.
    probes
        What the file's text says.

    Raises
    ------
    Refusal
        If a tensor is missing, or has another shape or numbers out of range.
    """
    if set(tensors) != {PREFIX + name for name in _NAMES}:
        raise Refusal("the tensors of search scales", "some are missing, or others are there")
    if type(probes) is not int or not 1 <= probes <= MAX_PROBES:
        raise Refusal(f"the probes of search scales, 1 to {MAX_PROBES:,}", "they are missing or out of range")
    count, most = tensors[f"{PREFIX}factors"].size, most_directions(num_ws, w_dim)
    if count > most or not most:
        raise Refusal(f"at most {most} directions of search scales", f"there are {count}")
    shapes = {
        "axes": (w_dim, w_dim),
        "rows": (num_ws, w_dim),
        "shared": (w_dim,),
        "directions": (count, num_ws * w_dim),
        "factors": (count,),
    }
    arrays = {}
    for name, shape in shapes.items():
        array = tensors[PREFIX + name]
        if array.dtype not in (np.float16, np.float32) or array.shape != shape:
            raise Refusal(f"{PREFIX}{name} as floating-point numbers of the shape {shape}", "it has another one")
        arrays[name] = np.ascontiguousarray(array, np.float32)
        least = 0.0 if name in ("rows", "shared", "factors") else -_MAX_NUMBER
        if not bool(np.all((arrays[name] > least) & (arrays[name] < _MAX_NUMBER))):
            raise Refusal(f"{PREFIX}{name} of finite numbers in range", "it has others")
    lengths = np.linalg.norm(arrays["axes"], axis=1, keepdims=True)
    if not (bool(np.all(lengths > 0.0)) and _are_orthonormal(arrays["axes"] / lengths)):
        raise Refusal(f"orthogonal {PREFIX}axes", "they are not")
    if not (bool(np.all(arrays["factors"] <= 1.0)) and _are_orthonormal(arrays["directions"])):
        raise Refusal(f"orthonormal {PREFIX}directions and factors of at most 1", "there are others")
    return SearchScales(**arrays, probes=probes)


def _are_orthonormal(rows: NDArray[np.float32]) -> bool:
    return bool(np.all(np.abs(rows @ rows.T - np.eye(len(rows), dtype=np.float32)) < _ORTHONORMAL))
