"""Three hints for the first start, each at the top of the panel that it is about; Help > Tour shows them again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from PySide6.QtCore import QObject, QSize, Qt, Signal, SignalInstance, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QToolButton, QWidget

from explorer_app.settings import Settings
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.docks.dock import Dock
from explorer_app.window.docks.workspace import Workspace
from explorer_app.window.look import fonts, theme
from explorer_app.window.look.icons import icon

HINTS = {
    "latent": "Drag the ring, or the picture itself: every place between the seeds is a picture.",
    "sliders": "Each slider changes one thing. Shift goes finely, Ctrl snaps, a double-click sets zero.",
    "mix": "Add a source, then paint the rows that it gives: coarse rows shape, fine rows colour.",
}
"""Dock -> what its hint says."""

_CHOICE = "hints-seen"
"""Key of the small choice that remembers the hints which are not shown any more."""


class HintLine(QFrame):
    """A sentence with a button that puts it away.

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
        self.button.setAccessibleName("Put the hint away")
        self.button.setToolTip("Put this hint away; Help > Tour shows it again.")
        self.button.clicked.connect(self.dismissed)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN + theme.GRID, theme.GRID, theme.GRID, theme.GRID)
        layout.setSpacing(theme.GRID)
        layout.addWidget(self.text, 1)
        layout.addWidget(self.button, 0, Qt.AlignmentFlag.AlignTop)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def heightForWidth(self, width: int) -> int:  # noqa: N802 - Qt's name
        """Return the height of the sentence beside the button."""
        beside = self.button.sizeHint().width() + theme.MARGIN + 3 * theme.GRID
        return self.text.heightForWidth(width - beside) + 2 * theme.GRID

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Be as high as the sentence needs: what lays docks out does not ask for the height at a width."""
        super().resizeEvent(event)
        self.setFixedHeight(self.heightForWidth(self.width()))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint a raised ground with an accent bar."""
        tokens = theme.current()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(tokens.raised))
        painter.fillRect(0, 0, 3, self.height(), QColor(tokens.accent))
        painter.end()


class Hints(QObject):
    """Shows the hints that a person has neither used nor put away.

    Settings without a file would forget that, so with them no hint comes by itself.

    Parameters
    ----------
    docks
        The docks by their keys.
    workspace
        Shares the height of its columns anew when a hint comes or goes.
    """

    def __init__(self, docks: Mapping[str, Dock], workspace: Workspace, settings: Settings, parent: QObject) -> None:
        super().__init__(parent)
        self._docks = docks
        self._workspace = workspace
        self._settings = settings
        self.lines: dict[str, HintLine] = {}
        """The hints that are shown, by their docks."""

    def begin(self) -> None:
        """Show the hints that are new to the person."""
        if self._settings.has_file:
            seen = self._settings.choice(_CHOICE).split()
            for key in HINTS:
                if key not in seen:
                    self._show(key)

    @Slot()
    def show_all(self) -> None:
        """Show all of them, whatever was put away before."""
        for key in reversed(HINTS):  # the first one is in front, where the panels share a place
            self._show(key)
            self._docks[key].reveal()

    def used(self, key: str) -> None:
        """Put a hint away: the person did what it tells, or does not want it."""
        line = self.lines.pop(key, None)
        if line is not None:
            line.hide()
            line.deleteLater()
            self._workspace.share_height()
            seen = {*self._settings.choice(_CHOICE).split(), key}
            self._settings.choose(_CHOICE, " ".join(sorted(seen)))

    def watch(self, key: str, edited: SignalInstance) -> None:
        """Put a hint away once a gesture ends: `edited` emits an Edit, and True with the last one of a gesture."""
        edited.connect(partial(self._edited, key))

    def _edited(self, key: str, _edit: object, is_final: bool) -> None:
        if is_final:
            self.used(key)

    def _show(self, key: str) -> None:
        if key not in self.lines:
            line = self.lines[key] = HintLine(HINTS[key], self._docks[key])
            line.dismissed.connect(partial(self.used, key))
            self._docks[key].show_above(line)
            self._workspace.share_height()
