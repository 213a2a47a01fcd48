"""The right end of the menu bar: which model, on which device, how fast."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QSizePolicy, QToolButton, QWidget

from explorer_app.controller import DeviceState
from explorer_app.window import theme
from explorer_app.window.model import device_words
from explorer_app.window.performance.figure import milliseconds

_WIDEST_NAME = 260


class TopBar(QWidget):
    """Two chips and two figures of constant width."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("top-bar")
        self.model_button = QToolButton(self)
        self.model_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.model_button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.device_button = QToolButton(self)
        self.device_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.device_button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        for chip in (self.model_button, self.device_button):
            theme.set_role(chip, "chip")
        self.fps = QLabel(self)
        self.fps.setAccessibleName("Frames a second")
        self.fps.setToolTip("Frames a second while the picture last moved.")
        theme.set_role(self.fps, "accent")
        self.time = QLabel(self)
        self.time.setAccessibleName("Frame time")
        self.time.setToolTip("Time that the newest frame took, in milliseconds.")
        theme.set_role(self.time, "dim")
        metrics = self.fontMetrics()
        for label, widest in ((self.fps, "0000 fps"), (self.time, "00.00 ms")):
            label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            label.setFixedWidth(metrics.horizontalAdvance(widest))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, theme.px(4), theme.px(12), theme.px(4))
        layout.setSpacing(theme.px(14))
        layout.addWidget(self.model_button)
        layout.addWidget(self.device_button)
        layout.addWidget(self.fps)
        layout.addWidget(self.time)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.show_model("", "")
        self.show_devices(DeviceState())
        self.show_speed(0.0, 0.0)

    def set_menus(self, models: QMenu, devices: QMenu) -> None:
        """Give the chips their menus."""
        self.model_button.setMenu(models)
        self.device_button.setMenu(devices)

    def show_model(self, name: str, path: str) -> None:
        """Show which model is open; a long name is cut in its middle and whole in the tooltip."""
        text = self.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, theme.px(_WIDEST_NAME))
        self.model_button.setText(f"{text or 'No model'} ▾".replace("&", "&&"))
        self.model_button.setAccessibleName(f"Model: {name or 'none'}")
        self.model_button.setToolTip(f"{name}\n{path}" if name else "Open a model (Ctrl+O).")
        self.updateGeometry()

    def show_devices(self, state: DeviceState) -> None:
        """Show which device renders and, in the tooltip, why."""
        name = self.fontMetrics().elidedText(
            device_words.device_text(state), Qt.TextElideMode.ElideMiddle, theme.px(_WIDEST_NAME)
        )
        self.device_button.setVisible(state.device is not None)
        self.device_button.setText(f"{name} ▾".replace("&", "&&"))
        self.device_button.setAccessibleName(f"Device: {device_words.device_text(state) or 'none'}")
        self.device_button.setToolTip(state.reason)
        self.updateGeometry()

    def show_speed(self, fps: float, newest_ms: float) -> None:
        """Show the two figures; dashes while nothing has been rendered."""
        self.fps.setText(f"{fps:.0f} fps" if fps else "– fps")
        self.time.setText(f"{milliseconds(newest_ms)} ms" if newest_ms else "– ms")

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return a height that gives the menu bar some air."""
        return QSize(super().sizeHint().width(), max(theme.px(33), super().sizeHint().height()))
