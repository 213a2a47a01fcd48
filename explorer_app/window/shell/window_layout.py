"""What the main window fills: its geometry, its docks, or the whole screen with the picture alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMainWindow, QWidget

from explorer_app.settings import Settings
from explorer_app.window.controls.screen_fit import FRAME
from explorer_app.window.look import theme
from explorer_app.window.shell.picture_area import PictureArea

_FIRST_SIZE = (1600, 980)


class WindowLayout:
    """Stores and restores the layout of a window.

    Parameters
    ----------
    bars
        Hidden while the picture is alone.
    actions
        By key; "picture-alone" and "panels" show the state.
    """

    def __init__(
        self,
        window: QMainWindow,
        area: PictureArea,
        bars: Sequence[QWidget],
        settings: Settings,
        actions: Mapping[str, QAction],
    ) -> None:
        self._window = window
        self._area = area
        self._bars = bars
        self._settings = settings
        self._actions = actions
        self._had_panels = True
        self._is_restored = False
        self.is_picture_alone = False

    def restore_geometry(self) -> None:
        """Give the window its stored geometry; on the first start, a comfortable size."""
        geometry = QByteArray.fromBase64(self._settings.values.window_geometry.encode("ascii", "ignore"))
        if geometry.isEmpty() or not self._window.restoreGeometry(geometry):
            free = self._window.screen().availableGeometry()
            width, height = (theme.px(size) for size in _FIRST_SIZE)
            self._window.resize(min(width, free.width() - FRAME[0]), min(height, free.height() - FRAME[1]))

    def restore_docks(self) -> None:
        """Give the docks their stored places; the window has been shown."""
        values = self._settings.values
        self._area.workspace.restore(values.layouts, values.workspace)
        self._is_restored = True

    def set_picture_alone(self, on: bool) -> None:
        """Fill the screen with the canvas, or restore the window."""
        if on == self.is_picture_alone:
            return
        self.is_picture_alone = on
        self._actions["picture-alone"].setChecked(on)
        for bar in self._bars:
            bar.setVisible(not on)
        self._area.set_picture_alone(on)
        workspace, state = self._area.workspace, self._window.windowState()
        if on:
            self._had_panels = workspace.are_panels_shown
            workspace.set_panels_shown(False)
            self._window.setWindowState(state | Qt.WindowState.WindowFullScreen)
        else:
            self._window.setWindowState(state & ~Qt.WindowState.WindowFullScreen)
            workspace.set_panels_shown(self._had_panels)
        self._area.canvas.setFocus()

    def remember(self) -> None:
        """Put geometry and docks among the preferences, unless panels are hidden at present.

        A start that failed has not shown the stored ones, which stay then.
        """
        if self._is_restored and not self.is_picture_alone and self._actions["panels"].isChecked():
            self._settings.change(
                window_geometry=bytes(self._window.saveGeometry().toBase64().data()).decode("ascii"),
                workspace=self._area.workspace.name,
                layouts=self._area.workspace.texts(),
            )
