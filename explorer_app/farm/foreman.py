"""Hands out the chunks of a job and takes their files, over one link after the other.

::

    every second: exchange with the scheduler                          who is there, orders; workers come and go
    for each worker: open the job (model, renderer), then two lanes    a lane has one chunk under way
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.manifest import manifest_bytes
from explorer_app.exporting.output_file import write_outputs
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.exporting.sinks.picture_folder import PictureFolder
from explorer_app.exporting.sinks.video_file import VideoFile
from explorer_app.farm.dispatch import UnitPool, WorkerRecord
from explorer_app.farm.errors import FarmError, StationError, WorkerLostError
from explorer_app.farm.farm_model import FarmModel
from explorer_app.farm.folder_probe import FolderProbe
from explorer_app.farm.frame_origins import FrameOrigins
from explorer_app.farm.link import FarmLink
from explorer_app.farm.model_delivery import ModelDelivery
from explorer_app.farm.work import Chunk, ChunkReport, JobRecipe, JobStatus, Member, Opened, Order, Output, WorkerStatus
from explorer_app.rendering.device_choice import Precision
from gpu_backend import Disk, dataclass

LANES = 2
"""Chunks that a worker has at a time."""

_EXCHANGE_S = 1.0
_MEMBERS_A_SECOND = 200
"""Larger farms are polled less often: the answer names every worker."""
_LOOK_S = 0.5
_MODEL_TRIES = 3
_END_S = 15.0
"""Patience with workers that give up their chunks."""
_PARTING_S = 10.0
"""Until calls to a worker that the scheduler has forgotten are given up; by then they say themselves how it ended."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FarmWork:
    """A job's requirements on a farm.

    Attributes
    ----------
    identity
        Hexadecimal digits that identify the job.
    workers_patience_s
        Fail if no worker is there for so long; None waits for ever.
    """

    settings: SequenceSettings
    identity: str
    model: FarmModel
    precision: Precision
    workers_patience_s: float | None


class Control:
    """A user's order to a running job. Every method may be called on any thread."""

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.is_paused = False
        self.is_stopped = False
        self.is_cancelled = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._event = asyncio.Event()

    def bind(self) -> None:
        """Let `wait` be called in the running event loop."""
        self._loop, self._event = asyncio.get_running_loop(), asyncio.Event()

    def pause(self) -> None:
        """Hand out no more chunks."""
        self.is_paused = True
        self._wake()

    def resume(self) -> None:
        """Hand out chunks again."""
        self.is_paused = False
        self._wake()

    def stop(self, *, cancelled: bool) -> None:
        """Give up what is under way."""
        self.is_stopped = True
        self.is_cancelled = self.is_cancelled or cancelled
        self._wake()

    def note_change(self) -> None:
        """Let all that wait look again; in the event loop."""
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Wait until something changed, at most so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self.note_change)


class Foreman:
    """Renders the missing units of a job. Lives in the job's event loop; others may read `state` and what is counted.

    Parameters
    ----------
    pool
        The units that are missing.
    found
        Frames that are stored already.
    sink
        Says where the files go.
    probe
        Finds out which workers see the job's folder.
    tell
        Receives sentences for the user.
    advanced
        Called when frames were stored or workers changed.
    describe
        Returns how far the job is, as a sentence for everyone on the farm.
    """

    def __init__(
        self,
        work: FarmWork,
        control: Control,
        pool: UnitPool,
        found: int,
        sink: PictureFolder | VideoFile,
        origins: FrameOrigins,
        probe: FolderProbe,
        disk: Disk,
        *,
        tell: Callable[[str], None],
        advanced: Callable[[], None],
        describe: Callable[[], str],
    ) -> None:
        self._work = work
        self._control = control
        self._pool = pool
        self._sink = sink
        self._origins = origins
        self._probe = probe
        self._disk = disk
        self._tell = tell
        self._advanced = advanced
        self._describe = describe
        self._delivery = ModelDelivery(work.model)
        self.total = work.settings.frame_count
        self.done = self.found = found
        self.state = "connecting"
        self.records: dict[str, WorkerRecord] = {}
        """Every worker that was ever there, by name."""
        self._ready: dict[str, WorkerRecord] = {}
        """Workers that have opened the job, by address."""
        self._dead: set[str] = set()
        """Addresses of workers whose process ended while it rendered."""

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to do."""
        return self.done >= self.total or self._control.is_stopped

    @property
    def rendering(self) -> list[WorkerRecord]:
        """Workers that render."""
        return [record for record in list(self._ready.values()) if not record.is_set_aside]

    @property
    def workers(self) -> tuple[WorkerStatus, ...]:
        """What is known of each worker."""
        ready = {record.name for record in list(self._ready.values())}
        return tuple(
            WorkerStatus(
                record.name,
                record.device,
                record.frames,
                record.rate,
                record.failures,
                "set aside" if record.is_set_aside else "rendering" if record.name in ready else "not there",
            )
            for record in list(self.records.values())
        )

    def address_of(self, name: str) -> str | None:
        """Return where a worker that renders is; None if no worker has that name."""
        return next((address for address, record in list(self._ready.items()) if record.name == name), None)

    async def render_all(self, link: FarmLink) -> None:
        """Render until every frame is stored or the job is stopped.

        Raises
        ------
        ConnectionLostError
            If the scheduler is gone; call again with another link.
        LoomError
            If a frame failed too often, a file cannot be written, or no worker can go on.
        """
        tasks: dict[str, asyncio.Task[None]] = {}
        parting: list[asyncio.Task[None]] = []
        alone_s = time.monotonic()
        try:
            while not self.is_over:
                members, orders = await link.exchange(self.status())
                for order in orders:
                    self._obey(order)
                present = {member.address for member in members}
                for address in tasks.keys() - present:
                    parting.append(tasks.pop(address))
                    asyncio.get_running_loop().call_later(_PARTING_S, parting[-1].cancel)
                    self._ready.pop(address, None)
                for member in members:
                    if member.address not in tasks:
                        tasks[member.address] = asyncio.create_task(self._work_with(link, member))
                        if not self._ready:
                            self.state = "opening the model"
                for task in (*tasks.values(), *parting):
                    if (problem := _error_of(task)) is not None:
                        raise problem
                parting = [task for task in parting if not task.done()]
                self._check_workers(members)
                if members:
                    alone_s = time.monotonic()
                else:
                    self.state = "waiting for workers"
                    self._check_patience(time.monotonic() - alone_s)
                self._advanced()
                end_s = time.monotonic() + max(_EXCHANGE_S, len(members) / _MEMBERS_A_SECOND)
                while time.monotonic() < end_s and not self.is_over:
                    await self._control.wait(end_s - time.monotonic())
                    if any(map(_error_of, (*tasks.values(), *parting))):
                        break
        finally:
            if self.done < self.total:
                with suppress(FarmError):
                    await link.cancel([address for address in tasks if address in self._ready], self._work.identity)
                if tasks and self._control.is_stopped:  # what is finished by then is reported
                    await asyncio.wait(tasks.values(), timeout=_END_S)
            for task in (*tasks.values(), *parting):
                task.cancel()
            await asyncio.gather(*tasks.values(), *parting, return_exceptions=True)
            self._ready.clear()

    async def _work_with(self, link: FarmLink, member: Member) -> None:
        """Let a worker open the job and render chunks until it leaves or is set aside."""
        record = self.records.setdefault(member.name, WorkerRecord(member.name))
        if record.is_set_aside:
            return
        try:
            output = await self._opened(link, member.address, record)
        except (WorkerLostError, StationError) as error:
            self._note_failure(record, error)
            if isinstance(error, StationError) and not record.is_set_aside:
                await self._control.wait(_EXCHANGE_S)
                await self._work_with(link, member)
            return
        self._ready[member.address] = record
        self.state = "rendering"
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
            job=self._work.identity,
            manifest=manifest_bytes(self._work.settings, "unfinished", None),
            name=self._work.settings.name,
            folder=str(self._work.settings.folder.absolute()),
            model_id=self._work.settings.model.model_id,
            model_name=self._work.model.name,
            model_path=str(self._work.model.path),
            directions=self._work.model.directions,
            precision=self._work.precision,
        )
        for _ in range(_MODEL_TRIES):
            uploads = self._delivery.uploads
            opened: Opened = await link.call(
                address, "open", recipe, self._probe.token, priority=self._control.priority
            )
            if opened.has_model:
                record.device = opened.device
                is_shared = bool(opened.answer) and await asyncio.to_thread(self._probe.is_answered, opened.answer)
                return "shared" if is_shared else "returned"
            self.state = "sending the model"
            await self._delivery.bring(link, address, since=uploads)
        raise StationError(f"{record.name} could not keep the model {self._work.model.name}.")

    async def _lane(self, link: FarmLink, address: str, record: WorkerRecord, output: Output) -> None:
        """Give a worker one chunk after the other."""
        while not self.is_over and not record.is_set_aside:
            others = [other.name for other in self._ready.values() if other is not record and not other.is_set_aside]
            units = None
            if not self._control.is_paused:
                units = self._pool.take(
                    record, workers=len(others) + 1, others=others, is_returned=output == "returned"
                )
            if units is None:
                await self._control.wait(_LOOK_S)
                continue
            try:
                report = await self._rendered(link, address, units, output)
                await self._store(units, report, record, output)
                if report.is_cancelled:  # that worker is leaving, or the job is stopped
                    self._pool.give_back(set(units) - {unit.unit for unit in report.units})
                    return
            except WorkerLostError as error:
                self._origins.note_loss(units, record.device)
                self._pool.give_back(units)
                if error.has_died:
                    if address not in self._dead:  # once for both lanes
                        self._dead.add(address)
                        self._note_failure(record, error)
                    if self._pool.note_death(units, record.name):
                        raise self._fatal(units, error) from error
                self._control.note_change()
                return
            except StationError as error:
                self._pool.give_back(units)
                if error.is_cancelled:  # that worker is leaving
                    return
                self._fail(record, units, error)
            except BaseException:  # the worker has left, or the job is stopped
                self._origins.note_loss(units, record.device)
                self._pool.give_back(units)
                raise

    async def _rendered(self, link: FarmLink, address: str, units: range, output: Output) -> ChunkReport:
        size = self._pool.unit_frames
        chunk = Chunk(self._work.identity, units[0] * size, min((units[-1] + 1) * size, self.total), output)
        report: ChunkReport = await link.call(address, "render", chunk, priority=self._control.priority)
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
        reported = sorted(unit.unit for unit in report.units)
        if reported != list(units) and not (report.is_cancelled and set(reported) <= set(units)):
            raise StationError(f"{record.name} sent other frames than requested.")

        def store() -> None:
            if output == "returned":
                write_outputs({self._sink.unit_path(unit.unit): unit.data for unit in report.units}, self._disk)
                return
            for unit in report.units:
                path = self._sink.unit_path(unit.unit)
                if not path.is_file() or path.stat().st_size != unit.nbytes:
                    raise StationError(
                        f"{record.name} reported {path.name} as written, but the file is missing or incomplete."
                    )

        await asyncio.to_thread(store)
        for warning in report.warnings:
            self._tell(f"{record.name}: {warning}")
        self._origins.note(report.units, record.device)
        rendered = sum(unit.frames for unit in report.units if not unit.is_found)
        self.found += sum(unit.frames for unit in report.units if unit.is_found)
        self.done += sum(unit.frames for unit in report.units)
        record.note_chunk(rendered, report.seconds)
        self._advanced()
        self._control.note_change()

    def _fail(self, record: WorkerRecord, units: range, error: FarmError) -> None:
        """Take note of a chunk that failed; raise its error if it failed too often."""
        self._note_failure(record, error)
        if self._pool.note_failure(units, record.name):
            raise self._fatal(units, error) from error
        self._control.note_change()

    def _fatal(self, units: range, error: FarmError) -> ExportError:
        frame = units[0] * self._pool.unit_frames
        return ExportError(f"Frame {frame} failed three times: {error.sentence}", error.details)

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
        records = [self.records.get(member.name) for member in members]
        failed = [record for record in records if record is not None and record.is_set_aside]
        if members and len(failed) == len(members):
            raise FarmError(f"Every worker of the farm failed too often; the last one said: {failed[-1].last_error}")

    def _check_patience(self, alone_s: float) -> None:
        """Raise FarmError if there has been no worker for too long."""
        if self._work.workers_patience_s is not None and alone_s > self._work.workers_patience_s:
            raise FarmError("No worker of the farm has started; `latentloom doctor` says what is wrong with a device.")

    def _obey(self, order: Order) -> None:
        what, number = order
        if what == "pause":
            self._control.pause()
        elif what == "resume":
            self._control.resume()
        elif what == "priority":
            self._control.priority = number
        elif what == "cancel":
            self._tell("The job was cancelled from elsewhere.")
            self._control.stop(cancelled=True)

    def status(self) -> JobStatus:
        """Return the job's status, for all clients of the farm."""
        return JobStatus(
            self._work.identity,
            self._work.settings.name,
            "paused" if self._control.is_paused else self.state,
            self.done,
            self.total,
            self._describe(),
            self._control.priority,
            self.workers,
        )


def _error_of(task: asyncio.Task[None]) -> BaseException | None:
    """Return what a task failed with, None if it runs, is done or was cancelled."""
    return task.exception() if task.done() and not task.cancelled() else None
