"""The docks around the canvas: the layout of each workspace, and its fit to the window's size.

An unmodified layout follows the window's size by `layouts.first_layout`, with the docks that the user showed and
without those that the user hid. After the user moves a dock or a separator, the layout is custom: a small window only
shrinks its docks, and a larger window restores their sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from PySide6.QtCore import QByteArray, QChildEvent, QEvent, QPointF, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QAction, QCursor, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QMainWindow, QTabBar, QTabWidget, QWidget

from explorer_app.window.docks.dock import Dock, is_uncovered
from explorer_app.window.docks.focus_order import FocusOrder
from explorer_app.window.docks.layouts import HOMES, WORKSPACES, Area, Layout, WorkspaceName, first_layout, with_toggled
from explorer_app.window.docks.stored_layout import CustomLayout, StoredLayout
from explorer_app.window.look import fonts, theme

LAYOUT_VERSION = 5
"""Version of stored layouts; raised when docks are added or renamed, so that old layouts are ignored."""

_AREAS: dict[Area, Qt.DockWidgetArea] = {
    "left": Qt.DockWidgetArea.LeftDockWidgetArea,
    "right": Qt.DockWidgetArea.RightDockWidgetArea,
    "bottom": Qt.DockWidgetArea.BottomDockWidgetArea,
}
_SIDES = (_AREAS["left"], _AREAS["right"])


class Workspace(QMainWindow):
    """Holds the docks. A QMainWindow inside the window, so that top bar and status bar span the whole width.

    Signals
    -------
    switched(str)
        Another workspace is shown.
    panels_shown(bool)
        All panels were hidden (False) or shown again (True).
    """

    switched = Signal(str)
    panels_shown = Signal(bool)

    def __init__(self, centre: QWidget, canvas: QWidget, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowFlags(Qt.WindowType.Widget)  # QMainWindow sets Qt.Window even with a parent
        self.setObjectName("workspace")
        # Not animated: each change of a label's text would start one animation per dock.
        self.setDockOptions(QMainWindow.DockOption.AllowNestedDocks | QMainWindow.DockOption.AllowTabbedDocks)
        self.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        self.setDocumentMode(True)
        for corner, area in (
            (Qt.Corner.BottomRightCorner, "right"),
            (Qt.Corner.TopLeftCorner, "left"),
            (Qt.Corner.TopRightCorner, "right"),
        ):
            self.setCorner(corner, _AREAS[area])  # type: ignore[index]
        self.setCentralWidget(centre)
        self._docks: dict[str, Dock] = {}
        self.focus_order = FocusOrder(self, canvas, lambda: self.docks)
        self._name: WorkspaceName = "explore"
        self._own: dict[WorkspaceName, CustomLayout] = {}
        """Custom layouts by workspace; other workspaces use the first layout."""
        self._fronts: dict[WorkspaceName, frozenset[str]] = {}
        """Docks in front of the first one of their tabs, by workspace with the first layout."""
        self._toggled: dict[WorkspaceName, dict[str, bool]] = {}
        """Which docks the user showed or hid in the first layout, by workspace."""
        self._arranged: Layout | None = None
        """The first layout in use, maybe in place of a custom one that does not fit; None while one is shown."""
        self._hidden: QByteArray | None = None
        """Saved state that restores the panels while all are hidden."""
        self._is_arranging = False
        self._pressed: list[QSize] = []
        """Sizes of the docks at the last mouse press."""
        self._fit_timer = QTimer(self, singleShot=True, interval=0)
        self._fit_timer.timeout.connect(self._fit)
        self._moved_timer = QTimer(self, singleShot=True, interval=0)
        self._moved_timer.timeout.connect(self._docks_moved)
        self._has_begun_panels = False
        self._panel_timer = QTimer(self, interval=0)
        self._panel_timer.timeout.connect(self._make_next_panel)

    def set_docks(self, docks: Mapping[str, Dock]) -> None:
        """Add the docks; `restore` lays them out once the window has its size."""
        self._docks = dict(docks)
        with self._arranging():
            for dock in docks.values():
                self.addDockWidget(_AREAS["left"], dock)
                dock.hide()
        for dock in self.docks:
            dock.shown_by_user.connect(partial(self.focus_order.enter, dock))
            dock.toggled_by_user.connect(partial(self._user_toggled, dock))
            dock.topLevelChanged.connect(self._user_arranged)
            dock.dockLocationChanged.connect(self._user_arranged)

    @property
    def docks(self) -> list[Dock]:
        """All docks, in the order of the View menu."""
        return list(self._docks.values())

    @property
    def toggles(self) -> list[QAction]:
        """The actions that show and hide the docks, in the same order."""
        return [dock.toggleViewAction() for dock in self.docks]

    @property
    def name(self) -> WorkspaceName:
        """The workspace that is shown."""
        return self._name

    # -- the panels in the docks ------------------------------------------------------------------------------------

    @Slot()
    def make_panels(self) -> None:
        """Create visible panels, one per event loop iteration; create the others when they become visible."""
        if not self._has_begun_panels:
            self._has_begun_panels = True
            self._panel_timer.start()

    def stop_making_panels(self) -> None:
        """Stop creating panels, because the window closes."""
        self._has_begun_panels = True
        self._panel_timer.stop()

    @Slot()
    def _make_next_panel(self) -> None:
        waiting = [dock for dock in self.docks if not dock.is_made]
        seen = next((dock for dock in waiting if dock.is_seen), None)
        if seen is not None:
            seen.make_panel()
            return
        self._panel_timer.stop()
        self.share_height()  # panels may need other heights than their placeholders
        for dock in waiting:
            dock.make_panel_when_seen()

    # -- which layout -----------------------------------------------------------------------------------------------

    def switch_to(self, name: WorkspaceName) -> None:
        """Show another workspace with its last layout."""
        if name == self._name:
            return
        self._note_fronts()
        self.set_panels_shown(True)
        self._keep()
        self._name = name
        self._show_layout()
        self.switched.emit(name)

    def reset(self) -> None:
        """Return this workspace to its first layout."""
        self._own.pop(self._name, None)
        self._fronts.pop(self._name, None)
        self._toggled.pop(self._name, None)
        self._hidden = None
        self._show_layout()
        self.panels_shown.emit(True)

    def restore(self, layouts: Mapping[str, str], name: str) -> None:
        """Restore layouts saved by `texts`, and show a workspace; an unreadable layout becomes the first layout."""
        stored = {each: StoredLayout.from_text(layouts.get(each, "")) for each in WORKSPACES}
        self._own = {each: layout.custom for each, layout in stored.items() if layout.custom is not None}
        self._fronts = {each: layout.fronts for each, layout in stored.items()}
        self._toggled = {each: dict(layout.toggled) for each, layout in stored.items()}
        self._name = next((each for each in WORKSPACES if each == name), "explore")
        self._show_layout()
        self.switched.emit(self._name)

    def texts(self) -> dict[str, str]:
        """Return workspace -> custom layout as text, of the first layout the tabs in front and the toggled docks.

        Workspaces with the first layout and its tabs are omitted.
        """
        self._note_fronts()
        self.set_panels_shown(True)
        self._keep()
        stored = {
            name: StoredLayout(self._own.get(name), self._fronts.get(name, frozenset()), self._toggled.get(name, {}))
            for name in WORKSPACES
        }
        return {name: text for name, layout in stored.items() if (text := layout.text)}

    def _note_fronts(self) -> None:
        """Note which tabs of the first layout are in front; groups that are not to be seen keep theirs."""
        if self._arranged is None or self._name in self._own or not (self.isVisible() and self.are_panels_shown):
            return
        fronts = set(self._fronts.get(self._name, ()))
        for column in self._arranged.columns:
            for group in column.groups:
                front = next((key for key in group if self._has_a_place(self._docks[key])), None)
                if front is not None:
                    fronts = fronts.difference(group) | ({front} - {group[0]})
        self._fronts[self._name] = frozenset(fronts)

    def _keep(self) -> None:
        kept = self._own.get(self._name)
        if kept is not None and self._arranged is None:  # else the first layout stands in for it on a low screen
            kept.state = self.saveState(LAYOUT_VERSION)

    def _show_layout(self) -> None:
        self._end_drag()
        kept = self._own.get(self._name)
        if kept is not None:
            with self._arranging():
                if self.restoreState(kept.state, LAYOUT_VERSION):
                    self._arranged = None
                    self._fit_timer.start()
                    return
            del self._own[self._name]
        self._arrange(self._first())

    def _first(self) -> Layout:
        return with_toggled(self._untouched(), self._toggled.get(self._name, {}))

    def _untouched(self) -> Layout:
        """Return the first layout with the docks that belong to it."""
        factor = fonts.factor()
        left = max((dock.least_width() for dock in self.docks if HOMES[dock.key] == "left"), default=0)
        return first_layout(self._name, self.width() / factor, self.height() / factor, left / factor)

    # -- all panels -------------------------------------------------------------------------------------------------

    @property
    def are_panels_shown(self) -> bool:
        """Whether the docks are shown; False while all are hidden at once."""
        return self._hidden is None

    def set_panels_shown(self, shown: bool) -> None:
        """Hide all docks, or show the hidden ones again."""
        if shown == self.are_panels_shown:
            return
        self._end_drag()
        with self._arranging():
            if shown:
                state, self._hidden = self._hidden, None
                assert state is not None
                self.restoreState(state, LAYOUT_VERSION)
            else:
                self._hidden = self.saveState(LAYOUT_VERSION)
                for dock in self.docks:
                    dock.hide()
        self._fit_timer.start()
        self.panels_shown.emit(shown)

    # -- arranging --------------------------------------------------------------------------------------------------

    @contextmanager
    def _arranging(self) -> Iterator[None]:
        """Mark dock changes as made by the program, not by the user."""
        before, self._is_arranging = self._is_arranging, True
        try:
            yield
        finally:
            self._is_arranging = before
            if not before:
                self._share_titles()  # immediately, or the title shows twice for a moment
            self._moved_timer.start()

    def _end_drag(self) -> None:
        """Let go of a tab or a panel that is dragged before another layout: Qt would go on in one that it has deleted.

        A panel that is dragged by its header grabs the mouse.
        """
        grabber = QWidget.mouseGrabber()
        for widget in (*self._tab_bars(), *(dock for dock in self.docks if dock is grabber)):
            at, left = QPointF(widget.mapFromGlobal(QCursor.pos())), Qt.MouseButton.LeftButton
            up = QMouseEvent(
                QEvent.Type.MouseButtonRelease,
                at,
                widget.mapToGlobal(at),
                left,
                Qt.MouseButton.NoButton,
                Qt.KeyboardModifier.NoModifier,
            )
            QApplication.sendEvent(widget, up)

    def _tab_bars(self) -> list[QTabBar]:
        return self.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)

    def _arrange(self, layout: Layout) -> None:
        self._end_drag()
        self._arranged = layout
        with self._arranging():
            # A custom layout keeps its own corner: Qt saves corners with the places of docks.
            self.setCorner(Qt.Corner.BottomLeftCorner, _AREAS["bottom" if layout.has_wide_bottom else "left"])
            for dock in self.docks:
                if dock.isFloating():
                    dock.setFloating(False)
                self.removeDockWidget(dock)
            for column in layout.columns:
                for group in column.groups:
                    front = self._docks[group[0]]
                    self.addDockWidget(_AREAS[column.area], front, Qt.Orientation.Vertical)
                    front.show()
            # Tab them directly: a dock that first had its own place would leave a second tab bar behind.
            for column in layout.columns:
                for group in column.groups:
                    front = last = self._docks[group[0]]
                    for key in group[1:]:
                        self.tabifyDockWidget(last, self._docks[key])
                        last = self._docks[key]
                        last.show()
                    fronts = self._fronts.get(self._name, frozenset())
                    self._docks[next((key for key in group if key in fronts), group[0])].raise_()
            self._place_hidden(layout)
            self._resize_to(layout)

    def _place_hidden(self, layout: Layout) -> None:
        """Place the docks outside the layout as hidden tabs, so that they appear there when shown."""
        there = set(layout.keys)
        sides = [column for column in layout.columns if column.area != "bottom"]
        for key, dock in self._docks.items():
            if key in there:
                continue
            home = HOMES[key]
            column = None
            if home != "bottom" and sides:  # a narrow window has no room for a column of its own
                column = next((column for column in sides if column.area == home), sides[-1])
                home = column.area
            self.addDockWidget(_AREAS[home], dock, Qt.Orientation.Vertical)
            if column is not None:
                self.tabifyDockWidget(self._docks[column.groups[0][-1]], dock)
            dock.hide()

    def _resize_to(self, layout: Layout) -> None:
        sides = [column for column in layout.columns if column.area != "bottom"]
        widths = [theme.px(column.size) for column in sides]
        self.resizeDocks([self._docks[column.groups[0][0]] for column in sides], widths, Qt.Orientation.Horizontal)
        for column, width in zip(sides, widths, strict=True):
            self._share_height([group[0] for group in column.groups], width, column.grows)
        bottom = [column for column in layout.columns if column.area == "bottom"]
        if bottom:
            docks = [self._docks[column.groups[0][0]] for column in bottom]
            self.resizeDocks(docks, [theme.px(column.size) for column in bottom], Qt.Orientation.Vertical)

    def _share_height(self, keys: list[str], width: int, grows: str) -> None:
        """Give each dock of a column its panel's preferred height; the dock `grows` takes the remaining height."""
        docks = [self._docks[key] for key in keys]
        wanted = [dock.wanted_height(width) for dock in docks]
        room = self.height() - theme.GAP * (len(docks) - 1)
        place = keys.index(grows) if grows in keys else 0
        least = wanted[place] if place else theme.px(300)
        wanted[place] = max(min(least, room // 3), room - sum(wanted) + wanted[place])
        self.resizeDocks(docks, [max(1, height) for height in wanted], Qt.Orientation.Vertical)

    # -- resizes and changes by the user ------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Schedule one fit of the layout for a series of resize events."""
        super().resizeEvent(event)
        self._fit_timer.start()

    @Slot()
    def _fit(self) -> None:
        if not self.are_panels_shown:
            return
        if self._arranged is not None:
            layout = self._first()
            if layout.structure != self._arranged.structure:
                self._note_fronts()
                self._arrange(layout)
            elif layout != self._arranged or self._is_off(layout):
                self._arranged = layout
                with self._arranging():
                    self._resize_to(layout)
        elif theme.is_on_low_screen(self) and self.minimumSizeHint().height() > self.height():
            self._arrange(self._first())  # docks of a larger screen would lie over each other
        elif (kept := self._own.get(self._name)) is not None and kept.sizes:
            with self._arranging():
                self._give_back(kept.sizes)

    def share_height(self) -> None:
        """Redistribute the height of each column after a dock's preferred height changed; custom layouts keep theirs.

        The content of the docks is laid out first. Until then Qt has no minimum heights and no heights for wrapped
        text, and would later take the space from another dock.
        """
        if self._arranged is not None and self.are_panels_shown:
            for _ in range(2):  # widths, then the heights that follow from them
                for dock in self.docks:
                    dock.lay_out()
            with self._arranging():
                self._resize_to(self._arranged)

    def _is_off(self, layout: Layout) -> bool:
        """Return whether a column's width differs from the layout's."""
        return any(
            column.area != "bottom" and self._docks[column.groups[0][0]].width() != theme.px(column.size)
            for column in layout.columns
        )

    def _give_back(self, sizes: Mapping[str, QSize]) -> None:
        """Restore the docks' custom sizes as far as the window allows."""
        there = [(key, dock) for key, dock in self._docks.items() if key in sizes and self._has_a_place(dock)]
        for is_side, orientation in ((True, Qt.Orientation.Horizontal), (False, Qt.Orientation.Vertical)):
            chosen = [(dock, sizes[key]) for key, dock in there if not is_side or self.dockWidgetArea(dock) in _SIDES]
            if chosen:
                lengths = [size.width() if is_side else size.height() for _, size in chosen]
                self.resizeDocks([dock for dock, _ in chosen], lengths, orientation)

    def _has_a_place(self, dock: Dock) -> bool:
        return not dock.isHidden() and not dock.isFloating() and is_uncovered(dock)

    def _user_toggled(self, dock: Dock) -> None:
        """Remember that the first layout is to have a dock, or not; a custom layout is stored as it is now."""
        if self._arranged is None:
            self._user_arranged()
            return
        self._moved_timer.start()
        if self._is_arranging or not self.isVisible():
            return
        usual, toggled = set(self._untouched().keys), self._toggled.setdefault(self._name, {})
        if not self.are_panels_shown:  # all others stay hidden
            self._hidden = None
            toggled.update(dict.fromkeys(self._docks, False))
            self.panels_shown.emit(True)
        else:
            self._note_fronts()
        if dock.isHidden() == (dock.key in usual):
            toggled[dock.key] = not dock.isHidden()
        else:
            toggled.pop(dock.key, None)
        layout = self._first()
        for column in layout.columns:
            for group in column.groups:
                if dock.key in group:
                    others = self._fronts.get(self._name, frozenset()).difference(group)
                    self._fronts[self._name] = others | ({dock.key} - {group[0]})
        if self._is_as_placed(dock, layout):
            self._arranged = layout
            with self._arranging():
                self._resize_to(layout)
        else:
            self._arrange(layout)
            self.focus_order.enter(dock)

    def _is_as_placed(self, dock: Dock, layout: Layout) -> bool:
        """Return whether a dock that was just shown came where a layout has it, or is hidden."""
        if dock.isHidden():
            return True
        beside = {each.key for each in self.tabifiedDockWidgets(dock) if isinstance(each, Dock) and not each.isHidden()}
        return any(
            self.dockWidgetArea(dock) is _AREAS[column.area] and {dock.key, *beside} == set(group)
            for column in layout.columns
            if column.area != "bottom" or len(column.groups) == 1  # which are in the order in which they were shown
            for group in column.groups
        )

    @Slot()
    def _user_arranged(self) -> None:
        """Store the current layout as custom."""
        self._moved_timer.start()
        if self._is_arranging or not self.isVisible():
            return
        if not self.are_panels_shown:
            self._hidden = None
            self.panels_shown.emit(True)
        self._arranged = None
        self._own.setdefault(self._name, CustomLayout(QByteArray()))
        QTimer.singleShot(0, self, self._note_sizes)

    @Slot()
    def _note_sizes(self) -> None:
        kept = self._own.get(self._name)
        if kept is not None and self.isVisible():
            kept.state = self.saveState(LAYOUT_VERSION)
            kept.sizes.update({key: dock.size() for key, dock in self._docks.items() if self._has_a_place(dock)})

    def event(self, event: QEvent) -> bool:
        """Detect that the user moved a separator between docks."""
        kind = event.type()  # read once: each mouse move arrives here
        if kind is QEvent.Type.MouseButtonPress:
            self._pressed = self._lengths()
        elif kind is QEvent.Type.MouseButtonRelease:
            QTimer.singleShot(0, self, self._line_released)  # Qt resizes the docks from its own timer
        return super().event(event)

    @Slot()
    def _line_released(self) -> None:
        if self._lengths() != self._pressed:
            self._user_arranged()

    def _lengths(self) -> list[QSize]:
        return [dock.size() for dock in self.docks]

    @Slot()
    def _docks_moved(self) -> None:
        """Hide the titles of tabbed docks, and make sure that their tab bars are visible."""
        self._share_titles()
        for bar in self._tab_bars():
            if bar.count() > 1 and bar.isHidden():
                bar.show()  # Qt omits this if the layout changes again before it is applied

    def _share_titles(self) -> None:
        for dock in self.docks:
            dock.set_shares_place(not dock.isFloating() and bool(self.tabifiedDockWidgets(dock)))

    def childEvent(self, event: QChildEvent) -> None:  # noqa: N802 - Qt's name
        """Set up the tab bars that Qt creates for tabbed docks."""
        super().childEvent(event)
        if event.type() != QEvent.Type.ChildPolished:
            return  # reading the child of each event would wrap every internal Qt object
        child = event.child()
        if isinstance(child, QTabBar):
            child.setAccessibleName("Tabbed panels")
            child.setChangeCurrentOnDrag(True)  # a kept picture can be dragged to a panel behind the library
            child.setAcceptDrops(True)
            child.setElideMode(Qt.TextElideMode.ElideNone)  # in a narrow column tabs are scrolled, and stay readable
