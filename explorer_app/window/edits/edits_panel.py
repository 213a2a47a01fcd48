"""The panel of local edits: blends under masks, style channels that move a painted region, bends of layers."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, TypeVar

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QImage, QPixmap, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from explorer_app.session.edits import AddBend
from explorer_app.session.local_edits import StyleChannel
from explorer_app.session.session import Session, as_still
from explorer_app.window.controls.tab_order import chain
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.edits.blend_list import BlendList
from explorer_app.window.edits.edit_rows import BendRow, EditRow, StyleRow
from explorer_app.window.look import theme

if TYPE_CHECKING:
    from explorer_app.window.edits.channel_picker import ChannelPicker
    from gpu_backend import ChannelMaps, Directions, ModelFacts

_Row = TypeVar("_Row", bound=EditRow)

_NO_BENDS = "A bend changes some channels of a layer: gain, ablate, threshold, move, turn, scale."


_REQUEST_MS = 300
_KEPT_PICTURES = 96

_FIND, _FIND_NAME = "Find…", "Find style channels"
_FIND_TIP = "Search the style channels that move what is painted, and little else: paint with Freeze, in the tool D."
_NO_STYLES = "Paint a region with Freeze in the bar of dragging (D): Find shows the channels of styles that move it."


class EditsPanel(QWidget):
    """Lists of blends, bends and style channels.

    Signals
    -------
    edited(object, bool)
        An Edit; True for the last one of a gesture.
    gesture_cancelled()
        Escape ended a drag.
    maps_requested(str)
        The channels of a layer are to be rendered.
    thumbnail_wanted(object, object)
        A key and the `Session` to render; the result arrives in `show_thumbnail`.
    find_requested(), stop_requested()
        Style channels that move the painted region are to be searched, or the search is to end.
    """

    SESSION_PARTS: ClassVar[tuple[str, ...]] = (
        "model",
        "position",
        "pinned_blend",
        "classes",
        "sliders",
        "mix",
        "transform",
        "truncation",
        "noise",
        "bends",
        "style_channels",
        "blends",
        "tap",
    )

    edited = Signal(object, bool)
    gesture_cancelled = Signal()
    maps_requested = Signal(str)
    find_requested = Signal()
    stop_requested = Signal()
    thumbnail_wanted = Signal(object, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("edits-panel")
        self.setAccessibleName("Edits")
        self._facts: ModelFacts | None = None
        self._session = Session()
        self._picker: ChannelPicker | None = None
        self.bends: list[BendRow] = []
        self.styles: list[StyleRow] = []
        self._chained: list[EditRow] = []
        """The rows that Tab visits."""
        self.blends = BlendList(
            self._button("Add…", "Add blend", "Choose the second picture, then paint where it shows.")
        )
        self.add = self._button("Add…", "Add bend", "Choose a layer, some of its channels, and an operation on them.")
        self.no_bends = WrappedLabel(_NO_BENDS)
        theme.set_role(self.no_bends, "dim")
        self.search = self._button(_FIND, _FIND_NAME, _FIND_TIP)
        self.about_styles = WrappedLabel(_NO_STYLES)
        theme.set_role(self.about_styles, "dim")
        self._search_text = ""
        self._ends: OrderedDict[object, QPixmap] = OrderedDict()
        """Pictures of the ends of style channels."""
        self._request_timer = QTimer(self, singleShot=True, interval=_REQUEST_MS)
        self._request_timer.timeout.connect(self._request_ends)
        self._bend_column, self._style_column = self._column(), self._column()
        self.no_model = WrappedLabel("Open a model to edit inside it")
        self.no_model.setAlignment(Qt.AlignmentFlag.AlignCenter)
        theme.set_role(self.no_model, "sentence")
        self.lists = QWidget()
        column = QVBoxLayout(self.lists)
        column.setContentsMargins(theme.MARGIN, theme.px(6), theme.MARGIN, theme.MARGIN)
        column.setSpacing(theme.px(4))
        column.addLayout(self._head("Blends", self.blends.add))
        column.addWidget(self.blends)
        column.addSpacing(theme.px(10))
        column.addLayout(self._head("Bends", self.add))
        column.addWidget(self.no_bends)
        column.addLayout(self._bend_column)
        column.addSpacing(theme.px(10))
        column.addLayout(self._head("Style channels", self.search))
        column.addWidget(self.about_styles)
        column.addLayout(self._style_column)
        column.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.no_model, 1)
        layout.addWidget(self.lists, 1)
        self.lists.hide()
        self.add.clicked.connect(self.open_picker)
        self.blends.edited.connect(self.edited)
        self.blends.gesture_cancelled.connect(self.gesture_cancelled)
        self.blends.thumbnail_wanted.connect(self.thumbnail_wanted)
        self.search.clicked.connect(self._find_or_stop)

    @staticmethod
    def _button(text: str, name: str, tip: str) -> QToolButton:
        """Return a button of a section; `name` is for screen readers, which do not see the section's title."""
        button = QToolButton()
        theme.set_role(button, "flat")
        button.setText(text)
        button.setToolTip(tip)
        button.setAccessibleName(name)
        return button

    @staticmethod
    def _column() -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(theme.px(2))
        return column

    @staticmethod
    def _head(title: str, *buttons: QToolButton) -> QHBoxLayout:
        line = QHBoxLayout()
        label = QLabel(title)
        theme.set_role(label, "strong")
        line.addWidget(label)
        line.addStretch(1)
        for button in buttons:
            line.addWidget(button, 0, Qt.AlignmentFlag.AlignRight)
        return line

    @property
    def picker(self) -> ChannelPicker:
        """The dialog that adds bends, made when it is first needed."""
        if self._picker is None:
            from explorer_app.window.edits.channel_picker import ChannelPicker

            self._picker = ChannelPicker(self)
            self._picker.show_model(self._facts)
            self._picker.show_session(self._session)
            self._picker.maps_requested.connect(self.maps_requested)
            self._picker.chosen.connect(
                lambda layer, kind, channels: self.edited.emit(AddBend(layer, kind, channels), True)
            )
        return self._picker

    def open_picker(self) -> None:
        """Open the dialog that adds bends, with the layer that is shown."""
        tap = self._session.tap
        self.picker.open_for("" if tap is None else tap.layer)

    def show_model(self, facts: ModelFacts | None, directions: Directions | None) -> None:
        """Offer the layers of another model; without one, show a text."""
        self._facts = facts
        self.no_model.setVisible(facts is None)
        self.lists.setVisible(facts is not None)
        self.blends.show_model(facts)
        self.blends.show_session(self._session)
        if self._picker is not None:
            self._picker.show_model(facts)

    def show_session(self, session: Session) -> None:
        """Show a session without emitting; rows are rebuilt only if others are needed."""
        self._session = session
        self.blends.show_session(session)
        if [(row.number, row.kind) for row in self.bends] != [(item.number, item.kind) for item in session.bends]:
            self._replace(self.bends, [BendRow(bend) for bend in session.bends], self._bend_column)
        for bend_row, bend in zip(self.bends, session.bends, strict=True):
            bend_row.show_bend(bend)
        self.no_bends.setVisible(not session.bends)
        channels = session.style_channels
        if [(row.key, row.reach) for row in self.styles] != [(item.key, item.reach) for item in channels]:
            self._replace(self.styles, [StyleRow(item) for item in channels], self._style_column)
        for style_row, channel in zip(self.styles, channels, strict=True):
            style_row.show_channel(channel)
        self._describe_styles()
        rows = [*self.blends.rows, *self.bends, *self.styles]
        if rows != self._chained:
            self._chained = rows
            chain([self.lists])
        if channels:
            self._request_timer.start()
        if self._picker is not None:
            self._picker.show_session(session)

    def show_thumbnail(self, key: object, image: QImage) -> None:
        """Show a requested picture."""
        if isinstance(key, tuple) and key[0] == "style":
            self._ends[key] = QPixmap.fromImage(image)
            while len(self._ends) > _KEPT_PICTURES:
                self._ends.popitem(last=False)
            self._show_ends()
        else:
            self.blends.show_thumbnail(key, image)

    def _end_keys(self) -> list[list[tuple[str, Session]]]:
        """Return the keys of the pictures of each channel's ends, with the sessions that they show.

        The other channels are at rest, so that no slider makes other pictures necessary.
        """
        still = replace(as_still(self._session), mask=None, tap=None)

        def key(channel: StyleChannel, end: float) -> tuple[str, Session]:
            return "style", replace(still, style_channels=(replace(channel, amount=end, label=""),))

        return [[key(item, -item.reach), key(item, item.reach)] for item in self._session.style_channels]

    def _show_ends(self) -> None:
        for row, keys in zip(self.styles, self._end_keys(), strict=True):
            row.show_ends([self._ends.get(key) for key in keys])

    def _request_ends(self) -> None:
        """Request the pictures of the ends that are missing, of the first channels first."""
        if self._facts is None or not self.isVisible():
            return
        self._show_ends()
        for keys in reversed(self._end_keys()):  # the last request is rendered first
            for key in keys:
                if key not in self._ends:
                    self.thumbnail_wanted.emit(key, key[1])

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Request the pictures that were not requested while the panel was hidden."""
        super().showEvent(event)
        self._request_timer.start()

    def show_search(self, text: str, is_searching: bool) -> None:
        """Show the progress of a search for style channels."""
        self._search_text = text
        self.search.setText("Stop" if is_searching else _FIND)
        self.search.setAccessibleName("Stop the search" if is_searching else _FIND_NAME)
        self.search.setToolTip("End the search." if is_searching else _FIND_TIP)
        self._describe_styles()

    def _describe_styles(self) -> None:
        self.about_styles.setText(self._search_text or _NO_STYLES)
        self.about_styles.setVisible(bool(self._search_text) or not self._session.style_channels)

    def _find_or_stop(self) -> None:
        (self.stop_requested if self._search_text else self.find_requested).emit()

    def show_maps(self, maps: ChannelMaps) -> None:
        """Show the channels of a layer in the dialog that asked for them."""
        if self._picker is not None:
            self._picker.show_maps(maps)

    def show_failure(self, text: str) -> None:
        """Say in the dialog why there are no channels."""
        if self._picker is not None:
            self._picker.show_failure(text)

    def _replace(self, rows: list[_Row], made: list[_Row], column: QVBoxLayout) -> None:
        for row in rows:
            column.removeWidget(row)
            row.hide()
            row.deleteLater()
        rows[:] = made
        for row in made:
            column.addWidget(row)
            row.edited.connect(self.edited)
            row.gesture_cancelled.connect(self.gesture_cancelled)
