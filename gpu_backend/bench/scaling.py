"""Rates over numbers of devices: CSV, JSON and a plot."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpu_backend.bench import look
from gpu_backend.result_folder import make_folder
from gpu_backend.run_facts import plots_problem
from gpu_backend.whole_file import write_whole

_COLUMNS = ("what", "workers", "frames", "seconds", "frames_per_s", "efficiency")


@dataclass(frozen=True, slots=True)
class ScalingRow:
    """A measurement.

    Attributes
    ----------
    what
        Such as "device bytes" or "png".
    workers
        How many devices shared it.
    efficiency
        Frames a second of each worker, divided by those of a worker in the row of `what` with the fewest; 1 there.
    """

    what: str
    workers: int
    frames: int
    seconds: float
    frames_per_s: float
    efficiency: float


def with_efficiency(measured: Sequence[tuple[str, int, int, float]]) -> tuple[ScalingRow, ...]:
    """Return rows from (what, workers, frames, seconds)."""
    first: dict[str, tuple[int, float]] = {}
    for what, workers, frames, seconds in measured:
        if what not in first or workers < first[what][0]:
            first[what] = workers, frames / seconds / workers
    return tuple(
        ScalingRow(what, workers, frames, seconds, frames / seconds, frames / seconds / workers / first[what][1])
        for what, workers, frames, seconds in measured
    )


def scaling_table(rows: Sequence[ScalingRow]) -> list[str]:
    """Return the rows as lines of text."""
    lines = [f"{'':<16}{'workers':>8}{'frames':>10}{'seconds':>10}{'frames/s':>11}{'efficiency':>12}"]
    lines += [
        f"{row.what:<16}{row.workers:>8}{row.frames:>10,}{row.seconds:>10.2f}{row.frames_per_s:>11,.1f}"
        f"{row.efficiency:>12.3f}"
        for row in rows
    ]
    return lines


def write_scaling(rows: Sequence[ScalingRow], facts: Mapping[str, Any], folder: Path) -> tuple[tuple[Path, ...], str]:
    """Write ``scaling.csv``, ``scaling.json`` and, where matplotlib is installed, ``scaling.png``.

    Returns
    -------
    The files, and why there is no plot among them; nothing if there is one.

    Raises
    ------
    RequestError
        If the folder takes no files.
    """
    make_folder(folder)
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({**asdict(row), "seconds": round(row.seconds, 3)} for row in rows)
    csv_file, json_file = folder / "scaling.csv", folder / "scaling.json"
    write_whole(csv_file, text.getvalue().encode())
    data = {"run": dict(facts), "measurements": [asdict(row) for row in rows]}
    write_whole(json_file, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())
    problem = plots_problem()
    return (csv_file, json_file, *(() if problem else (_draw(rows, facts, folder / "scaling.png"),))), problem


def _draw(rows: Sequence[ScalingRow], facts: Mapping[str, Any], path: Path) -> Path:
    """Frames a second and efficiency against the number of workers."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(look.SETTINGS):
        figure = Figure(figsize=(9.6, 3.8), layout="constrained")
        FigureCanvasAgg(figure)
        title = f"{facts.get('network', '')} on {facts.get('device', '')}"
        figure.suptitle(title, x=0.01, ha="left", color=look.STRONG, fontsize=11)
        left, right = figure.subplots(1, 2)
        whats = list(dict.fromkeys(row.what for row in rows))
        most = max((row.workers for row in rows), default=1)
        for place, what in enumerate(whats):
            line = sorted((row for row in rows if row.what == what), key=lambda row: row.workers)
            colour = (look.OURS, *look.SERIES)[place % 5]
            counts = [row.workers for row in line]
            left.plot(counts, [row.frames_per_s for row in line], "o-", color=colour, label=what)
            ideal = line[0].frames_per_s / line[0].workers
            left.plot([1, most], [ideal, ideal * most], ":", color=colour, alpha=0.5)
            right.plot(counts, [row.efficiency for row in line], "o-", color=colour, label=what)
        left.set_title("frames a second (dotted: as many times one)")
        right.set_title("efficiency")
        right.set_ylim(0, max([1.1, *(row.efficiency + 0.05 for row in rows)]))
        ticks = sorted({row.workers for row in rows})
        for axes in (left, right):
            axes.set_xticks(ticks, [str(tick) for tick in ticks])
            axes.set_xlabel("workers")
            axes.grid(axis="y")
        left.set_ylim(bottom=0)
        left.legend()
        write_whole(path, figure.savefig)
    return path
