"""Mean, standard deviation and maximum of the whole layer and of its shown channels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from explorer_app.window.layers.layer_text import channels_text, statistic_text
from explorer_app.window.layers.spectrum_scale import picture_values
from explorer_app.window.look import fonts, theme
from gpu_backend import Frame, LazyModule, ValueStatistics

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

_NAMES = (
    ("mean", "Mean of the values, before normalisation and gain."),
    ("std", "Standard deviation of the values, before normalisation and gain."),
    ("max", "Largest of the values, before normalisation and gain."),
)
_WIDEST = "−00.000"


class LayerStatisticsView(QWidget):
    """Two columns of three figures with constant width."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Statistics of the layer")
        self.heads = (QLabel("layer"), QLabel("shown"))
        self.figures = {name: (QLabel(), QLabel()) for name, _ in _NAMES}
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(theme.px(8))
        grid.setVerticalSpacing(theme.px(2))
        grid.setColumnStretch(0, 1)
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for column, head in enumerate(self.heads, start=1):
            head.setFont(fonts.caption())
            theme.set_role(head, "dim")
            grid.addWidget(head, 0, column, right)
        self.heads[0].setToolTip("Of all channels of the layer.")
        for row, (name, tip) in enumerate(_NAMES, start=1):
            label = QLabel(name)
            theme.set_role(label, "dim")
            label.setFont(fonts.table())
            label.setToolTip(tip)
            grid.addWidget(label, row, 0)
            for column, figure in enumerate(self.figures[name], start=1):
                figure.setFont(fonts.table())
                theme.set_role(figure, "strong")
                figure.setAlignment(right)
                metrics = figure.fontMetrics()  # fixed size, so that a new text triggers no layout
                figure.setFixedSize(metrics.horizontalAdvance(_WIDEST), metrics.height())
                figure.setToolTip(tip)
                grid.addWidget(figure, row, column)
        self.show_frame(None)

    def show_frame(self, frame: Frame | None) -> None:
        """Show the statistics of a frame's layer or picture; dashes without a frame."""
        whole: ValueStatistics | None = None
        shown: ValueStatistics | None = None
        if frame is not None and frame.tap is not None and frame.request.tap is not None:
            whole, shown = frame.tap.whole, together(frame.tap.shown)
            self.heads[1].setToolTip(f"Of {channels_text(frame.request.tap)}.")
        elif frame is not None:
            grey = picture_values(frame.pixels)
            whole = ValueStatistics(float(grey.mean()), float(grey.std()), float(grey.min()), float(grey.max()))
        self.setEnabled(frame is not None)
        is_layer = shown is not None or frame is None
        self.heads[0].setText("layer" if is_layer else "picture")
        self.heads[0].setToolTip(
            "Of all channels of the layer." if is_layer else "Of the displayed picture: −1 is black, 1 is white."
        )
        self.heads[1].setText("shown" if is_layer else "")
        for name, figures in self.figures.items():
            for figure, numbers in zip(figures, (whole, shown), strict=True):
                text = "–" if numbers is None else statistic_text(getattr(numbers, name))
                figure.setText("" if numbers is None and not is_layer else text)
                figure.setAccessibleName(f"{name} {text}")


def together(parts: Sequence[ValueStatistics]) -> ValueStatistics:
    """Return the combined statistics of parts of equal size."""
    mean = float(np.mean([part.mean for part in parts]))
    square = float(np.mean([part.std**2 + part.mean**2 for part in parts]))
    return ValueStatistics(
        mean,
        math.sqrt(max(0.0, square - mean**2)) if math.isfinite(square) else square,
        min(part.min for part in parts),
        max(part.max for part in parts),
    )
