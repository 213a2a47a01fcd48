"""The one thread that owns the renderer: whatever touches the device happens here, one thing after the other.

What it does next, in this order::

    close                 finish pictures that were saved, end everything else and go
    a model to open       make its renderer, then close the former one
    an export's turn      if the last thing done was a preview: neither starves the other
    a preview request     the newest; older ones were replaced in the mailbox
    an export's turn
    a thumbnail           only when no preview was asked for lately

It waits on one condition for all of them. Nothing that goes wrong ends it: errors become news.

A picture that is being rendered is given up, between two steps of the network::

    closing, or a model to open     any preview or thumbnail; closing also a frame of a sequence
    a preview request               a thumbnail
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
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum, auto

from PySide6.QtCore import QObject, Signal

from explorer_app.rendering.export_queue import ExportJob, ExportQueue, ExportTurn
from explorer_app.rendering.mailbox import Mailbox
from explorer_app.rendering.news import (
    ExportAdvanced,
    ExportEnded,
    ModelOpened,
    ModelRefused,
    News,
    RenderFailed,
    ThumbnailFailed,
    ThumbnailMade,
)
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.thumbnail_orders import ThumbnailOrder, ThumbnailOrders
from explorer_app.rendering.thumbnails import shrink
from gpu_backend import CancelledError, Frame, Model, RenderRequest

THUMBNAIL_REST_S = 0.15
"""Thumbnails wait until no preview was asked for this long."""


@dataclass(frozen=True, slots=True)
class PreviewRequest:
    """A request and when the hand asked for it; at rest it is given up for a newer one."""

    request: RenderRequest
    asked_s: float
    is_at_rest: bool = False


@dataclass(frozen=True, slots=True)
class PreviewFrame:
    """A frame and when the hand asked for it."""

    frame: Frame
    asked_s: float


# NEW ──start()──► RUNNING ──close()──► CLOSING ──the thread has ended──► CLOSED
#  └───────────────────────────────close()──────────────────────────────────▲
class Lifecycle(Enum):
    """Where a thread is in its life; it goes one way only."""

    NEW = auto()
    RUNNING = auto()
    CLOSING = auto()
    CLOSED = auto()


class RenderThread(QObject):
    """Asks go in from the window's thread, frames and news come out there.

    Both signals are bare and emitted only if what they announce was empty before: connect them queued, to a slot that
    takes whatever is there.

    Parameters
    ----------
    make_renderer
        Makes a renderer for a model; called on the thread, so that heavy imports happen there.
    thumbnail_rest_s
        How long after a preview request thumbnails wait.
    """

    frame_ready = Signal()
    news_ready = Signal()

    def __init__(
        self,
        make_renderer: Callable[[Model], RendererLike],
        *,
        thumbnail_rest_s: float = THUMBNAIL_REST_S,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._make_renderer = make_renderer
        self._thumbnail_rest_s = thumbnail_rest_s
        self._state = Lifecycle.NEW
        self._thread = threading.Thread(target=self._run, name="rendering")
        self._condition = threading.Condition()
        self._requests: Mailbox[PreviewRequest] = Mailbox(self._condition)
        self._frames: Mailbox[PreviewFrame] = Mailbox()
        self._models: Mailbox[Model] = Mailbox(self._condition)
        self._exports = ExportQueue(self._condition)
        self._orders = ThumbnailOrders(self._condition)
        self._news: deque[News] = deque()
        self._news_lock = threading.Lock()
        self._awaited_model: Model | None = None
        self._last_preview_s = float("-inf")
        # Touched by the thread alone.
        self._renderer: RendererLike | None = None
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
            self._thread.join()
        self._state = Lifecycle.CLOSED

    def ask(self, request: RenderRequest, asked_s: float, *, at_rest: bool = False) -> None:
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
        with self._news_lock:
            news = list(self._news)
            self._news.clear()
        return news

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
            while (work := self._next_work()) is not None:
                work()
        finally:
            for job in self._exports.drain():
                self._end_export(job, is_cancelled=True)
            for mailbox in (self._requests, self._frames, self._models):
                mailbox.close()
            if self._renderer is not None:
                self._renderer.close()
                self._renderer = None

    def _next_work(self) -> Callable[[], None] | None:
        """Wait for something to do and return it; None when it is time to go."""
        with self._condition:
            while True:
                if self._state is not Lifecycle.RUNNING:
                    return self._last_work()
                model = self._models.take()
                if model is not None:
                    return lambda: self._open(model)
                work = self._rendering_work() if self._renderer is not None else None
                if work is not None:
                    return work
                self._condition.wait(self._seconds_to_thumbnail())

    def _last_work(self) -> Callable[[], None] | None:
        turn = self._exports.last_turn() if self._renderer is not None else None
        return None if turn is None else lambda: self._export(turn)

    def _rendering_work(self) -> Callable[[], None] | None:
        turn = self._exports.turn()
        if turn is None or not self._was_preview:
            asked = self._requests.take()
            if asked is not None:
                self._was_preview = True
                return lambda: self._render(asked)
        self._was_preview = False
        if turn is not None:
            return lambda: self._export(turn)
        if self._seconds_to_thumbnail() == 0.0:
            order = self._orders.take()
            if order is not None:
                return lambda: self._make_thumbnail(order)
        return None

    def _seconds_to_thumbnail(self) -> float | None:
        """Return how long the next thumbnail has to wait; None if none is wanted."""
        if self._renderer is None or not len(self._orders):
            return None
        return max(0.0, self._last_preview_s + self._thumbnail_rest_s - time.monotonic())

    def _open(self, model: Model) -> None:
        try:
            renderer = self._make_renderer(model)
        except Exception as error:
            if model is self._awaited_model:
                self._tell(ModelRefused(model.facts.path, error))
            return
        try:
            opened = ModelOpened(renderer.facts, renderer.directions, renderer.device)
        except Exception as error:
            renderer.close()
            self._tell(ModelRefused(model.facts.path, error))
            return
        with self._condition:
            is_wanted = model is self._awaited_model and self._state is Lifecycle.RUNNING
        former, self._renderer = (self._renderer, renderer) if is_wanted else (renderer, self._renderer)
        if former is not None:
            former.close()
        if is_wanted:
            self._tell(opened)

    def _render(self, asked: PreviewRequest) -> None:
        renderer = self._renderer
        if renderer is None or asked.request.model_id != renderer.facts.model_id:
            return  # a late request, for a model that has gone
        try:
            frame = renderer.render(asked.request, abandoned=lambda: self._gives_way(asked))
        except CancelledError:
            self._was_given_up = True
            self._was_preview = False  # so that what it gave way to comes before an export's turn
            self._requests.put_back(asked)
            return
        except Exception as error:
            self._tell(RenderFailed(error))
            return
        self._was_given_up = False
        if self._frames.put(PreviewFrame(frame, asked.asked_s)):
            self.frame_ready.emit()

    def _must_turn(self) -> bool:
        """Return whether something waits that no picture may hold up: the end, or a model."""
        return self._state is not Lifecycle.RUNNING or not self._models.is_empty

    def _gives_way(self, asked: PreviewRequest) -> bool:
        if self._must_turn():
            return True
        newer = self._requests.peek() if asked.is_at_rest else None
        if newer is None or newer.request == asked.request:
            return False
        return not (newer.is_at_rest and self._was_given_up)

    def _export(self, turn: ExportTurn) -> None:
        job, renderer = turn.job, self._renderer
        if turn.is_cancelled or renderer is None:
            self._end_export(job, is_cancelled=True)
            return
        try:
            request = job.next_request()
            if request is not None:
                job.deliver(renderer.render(request, abandoned=lambda: self._is_over(job)))
        except CancelledError:
            self._end_export(job, is_cancelled=True)
            return
        except Exception as error:
            self._end_export(job, is_cancelled=False, error=error)
            return
        if request is None:
            self._end_export(job, is_cancelled=False)
        else:
            self._tell(ExportAdvanced(job))

    def _is_over(self, job: ExportJob) -> bool:
        return self._exports.is_over(job, is_closing=self._state is not Lifecycle.RUNNING)

    def _end_export(self, job: ExportJob, *, is_cancelled: bool, error: Exception | None = None) -> None:
        self._exports.finish(job)
        try:
            job.close(cancelled=is_cancelled)
        except Exception as closing_error:
            error = error or closing_error
        self._tell(ExportEnded(job, is_cancelled, error))

    def _make_thumbnail(self, order: ThumbnailOrder) -> None:
        renderer = self._renderer
        try:
            request = order.request()
            if renderer is None or request.model_id != renderer.facts.model_id:
                return
            frame = renderer.render(request, abandoned=lambda: self._must_turn() or not self._requests.is_empty)
            self._tell(ThumbnailMade(order.key, shrink(frame)))
        except CancelledError:
            self._orders.put_back(order)
        except Exception as error:
            self._tell(ThumbnailFailed(order.key, error))

    def _tell(self, news: News) -> None:
        with self._news_lock:
            was_empty = not self._news
            self._news.append(news)
        if was_empty:
            self.news_ready.emit()
