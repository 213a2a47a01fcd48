"""Plots of the log with matplotlib: losses, penalties, the discriminator's signs on real pictures, speed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpu_backend.training.log import read_log
from gpu_backend.whole_file import write_whole

_PANELS = (
    ("loss", ("loss_g", "loss_d")),
    ("penalty", ("r1", "path")),
    ("gradient norm", ("norm_g", "norm_d")),
    ("augmentation", ("real_sign", "augment_p")),
    ("images a second", ("images_per_s",)),
)
_LOGARITHMIC = ("penalty", "gradient norm")
COLOURS = ("#e8a33d", "#5aa9e6")
SETTINGS: dict[Any, Any] = {
    "figure.facecolor": "#131518",
    "savefig.facecolor": "#131518",
    "axes.facecolor": "#1d2025",
    "axes.edgecolor": "#3a414b",
    "axes.labelcolor": "#8b939e",
    "axes.titlecolor": "#eef1f4",
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "grid.color": "#3a414b",
    "grid.linewidth": 0.5,
    "text.color": "#d7dbe0",
    "xtick.color": "#8b939e",
    "ytick.color": "#8b939e",
    "font.size": 9,
    "legend.frameon": False,
    "figure.dpi": 120,
}


def draw_plots(log: Path, path: Path) -> bool:
    """Plot a log; return whether it had the two lines that a curve needs."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = read_log(log)
    if len(rows) < 2:
        return False
    with rc_context(SETTINGS):
        figure = Figure(figsize=(8.0, 2.0 * len(_PANELS)), layout="constrained")
        FigureCanvasAgg(figure)
        for place, (title, columns) in enumerate(_PANELS):
            axes = figure.add_subplot(len(_PANELS), 1, place + 1)
            axes.set_title(title)
            axes.grid()
            for column, colour in zip(columns, COLOURS, strict=False):
                points = [(row["kimg"], row[column]) for row in rows if column in row and "kimg" in row]
                if points:
                    axes.plot(*zip(*points, strict=True), color=colour, label=column, linewidth=1.2)
            if title in _LOGARITHMIC and any(row.get(column, 0) > 0 for row in rows for column in columns):
                axes.set_yscale("log")
            if axes.lines:
                axes.legend(loc="upper right", fontsize=8)
        axes.set_xlabel("thousands of real pictures shown")
        write_whole(path, figure.savefig)
    return True
