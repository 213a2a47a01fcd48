"""The log: a CSV with a line for each report. A resume truncates it to its checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gpu_backend.limits import read_regular_file
from gpu_backend.whole_file import write_whole

COLUMNS = (
    "step",
    "kimg",
    "seconds",
    "images_per_s",
    "loss_g",
    "loss_d",
    "r1",
    "path",
    "real_sign",
    "augment_p",
    "norm_g",
    "norm_d",
    "ema_beta",
    "memory_gib",
)
"""`seconds` counts this run only; `real_sign` is E[sign(D(real))]; memory is the most that torch held on the GPU."""

_MOST_NBYTES = 256 << 20


class TrainLog:
    """Appends lines to the log.

    Parameters
    ----------
    step
        Steps done. Later lines, from before a resume, are removed.
    """

    def __init__(self, path: Path, step: int) -> None:
        self.path = path
        kept = [row for row in read_log(path) if row["step"] <= step]
        lines = [",".join(COLUMNS), *(",".join(_text(row.get(name)) for name in COLUMNS) for row in kept)]
        write_whole(path, ("\n".join(lines) + "\n").encode())

    def add(self, row: Mapping[str, float]) -> None:
        """Write a line; columns without a value stay empty."""
        with self.path.open("a", encoding="utf-8", newline="") as file:
            file.write(",".join(_text(row.get(name)) for name in COLUMNS) + "\n")


def read_log(path: Path) -> list[dict[str, float]]:
    """Return the lines of a log; none if there is no file. Empty fields, and damaged lines, are left out."""
    if not path.exists():
        return []
    rows: list[dict[str, float]] = []
    head, *lines = read_regular_file(path, _MOST_NBYTES, "a log of training").decode(
        "utf-8", "replace"
    ).splitlines() or [""]
    names = head.split(",")
    for line in lines:
        fields = zip(names, line.split(","), strict=False)
        try:
            rows.append({name: float(text) for name, text in fields if text and name in COLUMNS})
        except ValueError:
            continue
    return [row for row in rows if "step" in row]


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"
