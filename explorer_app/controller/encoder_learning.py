"""Teaches the open model to read pictures: trains an encoder on the render thread, and keeps it beside the model."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QObject, Signal

import gpu_backend
from explorer_app.controller.file_worker import FileWorker
from explorer_app.exporting.progress import ProgressMeter
from explorer_app.messages import MessageLog
from explorer_app.rendering.render_events import LearningAdvanced, LearningEnded
from explorer_app.rendering.tasks.learning import TrainingLike
from explorer_app.session.model_files import ModelFiles
from gpu_backend import dataclass

if TYPE_CHECKING:
    from gpu_backend import EncoderFile, EncoderReport, Model, ModelFacts

STEPS = 3000

_SAVED_EVERY_S = 60.0
"""A better encoder is written at most this often while the training runs."""

_log = logging.getLogger(__name__)


class LearningRenders(Protocol):
    """The part of `RenderThread` that trains."""

    @property
    def model(self) -> Model | None:
        """The model that is rendered."""
        ...

    def begin_learning(self, number: int, make: Callable[[], TrainingLike]) -> None:
        """Begin."""
        ...

    def stop_learning(self) -> None:
        """End with the best encoder so far."""
        ...

    def cancel_learning(self) -> None:
        """End without an encoder."""
        ...


@dataclass(frozen=True, slots=True)
class LearningState:
    """State of a training.

    Attributes
    ----------
    is_running, is_stopping
        Whether there is one, and whether it ends after the step under way.
    report
        None before the first step.
    seconds_left
        At the pace of the newest steps; None while unknown, as while the first pictures are rendered.
    kept
        The file of the encoder that was kept last, of this model; None if there is none.
    """

    is_running: bool = False
    is_stopping: bool = False
    report: EncoderReport | None = None
    seconds_left: float | None = None
    kept: Path | None = None


class EncoderLearning(QObject):
    """Starts and stops a training; it continues from the encoder that is there already.

    The best encoder so far is written now and then, when another model is opened, and at the end of the program.

    Parameters
    ----------
    files
        Where encoders are kept.
    make
        Makes a training of a model, on any thread; None for the backend's.
    clock
        Seconds from any origin.
    """

    changed = Signal()
    """`state`."""

    def __init__(
        self,
        renders: LearningRenders,
        worker: FileWorker,
        messages: MessageLog,
        files: ModelFiles,
        make: Callable[[Model], TrainingLike] | None = None,
        clock: Callable[[], float] = time.monotonic,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._renders = renders
        self._worker = worker
        self._messages = messages
        self._files = files
        self._make = make or partial(_training, files)
        self._clock = clock
        self._number = 0
        self._meter: ProgressMeter | None = None
        self._begun = 0
        """Steps of an earlier training that this one continues."""
        self._facts: ModelFacts | None = None
        self._found: EncoderFile | None = None
        """The best encoder so far of the training that runs."""
        self._saved: EncoderFile | None = None
        """The one that was written last."""
        self._saved_s = 0.0
        self.state = LearningState()

    def start(self) -> None:
        """Train an encoder of the open model. Does nothing while one is trained."""
        model = self._renders.model
        if self.state.is_running:
            return
        if model is None:
            self._messages.warning("Open a model first: an encoder belongs to a model.")
            return
        self._number += 1
        self._facts = model.facts
        self._meter = self._found = self._saved = None
        self._saved_s = self._clock()
        self._renders.begin_learning(self._number, partial(self._make, model))
        self._show(LearningState(is_running=True))

    def stop(self) -> None:
        """End the training, and keep the best encoder so far."""
        if self.state.is_running and not self.state.is_stopping:
            self._show(replace(self.state, is_stopping=True))
            self._renders.stop_learning()

    def forget(self) -> None:
        """Another model is open: end a training of the former one, and keep its best encoder."""
        self._renders.cancel_learning()
        facts, found = self._facts, self._found
        if self.state.is_running and facts is not None:
            why = "the training ended when another model was opened"
            if found is not None:
                said = f"The encoder of {facts.name} is kept: {why}."
                self._write(found, facts, lambda path: self._messages.info(said, str(path)))
            else:
                self._messages.info(f"No encoder of {facts.name} is kept: {why}, before its first evaluation.")
        self._facts = self._found = None
        self._show(LearningState())

    def close(self) -> None:
        """Write the best encoder so far: the program ends. May be called twice."""
        if self.state.is_running:
            self._save()

    def take_advanced(self, event: LearningAdvanced) -> None:
        """Show progress."""
        if event.number != self._number or not self.state.is_running:
            return
        report, self._found = event.report, event.found
        if self._found is not self._saved and self._clock() - self._saved_s >= _SAVED_EVERY_S:
            self._save()
        if self._meter is None:
            self._begun, self._meter = report.step, ProgressMeter(report.steps)
        progress = self._meter.update(report.step, self._begun, self._clock())
        self._show(replace(self.state, report=report, seconds_left=progress.seconds_left))

    def take_ended(self, event: LearningEnded) -> None:
        """Keep the encoder beside its model, or in the user's folder."""
        if event.number != self._number or not self.state.is_running:
            return
        self._show(replace(self.state, is_running=False, is_stopping=False, seconds_left=None))
        if event.error is not None:
            self._messages.exception(event.error)
        facts, found = self._facts, event.found
        if found is None or facts is None:
            if event.error is None:
                self._messages.info(
                    "The training was stopped before its first evaluation, so there is nothing to keep."
                )
            return
        self._write(found, facts, partial(self._take_kept, facts))

    def _write(self, found: EncoderFile, facts: ModelFacts, take: Callable[[Path], object]) -> None:
        name = gpu_backend.encoder_path(facts.path).name
        self._worker.fetch(partial(_write, found, self._files, facts), take, failed=f"{name} could not be written")

    def _save(self) -> None:
        """Write the best encoder so far, if there is one; the end of the training tells what the system refuses."""
        facts, found = self._facts, self._found
        if facts is not None and found is not None:
            self._saved, self._saved_s = found, self._clock()
            self._worker.submit(partial(_write_quietly, found, self._files, facts))

    def _take_kept(self, facts: ModelFacts, path: Path) -> None:
        self._messages.info("The encoder is trained: searches for photos now start nearer to the photo.", str(path))
        if facts is self._facts:
            self._show(replace(self.state, kept=path))

    def _show(self, state: LearningState) -> None:
        if state != self.state:
            self.state = state
            self.changed.emit()


def _training(files: ModelFiles, model: Model) -> TrainingLike:
    """Return a training of the backend; one that was done before continues for as many steps again."""
    facts, path = model.facts, files.encoder(model.facts)
    start = None
    if path is not None:
        start = gpu_backend.read_encoder(path, facts.model_id, facts.w_dim, facts.num_ws)
    steps = STEPS + (0 if start is None else start.steps)
    return gpu_backend.open_encoder_training(model, gpu_backend.EncoderSettings(steps), start)


def _write(found: EncoderFile, files: ModelFiles, facts: ModelFacts) -> Path:
    return files.write_encoder(
        facts, lambda path: gpu_backend.write_encoder(found, path, facts.model_id, facts.w_dim, facts.num_ws)
    )


def _write_quietly(found: EncoderFile, files: ModelFiles, facts: ModelFacts) -> None:
    try:
        _write(found, files, facts)
    except (gpu_backend.LoomError, OSError) as error:
        _log.info("The encoder of %s could not be written: %s", facts.name, error)
