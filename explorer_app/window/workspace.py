"""The workspace: docks around the canvas, their first layout, and how it is remembered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QByteArray, QChildEvent, QEvent, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QApplication, QMainWindow, QTabBar, QTabWidget, QWidget

from explorer_app.window import theme
from explorer_app.window.dock import Dock

LAYOUT_VERSION = 2
"""Raised when docks are added or renamed, so that an old layout is not forced onto new docks."""

_LEFT = Qt.DockWidgetArea.LeftDockWidgetArea
_RIGHT = Qt.DockWidgetArea.RightDockWidgetArea
_BOTTOM = Qt.DockWidgetArea.BottomDockWidgetArea

_LOW_PX = 770
"""Below this height, docks that do not fit under each other share a place as tabs."""


class Workspace(QMainWindow):
    """Holds the docks; it is a window inside the window, so that menu and status bar keep the whole width."""

    def __init__(self, canvas: QWidget, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowFlags(Qt.WindowType.Widget)  # a QMainWindow makes itself a window whatever its parent
        self.setObjectName("workspace")
        # Not animated: that would begin an animation a dock each time a label somewhere gets another text.
        self.setDockOptions(QMainWindow.DockOption.AllowNestedDocks | QMainWindow.DockOption.AllowTabbedDocks)
        self.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        self.setDocumentMode(True)
        for corner, area in (
            (Qt.Corner.BottomLeftCorner, _LEFT),
            (Qt.Corner.BottomRightCorner, _RIGHT),
            (Qt.Corner.TopLeftCorner, _LEFT),
            (Qt.Corner.TopRightCorner, _RIGHT),
        ):
            self.setCorner(corner, area)
        self._canvas = canvas
        self.setCentralWidget(canvas)
        self._sides: dict[Qt.DockWidgetArea, list[Dock]] = {}
        self._behind: dict[Dock, Dock] = {}
        """Docks that wait behind a tab at first -> the one in front."""

    @property
    def docks(self) -> list[Dock]:
        """All docks, in the order of the View menu."""
        return [dock for side in self._sides.values() for dock in side]

    @property
    def toggles(self) -> list[QAction]:
        """What shows and hides each dock, in that order."""
        return [dock.toggleViewAction() for dock in self.docks]

    def set_docks(
        self,
        left: Sequence[Dock],
        right: Sequence[Dock],
        bottom: Sequence[Dock],
        behind: Mapping[Dock, Dock] | None = None,
    ) -> None:
        """Take the docks in; `reset` or `restore_text` lays them out once the window has its size.

        Those that wait behind a tab at first are in `behind` too, each with the dock in front of it.
        """
        self._sides = {_LEFT: list(left), _RIGHT: list(right), _BOTTOM: list(bottom)}
        self._behind = dict(behind or {})
        for area, side in self._sides.items():
            for dock in side:
                self.addDockWidget(area, dock, Qt.Orientation.Vertical)
        for number, dock in enumerate(self.docks, start=1):
            toggle = dock.toggleViewAction()
            toggle.setShortcut(QKeySequence(f"Ctrl+{number}"))
            toggle.setToolTip(f"Show or hide the {dock.windowTitle().lower()} panel (Ctrl+{number}).")

    def reset(self) -> None:
        """Put every dock where it was first, at a size that fits the window."""
        left, right, bottom = (
            [dock for dock in self._sides[area] if dock not in self._behind] for area in (_LEFT, _RIGHT, _BOTTOM)
        )
        behind = dict(self._behind)
        is_low = self.height() < theme.px(_LOW_PX)
        if is_low and len(left) >= 3:
            behind[left[2]] = left[1]
        if is_low and len(right) >= 2:
            behind[right[1]] = right[0]
        for area, side in self._sides.items():
            for dock in side:
                if dock.isFloating():
                    dock.setFloating(False)
                self.removeDockWidget(dock)
            for dock in side:
                if dock not in behind:
                    self.addDockWidget(area, dock, Qt.Orientation.Vertical)
                    dock.show()
        # Straight to their tabs: of a dock that had a place of its own first, Qt leaves a second row of tabs behind.
        for dock, front in behind.items():
            self.tabifyDockWidget(front, dock)
            dock.show()
            front.raise_()
        is_wide = self.width() >= theme.px(1400)
        widths = [theme.px(344 if is_wide else 316), theme.px(428 if is_wide else 348)]
        self.resizeDocks([left[0], right[0]], widths, Qt.Orientation.Horizontal)
        self._share_height(left[:2] if is_low else left, widths[0], grows=1)
        self._share_height(right[:1] if is_low else right, widths[1], grows=0)
        self.resizeDocks(bottom, [theme.px(112)] * len(bottom), Qt.Orientation.Vertical)

    def _share_height(self, docks: Sequence[Dock], width: int, grows: int) -> None:
        """Give each dock of a column the height that its panel asks for; one of them takes what is left."""
        wanted = [dock.wanted_height(width) for dock in docks]
        room = self.height() - theme.GAP * (len(docks) - 1)
        least = wanted[grows] if grows else theme.px(300)
        wanted[grows] = max(min(least, room // 3), room - sum(wanted) + wanted[grows])
        self.resizeDocks(list(docks), [max(1, height) for height in wanted], Qt.Orientation.Vertical)

    def pass_focus(self, step: int) -> None:
        """Bring the keyboard to the next panel, or with -1 to the one before; the canvas is among them.

        A panel may have a hundred controls, and Tab goes through all of them.
        """
        docks = [dock for dock in self.docks if dock.toggleViewAction().isChecked()]
        stops: list[QWidget] = [self._canvas, *docks]
        here = QApplication.focusWidget()
        place = next((number for number, stop in enumerate(stops) if here and stop.isAncestorOf(here)), 0)
        for way in range(1, len(stops) + 1):
            stop = stops[(place + step * way) % len(stops)]
            first = _first_by_tab(stop.widget()) or _first_by_tab(stop) if isinstance(stop, Dock) else stop
            if first is not None:
                stop.raise_()
                stop.activateWindow()
                first.setFocus(Qt.FocusReason.TabFocusReason)
                return

    def childEvent(self, event: QChildEvent) -> None:  # noqa: N802 - Qt's name
        """Name the tabs of docks that share a place, which Qt makes when it needs them."""
        super().childEvent(event)
        child = event.child()
        if event.type() == QEvent.Type.ChildPolished and isinstance(child, QTabBar):
            child.setAccessibleName("Panels that share this place")

    def state_text(self) -> str:
        """Return where the docks are, as text."""
        return bytes(self.saveState(LAYOUT_VERSION).toBase64().data()).decode("ascii")

    def restore_text(self, text: str) -> bool:
        """Put the docks where a text says; return whether it did."""
        state = QByteArray.fromBase64(text.encode("ascii", "ignore"))
        return not state.isEmpty() and self.restoreState(state, LAYOUT_VERSION)


def _first_by_tab(panel: QWidget) -> QWidget | None:
    """Return what Tab reaches first inside a panel."""
    widget = panel.nextInFocusChain()
    while widget is not None and widget is not panel:
        takes_tab = bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)
        if takes_tab and panel.isAncestorOf(widget) and widget.isVisible() and widget.isEnabled():
            return widget
        widget = widget.nextInFocusChain()
    return None
