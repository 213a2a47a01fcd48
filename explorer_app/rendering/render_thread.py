"""The one thread that owns the renderer: whatever touches the device happens here, one thing after the other.

What it does next, in this order::

    close                 finish pictures that were saved, end everything else and go
    another device        that is wished for, or found, or whose kernels are compiled now: see device_work.py
    a model to open       make its renderer, then close the former one
    other options         of the renderer
    an export's turn      if the last thing done was a preview: neither starves the other
    a preview request     the newest; older ones were replaced in the mailbox
    a comparison          of a picture that rests, in all the ways there are
    an export's turn
    a thumbnail           only when no preview was asked for lately

It waits on one condition for all of them. Nothing that goes wrong ends it: errors become news. When another renderer
takes over, the picture that was asked for last is rendered again.

A picture that is being rendered is given up, between two steps of the network::

    closing, another device or      any preview or thumbnail; closing also a frame of a sequence
    a model to open
    a preview request               a thumbnail, or a comparison on the processor
    a moving preview request        a preview at rest: the hand does not wait for a full picture
    one at rest                     a preview at rest, unless the one before was given up as well
    its job is cancelled            a frame of an export

A preview that was asked for while something moves is finished whatever the hand does next, and of previews at rest at
least every second one: so a drag that never pauses, or a key that is held, always has a picture to show. What was
given up goes back to where it waited, unless something newer is there; it is no error and no measured frame.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from explorer_app.rendering.backend import BackendLike
from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.device_work import DeviceWork
from explorer_app.rendering.export_queue import ExportJob, ExportQueue, ExportTurn
from explorer_app.rendering.export_work import ExportWork
from explorer_app.rendering.lifecycle import Lifecycle
from explorer_app.rendering.mailbox import Mailbox
from explorer_app.rendering.news import (
    Compared,
    CompareFailed,
    News,
    RenderFailed,
    ThumbnailFailed,
    ThumbnailMade,
)
from explorer_app.rendering.news_box import NewsBox
from explorer_app.rendering.preview_request import PreviewFrame, PreviewRequest
from explorer_app.rendering.thumbnail_orders import ThumbnailOrder, ThumbnailOrders
from explorer_app.rendering.thumbnails import shrink
from gpu_backend import CancelledError, DeviceLostError, DeviceMemoryError, Model, RenderRequest

if TYPE_CHECKING:
    from gpu_backend import RenderOptions

THUMBNAIL_REST_S = 0.15
"""Thumbnails wait until no preview was asked for this long."""

_END_S = 60.0
"""A picture that was just saved may take seconds; a driver that never answers must not keep the program from ending."""


class RenderThread(QObject):
    """Asks go in from the window's thread, frames and news come out there.

    Both signals are bare and emitted only if what they announce was empty before: connect them queued, to a slot that
    takes whatever is there.

    Parameters
    ----------
    backend
        Finds devices, compiles kernels and makes renderers; asked on threads that may wait for heavy imports.
    choice
        On which device a person wants pictures to be rendered.
    thumbnail_rest_s
        How long after a preview request thumbnails wait.
    """

    frame_ready = Signal()
    news_ready = Signal()

    def __init__(
        self,
        backend: BackendLike,
        choice: DeviceChoice | None = None,
        *,
        thumbnail_rest_s: float = THUMBNAIL_REST_S,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._thumbnail_rest_s = thumbnail_rest_s
        self._state = Lifecycle.NEW
        self._thread = threading.Thread(target=self._run, name="rendering", daemon=True)
        self._condition = threading.Condition()
        self._requests: Mailbox[PreviewRequest] = Mailbox(self._condition)
        self._frames: Mailbox[PreviewFrame] = Mailbox()
        self._models: Mailbox[Model] = Mailbox(self._condition)
        self._comparisons: Mailbox[RenderRequest] = Mailbox(self._condition)
        self._exports = ExportQueue(self._condition)
        self._orders = ThumbnailOrders(self._condition)
        self._news = NewsBox(self.news_ready.emit)
        self._awaited_model: Model | None = None
        self._last_preview_s = float("-inf")
        self._device = DeviceWork(backend, self._condition, choice or DeviceChoice(), self._news.tell)
        # Touched by the thread alone.
        self._keeper = self._device.keeper
        self._export_work = ExportWork(self._exports, self._news.tell)
        self._newest: PreviewRequest | None = None
        self._was_preview = False
        self._was_given_up = False

    # -- from the window's thread -----------------------------------------------------------------------------------

    @property
    def state(self) -> Lifecycle:
        """Where it is in its life."""
        return self._state

    @property
    def frames_dropped(self) -> int:
        """Frames that were rendered, but replaced by a newer one before they were taken."""
        return self._frames.dropped

    def start(self) -> None:
        """Begin to work. Does nothing after the first time."""
        if self._state is Lifecycle.NEW:
            self._state = Lifecycle.RUNNING
            self._thread.start()

    def close(self) -> None:
        """End exports as cancelled, free the device, wait for the thread. May be called twice, and before `start`.

        Waits for the step of the network that is under way, for a renderer that is being made, and for pictures that
        were saved.
        """
        if self._state is Lifecycle.RUNNING:
            with self._condition:
                self._state = Lifecycle.CLOSING
                self._condition.notify_all()
            self._thread.join(_END_S)
        self._news.close()
        self._state = Lifecycle.CLOSED

    def ask(self, request: RenderRequest, asked_s: float | None, *, at_rest: bool = False) -> None:
        """Ask for a picture; it takes the place of one that was asked for and not begun.

        One that nothing moves in (`at_rest`) is given up when another is asked for; one in a movement never is.
        """
        self._last_preview_s = time.monotonic()
        self._requests.put(PreviewRequest(request, asked_s, at_rest))

    def take_frame(self) -> PreviewFrame | None:
        """Take the newest frame, None if there is none that was not taken."""
        return self._frames.take()

    def take_news(self) -> list[News]:
        """Take all news, oldest first."""
        return self._news.take()

    def open(self, model: Model) -> None:
        """Make a renderer for a model and let it take over; the news tell how it went. The newest wins."""
        with self._condition:
            self._awaited_model = model
            self._models.put(model)

    def cancel_opening(self) -> None:
        """Leave the model that is open in place; one that is being prepared is thrown away when it is ready."""
        with self._condition:
            self._awaited_model = None
            self._models.clear()

    def use(self, choice: DeviceChoice) -> None:
        """Have pictures rendered on another device, or try one again; the news tell how it went. The newest wins."""
        self._device.use(choice)

    def set_options(self, options: RenderOptions) -> None:
        """Have pictures rendered in another way, on every device to come as well."""
        self._device.set_options(options)

    def compare(self, request: RenderRequest) -> None:
        """Have a picture rendered in every way there is; the news bring the comparison. The newest wins."""
        self._comparisons.put(request)

    def export(self, job: ExportJob, *, urgent: bool = False) -> None:
        """Render a job's frames, all of them, after the jobs that wait; urgent ones pass those."""
        self._exports.put(job, urgent=urgent)

    def cancel_export(self, job: ExportJob) -> None:
        """End a job and give up the frame that is being made; the news tell when."""
        self._exports.cancel(job)

    def ask_thumbnail(self, key: Hashable, request: Callable[[], RenderRequest]) -> None:
        """Have a small picture made when nothing else is to do. `request` is called on the thread, in its turn."""
        self._orders.put(ThumbnailOrder(key, request))

    def forget_thumbnails(self) -> None:
        """Make none of the small pictures that were asked for."""
        self._orders.clear()

    # -- on the thread ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._device.start()
            while (work := self._next_work()) is not None:
                work()
        finally:
            self._export_work.end_all()
            for mailbox in (self._requests, self._frames, self._models):
                mailbox.close()
            self._device.close()

    def _next_work(self) -> Callable[[], None] | None:
        """Wait for something to do and return it; None when it is time to go."""
        with self._condition:
            while True:
                if self._state is not Lifecycle.RUNNING:
                    return self._last_work()
                work = self._changing_work() or (self._rendering_work() if self._keeper.renderer is not None else None)
                if work is not None:
                    return work
                if self._keeper.renderer is not None:
                    self._device.look()
                self._condition.wait(self._seconds_to_wait())

    def _last_work(self) -> Callable[[], None] | None:
        turn = self._exports.last_turn() if self._keeper.renderer is not None else None
        return None if turn is None else lambda: self._export(turn)

    def _changing_work(self) -> Callable[[], None] | None:
        """Return what is to do that may change the renderer."""
        change = self._device.next(is_model_waiting=not self._models.is_empty)
        if change is not None:
            return lambda: self._swap(change)
        model = self._models.take() if self._is_model_ready() else None
        return None if model is None else lambda: self._keeper.open(model, lambda: self._is_wanted(model))

    def _rendering_work(self) -> Callable[[], None] | None:
        turn = self._exports.turn()
        if turn is None or not self._was_preview:
            asked = self._requests.take()
            if asked is not None:
                self._was_preview = True
                return lambda: self._render(asked)
        self._was_preview = False
        comparison = self._comparisons.take()
        if comparison is not None:
            return lambda: self._compare(comparison)
        if turn is not None:
            return lambda: self._export(turn)
        if self._seconds_to_thumbnail() == 0.0:
            order = self._orders.take()
            if order is not None:
                return lambda: self._make_thumbnail(order)
        return None

    def _seconds_to_thumbnail(self) -> float | None:
        """Return how long the next thumbnail has to wait; None if none is wanted."""
        if self._keeper.renderer is None or not len(self._orders):
            return None
        return max(0.0, self._last_preview_s + self._thumbnail_rest_s - time.monotonic())

    def _seconds_to_wait(self) -> float | None:
        """Return after how long there may be something to do of which nobody is notified."""
        if not self._models.is_empty:
            return self._device.seconds_to_open()
        return self._seconds_to_thumbnail()

    def _is_model_ready(self) -> bool:
        """Return whether a model is to be opened, and need not wait for a driver."""
        return not self._models.is_empty and self._device.seconds_to_open() == 0.0

    def _is_wanted(self, model: Model) -> bool:
        with self._condition:
            return model is self._awaited_model and self._state is Lifecycle.RUNNING

    def _swap(self, change: Callable[[], None]) -> None:
        """Change the renderer, and have the one that takes over show the picture that was asked for last."""
        former = self._keeper.renderer
        try:
            change()
        except Exception as error:
            self._failed(error, RenderFailed(error))
        if self._keeper.renderer is not former and self._newest is not None:
            request = replace(self._newest.request, measure_steps=False)
            self._requests.put_back(PreviewRequest(request, None, self._newest.is_at_rest))

    def _compare(self, request: RenderRequest) -> None:
        renderer = self._keeper.renderer
        if renderer is None or request.model_id != renderer.facts.model_id:
            return  # a late one, for a model that has gone
        # On a GPU it takes so short that the hand can wait, and so is done even while the picture never rests.
        abandoned = self._must_turn if self._keeper.is_on_gpu else self._is_in_the_way
        try:
            self._news.tell(Compared(renderer.compare(request, abandoned=abandoned)))
        except CancelledError:
            self._comparisons.put_back(request)
        except DeviceMemoryError as error:
            self._news.tell(CompareFailed(error))  # two kinds of kernels take more memory than pictures do
        except Exception as error:
            self._failed(error, CompareFailed(error))

    def _render(self, asked: PreviewRequest) -> None:
        renderer = self._keeper.renderer
        if renderer is None or asked.request.model_id != renderer.facts.model_id:
            return  # a late request, for a model that has gone
        self._newest = asked
        try:
            frame = renderer.render(asked.request, abandoned=lambda: self._gives_way(asked))
        except CancelledError:
            self._was_given_up = True
            self._was_preview = False  # so that what it gave way to comes before an export's turn
            self._requests.put_back(asked)
            return
        except Exception as error:
            self._failed(error, RenderFailed(error))
            return
        self._was_given_up = False
        if self._frames.put(PreviewFrame(frame, asked.asked_s)) and self._state is not Lifecycle.CLOSED:
            self.frame_ready.emit()
        self._keeper.note_picture()
        if frame.timings.steps:
            self._keeper.look_at_memory()

    def _must_turn(self) -> bool:
        """Return whether something waits that no picture may hold up: the end, another device, or a model."""
        return self._state is not Lifecycle.RUNNING or self._is_model_ready() or self._device.is_waiting

    def _is_in_the_way(self) -> bool:
        """Return whether what nobody looks at holds up something else."""
        return self._must_turn() or not self._requests.is_empty

    def _gives_way(self, asked: PreviewRequest) -> bool:
        if self._must_turn():
            return True
        newer = self._requests.peek() if asked.is_at_rest else None
        if newer is None or newer.request == asked.request:
            return False
        return not (newer.is_at_rest and self._was_given_up)

    def _export(self, turn: ExportTurn) -> None:
        renderer = self._keeper.renderer
        try:
            if turn.is_cancelled or renderer is None:
                self._export_work.end(turn.job, is_cancelled=True)
            else:
                self._export_work.advance(turn.job, renderer, is_closing=lambda: self._state is not Lifecycle.RUNNING)
        except (DeviceLostError, DeviceMemoryError) as error:
            self._falls_back(error)

    def _make_thumbnail(self, order: ThumbnailOrder) -> None:
        renderer = self._keeper.renderer
        try:
            request = order.request()
            if renderer is None or request.model_id != renderer.facts.model_id:
                return
            frame = renderer.render(request, abandoned=self._is_in_the_way)
            self._news.tell(ThumbnailMade(order.key, shrink(frame)))
        except CancelledError:
            self._orders.put_back(order)
        except Exception as error:
            if self._falls_back(error):
                self._orders.put_back(order)
            else:
                self._news.tell(ThumbnailFailed(order.key, error))

    def _failed(self, error: Exception, news: News) -> None:
        """Tell the news, unless it was the GPU that failed."""
        if not self._falls_back(error):
            self._news.tell(news)

    def _falls_back(self, error: Exception) -> bool:
        """Go on with the processor if the GPU failed; return whether it did."""
        is_failure = isinstance(error, DeviceLostError | DeviceMemoryError) and self._keeper.is_on_gpu
        if is_failure:
            self._swap(lambda: self._keeper.fall_back(error))
        return is_failure
