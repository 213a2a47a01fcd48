"""The colours and sizes of the plots: the window's dark theme, written here because the backend knows no window."""

from __future__ import annotations

from typing import Any

GROUND = "#131518"
PANEL = "#1d2025"
EDGE = "#3a414b"
TEXT = "#d7dbe0"
STRONG = "#eef1f4"
DIM = "#8b939e"

OURS = "#e8a33d"
SERIES = ("#5aa9e6", "#7bc47f", "#c98bdb", "#4fc3b5", "#f2777a", "#c2a27c")
"""The peers, in the order of `gpu_backend.bench.cases.PEERS`."""

SETTINGS: dict[Any, Any] = {
    "figure.facecolor": GROUND,
    "savefig.facecolor": GROUND,
    "axes.facecolor": PANEL,
    "axes.edgecolor": EDGE,
    "axes.labelcolor": DIM,
    "axes.titlecolor": STRONG,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": EDGE,
    "grid.linewidth": 0.5,
    "grid.alpha": 0.6,
    "text.color": TEXT,
    "xtick.color": DIM,
    "ytick.color": DIM,
    "xtick.labelcolor": TEXT,
    "ytick.labelcolor": TEXT,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "font.size": 9,
    "legend.frameon": False,
    "figure.dpi": 144,
}
"""matplotlib's rcParams."""
