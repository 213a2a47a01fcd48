"""The ladder of optimisations from the window: progress and results of the run on the render thread."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from explorer_app.controller.engine import Engine
from explorer_app.messages import MessageLog
from explorer_app.rendering.render_events import LadderAdvanced, LadderEnded, LadderFound
from explorer_app.rendering.render_thread import RenderThread
from gpu_backend import dataclass

if TYPE_CHECKING:
    from gpu_backend import LadderShare, RungResult


@dataclass(frozen=True, slots=True)
class LadderState:
    """State of a ladder.

    Attributes
    ----------
    is_running
        Whether one is being measured.
    is_stopping
        Whether it ends after the step under way.
    progress
        The rung that is compiled or measured; None before the first step.
    found
        Results of the ladder under way, or of the last one, in the order of the rungs.
    device, model
        Names of the device and the model that are measured; empty if none was.
    model_id
        Of that model.
    """

    is_running: bool = False
    is_stopping: bool = False
    progress: LadderShare | None = None
    found: tuple[RungResult, ...] = ()
    device: str = ""
    model: str = ""
    model_id: str = ""


class Ladder(QObject):
    """Starts and stops a ladder of the open model on the device that renders. Another model or device ends it."""

    changed = Signal()
    """`state`."""

    def __init__(
        self, renders: RenderThread, engine: Engine, messages: MessageLog, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._renders = renders
        self._engine = engine
        self._messages = messages
        self.state = LadderState()
        engine.model_changed.connect(self._check_subject)
        engine.devices.changed.connect(self._check_subject)

    @Slot()
    def start(self) -> None:
        """Measure. Does nothing while a ladder is measured, or without a model."""
        device, facts = self._engine.devices.state.device, self._engine.model.facts
        if not self.state.is_running and device is not None and facts is not None:
            self._show(LadderState(is_running=True, device=device.name, model=facts.name, model_id=facts.model_id))
            self._renders.measure_ladder()

    @Slot()
    def stop(self) -> None:
        """End the run; what was measured stays."""
        if self.state.is_running and not self.state.is_stopping:
            self._show(replace(self.state, is_stopping=True))
            self._renders.stop_ladder()

    def take(self, event: LadderAdvanced | LadderFound | LadderEnded) -> None:
        """Show progress, a result, or the end."""
        match event:
            case LadderAdvanced(state=progress):
                if self.state.is_running:
                    self._show(replace(self.state, progress=progress))
            case LadderFound(found=found):
                self._show(replace(self.state, found=(*self.state.found, found)))
            case LadderEnded(error=error):
                self._show(replace(self.state, is_running=False, is_stopping=False, progress=None))
                if error is not None:
                    self._messages.exception(error)

    @Slot()
    def _check_subject(self) -> None:
        """End a run if the rendering model or device has changed."""
        device, facts = self._engine.devices.state.device, self._engine.model.facts
        if device is None or facts is None or (device.name, facts.model_id) != (self.state.device, self.state.model_id):
            self.stop()

    def _show(self, state: LadderState) -> None:
        if state != self.state:
            self.state = state
            self.changed.emit()
