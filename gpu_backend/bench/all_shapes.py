"""Every public shape that a peer exists for, in every precision and batch: ours, each way of running PyTorch, gains.

``python -m gpu_backend.bench.all_shapes DIR`` joins the runs DIR/*/bench.json into one table and one CSV.

A run of all takes hours. Where a machine is there for less, measure one shape and precision at a time, each into a
folder of its own (``--all --shape ffhq256 --precision fp16 --batch 1,2,4,8,16,32 --out DIR/ffhq256-fp16``).
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from gpu_backend.bench.files import COMPARED, csv_rows
from gpu_backend.bench.options import BenchOptions
from gpu_backend.bench.report import NO_GRAPH, OURS, Measurement, Report, read_report
from gpu_backend.bench.shapes import SHAPES, SHAPES_WITH_PEERS
from gpu_backend.bench.stopwatch import STOPPED, Budget
from gpu_backend.bench.suite import run_suite
from gpu_backend.bench.table import grid, number
from gpu_backend.device import choose_gpu
from gpu_backend.errors import LoomError, RequestError
from gpu_backend.plain_text import printable
from gpu_backend.whole_file import write_whole

BATCHES = (1, 2, 4, 8, 16, 32)
CPU_BATCHES = (1, 2)
_PEER_PRECISION = {"bf16x3": "fp32", "fp8": "fp16"}
"""Precision of the peers that a precision of ours alone is compared with."""


def measure_all_shapes(options: BenchOptions, say: Callable[[str], None]) -> tuple[Report, ...]:
    """Measure shape after shape until Ctrl-C ends the run; each has an equal share of the seconds that are left.

    Raises
    ------
    DeviceError
        If the device is not there.
    """
    budget = Budget(options.budget_s)
    batches = options.batches or (CPU_BATCHES if choose_gpu(options.device) is None else BATCHES)
    found: list[Report] = []
    for place, name in enumerate(SHAPES_WITH_PEERS):
        own = replace(options, shape=SHAPES[name], batches=batches, everything=True)
        report = run_suite(own, partial(_said, say, name), budget.share(len(SHAPES_WITH_PEERS) - place))
        found.append(report)
        if any(item.reason == STOPPED for item in report.skipped):
            break
    return tuple(found)


def summary(reports: Sequence[Report]) -> str:
    """Return a line a shape, precision and batch: ours and the fastest peer, with the gain."""
    head = ("shape", "precision", "batch", "ms/image", "images/s", "fastest peer", "ms/image", "gain", "memory saved")
    rows = [row for report in reports for row in _summary_rows(report)]
    return grid(head, rows, left=2) if rows else ""


def write_all(reports: Sequence[Report], folder: Path) -> Path:
    """Write the measurements of all shapes into one CSV, the shape in its first column; return the file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("shape", *COMPARED))
    writer.writerows((report.run.network, *row) for report in reports for row in csv_rows(report))
    path = folder / "all-shapes.csv"
    write_whole(path, text.getvalue().encode())
    return path


def read_all(folder: Path) -> tuple[Report, ...]:
    """Return the reports of the runs in the folders of a folder: by shape, the largest first, then by name.

    Raises
    ------
    RequestError
        If there is none, or a file is not a report.
    """
    places = {name: place for place, name in enumerate(SHAPES)}
    found = [read_report(path) for path in sorted(folder.glob("*/bench.json"))]
    if not found:
        raise RequestError(f"Expected runs as DIR/*/bench.json, but {folder.name} has none.")
    return tuple(sorted(found, key=lambda report: places.get(report.run.network, len(places))))


def _summary_rows(report: Report) -> Iterator[tuple[str, ...]]:
    pairs = dict.fromkeys((row.precision, row.batch) for row in report.measurements)
    for precision, batch in pairs:
        ours = report.find(OURS, precision, batch) or report.baseline(batch)
        theirs = _PEER_PRECISION.get(precision, precision)
        peers = [row for row in report.measurements if (row.precision, row.batch) == (theirs, batch)]
        peers = [row for row in peers if row.who not in (OURS, NO_GRAPH)]
        if ours is None or not peers:
            continue
        peer = min(peers, key=lambda row: row.latency_ms)
        saved = _saved(ours, peer)
        yield (
            report.run.network,
            precision if ours.precision == precision else f"{precision} (ours: {ours.precision})",
            str(batch),
            number(ours.image_ms),
            number(ours.images_per_s),
            peer.who if theirs == precision else f"{peer.who}, {theirs}",
            number(peer.image_ms),
            f"{peer.latency_ms / ours.latency_ms:.2f} x",
            "" if saved is None else f"{saved:.0%}",
        )


def _said(say: Callable[[str], None], name: str, what: str) -> None:
    say(f"{name}: {what}")


def _saved(ours: Measurement, peer: Measurement) -> float | None:
    return None if ours.nbytes is None or not peer.nbytes else 1.0 - ours.nbytes / peer.nbytes


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one table of runs, and write one CSV beside them; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m gpu_backend.bench.all_shapes",
        description="Join runs of single shapes into one table and one CSV.",
    )
    parser.add_argument("folder", metavar="DIR", type=Path, help="folder of the runs, DIR/*/bench.json")
    folder = parser.parse_args(arguments).folder
    try:
        reports = read_all(folder)
        sys.stdout.write("".join(printable(line) + "\n" for line in summary(reports).splitlines()))
        sys.stderr.write(printable(f"written: {write_all(reports, folder)}") + "\n")
    except LoomError as error:
        sys.stderr.write(printable(error.sentence) + "\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
