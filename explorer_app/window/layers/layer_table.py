"""The table of layers: the canvas shows the selected row."""

from __future__ import annotations

from PySide6.QtCore import QItemSelectionModel, QModelIndex, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from explorer_app.window.layers.layer_model import LayerModel
from explorer_app.window.look import fonts, theme
from gpu_backend import ModelFacts

_ROW = 24
_LEAST_ROWS = 3


class LayerTable(QTableView):
    """The layers; a click or the arrow keys select one, Escape selects the picture.

    Signals
    -------
    layer_chosen(object)
        Name of the selected layer; None for the picture.
    """

    layer_chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("layers")
        self.setAccessibleName("Layers")
        self.layers = LayerModel(self)
        self._is_selecting = False
        """Whether the selection is being set from a session, which must not emit."""
        self.setModel(self.layers)
        self._look()
        self.selectionModel().currentRowChanged.connect(self._moved)

    def _look(self) -> None:
        self.setFont(fonts.table())
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setAlternatingRowColors(True)
        self.setTabKeyNavigation(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        rows, header = self.verticalHeader(), self.horizontalHeader()
        rows.hide()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setMinimumSectionSize(theme.px(16))
        rows.setDefaultSectionSize(theme.px(_ROW))
        header.setFont(fonts.table())
        header.setHighlightSections(False)
        header.setSectionsClickable(False)
        header.setMinimumSectionSize(theme.px(24))
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        words = self.fontMetrics()
        for column, widest in ((1, "1024 × 1024"), (2, "Channels")):
            self.setColumnWidth(column, words.horizontalAdvance(widest) + theme.px(20))
        self.setMinimumHeight(theme.px(_ROW) * (_LEAST_ROWS + 1))

    def show_model(self, facts: ModelFacts | None) -> None:
        """Set the layers of a model."""
        self._is_selecting = True
        self.layers.show_model(facts)
        self._is_selecting = False
        self.setEnabled(facts is not None)

    def show_layer(self, layer: str | None) -> None:
        """Select the layer on the canvas (None for the picture) without emitting."""
        row = self.layers.row_of(layer)
        if row == self.currentIndex().row():
            return
        self._is_selecting = True
        if row < 0:
            self.clearSelection()
            self.setCurrentIndex(QModelIndex())
        else:
            flag = QItemSelectionModel.SelectionFlag
            index = self.layers.index(row, 0)
            is_seen = self.viewport().rect().contains(self.visualRect(index))
            self.selectionModel().setCurrentIndex(index, flag.ClearAndSelect | flag.Rows)
            if not is_seen:  # centred, so that its neighbours are visible
                self.scrollTo(index, QAbstractItemView.ScrollHint.PositionAtCenter)
        self._is_selecting = False

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Escape selects the picture."""
        if event.key() == Qt.Key.Key_Escape and self.currentIndex().row() > 0:
            self.selectRow(0)
        else:
            super().keyPressEvent(event)

    def _moved(self, now: QModelIndex, before: QModelIndex) -> None:
        if not self._is_selecting and now.isValid():
            layer = self.layers.layer_at(now.row())
            self.layer_chosen.emit(None if layer is None else layer.name)
