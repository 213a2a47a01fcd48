"""The thread that owns the renderer: everything that touches the device runs here, one step of a task at a time.

A `TaskQueue` chooses the task; `tasks/` has the tasks and their order. It waits on one condition for all of them.
No error ends the thread: errors become events. Nothing on it waits for a disk, an encoder or a socket.

A step in progress is cancelled, between two steps of the network, when a task that it yields to is ready::

    closing                 every step but that of a picture that was saved
    DEVICE, MODEL           a preview, a thumbnail, a comparison
    PREVIEW                 a burst of a drag or a projection, a thumbnail, a final picture of a grid, and on the CPU
                            a comparison
    a newer preview         a preview at rest, unless the one before was cancelled as well
    its job is cancelled    a frame of an export

A cancelled request is queued again unless there is a newer one; it is not an error and not a measured frame.
When another renderer takes over, the newest requested picture is rendered again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from explorer_app.rendering.backend import BackendLike, LadderLike, TuningLike
from explorer_app.rendering.device_choice import DeviceChoice, precision_of
from explorer_app.rendering.device_work import DeviceWork
from explorer_app.rendering.event_queue import EventQueue
from explorer_app.rendering.export_job import ExportJob
from explorer_app.rendering.lifecycle import Lifecycle
from explorer_app.rendering.mailbox import Mailbox
from explorer_app.rendering.preview_request import PreviewFrame, PreviewRequest
from explorer_app.rendering.render_events import RenderEvent, RenderFailed
from explorer_app.rendering.tasks.comparison import ComparisonTask
from explorer_app.rendering.tasks.counters import CountersTask
from explorer_app.rendering.tasks.device import DeviceTask, FindDevicesTask, OpenModelTask, OptionsTask, SelfCheckTask
from explorer_app.rendering.tasks.directions import DirectionsTask
from explorer_app.rendering.tasks.drag import DragLike, DragTask
from explorer_app.rendering.tasks.export import ExportTask, SavePictureTask
from explorer_app.rendering.tasks.grid import GridOrder, GridTask
from explorer_app.rendering.tasks.learning import LearningTask, TrainingLike
from explorer_app.rendering.tasks.maps import MapsRequest, MapsTask
from explorer_app.rendering.tasks.measuring import LadderTask, TuningTask
from explorer_app.rendering.tasks.preview import PreviewTask
from explorer_app.rendering.tasks.preview_rest import PreviewRest
from explorer_app.rendering.tasks.projection import ProjectionLike, ProjectionTask
from explorer_app.rendering.tasks.rows import RowsTask
from explorer_app.rendering.tasks.task import RenderTask
from explorer_app.rendering.tasks.task_queue import TaskQueue
from explorer_app.rendering.tasks.thumbnail import ThumbnailTask
from explorer_app.rendering.thumbnails import THUMBNAIL_PX
from gpu_backend import DeviceError, DeviceLostError, DeviceMemoryError, Frame, RenderRequest

if TYPE_CHECKING:
    from gpu_backend import DirectionFinder, Model, RenderOptions

THUMBNAIL_REST_S = 0.15
"""Thumbnails wait until no preview was requested by hand for this long, in seconds."""

_END_S = 60.0
"""Saving a picture may take seconds; a driver that hangs must not block the exit."""


class RenderThread(QObject):
    """Receives requests from the GUI thread, and returns frames and events to it.

    Both signals carry nothing and are emitted only if nothing was waiting before: connect them queued, to a slot that
    takes everything.

    Parameters
    ----------
    backend
        Finds devices, compiles kernels and makes renderers; called on threads that may wait for heavy imports.
    choice
        The chosen device.
    thumbnail_rest_s
        How long after a preview request by hand thumbnails and other work that needs rest wait, in seconds.
    """

    frame_ready = Signal()
    events_ready = Signal()

    def __init__(
        self,
        backend: BackendLike,
        choice: DeviceChoice | None = None,
        *,
        thumbnail_rest_s: float = THUMBNAIL_REST_S,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._backend = backend
        self._state = Lifecycle.NEW
        self._thread = threading.Thread(target=self._run, name="rendering", daemon=True)
        self._condition = threading.Condition()
        self._frames: Mailbox[PreviewFrame] = Mailbox()
        self._finish_draft: Callable[[Frame], Frame] = lambda draft: draft
        self._events = EventQueue(self.events_ready.emit)
        self._device = DeviceWork(backend, self._condition, choice or DeviceChoice(), self._events.put)
        self._manager = self._device.manager
        self._rest = PreviewRest(thumbnail_rest_s)
        report, recovers = self._events.put, self._falls_back
        self._preview = PreviewTask(self._condition, self._show, report, recovers)
        self._drag = DragTask(self._condition, report)
        self._projection = ProjectionTask(self._condition, report)
        self._learning = LearningTask(self._condition, report)
        self._maps = MapsTask(self._condition, report, recovers)
        self._comparison = ComparisonTask(self._condition, report, recovers)
        self._counters = CountersTask(self._condition, report, recovers)
        self._pictures = SavePictureTask(self._condition, report, recovers)
        self._exports = ExportTask(self._condition, report, recovers)
        self._rows = RowsTask(self._condition, report, recovers)
        self._directions = DirectionsTask(self._condition, report, recovers)
        self._thumbnails = ThumbnailTask(self._condition, report, recovers, self._rest)
        self._grid = GridTask(self._condition, report, recovers, self._finished, self._rest)
        self._tuning = TuningTask(self._condition, report, self._rest)
        self._ladder = LadderTask(self._condition, report, self._rest)
        self._opening = OpenModelTask(self._condition, self._device, lambda: self._state is Lifecycle.RUNNING)
        self._queue = TaskQueue(
            self._condition,
            (
                DeviceTask(self._device, self._opening, self._swap),
                self._opening,
                OptionsTask(self._device, self._swap),
                SelfCheckTask(self._device, self._swap),
                self._preview,
                self._drag,
                self._comparison,
                self._counters,
                self._maps,
                self._pictures,
                self._rows,
                self._grid,
                self._thumbnails,
                self._projection,
                self._exports,
                self._directions,
                self._learning,
                self._tuning,
                self._ladder,
                FindDevicesTask(self._device),
            ),
            has_renderer=lambda: self._manager.renderer is not None,
            is_closing=lambda: self._state is not Lifecycle.RUNNING,
            seconds_to_rest=self._preview.seconds_to_rest,
        )

    # -- from the GUI thread ----------------------------------------------------------------------------------------

    @property
    def state(self) -> Lifecycle:
        """Where it is in its life."""
        return self._state

    @property
    def model(self) -> Model | None:
        """The model that is rendered; None before the first."""
        return self._manager.model

    @property
    def frames_dropped(self) -> int:
        """Frames that were rendered, but replaced by a newer one before they were taken."""
        return self._frames.dropped

    def start(self) -> None:
        """Start the thread. Does nothing after the first time."""
        if self._state is Lifecycle.NEW:
            self._state = Lifecycle.RUNNING
            self._thread.start()

    def close(self) -> None:
        """Stop exports, free the device, wait for the thread. May be called twice, and before `start`.

        Waits for the step of the network that is under way, for a renderer that is being made, and for pictures that
        were saved; never for a disk.
        """
        if self._state is Lifecycle.RUNNING:
            with self._condition:
                self._state = Lifecycle.CLOSING
                self._condition.notify_all()
        if self._state is Lifecycle.CLOSING:  # also when Ctrl+C ended the wait of the first call
            self._thread.join(_END_S)
        self._events.close()
        self._state = Lifecycle.CLOSED

    def submit(
        self, request: RenderRequest, requested_s: float | None, *, at_rest: bool = False, by_hand: bool = True
    ) -> None:
        """Request a picture; it replaces a request that has not begun.

        A picture at rest (`at_rest`) is cancelled by a newer request; one of a gesture never is. Thumbnails wait for a
        moment after a request `by_hand` or of playback. A search requests pictures faster than that on a GPU.
        """
        if by_hand:
            self._rest.note_request()
        self._preview.request(PreviewRequest(request, requested_s, at_rest))

    def finish_drafts_with(self, finish: Callable[[Frame], Frame]) -> None:
        """Finish each draft by a function on the render thread, which keeps the work off the GUI thread."""
        self._finish_draft = finish

    def take_frame(self) -> PreviewFrame | None:
        """Take the newest frame, None if it was taken already."""
        return self._frames.take()

    def wait_for_frame(self, timeout_s: float) -> bool:
        """Wait until there is a frame to take; return False if the time is over."""
        return self._frames.wait_for_item(timeout_s)

    def take_events(self) -> list[RenderEvent]:
        """Take all events, oldest first."""
        return self._events.take()

    def open(self, model: Model) -> None:
        """Make a renderer for a model and let it take over; an event reports the result. The newest wins."""
        self._opening.open(model)

    def cancel_opening(self) -> None:
        """Keep the open model; one that is being prepared is dropped when it is ready."""
        self._opening.cancel()

    def use(self, choice: DeviceChoice) -> None:
        """Render on another device, or try one again; an event reports the result. The newest wins."""
        self._device.use(choice)

    def set_options(self, options: RenderOptions) -> None:
        """Render in another way, also on devices chosen later."""
        self._device.set_options(options)

    def compare(self, request: RenderRequest) -> None:
        """Render a picture in every way; an event has the comparison. The newest wins."""
        self._comparison.request(request)

    def measure_counters(self, request: RenderRequest) -> None:
        """Measure the hardware counters of a picture's kernels; an event reports the end. The newest wins."""
        self._counters.request(request)

    def request_maps(self, request: RenderRequest, layer: str) -> None:
        """Render the channels of a layer as small pictures; an event has them. The newest wins."""
        self._maps.request(MapsRequest(request, layer))

    def export(self, job: ExportJob, *, urgent: bool = False) -> None:
        """Render all frames of a job after the jobs that wait; an urgent job comes before them."""
        (self._pictures if urgent else self._exports).put(job)

    def cancel_export(self, job: ExportJob) -> None:
        """End a job and cancel the frame that is being made; an event reports the end."""
        for exports in (self._pictures, self._exports):
            exports.cancel(job)

    def find_directions(self, finder: DirectionFinder) -> None:
        """Search directions with the open model; events report progress and result. The newest wins."""
        self._directions.request(finder)

    def cancel_directions(self) -> None:
        """End the search for directions, without an event."""
        self._directions.cancel()

    def begin_drag(self, number: int, make: Callable[[], DragLike]) -> None:
        """Drag points of the picture; events report handles and latents. The newest wins; see `DragTask`.

        `make` creates the optimiser, on its own thread. Events carry `number`, which is at least 0.
        """
        self._drag.begin(number, make)

    def aim_drag(self, index: int, target: tuple[float, float]) -> None:
        """Move the target (x, y) of a handle of the drag, in pixels of the full picture."""
        self._drag.aim(index, target)

    def end_drag(self) -> None:
        """End the drag, without an event."""
        self._drag.cancel()

    def begin_projection(self, number: int, make: Callable[[], ProjectionLike]) -> None:
        """Search the rows of w for a photo; events report the best so far. The newest wins; see `ProjectionTask`.

        `make` creates the projection, on its own thread. Events carry `number`, which is at least 0.
        """
        self._projection.begin(number, make)

    def stop_projection(self) -> None:
        """End the projection with the best latent so far, in an event."""
        self._projection.stop()

    def cancel_projection(self) -> None:
        """End the projection, without an event."""
        self._projection.cancel()

    def begin_learning(self, number: int, make: Callable[[], TrainingLike]) -> None:
        """Train an encoder of the open model while nothing moves; events report progress and the best one at the end.

        `make` makes the training on a thread of its own. Events carry `number`, which is at least 0.
        """
        self._learning.begin(number, make)

    def stop_learning(self) -> None:
        """End the training with the best encoder so far, in an event."""
        self._learning.stop()

    def cancel_learning(self) -> None:
        """End the training, without an event."""
        self._learning.cancel()

    def tune(self, budget_s: float) -> None:
        """Search for the fastest tiles of the open model on this GPU while pictures rest; events report the findings.

        Stops by itself after `budget_s` seconds of work, roughly.
        """
        self._tuning.put(partial(self._make_tuning, budget_s))

    def stop_tuning(self) -> None:
        """End the search for the fastest tiles; an event reports it."""
        self._tuning.stop()

    def measure_ladder(self) -> None:
        """Measure what each optimisation gains with the open model while pictures rest; events report the rungs."""
        self._ladder.put(self._make_ladder)

    def stop_ladder(self) -> None:
        """End measuring the ladder; an event reports it."""
        self._ladder.stop()

    def request_rows(self, number: int, requests: Sequence[Callable[[], RenderRequest]]) -> None:
        """Compute the rows of w of latents; an event of the same number has them. None is dropped; see `RowsTask`."""
        self._rows.request(number, requests)

    def forget_rows(self) -> None:
        """Drop all requests for rows of w, without an event."""
        self._rows.clear()

    def request_thumbnail(
        self, key: Hashable, request: Callable[[], RenderRequest], side_px: int | None = THUMBNAIL_PX
    ) -> None:
        """Make a small picture while pictures rest. `request` is called on the render thread, just before it.

        The picture is shrunk to `side_px`; None leaves it as large as it is rendered.
        """
        self._thumbnails.request(key, request, side_px)

    def request_grid(self, order: GridOrder) -> None:
        """Render the pictures of a grid, drafts first; events have them. The newest order wins."""
        self._grid.request(order)

    def forget_grid(self) -> None:
        """Drop the pictures of a grid that wait."""
        self._grid.forget()

    def forget_thumbnails(self) -> None:
        """Drop all requests for small pictures."""
        self._thumbnails.clear()

    # -- on the render thread ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._device.start()
            while (task := self._next_task()) is not None:
                began_s = time.monotonic()
                done = task.step(self._manager.renderer, partial(self._queue.should_yield, task))
                self._queue.note_step(task, done, time.monotonic() - began_s)
        finally:
            self._queue.close()
            self._frames.close()
            self._device.close()

    def _make_tuning(self, budget_s: float) -> TuningLike:
        """Make a tuning of the open model, on any thread. Raises DeviceError."""
        model, renderer = self._manager.model, self._manager.renderer
        if model is None or renderer is None or not self._manager.is_on_gpu:
            raise DeviceError("Tuning is for a GPU that renders, but none does; choose a GPU in the device menu.")
        device = renderer.device
        return self._backend.make_tuning(model, DeviceChoice(device.id, precision_of(device.precision)), budget_s)

    def _make_ladder(self) -> LadderLike:
        """Make a ladder of the open model on the device that renders, on any thread. Raises DeviceError."""
        model, renderer = self._manager.model, self._manager.renderer
        if model is None or renderer is None:
            raise DeviceError("Measuring needs an open model.")
        return self._backend.make_ladder(model, renderer.device.id)

    def _next_task(self) -> RenderTask | None:
        """Wait for a ready task and return it; None when the thread is to end."""
        with self._condition:
            while True:
                task = self._queue.next()
                if task is not None or self._state is not Lifecycle.RUNNING:
                    return task
                self._condition.wait(self._queue.seconds_to_wait())

    def _show(self, frame: PreviewFrame) -> None:
        """Put a frame into the mailbox of the GUI thread."""
        if frame.frame.is_draft:
            frame = replace(frame, shown=self._finished(frame.frame))
        if self._frames.put(frame) and self._state is not Lifecycle.CLOSED:
            self.frame_ready.emit()
        self._manager.note_picture()
        if frame.frame.timings.steps:
            self._manager.look_at_memory()

    def _finished(self, draft: Frame) -> Frame:
        """Return a draft as it is shown."""
        return self._finish_draft(draft)

    def _swap(self, change: Callable[[], None]) -> None:
        """Change the renderer, and repeat the newest request with the new one."""
        former = self._manager.renderer
        try:
            change()
        except Exception as error:
            if not self._falls_back(error):
                self._events.put(RenderFailed(error))
        if self._manager.renderer is not former:
            self._preview.request_again()

    def _falls_back(self, error: Exception) -> bool:
        """Fall back on the CPU if the GPU failed; return whether it did."""
        is_failure = isinstance(error, DeviceLostError | DeviceMemoryError) and self._manager.is_on_gpu
        if is_failure:
            self._swap(lambda: self._manager.fall_back(error))
        return is_failure
