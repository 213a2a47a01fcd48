"""The top bar: menus at the left, workspaces in the middle, model, device and speed at the right."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QLabel, QMenu, QMenuBar, QSizePolicy, QToolButton, QWidget

from explorer_app.controller import DeviceState
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.docks.header_tab import HeaderTab
from explorer_app.window.look import theme
from explorer_app.window.model import device_text
from explorer_app.window.performance.figure import milliseconds
from gpu_backend import printable

_WIDEST_NAME = 260
_NARROWEST_NAME = 84
_COMFORTABLE_NAME = 130
"""The figures are hidden when names would be narrower than this, in px."""
_HEIGHT = 34
_SPACE = 12


class TopBar(QWidget):
    """One row. In a narrow window, names are elided first; then the figures and the device are hidden."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("top-bar")
        self.menu_bar = QMenuBar(self)
        self.tabs: list[HeaderTab] = []
        self._model_name = ""
        self._device_name = ""
        self.model_button = self._chip()
        self.device_button = self._chip()
        self.fps = QLabel(self)
        self.fps.setAccessibleName("Frames per second")
        self.fps.setToolTip("Frames per second during the last movement.")
        self.time = QLabel(self)
        self.time.setAccessibleName("Frame time")
        self.time.setToolTip("Time of the newest frame in milliseconds.")
        theme.set_role(self.time, "dim")
        metrics = self.fontMetrics()
        for label, widest in ((self.fps, "0000 fps"), (self.time, "00.00 ms")):
            label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            label.setFixedWidth(metrics.horizontalAdvance(widest))
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.show_model("", "")
        self.show_devices(DeviceState())
        self.show_speed(0.0, 0.0)

    def _chip(self) -> QToolButton:
        chip = QToolButton(self)
        chip.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        chip.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        theme.set_role(chip, "chip")
        return chip

    def set_menus(self, models: QMenu, devices: QMenu) -> None:
        """Set the menus of the model and device buttons."""
        self.model_button.setMenu(models)
        self.device_button.setMenu(devices)

    def set_workspaces(self, actions: Sequence[QAction]) -> None:
        """Show a tab for each workspace; its action is checked while the workspace is shown."""
        for action in actions:
            tab = HeaderTab(action.iconText(), True, self)
            tab.setToolTip(action.toolTip())
            tab.clicked.connect(action.trigger)
            action.toggled.connect(tab.setChecked)
            tab.setChecked(action.isChecked())
            self.tabs.append(tab)
        self._place()

    def show_model(self, name: str, path: str) -> None:
        """Show the open model; a long name is elided in the middle, and the tooltip has the full name."""
        self._model_name = name = printable(name)
        self.model_button.setAccessibleName(f"Model: {name or 'none'}")
        self.model_button.setToolTip(plain_tip(f"{name}\n{printable(path)}") if name else "Open a model (Ctrl+O).")
        self._place()

    def show_devices(self, state: DeviceState) -> None:
        """Show the rendering device; the tooltip gives the reason for its choice."""
        self._device_name = device_text.device_text(state) if state.device is not None else ""
        self.device_button.setAccessibleName(f"Device: {device_text.device_text(state) or 'none'}")
        self.device_button.setToolTip(state.reason)
        self._place()

    def show_speed(self, fps: float, newest_ms: float) -> None:
        """Show frames per second and latency in ms; dashes before the first frame."""
        self.fps.setText(f"{fps:.0f} fps" if fps else "– fps")
        role = "accent" if fps else "dim"
        if self.fps.property("role") != role:
            theme.set_role(self.fps, role)
        self.time.setText(f"{milliseconds(newest_ms)} ms" if newest_ms else "– ms")

    # -- placing ----------------------------------------------------------------------------------------------------

    def _place(self) -> None:
        """Lay out the row: tabs centred if they fit there, otherwise between the menus and the chips."""
        height, space = self.height(), theme.px(_SPACE)
        menus = self.menu_bar.sizeHint().width()
        tabs = sum(tab.sizeHint().width() + space for tab in self.tabs)
        right_end = self.width() - space
        room = right_end - space - tabs
        least = 2 * theme.px(_NARROWEST_NAME) + space
        comfortable = 2 * theme.px(_COMFORTABLE_NAME) + space
        labels = [self.fps, self.time]
        while labels and room - menus < comfortable + sum(label.width() + space for label in labels):
            labels.pop()
        chips = [self.model_button, self.device_button] if self._device_name else [self.model_button]
        if len(chips) == 2 and room - menus < least:
            chips.pop()
        for label in (self.fps, self.time):
            label.setVisible(label in labels)
        self.device_button.setVisible(self.device_button in chips)
        free = max(theme.px(_NARROWEST_NAME), room - menus - sum(label.width() + space for label in labels))
        each = (free - space * (len(chips) - 1)) // len(chips)
        names = [(chip, self._model_name or "No model") for chip in chips[:1]]
        names += [(chip, self._device_name) for chip in chips[1:]]
        wanted = [self._name_width(chip, name) for chip, name in names]
        spare = sum(max(0, each - width) for width in wanted)
        x = right_end
        for label in reversed(labels):
            x -= label.width()
            label.setGeometry(x, 0, label.width(), height)
            x -= space
        for (chip, name), width in zip(reversed(names), reversed(wanted), strict=True):
            width = min(width, each + spare)
            self._write(chip, name, width)
            x -= width
            chip.setGeometry(x, (height - chip.sizeHint().height()) // 2, width, chip.sizeHint().height())
            x -= space
        self.menu_bar.setGeometry(0, (height - self.menu_bar.sizeHint().height()) // 2, min(menus, x), height)
        left = (self.width() - tabs + space) // 2
        left = max(self.menu_bar.geometry().right() + space, min(left, x - tabs + space))
        for tab in self.tabs:
            tab.setGeometry(QRect(left, 0, tab.sizeHint().width(), height))
            left += tab.width() + space

    def _name_width(self, chip: QToolButton, name: str) -> int:
        width = self.fontMetrics().horizontalAdvance(f"{name} ▾") + theme.px(24)
        return min(width, theme.px(_WIDEST_NAME))

    def _write(self, chip: QToolButton, name: str, width: int) -> None:
        metrics = self.fontMetrics()
        room = width - metrics.horizontalAdvance(" ▾") - theme.px(20)
        text = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, max(room, theme.px(20)))
        chip.setText(f"{text} ▾".replace("&", "&&"))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Lay out the row for the new size."""
        super().resizeEvent(event)
        self._place()

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return a height with some padding around the menus."""
        return QSize(theme.px(640), max(theme.px(_HEIGHT), self.menu_bar.sizeHint().height()))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the smallest width that shows menus, tabs and the model."""
        return QSize(theme.px(520), self.sizeHint().height())
