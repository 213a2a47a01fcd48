"""The file of named directions beside a model: NAME.directions.safetensors.

One tensor, ``directions`` of (count, w_dim) float32, and one JSON text in the metadata::

    {"version": 1, "model_id": SHA-256 of the model file, "directions": [
        {"name": "world/sun height", "rows": [2, 7], "reach": 3.0, "centre": 0.0, "measures": {"spearman": 0.97}}, ...]}

Rows are the first and the last that a direction is for. A file is read strictly and never stops a model from being
opened: a warning describes the problem, and the model is opened without directions.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import safetensors.numpy

from gpu_backend.model.companion_file import parse_companion, read_companion, write_companion
from gpu_backend.model.named_directions import NamedDirections, is_direction_name
from gpu_backend.model.refusal import Refusal
from gpu_backend.recipe import RowRange

KEY = "latent-loom-directions"
SUFFIX = ".directions.safetensors"
VERSION = 1
MAX_COUNT = 256
MAX_FILE_BYTES = 16 << 20
_MAX_REACH = 1000.0
_MAX_LENGTH = 1e6
_MAX_MEASURES = 16
_TENSOR = "directions"
_EXPECTED = "a file of named directions"


def direction_path(model: str | os.PathLike[str]) -> Path:
    """Return the path of a model's named directions: ``hills.safetensors`` -> ``hills.directions.safetensors``."""
    path = Path(model)
    return path.with_name(path.stem + SUFFIX)


def write_directions(directions: NamedDirections, path: str | os.PathLike[str], model_id: str) -> None:
    """Write named directions for the model of this SHA-256, aside first and then moved into place.

    Raises
    ------
    LoomError
        If the file cannot be written; nothing is left behind.
    ModelFileError
        If reading would refuse it.
    """
    columns = (directions.names, directions.rows, directions.reach, directions.centre, directions.measures)
    entries = [
        {
            "name": name,
            "rows": [rows.first, rows.last],
            "reach": reach,
            "centre": centre,
            "measures": dict(measures),
        }
        for name, rows, reach, centre, measures in zip(*columns, strict=True)
    ]
    vectors = np.ascontiguousarray(directions.vectors, np.float32)
    said = {"version": VERSION, "model_id": model_id, "directions": entries}
    highest = max((rows.last or 0 for rows in directions.rows), default=0)
    write_companion(
        path,
        lambda: safetensors.numpy.save({_TENSOR: vectors}, {KEY: json.dumps(said, sort_keys=True, allow_nan=False)}),
        lambda content: _parsed(content, model_id, vectors.shape[1], highest + 1),
    )


def read_directions(path: str | os.PathLike[str], model_id: str, w_dim: int, num_ws: int) -> NamedDirections:
    """Read the named directions of a model.

    Parameters
    ----------
    model_id, w_dim, num_ws
        The model's: the file must be for just this one.

    Raises
    ------
    ModelFileError
        If the file is damaged, for another model, or of another format.
    """
    return read_companion(path, _EXPECTED, MAX_FILE_BYTES, lambda content: _parsed(content, model_id, w_dim, num_ws))


def _parsed(content: bytes, model_id: str, w_dim: int, num_ws: int) -> NamedDirections:
    said, tensors = parse_companion(content, KEY, _EXPECTED)
    if said.get("version") != VERSION:
        raise Refusal(f"version {VERSION} of direction files", "this one is of another version")
    if said.get("model_id") != model_id:
        raise Refusal("directions for this model", "they were found in another one", "make them with this one")
    entries = said.get("directions")
    if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_COUNT:
        raise Refusal(f"1 to {MAX_COUNT} directions", "their list is missing, empty or longer")
    vectors = tensors.get(_TENSOR)
    if set(tensors) != {_TENSOR} or vectors is None or vectors.dtype != np.float32:
        raise Refusal(f"one tensor of 32-bit floating-point numbers, {_TENSOR}", "found other ones")
    if vectors.shape != (len(entries), w_dim):
        raise Refusal(f"{len(entries)} directions of {w_dim} numbers", f"the shape is {vectors.shape}")
    # One that is not finite makes the length so too, and the comparison false.
    lengths = np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1))
    if not bool(np.all((lengths > 0.0) & (lengths < _MAX_LENGTH))):
        raise Refusal("directions of finite numbers, not all of them 0", "one of them is not")
    read = [_Entry(entry, num_ws) for entry in entries]
    names = tuple(entry.name for entry in read)
    if len(set(names)) != len(names):
        raise Refusal("a different name for each direction", "two have the same")
    return NamedDirections(
        names=names,
        vectors=np.array(vectors, np.float32),  # the library's may not own its memory
        rows=tuple(entry.rows for entry in read),
        reach=tuple(entry.reach for entry in read),
        centre=tuple(entry.centre for entry in read),
        measures=tuple(entry.measures for entry in read),
    )


class _Entry:
    """A validated direction of the header."""

    def __init__(self, data: object, num_ws: int) -> None:
        fields = data if isinstance(data, dict) else {}
        name, rows, measures = fields.get("name"), fields.get("rows"), fields.get("measures")
        if not isinstance(name, str) or not is_direction_name(name):
            raise Refusal("directions named like 'world/sun height'", "one is not")
        if not isinstance(rows, list) or len(rows) != 2:
            raise Refusal("a first and a last row for each direction", "found something else")
        first, last = _row(rows[0], num_ws), _row(rows[1], num_ws)
        if last < first:
            raise Refusal("rows that go upwards", f"found {first} to {last}")
        self.name, self.rows = name, RowRange(first, last)
        self.reach, self.centre = _number(fields.get("reach")), _number(fields.get("centre"))
        if not 0.0 < self.reach <= _MAX_REACH or abs(self.centre) > self.reach:
            raise Refusal("a slider that has 0 in its range", f"found {self.centre:g} give or take {self.reach:g}")
        if not isinstance(measures, dict) or len(measures) > _MAX_MEASURES:
            raise Refusal("measures of each direction", "found something else")
        self.measures = {_key(key): _number(value) for key, value in measures.items()}


def _row(value: object, num_ws: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < num_ws:
        raise Refusal(f"rows of w in 0..{num_ws - 1}", "found others")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e30:
        raise Refusal("finite numbers in the header", "found something else")
    return float(value)


def _key(text: str) -> str:
    if not 1 <= len(text) <= 40 or not text.isprintable():
        raise Refusal("short plain names of measures", "found others")
    return text
