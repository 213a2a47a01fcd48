"""A sequence rendered by a farm: hands out chunks, takes their files, and ends as an export in one process does.

Everything happens on the job's own thread, in one event loop::

    claim the folder, look for missing frames, write the manifest      as `SequenceJob`
    every second: exchange with the scheduler                          who is there, orders; workers come and go
    for each worker: open the job (model, renderer), then two lanes    a lane has one chunk under way
    spot check: a few frames by two workers each
    close the sink (joins a video), write the manifest
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from pathlib import Path

from explorer_app.exporting.claim import claim_place
from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.job import sink_of
from explorer_app.exporting.manifest import MadeOn, State, identity_of, manifest_bytes
from explorer_app.exporting.output_file import write_output
from explorer_app.exporting.progress import Progress, ProgressMeter
from explorer_app.exporting.sequence import SequencePlan, SequenceSettings, plan_sequence
from explorer_app.exporting.video.video_format import require_encoder
from explorer_app.farm.address import FarmAddress
from explorer_app.farm.dispatch import UnitPool, WorkerRecord
from explorer_app.farm.encoding import encoder_of
from explorer_app.farm.errors import ConnectionLostError, FarmError, StationError, WorkerLostError
from explorer_app.farm.farm_model import FarmModel
from explorer_app.farm.link import FarmLink, connect
from explorer_app.farm.spot_check import SpotCheck, compared_frames
from explorer_app.farm.station import probe_path
from explorer_app.farm.work import Chunk, ChunkReport, JobRecipe, JobStatus, Member, Opened, Order, Output, WorkerStatus
from explorer_app.rendering.device_choice import Precision
from gpu_backend import Disk

LANES = 2
"""Chunks that a worker has at a time."""

_EXCHANGE_S = 1.0
_MEMBERS_A_SECOND = 200
"""Larger farms are asked less often: the answer names every worker."""
_LOOK_S = 0.5
_RECONNECT_S = 300.0
"""Patience with a scheduler that went away."""
_GATHERING_S = 0.2
"""Workers that lack a model within this time get it together."""
_MODEL_TRIES = 3

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
    ) -> None:
        self.settings = settings
        self.identity = identity_of(settings) + os.urandom(4).hex()
        self._model = model
        self._farm = farm
        self._precision: Precision = precision
        self._priority = priority
        self._spot_checks = spot_checks
        self._workers_patience_s = workers_patience_s
        self._disk = disk or Disk()
        self._connect = connect
        self._sink = sink_of(settings, self._disk, 1)
        self._changed: Callable[[], None] = lambda: None
        self._condition = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"farm job {settings.name}", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._event: asyncio.Event | None = None
        self._plan: SequencePlan | None = None
        self._pool = UnitPool((), 1)
        self._meter = ProgressMeter(settings.frame_count)
        self._progress = Progress(0, settings.frame_count)
        self._records: dict[str, WorkerRecord] = {}
        self._ready: dict[str, WorkerRecord] = {}
        """Workers that have opened the job, by address."""
        self._wanting: dict[str, str] = {}
        """Address of a worker that lacks the model, by the identity of its store."""
        self._upload = asyncio.Lock()
        self._token = os.urandom(16).hex()
        self._made_on: dict[str, set[int]] = {}
        self._given_to: dict[int, str] = {}
        """Device of the worker that last got a unit: it rendered what another one finds."""
        self._announced = False
        self._found = 0
        self._done = 0
        self._messages: list[str] = []
        self._state = "starting"
        self._is_paused = False
        self._is_stopped = False
        self._is_cancelled = False
        self._has_ended = False
        self._error: BaseException | None = None
        self._spot_check: SpotCheck | None = None

    # -- what others see --------------------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """Number of frames of the whole sequence."""
        return self.settings.frame_count

    @property
    def found(self) -> int:
        """Frames that were stored already."""
        return self._found

    @property
    def done(self) -> int:
        """Frames that are stored."""
        return self._done

    delivered = done
    """As of `SequenceJob`: frames under way are not counted here."""

    @property
    def has_ended(self) -> bool:
        """Whether it ended by itself: every frame is stored, or there was an `error`."""
        return self._has_ended

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
        ready = {record.name for record in self._ready.values()}
        return tuple(
            WorkerStatus(
                record.name,
                record.device,
                record.frames,
                record.rate,
                record.failures,
                "set aside" if record.is_set_aside else "rendering" if record.name in ready else "not there",
            )
            for record in list(self._records.values())
        )

    @property
    def sentence(self) -> str:
        """For people: "120 of 600 frames, 35 s left; 4 workers, 52 frames a second"."""
        text = self._progress.sentence
        if self._state != "rendering":
            return f"{text}; {self._state}"
        rendering = [record for record in list(self._ready.values()) if not record.is_set_aside]
        count = len(rendering)
        rate = sum(record.rate for record in rendering)
        pace = f", {rate:.3g} frames a second" if rate else ""
        return f"{text}; {count} worker{'' if count == 1 else 's'}{pace}"

    @property
    def spot_check(self) -> SpotCheck | None:
        """What the comparison of workers gave; None if there was none."""
        return self._spot_check

    def take_messages(self) -> list[str]:
        """Return sentences for the person that came up since the last call."""
        with self._condition:
            messages, self._messages = self._messages, []
        return messages

    def start(self, changed: Callable[[], None] = lambda: None) -> None:
        """Begin. `changed` is called, on the job's thread, whenever something may look different."""
        self._changed = changed
        self._thread.start()

    def pause(self) -> None:
        """Hand out no more chunks; those under way are finished."""
        self._is_paused = True
        self._wake()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._is_paused = False
        self._wake()

    def set_priority(self, priority: int) -> None:
        """Change the priority of the chunks that are handed out from now on."""
        self._priority = priority

    def stop(self, *, cancelled: bool) -> None:
        """Give up the chunks under way and want no more. `cancelled` as for `SequenceJob`. May be called twice."""
        self._is_stopped = True
        self._is_cancelled = self._is_cancelled or cancelled
        self._wake()

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
            asyncio.run(self._main())
        except BaseException as problem:  # reported through `error`
            error = problem
        try:
            self._finish(error)
        except BaseException as problem:
            error = error or problem
        self._error = error
        self._has_ended = error is not None or not self._is_stopped
        self._state = "done" if error is None and not self._is_stopped else "stopped"
        self._changed()

    async def _main(self) -> None:
        self._loop, self._event, self._upload = asyncio.get_running_loop(), asyncio.Event(), asyncio.Lock()
        if self.settings.video is not None:
            require_encoder(self.settings.video)
        plan = plan_sequence(self.settings)
        claim, manifest = await asyncio.to_thread(claim_place, self.settings, self._disk)
        for made in () if manifest is None else manifest.made_on:
            self._made_on.setdefault(made.device, set()).update(made.frames)
        self._plan = plan
        self._sink.open(plan, claim, lambda: None)
        self._pool = await asyncio.to_thread(self._search, plan)
        self._note_progress()
        if not self._pool or self._is_stopped:
            return
        await asyncio.to_thread(self._write_manifest, "unfinished")
        self._announced = True
        with self._farm() as address:
            question = probe_path(self.settings.folder, self.identity)
            try:
                with suppress(OSError):
                    question.write_text(self._token, encoding="ascii")
                await self._serve(address)
            finally:
                for path in self.settings.folder.glob(question.name + "*"):
                    path.unlink(missing_ok=True)

    def _search(self, plan: SequencePlan) -> UnitPool:
        """Return the units that are missing."""
        size = encoder_of(plan, self._sink).unit_frames
        missing: list[int] = []
        index = 0
        while (first := self._sink.resumable_from(index, lambda: self._is_stopped)) is not None:
            self._found += first - index
            missing.append(first // size)
            index = min(first + size, len(plan))
        if not self._is_stopped:
            self._found += len(plan) - index
        self._done = self._found
        return UnitPool(missing, size)

    async def _serve(self, address: FarmAddress) -> None:
        """Render what is missing; connect again if the scheduler goes away."""
        lost_s: float | None = None
        while not self._is_stopped:
            try:
                async with self._connect(address) as link:
                    if lost_s is not None:
                        self._tell("The farm answers again.")
                        lost_s = None
                    await self._render_all(link)
                    if not self._is_stopped:
                        await self._check_spots(link)
                    return
            except ConnectionLostError as error:
                if lost_s is None:
                    lost_s = time.monotonic()
                    self._state = "waiting for the farm"
                    self._tell(f"{error.sentence.rstrip('.')}; waiting for it.")
            except FarmError as error:
                if lost_s is None or time.monotonic() - lost_s > _RECONNECT_S:
                    raise
                _log.debug("%s", error.sentence)
            await self._pause_for(_EXCHANGE_S)

    async def _render_all(self, link: FarmLink) -> None:
        """Render until every frame is stored, the job is stopped, or no worker can go on."""
        tasks: dict[str, asyncio.Task[None]] = {}
        alone_s = time.monotonic()
        try:
            while self._done < self.total and not self._is_stopped:
                members, orders = await link.exchange(self._status())
                for order in orders:
                    self._obey(order)
                present = {member.address for member in members}
                for address in tasks.keys() - present:
                    tasks.pop(address).cancel()
                    self._ready.pop(address, None)
                for member in members:
                    if member.address not in tasks:
                        tasks[member.address] = asyncio.create_task(self._work_with(link, member))
                        if not self._ready:
                            self._state = "opening the model"
                for task in tasks.values():
                    if task.done() and not task.cancelled() and (problem := task.exception()) is not None:
                        raise problem
                self._check_workers(members)
                if members:
                    alone_s = time.monotonic()
                else:
                    self._state = "waiting for workers"
                    self._check_patience(time.monotonic() - alone_s)
                self._note_progress()
                end_s = time.monotonic() + max(_EXCHANGE_S, len(members) / _MEMBERS_A_SECOND)
                while time.monotonic() < end_s and self._done < self.total and not self._is_stopped:
                    await self._pause_for(end_s - time.monotonic())
                    if any(task.done() and not task.cancelled() and task.exception() for task in tasks.values()):
                        break
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
            if self._done < self.total:
                with suppress(FarmError):
                    await link.cancel([address for address in tasks if address in self._ready], self.identity)
                self._ready.clear()

    async def _work_with(self, link: FarmLink, member: Member) -> None:
        """Let a worker open the job and render chunks until it leaves or is set aside."""
        record = self._records.setdefault(member.name, WorkerRecord(member.name))
        if record.is_set_aside:
            return
        try:
            output = await self._opened(link, member.address, record)
        except (WorkerLostError, StationError) as error:
            self._note_failure(record, error)
            if isinstance(error, StationError) and not record.is_set_aside:
                await self._pause_for(_EXCHANGE_S)
                await self._work_with(link, member)
            return
        self._ready[member.address] = record
        self._state = "rendering"
        lanes = [asyncio.create_task(self._lane(link, member.address, record, output)) for _ in range(LANES)]
        try:
            await asyncio.gather(*lanes)
        finally:
            for lane in lanes:
                lane.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)
            self._ready.pop(member.address, None)

    async def _opened(self, link: FarmLink, address: str, record: WorkerRecord) -> Output:
        """Let a worker open the job, bringing the model if it has to; return where its files go."""
        recipe = JobRecipe(
            job=self.identity,
            manifest=manifest_bytes(self.settings, "unfinished", None),
            name=self.settings.name,
            folder=str(self.settings.folder.absolute()),
            model_id=self.settings.model.model_id,
            model_name=self._model.name,
            model_path=str(self._model.path),
            model_suffix=self._model.path.suffix,
            directions=self._model.directions,
            precision=self._precision,
        )
        for _ in range(_MODEL_TRIES):
            opened: Opened = await link.call(address, "open", recipe, self._token, priority=self._priority)
            if opened.has_model:
                record.device = opened.device
                is_shared = bool(opened.answer) and await asyncio.to_thread(self._is_answer, opened.answer)
                return "shared" if is_shared else "returned"
            await self._bring_model(link, address)
        raise StationError(f"{record.name} could not keep the model {self._model.name}.")

    async def _bring_model(self, link: FarmLink, address: str) -> None:
        """Bring the model to a worker, together with others that lack it; one worker of a machine gets it for all."""
        identity: str = await link.call(address, "identity")
        self._wanting[identity] = address
        await asyncio.sleep(_GATHERING_S)
        async with self._upload:
            if identity not in self._wanting:
                return  # it came with another worker's
            group, self._wanting = list(self._wanting.values()), {}
            self._state = "sending the model"
            await link.bring_model(self._model.path, self._model.model_id, self._model.path.suffix, group)

    def _is_answer(self, name: str) -> bool:
        path = self.settings.folder / Path(name).name
        try:
            return path.read_text(encoding="ascii") == self._token[::-1]
        except (OSError, ValueError):
            return False

    async def _lane(self, link: FarmLink, address: str, record: WorkerRecord, output: Output) -> None:
        """Give a worker one chunk after the other."""
        while self._done < self.total and not self._is_stopped and not record.is_set_aside:
            others = [other.name for other in self._ready.values() if other is not record and not other.is_set_aside]
            units = None
            if not self._is_paused:
                units = self._pool.take(
                    record, workers=len(others) + 1, others=others, is_returned=output == "returned"
                )
            if units is None:
                await self._pause_for(_LOOK_S)
                continue
            try:
                report = await self._rendered(link, address, units, output)
                await self._store(units, report, record, output)
            except WorkerLostError as error:
                self._given_to.update(dict.fromkeys(units, record.device))
                self._pool.give_back(units)
                if error.has_died:
                    self._fail(record, units, error)
                return
            except StationError as error:
                self._pool.give_back(units)
                if error.is_cancelled:  # that worker is leaving
                    return
                self._fail(record, units, error)
            except BaseException:  # the worker has left, or the job is stopped
                self._given_to.update(dict.fromkeys(units, record.device))
                self._pool.give_back(units)
                raise

    async def _rendered(self, link: FarmLink, address: str, units: range, output: Output) -> ChunkReport:
        size = self._pool.unit_frames
        chunk = Chunk(self.identity, units[0] * size, min((units[-1] + 1) * size, self.total), output)
        report: ChunkReport = await link.call(address, "render", chunk, priority=self._priority)
        return report

    async def _store(self, units: range, report: ChunkReport, record: WorkerRecord, output: Output) -> None:
        """Write or look at the files of a chunk.

        Raises
        ------
        StationError
            If one is missing, or not what the worker says it wrote.
        ExportError
            If one cannot be written.
        """
        if [unit.unit for unit in sorted(report.units, key=lambda unit: unit.unit)] != list(units):
            raise StationError(f"{record.name} sent other frames than it was asked for.")

        def store() -> None:
            for unit in report.units:
                path = self._sink.unit_path(unit.unit)
                if output == "returned":
                    write_output(path, unit.data, self._disk)
                elif not path.is_file() or path.stat().st_size != unit.nbytes:
                    raise StationError(
                        f"{record.name} says that it wrote {path.name}, but the file is not there whole."
                    )

        await asyncio.to_thread(store)
        for warning in report.warnings:
            self._tell(f"{record.name}: {warning}")
        rendered = [unit for unit in report.units if not unit.is_found]
        size = self._pool.unit_frames
        for unit in report.units:
            device = self._given_to.get(unit.unit, record.device) if unit.is_found else record.device
            first = unit.unit * size
            for frames in self._made_on.values():
                frames.difference_update(range(first, first + unit.frames))
            self._made_on.setdefault(device, set()).update(range(first, first + unit.frames))
        self._found += sum(unit.frames for unit in report.units if unit.is_found)
        self._done += sum(unit.frames for unit in report.units)
        record.note_chunk(sum(unit.frames for unit in rendered), report.seconds)
        self._note_progress()
        self._wake_here()

    def _fail(self, record: WorkerRecord, units: range, error: FarmError) -> None:
        """Take note of a chunk that failed; raise its error if it failed too often."""
        self._note_failure(record, error)
        if self._pool.note_failure(units, record.name):
            size = self._pool.unit_frames
            raise ExportError(f"Frame {units[0] * size} failed three times: {error.sentence}", error.details)
        self._wake_here()

    def _note_failure(self, record: WorkerRecord, error: FarmError) -> None:
        if isinstance(error, WorkerLostError) and not error.has_died:
            return
        if isinstance(error, StationError) and error.is_cancelled:
            return
        _log.info("%s failed: %s", record.name, error.sentence, extra={"details": error.details})
        if record.note_failure(error.sentence):
            self._tell(f"{record.name} failed {record.failures} times and is set aside: {error.sentence}")

    def _check_workers(self, members: list[Member]) -> None:
        """Raise FarmError if every worker is set aside."""
        records = [self._records.get(member.name) for member in members]
        failed = [record for record in records if record is not None and record.is_set_aside]
        if members and len(failed) == len(members):
            raise FarmError(f"Every worker of the farm failed too often; the last one said: {failed[-1].last_error}")

    def _check_patience(self, alone_s: float) -> None:
        """Raise FarmError if there has been no worker for too long."""
        if self._workers_patience_s is not None and alone_s > self._workers_patience_s:
            raise FarmError("No worker of the farm has started; `latentloom doctor` says what is wrong with a device.")

    async def _check_spots(self, link: FarmLink) -> None:
        """Render a few frames on two workers each, and say whether they are equal."""
        members, _ = await link.exchange(None)
        ready = [
            (member.address, record)
            for member in members
            if (record := self._records.get(member.name)) is not None and record.frames and not record.is_set_aside
        ]
        if self._spot_checks and len(ready) > 1:
            self._state = "comparing workers"
            with suppress(WorkerLostError, StationError):
                self._spot_check = await compared_frames(link, self.identity, self.total, ready, self._spot_checks)

    # -- small things -----------------------------------------------------------------------------------------------

    def _obey(self, order: Order) -> None:
        what, number = order
        if what == "pause":
            self.pause()
        elif what == "resume":
            self.resume()
        elif what == "priority":
            self.set_priority(number)
        elif what == "cancel":
            self._tell("The job was cancelled from elsewhere.")
            self.stop(cancelled=True)

    def _status(self) -> JobStatus:
        return JobStatus(
            self.identity,
            self.settings.name,
            "paused" if self._is_paused else self._state,
            self._done,
            self.total,
            self.sentence,
            self._priority,
            self.workers,
        )

    def _note_progress(self) -> None:
        self._progress = self._meter.update(self._done, self._found, time.monotonic())
        self._changed()

    def _tell(self, sentence: str) -> None:
        with self._condition:
            self._messages.append(sentence)
        self._changed()

    async def _pause_for(self, seconds: float) -> None:
        """Wait until something happened, at most so long."""
        assert self._event is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()

    def _wake_here(self) -> None:
        """Let everything that waits in `_pause_for` look again; on the job's thread."""
        if self._event is not None:
            self._event.set()
            self._event = asyncio.Event()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._wake_here)

    def _finish(self, error: BaseException | None) -> None:
        """Close the sink, which joins a video, and say in the manifest how it ended."""
        self._sink.close(discard=error is not None or self._is_stopped)
        if self._sink.error is not None:
            raise self._sink.error
        if self._plan is None or error is not None:
            return
        if self._done == self.total:
            self._write_manifest("complete")
        elif self._is_cancelled and self._announced:
            self._write_manifest("cancelled")

    def _write_manifest(self, state: State) -> None:
        made_on = tuple(MadeOn(device, tuple(sorted(frames))) for device, frames in self._made_on.items() if frames)
        data = manifest_bytes(self.settings, state, None if state == "unfinished" else self._done, made_on)
        with suppress(OSError):
            if self.settings.manifest_path.read_bytes() == data:
                return
        write_output(self.settings.manifest_path, data, self._disk)
