"""The picture on the canvas: requests down, frames up, drafts while something moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from explorer_app.controller.draft_colours import DraftColours, DraftKey
from explorer_app.controller.drafts import shows_something
from explorer_app.controller.preview_requests import PreviewRequests
from explorer_app.controller.rest_timer import RestTimer
from explorer_app.rendering.enlarging import enlarged
from explorer_app.rendering.frame_statistics import FrameStatistics
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.session.resolve import unobserved
from explorer_app.session.session import Session
from gpu_backend import Frame, ModelFacts, RenderRequest

REST_MS = 120
"""A picture that has not changed for this long is rendered in full."""

MEASURE_MS = 500
"""How often steps are measured while the performance panel is visible."""

_STATISTICS_MS = 200

_INPUT_S = 0.05
"""A request this soon after an input event counts as its answer; later the cause is unknown."""


class Preview(QObject):
    """Requests pictures of the session and provides the newest frame."""

    frame_changed = Signal()
    statistics_changed = Signal()

    def __init__(self, renders: RenderThread, clock: Callable[[], float], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._renders = renders
        self._clock = clock
        self._requests = PreviewRequests()
        self._colours = DraftColours()
        self._session: Session | None = None
        self._frame: Frame | None = None
        self._requested_s: float | None = None
        self._input: tuple[float, float] | None = None
        """When the newest input event happened, and when it was reported."""
        self._dropped_before = 0
        self.statistics = FrameStatistics()
        self._rest = RestTimer(REST_MS, self._request_full, self)
        self._measure = self._timer(MEASURE_MS, self._measure_soon)
        self._statistics_timer = self._timer(_STATISTICS_MS, self._announce_statistics, single=True)
        renders.finish_drafts_with(self._finished)
        renders.frame_ready.connect(self._take_frame, Qt.ConnectionType.QueuedConnection)

    def _timer(self, interval_ms: int, call: Callable[[], object], *, single: bool = False) -> QTimer:
        timer = QTimer(self)
        timer.setInterval(interval_ms)
        timer.setSingleShot(single)
        timer.timeout.connect(call)
        return timer

    @property
    def frame(self) -> Frame | None:
        """The newest frame; it stays until the next one, another model's too. None before the first."""
        return self._frame

    @property
    def session(self) -> Session | None:
        """The session whose picture was requested last; None before the first request."""
        return self._session

    def show_model(self, facts: ModelFacts, *, is_gpu: bool = False, has_picture: bool = False) -> None:
        """Request pictures of another model from now on; the last frame stays until the first of that model.

        With `has_picture` a stored picture is on the screen, which a draft would only blur.
        """
        self._colours.clear()
        self._requests.show_model(facts, has_picture=has_picture)
        self.show_device(is_gpu)

    def show_no_model(self) -> None:
        """Request nothing until there is a model."""
        self._requests.show_no_model()

    def show_device(self, is_gpu: bool | None) -> None:
        """Measure costs from the start: another device renders, and repeats the last request by itself.

        `is_gpu` None stands for the same device.
        """
        self._requests.show_device(is_gpu)
        self.statistics.clear()
        self._dropped_before = self._renders.frames_dropped
        self.statistics_changed.emit()

    def refresh(self) -> None:
        """Request the picture on the screen again: it is rendered in another way now."""
        self.show_device(None)
        self._requests.forget_newest()
        self._request_again()

    @Slot(float)
    def input_came(self, age_s: float) -> None:
        """Record that an input event of this age is about to be handled: a gesture begins when the mouse moves."""
        now_s = self._clock()
        self._input = (now_s - age_s, now_s)

    def request(self, session: Session, *, live: bool, by_hand: bool = True) -> None:
        """Request the picture of a session immediately; during a gesture, small enough to keep up.

        `by_hand` is False where neither input nor playback caused the request: it then counts in no latency, like the
        first of a model, and thumbnails do not wait after it.
        """
        self._session = session
        is_first = self._requests.newest is None
        chosen = self._requests.choose(session, live=live, by_hand=by_hand)
        if chosen is None:
            return
        if chosen.is_full:
            self._rest.stop()
        else:
            self._rest.start()
        if chosen.is_new:
            asked_s = self._gesture_s() if by_hand and not is_first else None
            at_rest = chosen.is_full and not live
            self._renders.submit(chosen.request, asked_s, at_rest=at_rest, by_hand=by_hand)

    def _request_again(self) -> None:
        """Repeat the request for the session's picture; no input caused it."""
        if self._session is not None:
            self.request(self._session, live=False, by_hand=False)

    def _gesture_s(self) -> float:
        """Return when the input happened that causes the present request."""
        now_s = self._clock()
        if self._input is None or now_s - self._input[1] > _INPUT_S:
            return now_s
        return min(now_s, self._input[0])

    def render_failed(self) -> None:
        """Forget the last request, so that the same can be made again."""
        self._requests.failed()

    @Slot(object)
    def frame_painted(self, frame: Frame) -> None:
        """Record that a frame is on the screen: here gesture-to-screen latency ends; only the first time counts."""
        if frame is self._frame and self._requested_s is not None:
            self.statistics.frame_painted(self._requested_s, self._clock())
            self._requested_s = None

    def wait_for_frame(self, timeout_s: float) -> None:
        """Wait until a newer frame has arrived, and take it, or until the time is over."""
        if self._renders.wait_for_frame(timeout_s):
            self._take_frame()

    def set_measuring(self, on: bool) -> None:
        """Measure the steps of a frame twice a second while pictures change, and of the last one when they rest."""
        if on:
            self._measure.start()
        else:
            self._measure.stop()
            self._requests.measure_no_more()

    def measure_again(self) -> None:
        """Measure the steps of the picture on the screen once more: there is more to be known of them now."""
        self._requests.measure_again()

    @Slot(bool)
    def set_reading_values(self, on: bool) -> None:
        """Include a shown layer's values in its frames, starting with the frame on the screen."""
        self._requests.read_values(on)
        shown = self._frame.tap if self._frame is not None else None
        if on and shown is not None and shown.values is None:
            self._requests.forget_newest()
            self._request_again()

    def close(self) -> None:
        """Request nothing more."""
        for timer in (self._rest, self._measure, self._statistics_timer):
            timer.stop()
        self._requests.show_no_model()

    @Slot()
    def _take_frame(self) -> None:
        shown = self._renders.take_frame()
        if shown is None or not self._requests.frame_arrived(shown.frame):
            return
        if not shows_something(shown.frame):
            return  # a larger draft is requested next, or the full picture after a rest
        self._frame = shown.shown or shown.frame
        self._requested_s = shown.requested_s
        self.statistics.frame_arrived(shown.frame, self._clock())
        self.frame_changed.emit()
        if not self._statistics_timer.isActive():
            self._statistics_timer.start()
        self._order_draft_of(shown.frame)

    def _announce_statistics(self) -> None:
        self.statistics.dropped = self._renders.frames_dropped - self._dropped_before
        self.statistics_changed.emit()

    def _finished(self, draft: Frame) -> Frame:
        """Return a draft as it is shown. Called on the render thread."""
        if not shows_something(draft):
            return draft
        corrected = self._colours.corrected(draft)
        return replace(corrected, pixels=enlarged(corrected.pixels))

    def take_draft(self, draft: Frame) -> None:
        """Learn from a requested draft how its colours differ from the picture on the screen."""
        if self._frame is not None:
            self._colours.learn(draft, self._frame)

    def _order_draft_of(self, full: Frame) -> None:
        """If gestures will show drafts, request one of a picture at rest, rendered when idle."""
        resolution = self._requests.draft_resolution  # None also if a slot has closed the app
        request = self._colours.wanted(full, resolution) if resolution is not None else None
        if resolution is not None and request is not None:
            self._renders.request_thumbnail(DraftKey(resolution), lambda: request)

    def _request_full(self) -> None:
        """Request the full picture after a rest; not before the first draft has arrived, which it would replace."""
        if self._requests.awaits_first:
            self._rest.start()
        else:
            self._request_again()

    def _frame_answers(self, request: RenderRequest) -> bool:
        """Return whether the picture of a request is on the screen."""
        return self._frame is not None and unobserved(self._frame.request) == request

    def _measure_soon(self) -> None:
        """Measure the next picture; the one on the screen if none comes and its steps are not known.

        Measured pictures count in no frame times, so a model's first picture is a plain one.
        """
        is_timed = self.statistics.newest_ms > 0
        if is_timed and self._requests.measure_next():
            newest = self._requests.newest
            if newest is not None and not self._rest.is_active and self._frame_answers(newest):
                self._requests.forget_newest()
                self._request_again()
