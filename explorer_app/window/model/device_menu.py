"""The menu of rendering devices and precisions."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QVBoxLayout, QWidget, QWidgetAction

from explorer_app.controller import DeviceState
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.look import theme
from explorer_app.window.model import device_text

_SENTENCE_WIDTH = 300


class DeviceMenu(QMenu):
    """A menu that is rebuilt before each opening, so that it is always current.

    Signals
    -------
    device_chosen(str), precision_chosen(str)
        "auto", "cpu" or a GPU's id; "fp16", "fp8", "tf32", "bf16x3" or "fp32".
    again_requested()
        The entry that retries a failed GPU was chosen.

    Parameters
    ----------
    state
        Returns the available devices and the current choice.
    """

    device_chosen = Signal(str)
    precision_chosen = Signal(str)
    again_requested = Signal()

    def __init__(self, state: Callable[[], DeviceState], parent: QWidget | None = None) -> None:
        super().__init__("&Device", parent)
        self._state = state
        self._devices = QActionGroup(self)
        self._precisions = QActionGroup(self)
        self.setToolTipsVisible(True)
        self.aboutToShow.connect(self.fill)

    @Slot()
    def fill(self) -> None:
        """Rebuild the entries."""
        self.clear()
        state = self._state()
        self._add_devices(state)
        self.addSeparator()
        self._add_precisions(state)
        if state.problem:
            self.addSeparator()
            self._add_sentence(state.problem)
        if state.can_try_again:
            self.addAction("Try the GPU again", self.again_requested.emit)

    def _add_devices(self, state: DeviceState) -> None:
        group = self._devices
        chosen = device_text.chosen_key(state)
        entries = [("auto", "Automatic", "The first GPU that can render, otherwise the CPU.")]
        entries += [(gpu.id, device_text.gpu_text(gpu, state), gpu.reason) for gpu in state.gpus]
        for key, words, tip in entries:
            self._add_choice(group, words, tip, key == chosen).triggered.connect(
                lambda _=False, key=key: self.device_chosen.emit(key)
            )
        if not state.gpus:
            words = "No GPU can be used" if state.devices else "Looking for GPUs…"
            self._add_choice(group, words, state.why_no_gpu, False).setEnabled(False)
            if state.why_no_gpu:
                self._add_sentence(state.why_no_gpu)
        self._add_choice(
            group, "CPU", "The processor: slower, but always available.", chosen == "cpu"
        ).triggered.connect(lambda _=False: self.device_chosen.emit("cpu"))

    def _add_precisions(self, state: DeviceState) -> None:
        for key, words, tip in device_text.PRECISIONS:
            action = self._add_choice(self._precisions, words, tip, key == state.choice.precision)
            action.setEnabled(bool(state.gpus))
            action.triggered.connect(lambda _=False, key=key: self.precision_chosen.emit(key))

    def _add_choice(self, group: QActionGroup, words: str, tip: str, is_on: bool) -> QAction:
        action = self.addAction(words.replace("&", "&&"))
        action.setCheckable(True)
        action.setChecked(is_on)
        action.setToolTip(tip or words)
        group.addAction(action)
        return action

    def _add_sentence(self, text: str) -> None:
        """Add a wrapped sentence below an entry."""
        holder = QWidget(self)
        label = WrappedLabel(text, holder)
        theme.set_role(label, "sentence")
        width = theme.px(_SENTENCE_WIDTH)
        layout = QVBoxLayout(holder)
        layout.setContentsMargins(theme.px(24), 0, theme.px(10), theme.px(4))
        layout.addWidget(label)
        holder.setFixedSize(width, layout.heightForWidth(width))
        action = QWidgetAction(self)
        action.setDefaultWidget(holder)
        action.setEnabled(False)
        action.setText(text)
        self.addAction(action)
