"""Three hints for the first start, each at the top of the panel that it describes; Help > Tour shows them again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal, SignalInstance, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QToolButton, QWidget

from explorer_app.settings import Settings
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.docks.dock import Dock
from explorer_app.window.docks.workspace import Workspace
from explorer_app.window.look import fonts, theme
from explorer_app.window.look.icons import icon

HINTS = {
    "latent": "Drag the ring, or the picture itself: every position between the seeds is a picture.",
    "sliders": "Each slider changes one thing. Shift is finer, Ctrl snaps, a double-click sets zero.",
    "mix": "Add a source, then paint its rows: coarse rows set shape, fine rows set colour.",
}
"""Dock key -> text of its hint."""

_CHOICE = "hints-seen"
"""Settings key of the hints that are not shown any more."""


class HintLine(QFrame):
    """A hint with a button that dismisses it.

    Signals
    -------
    dismissed()
        The button was pressed.
    """

    dismissed = Signal()

    def __init__(self, text: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.text = WrappedLabel(text, self)
        self.text.setFont(fonts.table())
        self.button = QToolButton(self)
        theme.set_role(self.button, "flat")
        self.button.setIcon(icon("close", "dim"))
        self.button.setIconSize(QSize(theme.px(12), theme.px(12)))
        self.button.setAccessibleName("Dismiss the hint")
        self.button.setToolTip("Dismiss this hint; Help > Tour shows it again.")
        self.button.clicked.connect(self.dismissed)
        self._row = layout = QHBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN + theme.GRID, theme.GRID, theme.GRID, theme.GRID)
        layout.setSpacing(theme.GRID)
        layout.addWidget(self.text, 1)
        layout.addWidget(self.button, 0, Qt.AlignmentFlag.AlignTop)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def heightForWidth(self, width: int) -> int:  # noqa: N802 - Qt's name
        """Return the height in px of the text beside the button."""
        beside = self.button.sizeHint().width() + theme.MARGIN + 3 * theme.GRID
        return self.text.heightForWidth(width - beside) + 2 * theme.GRID

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Set a fixed height for the text at this width, because dock layouts ignore height-for-width."""
        super().resizeEvent(event)
        self.setFixedHeight(self.heightForWidth(self.width()))

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Lay out the text again: Qt sends a hidden line no second resize event for the height that it has just set."""
        super().showEvent(event)
        self._row.invalidate()
        self._row.setGeometry(self.rect())

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint a raised background with an accent bar."""
        tokens = theme.current()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(tokens.raised))
        painter.fillRect(0, 0, 3, self.height(), QColor(tokens.accent))
        painter.end()


class Hints(QObject):
    """Shows the hints that the user has neither followed nor dismissed.

    Settings without a file cannot store that, so with them no hint is shown automatically.

    Parameters
    ----------
    docks
        The docks by their keys.
    workspace
        Redistributes the height of its columns when a hint appears or disappears.
    """

    def __init__(self, docks: Mapping[str, Dock], workspace: Workspace, settings: Settings, parent: QObject) -> None:
        super().__init__(parent)
        self._docks = docks
        self._workspace = workspace
        self._settings = settings
        self.lines: dict[str, HintLine] = {}
        """Dock key -> its visible hint."""

    def begin(self) -> None:
        """Show the hints that were not dismissed before."""
        if self._settings.has_file:
            seen = self._settings.choice(_CHOICE).split()
            for key in HINTS:
                if key not in seen:
                    self._show(key)

    @Slot()
    def show_all(self) -> None:
        """Show all hints, including dismissed ones."""
        for key in reversed(HINTS):  # ends with the first hint in front if panels are tabbed
            self._show(key)
            self._docks[key].reveal()

    def used(self, key: str) -> None:
        """Dismiss a hint permanently: it was followed or closed."""
        if key in self.lines:
            self._remove(key)
            self._remember(key)

    def withdraw(self) -> None:
        """Hide the hints until `begin` shows them again: the model that was expected could not be opened."""
        for key in tuple(self.lines):
            self._remove(key)

    def followed(self, key: str) -> None:
        """Dismiss a hint once the pointer has left its panel: nothing moves under the hand that follows it."""
        if key not in self.lines:
            return
        if self._docks[key].underMouse():
            self._remember(key)
            self._docks[key].installEventFilter(self)
        else:
            self.used(key)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Dismiss the hint of a panel that the pointer leaves."""
        if event.type() == QEvent.Type.Leave:
            watched.removeEventFilter(self)
            for key in [key for key in self.lines if self._docks[key] is watched]:
                self.used(key)
        return False

    def watch(self, key: str, edited: SignalInstance) -> None:
        """Follow a hint when a gesture ends: `edited` emits an Edit, with True for the last one of a gesture."""
        edited.connect(partial(self._edited, key))

    def _remember(self, key: str) -> None:
        seen = {*self._settings.choice(_CHOICE).split(), key}
        self._settings.choose(_CHOICE, " ".join(sorted(seen)))

    def _edited(self, key: str, _edit: object, is_final: bool) -> None:
        if is_final:
            self.followed(key)

    def _remove(self, key: str) -> None:
        line = self.lines.pop(key)
        line.hide()
        line.deleteLater()
        self._workspace.share_height()

    def _show(self, key: str) -> None:
        if key not in self.lines:
            line = self.lines[key] = HintLine(HINTS[key], self._docks[key])
            line.dismissed.connect(partial(self.used, key))
            self._docks[key].show_above(line)
            self._workspace.share_height()
