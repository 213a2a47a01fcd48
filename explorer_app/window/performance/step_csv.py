"""The step table as CSV, for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from explorer_app.rendering.frame_statistics import StepCost
from explorer_app.window.performance.step_columns import COLUMNS, known_keys

if TYPE_CHECKING:
    from gpu_backend import Roofline

_MORE = ("flops", "bytes", "reason", "digest")


def step_csv(steps: Sequence[StepCost], roofline: Roofline | None) -> str:
    """Return all known values of the steps as CSV: a heading line, then one line per step, unrounded."""
    known = known_keys(steps, roofline)
    columns = [column for column in COLUMNS if column.key in known]
    has_facts = any(step.facts is not None for step in steps)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*(column.heading for column in columns), *(_MORE if has_facts else _MORE[:2])])
    for step in steps:
        values = [column.value(step, roofline) for column in columns]
        cells: list[object] = [
            "x".join(map(str, value)) if isinstance(value, tuple) else "" if value is None else value
            for value in values
        ]
        cells += [step.flops, step.nbytes]
        if has_facts:
            cells += [step.facts.reason, step.facts.digest] if step.facts is not None else ["", ""]
        writer.writerow(cells)
    return text.getvalue()
