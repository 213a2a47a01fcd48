"""Noise per layer: a popup with one slider per layer, so that the latent panel keeps its layout."""

from __future__ import annotations

import re
from collections.abc import Sequence

from PySide6.QtCore import QPoint, Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from explorer_app.session.edits import SetParameters
from explorer_app.session.parameters import SetParameter
from explorer_app.window.controls.popup import Popup
from explorer_app.window.controls.slider_row import SliderRow
from explorer_app.window.look import theme

_OFFICIAL_NAME = re.compile(r"b(\d+)\.(\w+)")
_ROWS_IN_SIGHT = 14
_WIDTH = 340


def layer_label(name: str) -> str:
    """Return the label of a noise layer: ``"64 px · conv1"`` for ``"b64.conv1"``."""
    match = _OFFICIAL_NAME.fullmatch(name)
    return f"{match[1]} px · {match[2]}" if match else name


class NoiseLayers(Popup):
    """A popup with the noise gain of each layer.

    Signals
    -------
    edited(object, bool)
        `SetParameter` for a layer, `SetParameters` for all of them; True for the last one of a gesture.
    gesture_cancelled()
        Escape ended a drag.
    """

    edited = Signal(object, bool)
    gesture_cancelled = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAccessibleName("Noise of each layer")
        self._layers: tuple[str, ...] = ()
        self._gains: Sequence[float] = ()
        self._rows: list[SliderRow] | None = []
        """None until the popup is first opened for a model, because each row takes milliseconds to create."""
        title = QLabel("Noise of each layer")
        theme.set_role(title, "dim")
        self.reset = QPushButton("Reset")
        self.reset.setAccessibleName("Reset the noise of all layers")
        self.reset.setToolTip("Set the noise of all layers to 1.00.")
        self.reset.clicked.connect(self._reset)
        head = QHBoxLayout()
        head.addWidget(title, 1)
        head.addWidget(self.reset)
        content = QWidget()
        self._rows_layout = QVBoxLayout(content)
        self._rows_layout.setContentsMargins(0, 0, theme.GRID * 2, 0)
        self._rows_layout.setSpacing(0)
        self.area = QScrollArea()
        self.area.setWidget(content)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN, theme.MARGIN, theme.GRID, theme.MARGIN)
        layout.setSpacing(6)
        layout.addLayout(head)
        layout.addWidget(self.area)
        self.setFixedWidth(theme.px(_WIDTH))

    def show_layers(self, layers: Sequence[str]) -> None:
        """Set the noise layers of a model, one row each."""
        if tuple(layers) == self._layers:
            return
        self.hide()
        self._layers = tuple(layers)
        for row in self._rows or ():
            row.hide()
            row.deleteLater()
        self._rows = None
        self.area.setFixedHeight(theme.px(theme.ROW) * min(len(layers), _ROWS_IN_SIGHT))

    def show_gains(self, gains: Sequence[float]) -> None:
        """Show the gains without emitting; missing gains are 1."""
        self._gains = gains
        for index, row in enumerate(self._rows or ()):
            row.show_amount(gains[index] if index < len(gains) else 1.0)
        self.reset.setEnabled(any(gain != 1.0 for gain in gains))

    def open_at(self, point: QPoint) -> None:
        """Create the rows if needed, and open."""
        self._rows = self.rows
        super().open_at(point)

    @property
    def rows(self) -> list[SliderRow]:
        """The rows, one per layer."""
        if self._rows is None:
            self._rows = [self._row(index, name) for index, name in enumerate(self._layers)]
            for row in self._rows:
                self._rows_layout.addWidget(row)
            self.show_gains(self._gains)
        return self._rows

    def _row(self, index: int, name: str) -> SliderRow:
        tip = "strength of the noise of this layer."
        row = SliderRow(layer_label(name), 0.0, 2.0, neutral=1.0, beyond=10.0, widest="−0.00", tip=tip)
        row.field.setMinimum(0.0)
        path = row.path = f"noise.layer/{index}"
        row.moved.connect(lambda gain, final: self.edited.emit(SetParameter(path, gain), final))
        row.cancelled.connect(self.gesture_cancelled)
        return row

    @Slot()
    def _reset(self) -> None:
        edits = (SetParameter(f"noise.layer/{index}", 1.0) for index in range(len(self._layers)))
        self.edited.emit(SetParameters(tuple(edits), "Reset noise of layers"), True)
