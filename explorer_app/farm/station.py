"""A worker's side of a farm: a renderer, the models that it keeps, and its encoders. Knows nothing of Dask.

Calls come on any thread, two chunks at a time. One thread owns the device: the second chunk's frames are rendered while
the first one's last files are encoded and written.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpu_backend
from explorer_app.exporting.destination import sink_of
from explorer_app.exporting.manifest import manifest_of
from explorer_app.exporting.output_file import output_error
from explorer_app.exporting.sequence import MANIFEST_SUFFIX, SequencePlan, plan_sequence
from explorer_app.exporting.sinks.picture_folder import PictureFolder
from explorer_app.exporting.sinks.video_file import VideoFile
from explorer_app.farm.encoding import PictureEncoder, UnitEncoder, encoder_of
from explorer_app.farm.errors import FarmError
from explorer_app.farm.folder_probe import answered
from explorer_app.farm.model_store import ModelStore
from explorer_app.farm.work import Chunk, ChunkReport, JobRecipe, Opened, StoredUnit
from explorer_app.rendering.backend import Backend, BackendLike
from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.pipeline import Pipeline
from explorer_app.rendering.renderer_like import PROCESSOR_ID, RendererLike
from explorer_app.version import __version__
from gpu_backend import (
    CancelledError,
    DeviceLostError,
    Disk,
    FileGroup,
    Frame,
    LoomError,
    Model,
    ModelFileError,
    RenderRequest,
    dataclass,
    read_model,
)

if TYPE_CHECKING:
    from gpu_backend import DeviceRate

_KEPT_JOBS = 8
_WAITING_PER_THREAD = 2
_DISK_LOOK_S = 0.005
_END = object()

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Job:
    recipe: JobRecipe
    plan: SequencePlan
    sink: PictureFolder | VideoFile
    encoder: UnitEncoder


class Station:
    """Renders chunks of jobs.

    Parameters
    ----------
    choice
        The device of this worker; the precision is the job's.
    store
        Models that were sent to this machine.
    threads
        Pictures that are encoded at a time.
    backend
        Makes renderers.
    disk
        The file operations.
    """

    def __init__(
        self,
        choice: DeviceChoice,
        store: ModelStore | None = None,
        *,
        threads: int = 2,
        backend: BackendLike | None = None,
        disk: Disk | None = None,
    ) -> None:
        self._choice = choice
        self._store = store or ModelStore()
        self._threads = threads
        self._backend = backend or Backend()
        self._disk = disk or Disk()
        self._jobs: dict[str, _Job] = {}
        self._cancelled: set[str] = set()
        self._is_closing = False
        self._renderer: RendererLike | None = None
        self._rendered_with: tuple[str, str, bytes] | None = None
        self._device_rate: DeviceRate | None = None
        self._render_thread = ThreadPoolExecutor(1, "farm-render")
        self._encoders = ThreadPoolExecutor(threads, "farm-encoder")
        self.is_broken = False
        """The device was lost; this process can no longer use it."""

    # -- models -----------------------------------------------------------------------------------------------------

    def identity(self) -> str:
        """Return a text that is equal for workers that share one model store."""
        return self._store.identity

    def begin_model(self) -> None:
        """Expect the pieces of a model."""
        self._store.begin()

    def add_piece(self, offset: int, data: bytes) -> None:
        """Keep a piece of it."""
        self._store.add_piece(offset, data)

    def finish_model(self, model_id: str, suffix: str) -> None:
        """Verify it. Raises FarmError."""
        self._store.finish(model_id, suffix)

    # -- jobs -------------------------------------------------------------------------------------------------------

    def open(self, recipe: JobRecipe, token: str = "") -> Opened:
        """Get ready for a job: its plan, a renderer for its model, and a look at its folder.

        Parameters
        ----------
        token
            Text of the file in the job's folder that `FolderProbe` placed there; empty if the job places none.

        Raises
        ------
        LoomError
            If the manifest is damaged, the model cannot be run, or the device fails.
        """
        folder = Path(recipe.folder)
        settings = manifest_of(recipe.manifest, folder / f"{recipe.name}{MANIFEST_SUFFIX}").settings
        self._cancelled.discard(recipe.job)
        found = self._render_thread.submit(self._ready_renderer, recipe).result()
        if found is None:
            return Opened(has_model=False)
        plan = plan_sequence(settings)
        sink = sink_of(settings, self._disk, self._threads)
        self._jobs[recipe.job] = _Job(recipe, plan, sink, encoder_of(plan, sink))
        while len(self._jobs) > _KEPT_JOBS:
            self._jobs.pop(next(iter(self._jobs)))
        return Opened(True, found, answered(folder, recipe.job, token) if token else "")

    def render(self, chunk: Chunk) -> ChunkReport:
        """Render the missing frames of a chunk, encode them, and write or return the files.

        After `cancel`, and while this station closes, the report has what is finished by then.

        Raises
        ------
        LoomError
            If a frame cannot be rendered or a file not be written.
        """
        job = self._jobs.get(chunk.job)
        if job is None:
            raise FarmError("This worker no longer knows the job.")
        found, missing = self._missing(job, chunk)
        started: list[float] = []
        warnings: dict[str, None] = {}
        files = _ChunkFiles(job.sink, self._disk) if chunk.output == "shared" else None
        prepare = job.encoder.prepare
        if files is not None and isinstance(job.encoder, PictureEncoder):
            prepare = partial(_encoded_and_kept, job.encoder, files)  # written by the thread that encodes it
        work = _FrameQueue(prepare, self._encoders, self._threads * (1 + _WAITING_PER_THREAD))

        def should_cancel() -> bool:
            return self._is_closing or work.is_over or chunk.job in self._cancelled

        rendering = self._render_thread.submit(
            self._render_frames, job, missing, work, should_cancel, started, warnings
        )
        units: list[StoredUnit] = []
        try:
            for unit, made in job.encoder.units(iter(work), len(job.plan)):
                frames = min(job.encoder.unit_frames, len(job.plan) - unit * job.encoder.unit_frames)
                if files is None:
                    units.append(StoredUnit(unit, frames, len(made), made))
                else:
                    units.append(StoredUnit(unit, frames, made if isinstance(made, int) else files.keep(unit, made)))
        except BaseException as error:
            work.give_up()
            with suppress(LoomError):
                rendering.result()
            if files is not None:
                files.close()
            if isinstance(error, LoomError) or not isinstance(error, Exception):
                raise
            raise FarmError(_told(error), str(error)) from error
        is_cancelled = False
        try:
            rendering.result()
        except CancelledError:
            is_cancelled = True
        finally:
            if files is not None:
                files.close()
        if files is not None:
            files.check()
        seconds = time.monotonic() - started[0] if started else 0.0
        return ChunkReport((*found, *units), seconds, tuple(warnings), is_cancelled)

    def sample(self, job_id: str, index: int) -> tuple[int, int, bytes]:
        """Return width, height and pixels (B, G, R, X) of one frame, for a comparison of workers. Raises LoomError."""
        job = self._jobs.get(job_id)
        if job is None:
            raise FarmError("This worker no longer knows the job.")
        frame = self._render_thread.submit(self._sample, job, index).result()
        return frame.width, frame.height, frame.pixels.tobytes()

    def render_to_device(self, recipe: JobRecipe, pictures: int, batch: int) -> int:
        """Render at least `pictures` pictures without copying them to the host; return how many. For a benchmark."""
        return self._render_thread.submit(self._render_to_device, recipe, pictures, batch).result()

    def end_benchmark(self) -> None:
        """Free what `render_to_device` keeps."""
        self._render_thread.submit(self._end_benchmark).result()

    def cancel(self, job_id: str) -> None:
        """Give up the chunks of a job soon; the same job may be opened again."""
        self._cancelled.add(job_id)

    def close(self) -> None:
        """Give up what is under way, and free the device. May be called twice."""
        self._is_closing = True
        with suppress(RuntimeError):  # the second time
            self._render_thread.submit(self._end_benchmark).result()
            self._render_thread.submit(self._close_renderer).result()
        self._render_thread.shutdown()
        self._encoders.shutdown()

    # -- on the render thread ---------------------------------------------------------------------------------------

    def _ready_renderer(self, recipe: JobRecipe) -> str | None:
        """Open a job's model unless it is open, and return what renders; None if the model is not here."""
        wanted = (recipe.model_id, recipe.precision, recipe.directions)
        if self._renderer is None or self._rendered_with != wanted:
            model = self._model_of(recipe)
            if model is None:
                return None
            self._close_renderer()
            choice = replace(self._choice, precision=recipe.precision)
            try:
                if choice.wants_gpu:
                    self._backend.compile_kernels(
                        model, choice, progress=lambda done, total: None, should_cancel=lambda: self._is_closing
                    )
                self._renderer = self._backend.make_renderer(model, choice)
            except DeviceLostError:
                self.is_broken = True
                raise
            self._rendered_with = wanted
            _log.info("%s is open on %s.", recipe.model_name, self._renderer.device.name)
        device = self._renderer.device
        driver = f", driver {device.driver}" if device.driver and device.id != PROCESSOR_ID else ""
        return f"{device.name}{driver}, {device.precision}, Latent Loom {__version__}"

    def _renderer_of(self, job: _Job) -> RendererLike:
        """Return the renderer of a job, whose model is opened again if another job's call came between.

        Raises
        ------
        LoomError
            If the model is gone, cannot be run, or the device fails.
        """
        if self._ready_renderer(job.recipe) is None or self._renderer is None:
            raise FarmError("This worker has lost the job's model.")
        return self._renderer

    def _model_of(self, recipe: JobRecipe) -> Model | None:
        for path in self._store.candidates(recipe.model_id, recipe.model_name, recipe.model_path):
            try:
                model = read_model(path)
            except ModelFileError:
                continue
            if model.facts.model_id != recipe.model_id:
                continue
            directions = None
            if recipe.directions:
                directions = gpu_backend.read_directions(
                    self._store.keep_directions(recipe.model_id, recipe.directions),
                    recipe.model_id,
                    model.facts.w_dim,
                    model.facts.num_ws,
                )
            names = () if directions is None else directions.names
            return replace(model, directions=directions, facts=replace(model.facts, named_directions=names))
        return None

    def _render_frames(
        self,
        job: _Job,
        indices: list[int],
        work: _FrameQueue,
        should_cancel: Callable[[], bool],
        started: list[float],
        warnings: dict[str, None],
    ) -> None:
        try:
            started.append(time.monotonic())
            renderer = self._renderer_of(job)
            waiting_indices = deque(indices)
            waiting: deque[int] = deque()

            def next_request() -> RenderRequest | None:
                if not waiting_indices:
                    return None
                waiting.append(waiting_indices.popleft())
                return job.plan.request(waiting[-1])

            pipeline = Pipeline(next_request)
            try:
                while (frame := pipeline.next_frame(renderer, should_cancel=should_cancel)) is not None:
                    warnings.update(dict.fromkeys(frame.warnings))
                    index = waiting.popleft()
                    if should_cancel():
                        raise CancelledError("The chunk was cancelled.")
                    work.add(index, frame)
            finally:
                pipeline.close()
        except DeviceLostError:
            self.is_broken = True
            raise
        finally:
            work.end()

    def _sample(self, job: _Job, index: int) -> Frame:
        return self._renderer_of(job).render(job.plan.request(index), should_cancel=lambda: self._is_closing)

    def _render_to_device(self, recipe: JobRecipe, pictures: int, batch: int) -> int:
        if self._device_rate is None:
            model = self._model_of(recipe)
            if model is None:
                raise FarmError("This worker has lost the job's model.")
            self._device_rate = gpu_backend.DeviceRate(model, self._choice.device, recipe.precision, batch)
        return self._device_rate.render(pictures)

    def _end_benchmark(self) -> None:
        rate, self._device_rate = self._device_rate, None
        if rate is not None:
            rate.close()

    def _close_renderer(self) -> None:
        renderer, self._renderer, self._rendered_with = self._renderer, None, None
        if renderer is not None:
            renderer.close()

    # -- files ------------------------------------------------------------------------------------------------------

    def _missing(self, job: _Job, chunk: Chunk) -> tuple[list[StoredUnit], list[int]]:
        """Return the units of a chunk that are stored already, and the frames of the others."""
        found: list[StoredUnit] = []
        missing: list[int] = []
        size, total = job.encoder.unit_frames, len(job.plan)
        for unit in range(chunk.start // size, -(-chunk.stop // size)):
            frames = range(unit * size, min((unit + 1) * size, total))
            if chunk.output == "shared" and job.sink.is_stored(unit, job.plan):
                nbytes = job.sink.unit_path(unit).stat().st_size
                found.append(StoredUnit(unit, len(frames), nbytes, is_found=True))
            else:
                missing += frames
        return found, missing


class _ChunkFiles:
    """The files of a chunk, flushed together. Safe on any thread."""

    def __init__(self, sink: PictureFolder | VideoFile, disk: Disk) -> None:
        self._sink = sink
        self._group = FileGroup(sink.unit_path(0).parent, disk)

    def keep(self, unit: int, data: bytes) -> int:
        """Write a unit's file, once the disk keeps up; return its size. Raises ExportError."""
        path = self._sink.unit_path(unit)
        try:
            while not self._group.has_room and self._group.error is None:
                time.sleep(_DISK_LOOK_S)
            self._group.add(path.name, data)
        except OSError as error:
            raise output_error(error, path) from error
        return len(data)

    def close(self) -> None:
        """Bring the files into place."""
        self._group.close()

    def check(self) -> None:
        """Raise ExportError if a file did not come into place."""
        error = self._group.error
        if isinstance(error, OSError):
            raise output_error(error, self._sink.unit_path(0).with_name(Path(str(error.filename)).name)) from error
        if error is not None:
            raise error


def _encoded_and_kept(encoder: PictureEncoder, files: _ChunkFiles, index: int, frame: Frame) -> int:
    return files.keep(index, encoder.prepare(index, frame))


class _FrameQueue:
    """Rendered frames on their way through the encoders, in order. The render thread waits if they lag behind."""

    def __init__(self, prepare: Callable[[int, Frame], Any], encoders: ThreadPoolExecutor, room: int) -> None:
        self._prepare = prepare
        self._encoders = encoders
        self._room = threading.Semaphore(room)
        self._frames: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.is_over = False

    def add(self, index: int, frame: Frame) -> None:
        while not self._room.acquire(timeout=0.2):
            if self.is_over:
                raise CancelledError("The chunk was cancelled.")
        self._frames.put((index, self._encoders.submit(partial(self._prepare, index, frame))))

    def end(self) -> None:
        self._frames.put(_END)

    def give_up(self) -> None:
        self.is_over = True

    def __iter__(self) -> Iterator[tuple[int, Future[Any]]]:
        while (item := self._frames.get()) is not _END:
            yield item
            self._room.release()


def _told(error: BaseException) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return f"A chunk could not be encoded ({text})."
