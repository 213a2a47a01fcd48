"""One line about the kernels: compile progress or state at the left, memory use at the right."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QVBoxLayout, QWidget

import gpu_backend
from explorer_app.controller import Compiling
from explorer_app.rendering.frame_statistics import StepCost
from explorer_app.rendering.renderer_like import PROCESSOR_ID, MemoryLike
from explorer_app.window.controls.hint_label import HintLabel
from explorer_app.window.look import theme
from explorer_app.window.look.icons import icon
from explorer_app.window.performance.kernel_state import reasons, state_of, summaries
from gpu_backend import process_nbytes

_MEMORY_MS = 2000

_SOURCES = {
    "events": "Times come from events between the kernels, scaled to the time of a frame without them, gaps included.",
    "cupti": "Times come from CUPTI and are exact.",
    "cpu": "Times of the picture that was measured last; drafts, and pictures that are not measured, take less time.",
}


class _DeviceMemory:
    """GPU memory of this process as reported by the driver. Queried on a thread: starting NVML takes up to 0.1 s."""

    def __init__(self) -> None:
        self._nbytes: dict[str, int] = {}
        self._thread: threading.Thread | None = None

    def nbytes(self, device: str) -> int:
        """Return the last result in bytes (0 before the first one, and for the CPU), and start a new query."""
        if device != PROCESSOR_ID and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._ask, args=(device,), name="device memory", daemon=True)
            self._thread.start()
        return self._nbytes.get(device, 0)

    def _ask(self, device: str) -> None:
        self._nbytes[device] = gpu_backend.device_process_nbytes(device)  # imported late: it imports NumPy


class KernelLine(QWidget):
    """A line of constant height, so that nothing below it moves."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._steps: Sequence[StepCost] = ()
        self._source = "cpu"
        self._compiling: Compiling | None = None
        self._meanwhile = ""
        self.sign = QLabel(self)
        self.sign.setAccessibleName("A kernel fell back")
        self.state = HintLabel("", self)
        self.state.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.state.setAccessibleName("Kernels")
        self.memory = HintLabel("", self)
        self.memory.setAccessibleName("Memory")
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName("Compiling kernels")
        policy = self.bar.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.bar.setSizePolicy(policy)
        for label in (self.state, self.memory):
            label.setFixedHeight(theme.px(20))
        line = QHBoxLayout()
        line.setSpacing(theme.px(4))
        line.addWidget(self.sign)
        line.addWidget(self.state, 5)
        line.addWidget(self.memory, 4)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(line)
        layout.addWidget(self.bar)
        self._memory: MemoryLike | None = None
        self._device = PROCESSOR_ID
        self._device_memory = _DeviceMemory()
        self._clock = QTimer(self)
        self._clock.setInterval(_MEMORY_MS)
        self._clock.timeout.connect(self._update_memory)
        self._update_memory()
        self._update_state()

    def show_compiling(self, compiling: Compiling | None, meanwhile: str = "the CPU") -> None:
        """Show how many kernels are compiled or checked, and the device that renders meanwhile; None hides it."""
        self._compiling = compiling
        self._meanwhile = meanwhile
        self._update_state()

    def show_steps(self, steps: Sequence[StepCost], source: str) -> None:
        """Show the state of the kernels; the tooltip has the reasons and the source of the timings."""
        self._steps, self._source = steps, source
        self._update_state()

    def show_memory(self, memory: MemoryLike | None, device: str = PROCESSOR_ID) -> None:
        """Show the renderer's memory on a device, and the whole process's memory there."""
        self._memory, self._device = memory, device
        self._update_memory()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Poll the process's memory while the line is visible."""
        super().showEvent(event)
        self._update_memory()
        self._clock.start()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802 - Qt's name
        """Stop polling."""
        self._clock.stop()
        super().hideEvent(event)

    def _update_memory(self) -> None:
        memory = self._memory
        is_known = memory is not None and memory.total > 0
        self.memory.setVisible(is_known)  # otherwise the kernels get its width
        if memory is None or not is_known:
            self.memory.show_text("")
            self.memory.setToolTip("")
            return
        parts = [("weights", memory.weights), ("plans", memory.plans), ("pinned", memory.pinned)]
        there = " · ".join(f"{name} {nbytes / 1e6:,.0f}" for name, nbytes in parts if nbytes)
        total = f"{memory.total / 1e6:,.0f} MB"
        ram, on_device = process_nbytes(), self._device_memory.nbytes(self._device)
        tips = [f"Memory of the renderer, on its device: {total}"]
        tips += [f"{name}: {size / 1e6:,.1f} MB" for name, size in parts]
        if on_device:
            tips.insert(0, f"GPU memory of the whole process, driver and kernels included: {on_device / 1e6:,.1f} MB")
        if ram:
            tips.insert(0, f"RAM of the whole process, Python and libraries included: {ram / 1e6:,.1f} MB")
        held = " · ".join(
            f"{name} {nbytes / 1e6:,.0f} MB"
            for name, nbytes in (("RAM" if on_device else "process", ram), ("GPU", on_device))
            if nbytes
        )
        words = [f"memory: {there} MB", f"renderer {total}", total]
        if held:
            words = [f"memory: {held} · {there} MB", f"{held} · renderer {total}", held]
        if ram and on_device:
            words.append(f"GPU {on_device / 1e6:,.0f} MB")
        self.memory.show_text(*words, "")
        self.memory.setToolTip("\n".join(tips))

    def _update_state(self) -> None:
        compiling = self._compiling
        self.bar.setVisible(compiling is not None)
        has_fallen = compiling is None and any(state_of(step) == "fallback" for step in self._steps)
        self.sign.setVisible(has_fallen)
        role = "accent" if has_fallen else "dim"
        if self.state.property("role") != role:
            theme.set_role(self.state, role)
        if has_fallen and self.sign.pixmap().isNull():
            self.sign.setPixmap(icon("warning", "warn").pixmap(theme.px(14), theme.px(14)))
        if compiling is not None:
            self.bar.setRange(0, compiling.total)
            self.bar.setValue(compiling.done)
            count = f"{compiling.done} of {compiling.total}"
            short = f"{compiling.doing}: {count}"
            who = self._meanwhile
            self.state.show_text(
                f"{short}; the picture comes from {who}", short, f"{compiling.doing.split()[0]} {count}"
            )
            self.state.setToolTip(f"Kernels are compiled and checked once; {who} renders until then.")
        else:
            self.state.show_text(*summaries(self._steps))
            tip = "\n".join(filter(None, (reasons(self._steps), _SOURCES[self._source] if self._steps else "")))
            self.state.setToolTip(tip)
