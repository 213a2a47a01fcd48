"""The model panel: the open model, its device with the reason, and the safety of the file."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QPushButton, QToolButton, QVBoxLayout, QWidget

from explorer_app.controller import DeviceState
from explorer_app.window.controls.disclosure import Disclosure
from explorer_app.window.controls.elided_label import ElidedLabel
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.look import fonts, theme
from explorer_app.window.look.icons import icon
from explorer_app.window.model import device_text, model_text
from gpu_backend import ModelFacts, printable


class ModelPanel(QWidget):
    """Shows the open model and its device.

    Signals
    -------
    open_requested(), inspect_requested()
        The buttons that open a model or show all details were pressed.
    """

    open_requested = Signal()
    inspect_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("model")
        self.setAccessibleName("Model")
        self._model_id = ""
        self.name = self._line("strong", elided=True)
        self.about = self._line("dim")
        self.device = self._line("strong", elided=True)
        self.device_button = QPushButton("Change ▾", self)
        self.device_button.setToolTip("Choose the rendering device and the precision.")
        self.device_button.setAccessibleName("Change the device")
        theme.set_role(self.device_button, "flat")
        self.reason = self._line("dim")
        self.memory = self._line("dim")
        self.memory.setToolTip("Memory of the model and its frame buffers on the device.")
        self.safe = self._line("strong", elided=True)
        self.safe_mark = QLabel(self)
        self.safety = self._line("dim")
        self.imports = Disclosure(
            "", "Names that the file imports and parts that were ignored; none of its code was run.", self
        )
        self.hash = self._line("dim", elided=True)
        self.hash.setAccessibleName("SHA-256")
        self.copy_button = QToolButton(self)
        self.copy_button.setIcon(icon("copy", "dim"))
        self.copy_button.setToolTip("Copy the file's SHA-256 to the clipboard.")
        self.copy_button.setAccessibleName("Copy SHA-256")
        self.copy_button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.copy_button.clicked.connect(self._copy)
        theme.set_role(self.copy_button, "flat")
        self.warnings = self._line("warn")
        self.open_button = QPushButton("Open…", self)
        self.open_button.setToolTip("Open a model file: .pkl, .pt or .safetensors (Ctrl+O).")
        self.open_button.clicked.connect(self.open_requested)
        self.recent_button = QPushButton("Recent ▾", self)
        self.recent_button.setToolTip("Open a recent model (Ctrl+R).")
        self.inspect_button = QPushButton("Inspect", self)
        self.inspect_button.setToolTip("Show all details of this file (Ctrl+I).")
        self.inspect_button.clicked.connect(self.inspect_requested)

        safe = QHBoxLayout()
        safe.setSpacing(theme.px(6))
        safe.addWidget(self.safe_mark)
        safe.addWidget(self.safe, 1)
        digest = QHBoxLayout()
        digest.setSpacing(theme.px(4))
        digest.addWidget(self.hash, 1)
        digest.addWidget(self.copy_button)
        device = QHBoxLayout()
        device.setSpacing(theme.px(4))
        device.addWidget(self.device, 1)
        device.addWidget(self.device_button)
        buttons = QHBoxLayout()
        buttons.setSpacing(theme.px(8))
        for button in (self.open_button, self.recent_button, self.inspect_button):
            buttons.addWidget(button)
        buttons.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN, theme.px(8), theme.MARGIN, theme.MARGIN)
        layout.setSpacing(theme.px(2))
        gap = theme.px(8)
        layout.addWidget(self.name)
        layout.addWidget(self.about)
        layout.addWidget(self.warnings)
        layout.addSpacing(gap)
        layout.addLayout(device)
        layout.addWidget(self.reason)
        layout.addWidget(self.memory)
        layout.addSpacing(gap)
        layout.addLayout(safe)
        layout.addWidget(self.safety)
        layout.addWidget(self.imports)
        layout.addLayout(digest)
        layout.addSpacing(gap)
        layout.addLayout(buttons)
        layout.addStretch(1)
        self.show_model(None)
        self.show_devices(DeviceState())

    def set_recent_menu(self, menu: QMenu) -> None:
        """Set the menu of the "Recent" button."""
        self.recent_button.setMenu(menu)

    def set_device_menu(self, menu: QMenu) -> None:
        """Set the menu of the "Change" button."""
        self.device_button.setMenu(menu)

    def show_model(self, facts: ModelFacts | None, *, is_bundled: bool = False) -> None:
        """Show the open model; None shows that no model is open."""
        self._model_id = facts.model_id if facts is not None else ""
        shown = facts is not None
        for widget in (self.safe, self.safe_mark, self.safety, self.imports, self.hash, self.copy_button):
            widget.setVisible(shown)
        self.inspect_button.setEnabled(shown)
        self.warnings.setVisible(facts is not None and bool(facts.warnings))
        if facts is None:
            self.name.setText("No model is open")
            self.name.setToolTip("")
            self.about.setText("Open a StyleGAN file, or drop one on the window.")
            return
        self.name.setText(facts.name)
        self.name.setToolTip(plain_tip(printable(facts.path)))
        self.about.setText(model_text.summary(facts, is_bundled))
        self.warnings.setText("\n".join(facts.warnings))
        self.safe.setText("Opened safely")
        self.safety.setText("No code in the file was run.")
        self.imports.show_text(model_text.safety_summary(facts), model_text.safety_details(facts))
        self.hash.setText(f"SHA-256 {facts.model_id}")
        self.hash.setToolTip(facts.model_id)
        self._paint_marks()

    def show_devices(self, state: DeviceState) -> None:
        """Show the device with the reason for its choice, and the memory in use."""
        for widget in (self.device, self.device_button, self.reason):
            widget.setVisible(state.device is not None)
        self.memory.setVisible(state.memory is not None)
        self.device.setText(device_text.device_text(state))
        self.reason.setText(state.reason)
        theme.set_role(self.reason, "warn" if state.problem and state.compiling is None else "dim")
        if state.memory is not None:
            self.memory.setText(device_text.memory_text(state.memory))

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Redraw the marks after a theme change."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "safe_mark"):
            self._paint_marks()

    def _paint_marks(self) -> None:
        self.safe_mark.setPixmap(icon("safe", "good").pixmap(theme.px(16), theme.px(16)))

    def _line(self, role: str, *, elided: bool = False) -> QLabel:
        label = ElidedLabel("", self, mode=Qt.TextElideMode.ElideMiddle) if elided else WrappedLabel("", self)
        if role == "strong":
            label.setFont(fonts.body())
        theme.set_role(label, role)
        return label

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._model_id)
