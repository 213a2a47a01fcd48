"""What the benchmark found, as frozen data, and as JSON and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

FORMAT = 2

LEAST_GAIN = 1.02
"""A smaller gain is within what periods of one row differ by, and so is a loss that is not larger."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """A row that was measured.

    Attributes
    ----------
    step_ms, least_ms
        Mean over all timed steps, and over the fastest period of the regularisers.
    nbytes
        Most memory that torch's allocator held on the GPU; None on the processor.
    prepare_s
        Making networks, warming up, capturing, compiling.
    base
        Name of the row that this one changes; empty for the row before.
    no_gain
        What explains it if the row gains nothing, or is slower.
    """

    name: str
    what: str
    step_ms: float
    least_ms: float
    images_per_s: float
    nbytes: int | None
    steps: int
    prepare_s: float
    base: str = ""
    no_gain: str = ""


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """A row that was not measured, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class StepReport:
    """Everything of one run. `commit` ends in "+" where files differed from it."""

    date: str
    command: str
    commit: str
    device: str
    driver: str
    versions: Mapping[str, str]
    resolution: int
    batch: int
    parameters: int
    method: tuple[str, ...]
    rows: tuple[StepTime, ...]
    skipped: tuple[SkippedRow, ...]
    wall_s: float
    format: int = FORMAT

    def gain(self, row: StepTime) -> float:
        """How many times as fast as the first row measured."""
        return self.rows[0].step_ms / row.step_ms

    def gain_of_one(self, row: StepTime) -> float:
        """How many times as fast as the row that it changes, or, where that was not measured, the one before it."""
        before = self.rows[max(0, self.rows.index(row) - 1)]
        return next((one for one in self.rows if one.name == row.base), before).step_ms / row.step_ms

    def why_no_gain(self, row: StepTime) -> str:
        """Return why a row gains less than `LEAST_GAIN`; empty if it gains more, or is the first."""
        return row.no_gain if row is not self.rows[0] and self.gain_of_one(row) < LEAST_GAIN else ""


def to_json(report: StepReport) -> dict[str, Any]:
    """Return plain values, gains among them."""
    fields = asdict(report)
    for values, row in zip(fields["rows"], report.rows, strict=True):
        del values["no_gain"]
        values |= {
            "gain": report.gain_of_one(row),
            "gain_in_all": report.gain(row),
            "why_no_gain": report.why_no_gain(row),
        }
    return fields


def csv_text(report: StepReport) -> str:
    """Return a line a row; skipped rows have a reason instead of numbers."""
    columns = ("step_ms", "least_ms", "images_per_s", "nbytes", "steps", "prepare_s")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("name", *columns, "gain", "gain_in_all", "skipped"))
    for row in report.rows:
        writer.writerow(
            [row.name, *(getattr(row, name) for name in columns), report.gain_of_one(row), report.gain(row), ""]
        )
    for item in report.skipped:
        writer.writerow([item.name, *[""] * (len(columns) + 2), item.reason])
    return text.getvalue()
