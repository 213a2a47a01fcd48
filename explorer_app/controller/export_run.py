"""A job of the list of exports while its frames are rendered: here, on all GPUs of this machine, or on a farm."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QObject

from explorer_app.controller.farm_export import FarmExport, farm_job
from explorer_app.controller.model_opener import ModelOpener
from explorer_app.controller.progress import ExportProgress
from explorer_app.exporting.export_list import ExportPlace
from explorer_app.exporting.job import Closing, SequenceJob
from explorer_app.exporting.progress import ProgressMeter
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.exporting.writers import MAX_THREADS
from explorer_app.rendering.frame_statistics import FrameStatistics
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.settings import Settings

if TYPE_CHECKING:
    from explorer_app.farm.job import FarmJob

_log = logging.getLogger(__name__)


class ExportRun(Protocol):
    """A job while it runs; `LocalExport` and `FarmExport` differ in who renders its frames and how that is heard of."""

    @property
    def job(self) -> SequenceJob | FarmJob:
        """What writes the frames."""
        ...

    @property
    def kept(self) -> int:
        """Frames that need not be rendered again if the job is stopped now."""
        ...

    def start(self) -> None:
        """Begin; returns immediately."""
        ...

    def stop(self, *, pauses: bool) -> None:
        """Ask the job to end early: the user `pauses` it, or cancels it. It ends later."""
        ...

    def updated(self, progress: ExportProgress) -> ExportProgress:
        """Return a progress with the present number of frames, rate and time left."""
        ...


class LocalExport:
    """Implements `ExportRun` on the render thread, whose events say when the job advanced and ended.

    Parameters
    ----------
    statistics
        Of the picture in the window, which moves beside the export.
    """

    def __init__(
        self, job: SequenceJob, renders: RenderThread, statistics: FrameStatistics, clock: Callable[[], float]
    ) -> None:
        self.job = job
        self._renders = renders
        self._statistics = statistics
        self._clock = clock
        self._meter = ProgressMeter(job.total)

    @property
    def kept(self) -> int:
        """Frames that need not be rendered again if the job is stopped now."""
        return self.job.kept

    def start(self) -> None:
        """Begin when the render thread has done the exports before it."""
        self._renders.export(self.job)

    def stop(self, *, pauses: bool) -> None:
        """Drop the frame that is being rendered, and end the job."""
        if pauses:
            self.job.pause()
        self._renders.cancel_export(self.job)

    def updated(self, progress: ExportProgress) -> ExportProgress:
        """Return a progress with the job's present numbers and the rate of the picture beside it."""
        now_s = self._clock()
        made = self._meter.update(self.job.shown, self.job.found, now_s)
        return replace(
            progress,
            done=made.done,
            seconds_left=made.seconds_left,
            per_second=made.per_second,
            picture_rate=self._statistics.moving_fps(now_s),
            is_joining=self.job.is_joining,
        )


class ExportRuns:
    """Makes the run of a job, where its record says, with the open model and the user's settings."""

    def __init__(
        self,
        renders: RenderThread,
        model: ModelOpener,
        settings: Settings,
        statistics: FrameStatistics,
        clock: Callable[[], float],
    ) -> None:
        self._renders = renders
        self._model = model
        self._settings = settings
        self._statistics = statistics
        self._clock = clock

    def here(self, settings: SequenceSettings, after: Closing | None) -> LocalExport:
        """Return a run on this window's render thread; it begins when `after` has closed its files."""
        job = SequenceJob(settings, threads=self._encoder_threads(), after=after)
        return LocalExport(job, self._renders, self._statistics, self._clock)

    def on_farm(
        self, settings: SequenceSettings, place: ExportPlace, after: Closing | None, parent: QObject
    ) -> FarmExport:
        """Return a run on a farm, or on all GPUs of this machine; nothing is connected yet.

        Raises
        ------
        LoomError
            If the model's directions cannot be written.
        """
        facts = self._model.facts
        assert facts is not None
        precision = self._settings.values.precision
        job = farm_job(settings, place, facts, self._model.directions, precision, after, _log.info)
        return FarmExport(job, parent)

    def _encoder_threads(self) -> int | None:
        """Return the preferred number of encoder threads; None for all cores but one."""
        text = self._settings.choice("export.threads")
        return min(int(text), MAX_THREADS) if text.isdecimal() and 0 < len(text) < 5 and int(text) > 0 else None
