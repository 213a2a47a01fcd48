"""Which screens show the picture alone, and the menu that chooses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from PySide6.QtCore import QElapsedTimer, QObject, Signal, Slot
from PySide6.QtGui import QAction, QActionGroup, QGuiApplication, QScreen
from PySide6.QtWidgets import QMenu, QWidget

from explorer_app.controller import Preview
from explorer_app.inputs.ndi_output import NdiOutput, has_ndi
from explorer_app.messages import MessageLog
from explorer_app.settings import Settings
from explorer_app.window.controls.menu_text import menu_text
from explorer_app.window.output.output_window import Borders, OutputWindow, Scaling

_NDI_NAME = "Latent Loom"

_SETTLE_MS = 1000
"""Within this time an output gets the focus from the window manager, later from a person."""

_SCALINGS: tuple[tuple[Scaling, str, str], ...] = (
    ("smooth", "Smooth scaling", "Enlarge the picture to the height of the screen."),
    ("whole", "Whole pixels", "Enlarge each pixel of the picture by a whole factor, without smoothing."),
)
_BORDERS: tuple[tuple[Borders, str, str], ...] = (
    ("black", "Black borders", "Leave the rest of the screen black."),
    ("blurred", "Blurred borders", "Fill the rest of the screen with the blurred picture."),
)


class Outputs(QObject):
    """Opens and closes output windows.

    Parameters
    ----------
    window
        The main window: "another screen" is one that it is not on.
    screens
        Returns the screens of the system.
    """

    changed = Signal()
    """`is_open`."""

    def __init__(
        self,
        window: QWidget,
        preview: Preview,
        settings: Settings,
        messages: MessageLog,
        screens: Callable[[], Sequence[QScreen]] = QGuiApplication.screens,
    ) -> None:
        super().__init__(window)
        self._window = window
        self._preview = preview
        self._settings = settings
        self._messages = messages
        self._screens = screens
        self._make_ndi: Callable[[str], NdiOutput] | None = NdiOutput if has_ndi() else None
        self._ndi: NdiOutput | None = None
        self.windows: dict[str, OutputWindow] = {}
        """Name of a screen -> its output."""
        self.actions: tuple[QAction, ...] = ()
        """Actions of the main window whose shortcuts an output takes, too: it may be the only window in sight."""
        app = cast("QGuiApplication", QGuiApplication.instance())
        app.screenRemoved.connect(self._screen_removed)

    @property
    def is_open(self) -> bool:
        """Whether a screen shows the picture alone."""
        return bool(self.windows)

    def toggle(self, on: bool) -> None:
        """Show the picture on another screen than the main window's, or on the only one; or close every output."""
        if not on:
            self.close()
            return
        own = self._window.screen().name()
        screens = self._screens()
        self.set_on(next((screen for screen in screens if screen.name() != own), screens[0]), True)

    def set_on(self, screen: QScreen, on: bool) -> None:
        """Show the picture on a screen, or close it there."""
        name = screen.name()
        there = self.windows.get(name)
        if there is not None and not on:
            there.close()
        elif there is None and on:
            output = OutputWindow(self._preview, scaling=self.scaling, borders=self.borders)
            self.windows[name] = output
            output.addActions(self.actions)
            output.closed.connect(lambda: self._closed(name))
            covers = name == self._window.screen().name()
            if self._window.isActiveWindow() and not covers:
                opened = QElapsedTimer()
                opened.start()
                output.took_focus.connect(lambda: self._take_focus_back(opened))
            output.open_on(screen)
            if covers:  # Escape must reach it
                output.activateWindow()
            self.changed.emit()

    def _take_focus_back(self, opened: QElapsedTimer) -> None:
        """Let keys go to the main window again, after a window manager has given a new output the focus."""
        if not opened.hasExpired(_SETTLE_MS):
            self._window.activateWindow()

    def set_ndi(self, on: bool) -> None:
        """Send every frame as an NDI source, or no longer."""
        if self._ndi is not None:
            self._preview.frame_changed.disconnect(self._send_frame)
            self._ndi.close()
            self._ndi = None
        if on and self._make_ndi is not None:
            self._ndi = self._make_ndi(_NDI_NAME)
            self._preview.frame_changed.connect(self._send_frame)
            self._send_frame()

    def close(self) -> None:
        """Close every output. May be called twice."""
        self.set_ndi(False)
        for output in list(self.windows.values()):
            output.close()

    # -- looks ------------------------------------------------------------------------------------------------------

    @property
    def scaling(self) -> Scaling:
        """How the picture is enlarged."""
        return "whole" if self._settings.choice("output.scaling") == "whole" else "smooth"

    @property
    def borders(self) -> Borders:
        """What surrounds the picture."""
        return "blurred" if self._settings.choice("output.borders") == "blurred" else "black"

    def choose(self, kind: str, value: str) -> None:
        """Set "scaling" or "borders" of every output, and remember it."""
        self._settings.choose(f"output.{kind}", value)
        for output in self.windows.values():
            output.set_look(self.scaling, self.borders)

    # -- the menu ---------------------------------------------------------------------------------------------------

    def make_menu(self, parent: QWidget) -> QMenu:
        """Return the menu of screens and looks; it is filled before each opening."""
        menu = QMenu("&Output", parent)
        menu.setToolTipsVisible(True)
        groups = {kind: QActionGroup(menu) for kind in ("scaling", "borders")}
        menu.aboutToShow.connect(lambda: self._fill(menu, groups))
        self._fill(menu, groups)  # a menu without entries cannot be opened on some systems
        return menu

    def _fill(self, menu: QMenu, groups: Mapping[str, QActionGroup]) -> None:
        menu.clear()
        for number, screen in enumerate(self._screens(), 1):
            name, size = screen.name(), screen.geometry().size() * screen.devicePixelRatio()
            text = f"Output on screen &{number}: {menu_text(name)}, {size.width()} × {size.height()}"
            tip = "Show the picture alone on this screen; Escape there closes it."
            action = _checkable(menu, text, tip, name in self.windows)
            action.triggered.connect(lambda on, name=name: self._set_on_named(name, on))
        if self._make_ndi is not None:
            menu.addSeparator()
            tip = "Send the picture over the network as an NDI source; other programs find it by this name."
            action = _checkable(menu, f"NDI source “{_NDI_NAME}”", tip, self._ndi is not None)
            action.triggered.connect(self.set_ndi)
        for kind, chosen, choices in (("scaling", self.scaling, _SCALINGS), ("borders", self.borders, _BORDERS)):
            menu.addSeparator()
            for value, text, tip in choices:
                action = _checkable(menu, text, tip, value == chosen)
                groups[kind].addAction(action)
                action.triggered.connect(lambda _on, kind=kind, value=value: self.choose(kind, value))

    # -- inside -----------------------------------------------------------------------------------------------------

    def _set_on_named(self, name: str, on: bool) -> None:
        """Show the picture on a screen, or close it there; nothing if the screen went away while the menu was open."""
        for screen in self._screens():
            if screen.name() == name:
                self.set_on(screen, on)

    @Slot()
    def _send_frame(self) -> None:
        frame = self._preview.frame
        if self._ndi is not None and frame is not None:
            self._ndi.show(frame.pixels)

    def _closed(self, name: str) -> None:
        self.windows.pop(name, None)
        self.changed.emit()

    @Slot(QScreen)
    def _screen_removed(self, screen: QScreen) -> None:
        output = self.windows.get(screen.name())
        if output is not None:
            output.close()
            self._messages.warning(f"The screen {screen.name()} was disconnected, so its output was closed.")


def _checkable(menu: QMenu, text: str, tip: str, is_on: bool) -> QAction:
    action = menu.addAction(text)
    action.setToolTip(tip)
    action.setCheckable(True)
    action.setChecked(is_on)
    return action
