"""The way of the keyboard focus through the docks: F6 from panel to panel, Tab from control to control."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from explorer_app.window.docks.dock import Dock, is_uncovered


class FocusOrder:
    """Moves the keyboard focus.

    Parameters
    ----------
    workspace
        Holds the docks around the canvas.
    docks
        Returns the docks in the order of their keys.
    """

    def __init__(self, workspace: QWidget, canvas: QWidget, docks: Callable[[], list[Dock]]) -> None:
        self._workspace, self._canvas, self._docks = workspace, canvas, docks

    def pass_focus(self, step: int) -> None:
        """Move the keyboard focus to the next panel, or the previous one with -1; the canvas is included.

        A panel may have a hundred controls, and Tab visits each of them.
        """
        docks = [dock for dock in self._docks() if not dock.isHidden()]
        stops: list[QWidget] = [self._canvas, *docks]
        here = QApplication.focusWidget()
        place = next((number for number, stop in enumerate(stops) if here and stop.isAncestorOf(here)), 0)
        for way in range(1, len(stops) + 1):
            if self.enter(stops[(place + step * way) % len(stops)]):
                return

    def enter(self, stop: QWidget) -> bool:
        """Move the keyboard focus into a dock or to the canvas; return False if nothing there takes it."""
        first = next(iter(_ways_in(stop) if isinstance(stop, Dock) else (stop,)), None)
        if first is None:
            return False
        stop.raise_()
        stop.activateWindow()
        first.setFocus(Qt.FocusReason.TabFocusReason)
        return True

    def tab_stop_after(self, here: QWidget | None, step: int) -> QWidget | None:
        """Return the widget that Tab visits after another one, or before it with -1; None where Qt is to decide.

        Tab visits one dock after the other, column by column: its header, its hint, then its panel. Qt would follow the
        order of creation, in which panels and rows come after all headers, and would visit docks behind tabs too.
        """
        places: dict[QWidget, tuple[int, int, int]] = {}
        covered = {stop for stop in _tab_stops(self._canvas) if not is_uncovered(stop)}  # by a grid of variations
        for dock in self._docks():
            if dock.isFloating() or dock.isHidden():
                continue
            if not is_uncovered(dock):
                covered.update(dock.findChildren(QWidget))
                continue
            for rank, part in reversed(tuple(enumerate(dock.parts()))):
                place = dock.x(), dock.y(), rank
                places.update((widget, place) for widget in (part, *part.findChildren(QWidget)))
        stops = [stop for stop in _tab_stops(self._workspace.window()) if stop not in covered]
        if here is not None and not (here.isVisible() and here.isEnabled()):
            return self._stop_near(here, stops)
        if here is None or here not in stops:
            return None
        first = next((index for index, stop in enumerate(stops) if stop in places), 0)
        inside = sorted((stop for stop in stops if stop in places), key=places.__getitem__)
        after = [stop for stop in stops[first:] if stop not in places]
        ordered = [*stops[:first], *inside, *after]
        return ordered[(ordered.index(here) + step) % len(ordered)]

    def _stop_near(self, gone: QWidget, stops: Sequence[QWidget]) -> QWidget:
        """Return where the focus goes from a widget that was just hidden or disabled: in its dock, else to the canvas.

        Qt would take the next widget of the window, as a button of the top bar, which the space bar then presses.
        """
        dock = next((dock for dock in self._docks() if dock.isAncestorOf(gone)), None)
        around = None if dock is None else gone.parentWidget()
        while around is not None and around is not self._workspace:
            inside = {stop for stop in stops if around.isAncestorOf(stop)}
            if inside:
                stop = gone.nextInFocusChain()
                while stop is not None and stop not in inside:
                    stop = stop.nextInFocusChain()
                return stop or self._canvas
            around = around.parentWidget()
        return self._canvas


def _tab_stops(outer: QWidget) -> list[QWidget]:
    """Return the visible widgets in another one, or in a window, that Tab can visit, in Qt's order."""
    stops: list[QWidget] = []
    widget = outer.nextInFocusChain()
    while widget is not None and widget is not outer:
        takes_tab = bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus) and widget.focusProxy() is None
        is_there = widget.isVisible() and widget.isEnabled() and not _is_put_away(widget)
        if takes_tab and is_there and outer.isAncestorOf(widget):
            stops.append(widget)
        widget = widget.nextInFocusChain()
    return stops


def _ways_in(dock: Dock) -> list[QWidget]:
    """Return where the keyboard focus can enter a dock, best first: its panel, a hint above the panel, its header.

    A hint's only control dismisses it, so Enter or the space bar after F6 would remove the hint.
    """
    dock.make_panel()
    header, *above, body = dock.parts()
    inside = _tab_stops(body)
    inside.sort(key=lambda stop: any(hint.isAncestorOf(stop) for hint in above))
    return [*inside, *_tab_stops(header)]


def _is_put_away(widget: QWidget) -> bool:
    """Return whether a widget is outside of its parent, where Qt puts tab bars without a use; each layout leaves two.

    What is scrolled out of sight is inside its parent, which is larger than the area that shows it.
    """
    parent = widget.parentWidget()
    return parent is not None and not parent.rect().intersects(widget.geometry())


def scroll_to(widget: QWidget) -> None:
    """Let the scroll areas around a widget show it."""
    around = widget.parentWidget()
    while around is not None:
        if isinstance(around, QScrollArea):
            around.ensureWidgetVisible(widget)
        around = around.parentWidget()
