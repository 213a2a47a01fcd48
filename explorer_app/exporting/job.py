"""A sequence under export: finds missing frames, gives out their requests, takes the frames.

The render thread fetches requests and delivers frames without blocking
(`explorer_app.rendering.export_job.ExportJob`). Everything else
happens on the job's own thread::

    read the manifest, open the sink      refuse what is not ours, clear away what a killed run left
    look for missing frames               a few ahead of the renderer
    write the manifest                    before the first request is handed out
    close the sink, write the manifest    once every frame was delivered, or the job was stopped

Stored frames are not requested again. Since a file comes into place whole or not at all, a run that was
killed at any moment loses at most the frames that were under way.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from explorer_app.exporting.destination import Destination, sink_of
from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.sequence import SequencePlan, SequenceSettings
from explorer_app.exporting.sinks.frame_sink import FrameSink
from explorer_app.exporting.writers import usual_threads
from gpu_backend import Disk, Frame, RenderRequest

_AHEAD = 32
"""Missing frames that are known before they are rendered."""

_LOW = 16
"""The search continues when this many are left: waking its thread for each would cost more than the search."""

_WAIT_S = 0.2


class Closing(Protocol):
    """A job that may have files open."""

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until the job has closed its files; return whether it has."""
        ...


class SequenceJob:
    """Writes a sequence. Every method may be called on any thread, and only `wait` and `join` wait.

    Parameters
    ----------
    settings
        What to write. Nothing is planned and no folder is looked at before `start`.
    sink
        Where the frames go; None for what the settings say.
    disk
        The file operations; a test lets them fail.
    threads
        Pictures that are encoded and written at a time; None for all cores but one.
    after
        A stopped job for the same files: this one begins when that has closed them.
    """

    def __init__(
        self,
        settings: SequenceSettings,
        *,
        sink: FrameSink | None = None,
        disk: Disk | None = None,
        threads: int | None = None,
        after: Closing | None = None,
    ) -> None:
        self.settings = settings
        disk = disk or Disk()
        self._sink = sink or sink_of(settings, disk, threads or usual_threads())
        self._destination = Destination(settings, self._sink, disk)
        self._after = after
        self._changed: Callable[[], None] = lambda: None
        lock = threading.RLock()
        self._condition = threading.Condition(lock)
        """For the renderer."""
        self._search_condition = threading.Condition(lock)
        """For the job's own thread, which is woken only when it has something to do."""
        self._thread = threading.Thread(target=self._run, name=f"export {settings.name}", daemon=True)
        self._missing: deque[tuple[int, RenderRequest]] = deque()
        self._awaited: deque[tuple[int, RenderRequest]] = deque()
        self._found = 0
        self._accepted = self._kept = 0
        self._is_stopped = False
        self._is_cancelled = False
        self._is_paused = False
        self._has_ended = False
        self._error: BaseException | None = None

    @property
    def total(self) -> int:
        """Number of frames of the whole sequence."""
        return self.settings.frame_count

    @property
    def found(self) -> int:
        """Frames that an earlier run left, as far as is known."""
        return self._found

    @property
    def done(self) -> int:
        """Frames that are stored: found or written."""
        return self._found + self._sink.written

    @property
    def delivered(self) -> int:
        """Frames that are stored, or on their way there."""
        return self._found + self._accepted

    @property
    def kept(self) -> int:
        """Frames that are stored if the job is stopped now: the delivered ones; of a video, those of whole segments."""
        return self._found + self._kept

    @property
    def shown(self) -> int:
        """Frames that progress counts: frames that are stored; for a single file, the rendered ones.

        A segment of a video is stored whole, seconds of it at a time: so long nothing would seem to happen.
        """
        return self.done if self.settings.single_path is None else self.delivered

    @property
    def is_joining(self) -> bool:
        """Whether every frame is stored, and the parts of the one file are put together."""
        return self._sink.is_joining

    @property
    def is_ready(self) -> bool:
        """Whether `next_request` has one to give."""
        with self._condition:
            return bool(self._missing) and not self._is_over and self._sink.is_ready

    @property
    def has_ended(self) -> bool:
        """Whether it ended by itself: every frame is stored, or there was an `error`."""
        return self._has_ended

    @property
    def error(self) -> BaseException | None:
        """What went wrong."""
        return self._error

    def start(self, changed: Callable[[], None] = lambda: None) -> None:
        """Begin. `changed` is called, on any thread, whenever one of the properties may have changed."""
        self._changed = changed
        self._thread.start()

    def next_request(self) -> RenderRequest | None:
        """Return the next frame to render; None if there is none now: all were requested, or writing lags behind."""
        with self._condition:
            if not self.is_ready:
                return None
            index, request = self._missing.popleft()
            self._awaited.append((index, request))
            if len(self._missing) <= _LOW:
                self._search_condition.notify_all()
            return request

    def deliver(self, frame: Frame) -> None:
        """Take a rendered frame, to be encoded and stored.

        Raises
        ------
        ExportError
            If the frame was not requested.
        """
        with self._condition:
            if self._is_stopped or self._has_ended:
                return  # it was under way when the job was stopped, or when an earlier one failed
            index = self._take_awaited(frame)
            self._sink.accept(index, frame)
            self._accepted += 1
            segment = 1 if self.settings.video is None else self.settings.video.segment_frames
            if index + 1 == self.total or (index + 1) % segment == 0:
                self._kept += index % segment + 1
            if not self._awaited:
                self._search_condition.notify_all()

    def stop(self, *, cancelled: bool) -> None:
        """Accept no more frames. May be called twice.

        If a user `cancelled` the job, the frames that were delivered are still written, and the manifest says
        "cancelled". If not, unstarted ones are dropped, and the manifest stays "unfinished".
        """
        with self._condition:
            self._is_stopped = True
            self._is_cancelled = self._is_cancelled or cancelled
            self._condition.notify_all()
            self._search_condition.notify_all()

    def pause(self) -> None:
        """Let the manifest say "unfinished" also after `stop` as cancelled; the caller stops the job."""
        self._is_paused = True

    def wait(self) -> bool:
        """Wait until there is a frame to render, and return True; False when the job has ended.

        Raises
        ------
        LoomError
            What went wrong, if the job did not end well.
        """
        with self._condition:
            while not self._condition.wait_for(lambda: self.is_ready or self._has_ended or self._is_stopped, _WAIT_S):
                pass  # so that Ctrl-C is noticed on systems where it does not interrupt a wait
            if self._error is not None:
                raise self._error
            return self.is_ready

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until the job has closed its files; return whether it has."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    # -- on the job's thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            if self._after is not None:
                self._after.join()
                self._after = None
            self._search(self._destination.open(self._note))
            self._await_frames()
        except BaseException as problem:  # reported through `error`
            error = problem
        try:
            self._finish(error)
        except BaseException as problem:
            error = error or problem
        with self._condition:
            self._error = error
            self._has_ended = error is not None or not self._is_stopped
            self._condition.notify_all()
        self._changed()

    def _search(self, plan: SequencePlan) -> None:
        """Look for missing frames, a few ahead of the renderer."""
        index = 0
        while (missing := self._sink.resumable_from(index, lambda: self._is_over)) is not None:
            with self._condition:
                self._found += missing - index
            self._destination.announce()
            request = plan.request(missing)
            with self._condition:
                if len(self._missing) >= _AHEAD:
                    self._search_condition.wait_for(lambda: len(self._missing) <= _LOW or self._is_over)
                if self._is_over:
                    return
                was_empty = not self._missing
                self._missing.append((missing, request))
                if was_empty:
                    self._condition.notify_all()
            if was_empty:
                self._changed()
            index = missing + 1
        with self._condition:
            if not self._is_over:
                self._found += len(plan) - index

    def _await_frames(self) -> None:
        """Wait until every frame was delivered, the job was stopped or the sink failed."""
        with self._condition:
            self._search_condition.wait_for(lambda: self._is_over or not (self._missing or self._awaited))

    @property
    def _is_over(self) -> bool:
        return self._is_stopped or self._sink.error is not None

    def _finish(self, error: BaseException | None) -> None:
        """Close the sink and say in the manifest how it ended; after a failure it stays "unfinished"."""
        self._sink.close(discard=error is not None or (self._is_stopped and not self._is_cancelled))
        if error is None:
            self._destination.conclude(self.done, is_cancelled=self._is_cancelled and not self._is_paused)

    def _note(self) -> None:
        with self._condition:
            self._condition.notify_all()
            if self._sink.error is not None:
                self._search_condition.notify_all()
        self._changed()

    def _take_awaited(self, frame: Frame) -> int:
        """Return which frame of the sequence this is, and no longer wait for it."""
        for place, (index, request) in enumerate(self._awaited):
            if (request is frame.request or request == frame.request) and not (
                frame.is_draft and request.resolution is None
            ):
                del self._awaited[place]
                return index
        raise ExportError("The exporter received a picture that it did not request; start the export again.")
