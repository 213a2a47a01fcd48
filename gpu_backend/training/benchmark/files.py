"""The report as files: JSON with everything, CSV with a line a row, a plot."""

from __future__ import annotations

import json
from pathlib import Path

from gpu_backend.run_facts import plots_problem
from gpu_backend.training.benchmark.plot import draw_plot
from gpu_backend.training.benchmark.report import StepReport, csv_text, to_json
from gpu_backend.whole_file import write_whole


def write_files(report: StepReport, folder: Path) -> tuple[tuple[Path, ...], str]:
    """Write all files into a folder; return them, and why there is no plot among them, if there is none."""
    json_file, csv_file, plot_file = (folder / f"train-bench.{kind}" for kind in ("json", "csv", "png"))
    write_whole(json_file, (json.dumps(to_json(report), indent=1, ensure_ascii=False) + "\n").encode())
    write_whole(csv_file, csv_text(report).encode())
    problem = plots_problem()
    if problem or not draw_plot(report, plot_file):
        return (json_file, csv_file), problem or "nothing was measured"
    return (json_file, csv_file, plot_file), ""
