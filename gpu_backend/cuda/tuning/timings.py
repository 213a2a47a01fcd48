"""All timings of a tuning in a file beside its table: what the prediction of times is fit on.

A line per shape; of each tile the newest time. The file is read as data of any origin: a line that is not as
expected is left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, astuple, fields
from pathlib import Path

from gpu_backend.cuda.tiles.table import checked_value
from gpu_backend.limits import LimitError, check_file_size, read_regular_file
from gpu_backend.ops.kernels.conv_tile import ConvShape, ConvTile
from gpu_backend.whole_file import write_whole

Timings = Mapping[ConvShape, Mapping[ConvTile, float]]
"""Microseconds by shape and tile."""

_MOST_NBYTES = 32 << 20
_CHOICES = tuple(choice.name for choice in fields(ConvTile))


def timings_path(table: Path) -> Path:
    """Return the file of the timings of a table."""
    return table.with_suffix(".timings.jsonl")


def read_timings(path: Path) -> dict[ConvShape, dict[ConvTile, float]]:
    """Return what is kept; empty if there is no such file. Raises nothing."""
    try:
        lines = read_regular_file(path, _MOST_NBYTES, "timings").decode().splitlines()
    except (OSError, LimitError, UnicodeError):
        return {}
    found: dict[ConvShape, dict[ConvTile, float]] = {}
    for line in lines:
        try:
            data = json.loads(line)
            shape = checked_value(ConvShape, data["shape"])
            found[shape] = {_tile(values): _time(values) for values in data["times"]}
        except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError):
            continue
    return found


def save_timings(path: Path, timings: Timings) -> None:
    """Write all of them. Raises OSError, also if they are more than `read_timings` allows."""
    lines = (
        json.dumps({"shape": asdict(shape), "times": [[*astuple(tile), round(us, 3)] for tile, us in times.items()]})
        for shape, times in timings.items()
    )
    data = "".join(f"{line}\n" for line in lines).encode()
    check_file_size(path, data, _MOST_NBYTES)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data)


def _tile(values: list[object]) -> ConvTile:
    return checked_value(ConvTile, dict(zip(_CHOICES, values[:-1], strict=True)))


def _time(values: list[object]) -> float:
    time_us = values[-1]
    if not isinstance(time_us, float | int) or not (math.isfinite(time_us) and time_us > 0):
        raise ValueError(time_us)
    return float(time_us)
