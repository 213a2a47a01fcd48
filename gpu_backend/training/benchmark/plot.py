"""The report as a picture, by matplotlib: a bar a row, the gain in all beside it."""

from __future__ import annotations

from pathlib import Path

from gpu_backend.training.benchmark.report import StepReport
from gpu_backend.training.plots import COLOURS, SETTINGS
from gpu_backend.whole_file import write_whole


def draw_plot(report: StepReport, path: Path) -> bool:
    """Draw it; return whether there was a row to draw."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if not report.rows:
        return False
    with rc_context(SETTINGS):
        figure = Figure(figsize=(7.0, 1.0 + 0.34 * len(report.rows)), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        places = range(len(report.rows))
        colours = [COLOURS[1]] + [COLOURS[0]] * (len(report.rows) - 1)
        axes.barh(places, [row.step_ms for row in report.rows], color=colours, height=0.66)
        longest = max(row.step_ms for row in report.rows)
        for place, row in zip(places, report.rows, strict=True):
            said = f"{row.step_ms:.1f} ms" + (f", {report.gain(row):.1f} x" if place else "")
            axes.text(row.step_ms + 0.012 * longest, place, said, va="center")
        names = [row.name if place == 0 or row.base else f"+ {row.name}" for place, row in enumerate(report.rows)]
        axes.set_yticks(list(places), names)
        axes.set_ylim(len(report.rows) - 0.4, -0.6)
        axes.set_xlim(0, 1.25 * longest)
        axes.tick_params(axis="y", length=0)
        axes.set_axisbelow(True)
        axes.grid(axis="x")
        axes.set_title(
            f"milliseconds a training step: {report.resolution} x {report.resolution}, batch {report.batch}, "
            f"{report.device}"
        )
        write_whole(path, figure.savefig)
    return True
