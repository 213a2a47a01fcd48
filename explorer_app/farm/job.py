"""A sequence rendered by a farm: hands out chunks, takes their files, and ends as an export in one process does.

Everything happens on the job's own thread, in one event loop::

    claim the folder, look for missing frames, write the manifest    as `SequenceJob`
    connect, and connect again if the scheduler goes away            link.py
    hand out chunks, take their files                                foreman.py
    spot check: a few frames by two workers each                     spot_check.py
    close the sink (joins a video), write the manifest
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from dataclasses import replace

from explorer_app.exporting.destination import Destination, sink_of
from explorer_app.exporting.job import Closing
from explorer_app.exporting.manifest import identity_of
from explorer_app.exporting.progress import Progress, ProgressMeter
from explorer_app.exporting.sequence import SequencePlan, SequenceSettings
from explorer_app.farm.address import FarmAddress
from explorer_app.farm.dispatch import UnitPool
from explorer_app.farm.encoding import encoder_of
from explorer_app.farm.errors import ConnectionLostError, FarmError, StationError, WorkerLostError
from explorer_app.farm.farm_model import FarmModel
from explorer_app.farm.folder_probe import FolderProbe
from explorer_app.farm.foreman import Control, FarmWork, Foreman
from explorer_app.farm.frame_origins import FrameOrigins
from explorer_app.farm.link import FarmLink, connect
from explorer_app.farm.spot_check import SpotCheck, compared_frames
from explorer_app.farm.work import WorkerStatus
from explorer_app.rendering.device_choice import Precision
from gpu_backend import Disk, remove_leftovers

_RETRY_S = 1.0
_RECONNECT_S = 300.0
"""Patience with a scheduler that went away."""

_log = logging.getLogger(__name__)

Connect = Callable[[FarmAddress], AbstractAsyncContextManager[FarmLink]]


class FarmJob:
    """Renders a sequence on a farm. Every method may be called on any thread, and only `wait` and `join` wait.

    Parameters
    ----------
    settings
        What to write; files appear as `SequenceJob` would write them.
    model
        The model, as workers get it.
    farm
        Gives the farm's address while the job runs; a private farm starts and ends here.
    precision
        Of the activations on GPUs.
    priority
        Chunks of jobs with a higher one come first.
    spot_checks
        How many frames are rendered by two workers each, at the end.
    workers_patience_s
        Fail if no worker is there for so long; None waits for ever.
    disk
        The file operations.
    connect
        Opens a link to the farm.
    after
        A stopped job for the same files: this one begins when that has closed them.
    """

    def __init__(
        self,
        settings: SequenceSettings,
        model: FarmModel,
        farm: Callable[[], AbstractContextManager[FarmAddress]],
        *,
        precision: Precision = "fp16",
        priority: int = 0,
        spot_checks: int = 2,
        workers_patience_s: float | None = None,
        disk: Disk | None = None,
        connect: Connect = connect,
        after: Closing | None = None,
    ) -> None:
        self.settings = settings
        self._after = after
        self.identity = identity_of(settings) + os.urandom(4).hex()
        self._work = FarmWork(settings, self.identity, model, precision, workers_patience_s)
        self._farm = farm
        self._control = Control(priority)
        self._spot_checks = spot_checks
        self._disk = disk or Disk()
        self._connect = connect
        self._sink = sink_of(settings, self._disk, 1)
        self._destination = Destination(settings, self._sink, self._disk)
        self._changed: Callable[[], None] = lambda: None
        self._condition = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"farm job {settings.name}", daemon=True)
        self._foreman: Foreman | None = None
        self._meter = ProgressMeter(settings.frame_count)
        self._progress = Progress(0, settings.frame_count)
        self._probe = FolderProbe(settings.folder, self.identity)
        self._origins = FrameOrigins()
        self._messages: list[str] = []
        self._state = "starting"
        self._has_ended = self._is_over = False
        self._error: BaseException | None = None
        self._spot_check: SpotCheck | None = None
        self._serving: tuple[asyncio.AbstractEventLoop, FarmLink] | None = None
        """Where the link may be used, while the farm answers."""

    # -- what others see --------------------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """Number of frames of the whole sequence."""
        return self.settings.frame_count

    @property
    def found(self) -> int:
        """Frames that were stored already."""
        return 0 if self._foreman is None else self._foreman.found

    @property
    def done(self) -> int:
        """Frames that are stored."""
        return 0 if self._foreman is None else self._foreman.done

    @property
    def delivered(self) -> int:
        """Frames that are stored; running ones are not counted, unlike in `SequenceJob`."""
        return self.done

    @property
    def is_joining(self) -> bool:
        """Whether every frame is stored, and the parts of the one file are put together."""
        return self._sink.is_joining

    @property
    def has_ended(self) -> bool:
        """Whether it ended by itself: every frame is stored, or there was an `error`."""
        return self._has_ended

    @property
    def is_over(self) -> bool:
        """Whether it has closed its files, by itself or stopped."""
        return self._is_over

    @property
    def error(self) -> BaseException | None:
        """What went wrong."""
        return self._error

    @property
    def progress(self) -> Progress:
        """Frames and time left."""
        return self._progress

    @property
    def workers(self) -> tuple[WorkerStatus, ...]:
        """What is known of each worker."""
        return () if self._foreman is None else self._foreman.workers

    @property
    def sentence(self) -> str:
        """For people: "120 of 600 frames, 35 s left; 4 workers, 52 fps"."""
        return f"{self._progress.sentence}; {self.activity}"

    @property
    def activity(self) -> str:
        """For people: "4 workers, 52 fps", "waiting for the farm"."""
        foreman = self._foreman
        if foreman is None or self._state:
            return self._state
        if self._control.is_paused or foreman.state != "rendering":
            return "paused" if self._control.is_paused else foreman.state
        count = len(foreman.rendering)
        rate = sum(record.rate for record in foreman.rendering)
        pace = f", {rate:.3g} fps" if rate else ""
        return f"{count} worker{'' if count == 1 else 's'}{pace}"

    @property
    def spot_check(self) -> SpotCheck | None:
        """What the comparison of workers gave; None if there was none."""
        return self._spot_check

    def take_messages(self) -> list[str]:
        """Return sentences for the user that came up since the last call."""
        with self._condition:
            messages, self._messages = self._messages, []
        return messages

    def start(self, changed: Callable[[], None] = lambda: None) -> None:
        """Begin. `changed` is called, on the job's thread, whenever something may look different."""
        self._changed = changed
        self._thread.start()

    def request_log(self, worker: str, receive: Callable[[Sequence[str] | None], None]) -> None:
        """Pass what a worker logged last to `receive`, on the job's thread; None if it is not there.

        Nothing is passed if the job ends meanwhile.
        """
        serving, foreman = self._serving, self._foreman
        address = None if foreman is None else foreman.address_of(worker)
        if serving is None or address is None:
            receive(None)
            return

        async def fetch(link: FarmLink, address: str) -> None:
            try:
                receive(await link.log(address))
            except FarmError:
                receive(None)

        loop, link = serving
        work = fetch(link, address)
        try:
            asyncio.run_coroutine_threadsafe(work, loop)
        except RuntimeError:  # the job has just ended
            work.close()
            receive(None)

    def pause(self) -> None:
        """Hand out no more chunks; running ones are finished."""
        self._control.pause()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._control.resume()

    @property
    def priority(self) -> int:
        """The present priority; another program may have changed it."""
        return self._control.priority

    def set_priority(self, priority: int) -> None:
        """Change the priority of the chunks that are handed out from now on."""
        self._control.priority = priority

    def stop(self, *, cancelled: bool) -> None:
        """Cancel running chunks and request no more. `cancelled` as for `SequenceJob`. May be called twice."""
        self._control.stop(cancelled=cancelled)

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until the job has ended, at most so long; return whether it has. Raises its error."""
        if self.join(timeout_s) and self._error is not None:
            raise self._error
        return not self._thread.is_alive()

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
            asyncio.run(self._main())
        except BaseException as problem:  # reported through `error`
            error = problem
        self._serving = None
        try:
            self._finish(error)
        except BaseException as problem:
            error = error or problem
        self._error = error
        self._has_ended = error is not None or not self._control.is_stopped
        self._state = "done" if error is None and not self._control.is_stopped else "stopped"
        self._is_over = True
        self._changed()

    async def _main(self) -> None:
        self._control.bind()
        plan = await asyncio.to_thread(self._destination.open, self._changed)
        pool, found = await asyncio.to_thread(self._search, plan)
        self._origins = FrameOrigins(self._destination.made_on, pool.unit_frames)
        foreman = self._foreman = Foreman(
            self._work,
            self._control,
            pool,
            found,
            self._sink,
            self._origins,
            self._probe,
            self._disk,
            tell=self._tell,
            advanced=self._note_progress,
            describe=lambda: self.sentence,
        )
        self._note_progress()
        if foreman.is_over:
            return
        await asyncio.to_thread(self._destination.announce)
        with self._farm() as address, self._probe.placed():
            await self._serve(address, foreman)

    def _search(self, plan: SequencePlan) -> tuple[UnitPool, int]:
        """Return the units that are missing, and how many frames are stored."""
        size = encoder_of(plan, self._sink).unit_frames
        missing: list[int] = []
        index = found = 0
        while (first := self._sink.resumable_from(index, lambda: self._control.is_stopped)) is not None:
            found += first - index
            missing.append(first // size)
            index = min(first + size, len(plan))
        if not self._control.is_stopped:
            found += len(plan) - index
        return UnitPool(missing, size), found

    async def _serve(self, address: FarmAddress, foreman: Foreman) -> None:
        """Render the missing frames; reconnect if the scheduler disappears."""
        lost_s: float | None = None
        while not self._control.is_stopped:
            try:
                async with self._connect(address) as link:
                    if lost_s is not None:
                        self._tell("The farm answers again.")
                        lost_s = None
                    self._state = ""
                    self._serving = asyncio.get_running_loop(), link
                    await foreman.render_all(link)
                    if not self._control.is_stopped:
                        await self._check_spots(link, foreman)
                    with suppress(FarmError):
                        ended = "done" if self.done == self.total else "stopped"
                        await link.exchange(replace(foreman.status(), state=ended))
                    return
            except ConnectionLostError as error:
                self._serving = None
                if foreman.is_over:  # every frame is stored, and a comparison of workers is not worth waiting for
                    return
                if lost_s is None:
                    lost_s = time.monotonic()
                    self._state = "waiting for the farm"
                    self._tell(f"{error.sentence.rstrip('.')}; waiting for it.")
            except FarmError as error:
                if lost_s is None or time.monotonic() - lost_s > _RECONNECT_S:
                    raise
                _log.debug("%s", error.sentence)
            await self._control.wait(_RETRY_S)

    async def _check_spots(self, link: FarmLink, foreman: Foreman) -> None:
        """Render a few frames on two workers each, and report whether they are equal."""
        members, _ = await link.exchange(None)
        ready = [
            (member.address, record)
            for member in members
            if (record := foreman.records.get(member.name)) is not None and record.frames and not record.is_set_aside
        ]
        if self._spot_checks and len(ready) > 1:
            self._state = "comparing workers"
            with suppress(WorkerLostError, StationError):
                self._spot_check = await compared_frames(link, self.identity, self.total, ready, self._spot_checks)

    # -- small things -----------------------------------------------------------------------------------------------

    def _note_progress(self) -> None:
        self._progress = self._meter.update(self.done, self.found, time.monotonic())
        self._changed()

    def _tell(self, sentence: str) -> None:
        with self._condition:
            self._messages.append(sentence)
        self._changed()

    def _finish(self, error: BaseException | None) -> None:
        """Close the sink, which joins a video, and say in the manifest how it ended."""
        self._sink.close(discard=error is not None or self._control.is_stopped)
        if self._destination.is_announced:  # part files of workers that were killed
            folder = self._sink.unit_path(0).parent
            names = {f"{name}{self.settings.form.ending}" for name in self.settings.file_names}
            prefix = f"{self.settings.name}_"
            remove_leftovers(folder, lambda name: name in names or name.startswith(prefix), self._disk)
        if error is None:
            self._destination.made_on = self._origins.made_on
            self._destination.conclude(self.done, is_cancelled=self._control.is_cancelled)
