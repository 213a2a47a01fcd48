"""The dialog that adds a bend: a layer, some of its channels or a cluster of them, and an operation on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from PySide6.QtCore import QItemSelectionModel, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QImage, QPixmap, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QHBoxLayout,
    QLabel,
    QListView,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from explorer_app.session.local_edits import KIND_NAMES, bendable_layers
from explorer_app.session.session import Session
from explorer_app.session.taps import first_tap
from explorer_app.window.controls.named_box import NamedBox
from explorer_app.window.controls.picture_delegate import PictureDelegate
from explorer_app.window.controls.screen_fit import fit_to_screen
from explorer_app.window.controls.segmented import SegmentedControl
from explorer_app.window.look import theme
from gpu_backend import MAX_BENDS, BendKind, ModelFacts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gpu_backend import ChannelMaps

_THUMB_PX, _CLUSTER_PX = 48, 64
_FULL = f"A picture has at most {MAX_BENDS} bends; remove one to add another."
_LONGEST = "1024 channels"
"""Of what the main button bends."""

_TIPS: dict[BendKind, str] = {
    "gain": "Multiply the channels; a negative gain inverts them.",
    "ablate": "Fade the channels out, partly or completely.",
    "threshold": "Set weak activations to 0.",
    "move": "Move the channels over the picture.",
    "turn": "Rotate the channels around the centre.",
    "scale": "Scale the channels around the centre.",
}


class ChannelPicker(QDialog):
    """Chooses channels by their pictures; stays open, so that several bends can be added.

    Signals
    -------
    maps_requested(str)
        The channels of this layer are to be rendered.
    chosen(str, str, object)
        Layer, kind and channels of a bend; no channels means all of them.
    """

    maps_requested = Signal(str)
    chosen = Signal(str, str, object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Add bend")
        self._model_id = ""
        self._counts: dict[str, int] = {}
        self._maps: ChannelMaps | None = None
        self._requested = ""
        """Layer of the model whose channels were requested last."""
        self._has_room = True
        self.layer = NamedBox("Layer")
        self.layer.setToolTip("Early layers hold shapes, later ones textures and colours.")
        self.kind = SegmentedControl(tuple((kind, KIND_NAMES[kind], _TIPS[kind]) for kind in KIND_NAMES), "Bend")
        self.kind.show_choice("gain")
        self._kind: BendKind = "gain"
        self.clusters = self._list(_CLUSTER_PX, "Clusters of channels")
        self.clusters.setSelectionMode(QAbstractItemView.SelectionMode.MultiSelection)
        self.clusters.setFixedHeight(theme.px(_CLUSTER_PX + 40))
        self.channels = self._list(_THUMB_PX, "Channels")
        self.channels.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.about = QLabel()
        theme.set_role(self.about, "dim")
        self.add = QPushButton()
        theme.set_role(self.add, "main")
        self.add.setDefault(True)
        self.done_button = QPushButton("Close")
        self._build()
        self.layer.activated.connect(self._request)
        self.kind.chosen.connect(self._choose_kind)
        self.clusters.itemSelectionChanged.connect(self._take_clusters)
        self.channels.itemSelectionChanged.connect(self._describe)
        self.add.clicked.connect(self._add)
        self.done_button.clicked.connect(self.close)
        self._describe()

    @staticmethod
    def _list(side: int, name: str) -> QListWidget:
        view = QListWidget()
        view.setViewMode(QListView.ViewMode.IconMode)
        view.setResizeMode(QListView.ResizeMode.Adjust)
        view.setMovement(QListView.Movement.Static)
        view.setUniformItemSizes(True)
        view.setIconSize(QSize(theme.px(side), theme.px(side)))
        view.setSpacing(theme.px(3))
        view.setAccessibleName(name)
        view.setItemDelegate(PictureDelegate(view))
        view.setMouseTracking(True)
        return view

    def _build(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(theme.px(8))
        for text, widget in (("Layer", self.layer), ("Bend", self.kind)):
            label = QLabel(text)
            label.setBuddy(widget)
            head.addWidget(label)
            head.addWidget(widget)
        head.addStretch(1)
        foot = QHBoxLayout()
        foot.addWidget(self.about, 1)
        foot.addWidget(self.done_button)
        foot.addWidget(self.add)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*(theme.px(14),) * 4)
        layout.setSpacing(theme.px(8))
        layout.addLayout(head)
        layout.addWidget(_caption("Clusters: channels that are active in the same parts of the picture"))
        layout.addWidget(self.clusters)
        layout.addWidget(_caption("Channels: grey is 0; Ctrl and Shift choose several"))
        layout.addWidget(self.channels, 1)
        layout.addLayout(foot)
        self.resize(theme.px(640), theme.px(600))

    def show_model(self, facts: ModelFacts | None, layer: str = "") -> None:
        """Offer the layers of a model; begin with `layer` if it is one of them, else in the middle of the network."""
        if facts is not None and facts.model_id == self._model_id:
            return
        self._model_id = "" if facts is None else facts.model_id
        self._counts = {} if facts is None else bendable_layers(facts)
        self._requested = ""
        self.layer.clear()
        self.layer.addItems(list(self._counts))
        first = None if facts is None else first_tap(facts)
        start = layer if layer in self._counts else first.layer if first is not None else ""
        self.layer.setCurrentText(start)
        self._clear()
        self._describe()

    def open_for(self, layer: str) -> None:
        """Open, with a layer if it can be bent, and request its channels."""
        if layer in self._counts:
            self.layer.setCurrentText(layer)
        if not self.isVisible():
            fit_to_screen(self)
        self.show()
        self.raise_()
        self._request()

    def show_session(self, session: Session) -> None:
        """Offer another bend while there is room; request the channels of a model that the session is fitted to now."""
        if self._has_room != (len(session.bends) < MAX_BENDS):
            self._has_room = not self._has_room
            self._describe()
        if self.isVisible() and session.model.model_id == self._model_id and not self._requested:
            self._request()

    def show_maps(self, maps: ChannelMaps) -> None:
        """Show the channels of a layer, if it is the one that is chosen; what was selected stays."""
        if (maps.model_id, maps.layer) != (self._model_id, self.layer.currentText()):
            return
        is_same = self._maps is not None and self._maps.layer == maps.layer
        selected = self.selected if is_same else ()
        self._maps = None  # selections of clusters that follow from filling mean nothing
        _fill(self.channels, maps.maps, _THUMB_PX, [str(index) for index in range(len(maps.maps))])
        names = [str(len(maps.channels_of(index))) for index in range(len(maps.cluster_maps))]
        _fill(self.clusters, maps.cluster_maps, _CLUSTER_PX, names)
        self._maps = maps
        for index, name in enumerate(names):
            self.clusters.item(index).setToolTip(f"Choose the {name} channels of this cluster.")
        self._select(selected)

    def show_failure(self, text: str) -> None:
        """Say why the channels could not be rendered."""
        self.about.setText(text)

    @property
    def selected(self) -> tuple[int, ...]:
        """The chosen channels; empty for all."""
        return tuple(sorted(index.row() for index in self.channels.selectedIndexes()))

    def _request(self) -> None:
        layer = self.layer.currentText()
        if not layer:
            return
        if self._maps is None or self._maps.layer != layer:
            self._clear()
            self.about.setText("Rendering the channels…")
        self._requested = layer
        self.maps_requested.emit(layer)

    def _clear(self) -> None:
        self._maps = None
        self.channels.clear()
        self.clusters.clear()

    def _choose_kind(self, kind: str) -> None:
        self._kind = next(item for item in KIND_NAMES if item == kind)
        self._describe()

    def _take_clusters(self) -> None:
        if self._maps is not None:
            chosen = [index.row() for index in self.clusters.selectedIndexes()]
            self._select(channel for cluster in chosen for channel in self._maps.channels_of(cluster))

    def _select(self, channels: Iterable[int]) -> None:
        model, selection = self.channels.model(), self.channels.selectionModel()
        self.channels.blockSignals(True)
        selection.clearSelection()
        for channel in channels:
            selection.select(model.index(channel, 0), QItemSelectionModel.SelectionFlag.Select)
        self.channels.blockSignals(False)
        self.channels.viewport().update()
        self._describe()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Give the main button the width of its longest text, so that no button moves under the pointer."""
        super().showEvent(event)
        text = self.add.text()
        for name in KIND_NAMES.values():
            self.add.setText(f"{name} {_LONGEST}")
            self.add.setMinimumWidth(max(self.add.minimumWidth(), self.add.sizeHint().width()))
        self.add.setText(text)

    def _describe(self) -> None:
        count, total = len(self.selected), self._counts.get(self.layer.currentText(), 0)
        self.add.setEnabled(bool(total) and self._has_room)
        what = "all channels" if count in (0, total) else "1 channel" if count == 1 else f"{count} channels"
        self.add.setText(f"{KIND_NAMES[self._kind]} {what}")
        chosen = f"{count or 'None'} of {total} channels chosen" if self._has_room else _FULL
        self.about.setText(chosen if total else "")

    def _add(self) -> None:
        self.chosen.emit(self.layer.currentText(), self._kind, self.selected)


def _caption(text: str) -> QLabel:
    label = QLabel(text)
    theme.set_role(label, "dim")
    return label


def _fill(view: QListWidget, pictures: NDArray[np.uint8], side: int, names: Iterable[str]) -> None:
    view.clear()
    for picture, name in zip(pictures, names, strict=True):
        height, width = picture.shape
        image = QImage(picture.tobytes(), width, height, width, QImage.Format.Format_Grayscale8)
        large = image.scaled(theme.px(side), theme.px(side), Qt.AspectRatioMode.IgnoreAspectRatio)
        item = QListWidgetItem(QIcon(QPixmap.fromImage(large)), name)
        view.addItem(item)
