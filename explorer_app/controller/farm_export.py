"""An export that a farm renders, as the window's thread hears of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal, Slot

import gpu_backend  # by name: importing Directions here would import NumPy before the window is shown
from explorer_app.controller.progress import ExportProgress
from explorer_app.exporting.export_list import ExportPlace
from explorer_app.exporting.job import Closing
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.rendering.device_choice import Precision
from explorer_app.rendering.renderer_like import DirectionsLike
from gpu_backend import ModelFacts

if TYPE_CHECKING:
    from explorer_app.farm.address import FarmAddress
    from explorer_app.farm.job import FarmJob
    from explorer_app.farm.work import WorkerStatus

_PATIENCE_S = 180.0
"""For the first worker of a private farm: it may have to compile kernels before it answers."""


class FarmExport(QObject):
    """Implements `ExportRun` on a farm: passes what happens to a `FarmJob` from its thread to the window's."""

    advanced = Signal()
    """Progress, workers or messages."""
    ended = Signal()
    log_arrived = Signal(str, object)
    """What a worker logged last, by its name; None if it is not there."""

    _heard = Signal()
    _log_fetched = Signal(str, object)

    def __init__(self, job: FarmJob, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.job = job
        self._is_announced = False
        self._has_ended = False
        self._heard.connect(self._take, Qt.ConnectionType.QueuedConnection)
        self._log_fetched.connect(self.log_arrived, Qt.ConnectionType.QueuedConnection)

    @property
    def kept(self) -> int:
        """Frames that need not be rendered again if the job is stopped now."""
        return self.job.done

    def start(self) -> None:
        """Begin."""
        self.job.start(self._announce)

    def stop(self, *, pauses: bool) -> None:
        """Ask the job to end early: the user `pauses` it, or cancels it."""
        self.job.stop(cancelled=not pauses)

    def updated(self, progress: ExportProgress) -> ExportProgress:
        """Return a progress with the job's present numbers and what its workers do."""
        made = self.job.progress
        return replace(
            progress,
            done=made.done,
            seconds_left=made.seconds_left,
            per_second=made.per_second,
            activity=self.job.activity,
            is_joining=self.job.is_joining,
            workers=tuple(map(worker_sentence, self.job.workers)),
            worker_names=tuple(worker.name for worker in self.job.workers),
        )

    def request_log(self, worker: str) -> None:
        """Fetch the latest log lines of a worker; `log_arrived` delivers them."""

        def receive(lines: Sequence[str] | None) -> None:
            with contextlib.suppress(RuntimeError):  # the window has closed
                self._log_fetched.emit(worker, lines)

        self.job.request_log(worker, receive)

    def _announce(self) -> None:
        """Runs on the job's thread."""
        if not self._is_announced:
            self._is_announced = True
            with contextlib.suppress(RuntimeError):  # the window has closed
                self._heard.emit()

    @Slot()
    def _take(self) -> None:
        self._is_announced = False
        is_over = self.job.is_over
        self.advanced.emit()
        if is_over and not self._has_ended:
            self._has_ended = True
            self.ended.emit()


def farm_job(
    settings: SequenceSettings,
    place: ExportPlace,
    facts: ModelFacts,
    directions: DirectionsLike | None,
    precision: Precision,
    after: Closing | None,
    say: Callable[[str], None],
) -> FarmJob:
    """Return a job for a farm, or for all GPUs of this machine. Nothing is connected or started yet.

    Parameters
    ----------
    facts, directions
        The open model.
    say
        Receives sentences about processes of this machine, on the job's thread.

    Raises
    ------
    LoomError
        If the model's directions cannot be written.
    """
    # Imported when the first of them begins: most exports are rendered here.
    from explorer_app.farm.farm_model import farm_model
    from explorer_app.farm.job import FarmJob

    named = gpu_backend.named_part(directions) if isinstance(directions, gpu_backend.Directions) else None
    is_private = place.where == "gpus"
    return FarmJob(
        settings,
        farm_model(facts, named),
        lambda: _farm_at(place, say),
        precision=precision,
        priority=place.priority,
        workers_patience_s=_PATIENCE_S if is_private else None,
        after=after,
    )


@contextlib.contextmanager
def _farm_at(place: ExportPlace, say: Callable[[str], None]) -> Iterator[FarmAddress]:
    """Return the farm of a place; processes of this machine end with it. Runs on the job's thread, and may wait."""
    from explorer_app.farm.address import farm_address
    from explorer_app.farm.errors import require_farm_extra
    from explorer_app.farm.local_farm import LocalFarm, crew_of_this_machine

    require_farm_extra()
    if place.where == "farm":
        yield farm_address(place.address, Path(os.path.expanduser(place.keys)) if place.keys else None)
        return
    with LocalFarm(None, crew_of_this_machine(None, 0), say=say) as farm:
        yield farm.address


def worker_sentence(worker: WorkerStatus) -> str:
    """Return a job's record of a worker: "gpu0 · 120 frames · 52 fps · rendering · NVIDIA H200"."""
    frames = f"{worker.frames:,} frame{'' if worker.frames == 1 else 's'}"
    failures = f"{worker.failures} failure{'' if worker.failures == 1 else 's'}" if worker.failures else ""
    pace = f"{worker.rate:.3g} fps" if worker.rate else ""
    return " · ".join(filter(None, (worker.name, frames, pace, failures, worker.state, worker.device)))
