"""Table model of the picture and the network's layers: name, resolution, channels."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QWidget

from explorer_app.window.layers.layer_text import layer_tip
from gpu_backend import LayerFacts, ModelFacts

_Index = QModelIndex | QPersistentModelIndex
_PICTURE = "Picture"
_MIDDLE = Qt.AlignmentFlag.AlignVCenter

COLUMNS = (
    ("Layer", "Layers in execution order, the picture first."),
    ("Pixels", "Width and height of a layer's output."),
    ("Channels", "Number of channels of a layer; one or three of them are shown."),
)
"""Title and tooltip."""


class LayerModel(QAbstractTableModel):
    """Row 0 is the picture; the layers follow in execution order. Empty without a model."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[LayerFacts, ...] = ()

    def show_model(self, facts: ModelFacts | None) -> None:
        """Set the layers of a model."""
        self.beginResetModel()
        self._rows = ()
        if facts is not None:
            self._rows = (LayerFacts(_PICTURE, facts.img_channels, facts.resolution), *facts.layers)
        self.endResetModel()

    def layer_at(self, row: int) -> LayerFacts | None:
        """Return the layer of a row; None for the picture."""
        return self._rows[row] if 0 < row < len(self._rows) else None

    def row_of(self, layer: str | None) -> int:
        """Return the row of a layer (None for the picture); -1 if it has no row."""
        if layer is None:
            return 0 if self._rows else -1
        return next((row for row, known in enumerate(self._rows) if row and known.name == layer), -1)

    # -- Qt's model interface ---------------------------------------------------------------------------------------

    def rowCount(self, parent: _Index | None = None) -> int:  # noqa: N802 - Qt's name
        """Return the number of layers plus one for the picture; 0 without a model."""
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def columnCount(self, parent: _Index | None = None) -> int:  # noqa: N802 - Qt's name
        """Return the number of columns."""
        return 0 if parent is not None and parent.isValid() else len(COLUMNS)

    def headerData(  # noqa: N802 - Qt's name
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's title, tip or alignment."""
        if orientation == Qt.Orientation.Vertical:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section][0]
        if role == Qt.ItemDataRole.ToolTipRole:
            return COLUMNS[section][1]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self._alignment(section)
        return None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's text, alignment or tooltip."""
        row, column = index.row(), index.column()
        layer = self._rows[row]
        if role == Qt.ItemDataRole.DisplayRole:
            return (layer.name, f"{layer.side} × {layer.side}", str(layer.channels))[column]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self._alignment(column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return layer_tip(layer) if row else "Show the picture instead of a layer (Escape)."
        return None

    @staticmethod
    def _alignment(column: int) -> int:
        return int(_MIDDLE | (Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag.AlignLeft))
