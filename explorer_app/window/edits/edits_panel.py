"""The panel of local edits: bends of layers, and style channels that move a painted region."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeVar

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from explorer_app.session.edits import AddBend
from explorer_app.session.session import Session
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.edits.edit_rows import BendRow, EditRow, StyleRow
from explorer_app.window.look import theme

if TYPE_CHECKING:
    from explorer_app.window.edits.channel_picker import ChannelPicker
    from gpu_backend import ChannelMaps, Directions, ModelFacts

_Row = TypeVar("_Row", bound=EditRow)

_NO_BENDS = "A bend changes some channels of a layer: gain, ablate, threshold, move, turn, scale."


_FIND = "Find…"
_FIND_TIP = "Search the style channels that move what is painted, and little else: paint with Freeze, in the tool D."
_NO_STYLES = "Paint a region with Freeze in the bar of dragging (D): Find shows the channels of styles that move it."


class EditsPanel(QWidget):
    """Lists of bends and style channels.

    Signals
    -------
    edited(object, bool)
        An Edit; True for the last one of a gesture.
    gesture_cancelled()
        Escape ended a drag.
    maps_requested(str)
        The channels of a layer are to be rendered.
    find_requested(), stop_requested()
        Style channels that move the painted region are to be searched, or the search is to end.
    """

    SESSION_PARTS: ClassVar[tuple[str, ...]] = ("bends", "style_channels", "tap")

    edited = Signal(object, bool)
    gesture_cancelled = Signal()
    maps_requested = Signal(str)
    find_requested = Signal()
    stop_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("edits-panel")
        self.setAccessibleName("Edits")
        self._facts: ModelFacts | None = None
        self._session = Session()
        self._picker: ChannelPicker | None = None
        self.bends: list[BendRow] = []
        self.styles: list[StyleRow] = []
        self.add = self._button("Add…", "Choose a layer, some of its channels, and what is done to them.")
        self.no_bends = WrappedLabel(_NO_BENDS)
        theme.set_role(self.no_bends, "dim")
        self.search = self._button(_FIND, _FIND_TIP)
        self.about_styles = WrappedLabel(_NO_STYLES)
        theme.set_role(self.about_styles, "dim")
        self._search_text = ""
        self._bend_column, self._style_column = self._column(), self._column()
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(theme.MARGIN, theme.px(6), theme.MARGIN, theme.MARGIN)
        self._layout.setSpacing(theme.px(4))
        self._layout.addLayout(self._head("Bends", self.add))
        self._layout.addWidget(self.no_bends)
        self._layout.addLayout(self._bend_column)
        self._layout.addSpacing(theme.px(10))
        self._layout.addLayout(self._head("Style channels", self.search))
        self._layout.addWidget(self.about_styles)
        self._layout.addLayout(self._style_column)
        self._layout.addStretch(1)
        self.add.clicked.connect(self.open_picker)
        self.search.clicked.connect(self._find_or_stop)

    @staticmethod
    def _button(text: str, tip: str) -> QToolButton:
        button = QToolButton()
        theme.set_role(button, "flat")
        button.setText(text)
        button.setToolTip(tip)
        button.setAccessibleName(text.rstrip("…"))
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
        """Offer the layers of another model."""
        self._facts = facts
        self.setEnabled(facts is not None)
        if self._picker is not None:
            self._picker.show_model(facts)

    def show_session(self, session: Session) -> None:
        """Show a session without emitting; rows are made anew only if there are others."""
        self._session = session
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

    def show_search(self, text: str, is_searching: bool) -> None:
        """Show the progress of a search for style channels."""
        self._search_text = text
        self.search.setText("Stop" if is_searching else _FIND)
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
