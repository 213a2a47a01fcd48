"""The picture on the canvas: requests down, frames up, drafts while something moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from explorer_app.controller.draft_colours import DraftColours, DraftKey
from explorer_app.controller.drafts import DraftPolicy, draft_with_edits, shows_something
from explorer_app.controller.rest_timer import RestTimer
from explorer_app.rendering.enlarging import enlarged
from explorer_app.rendering.frame_statistics import FrameStatistics
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.session.resolve import resolve, unobserved
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
        self._policy = DraftPolicy()
        self._colours = DraftColours()
        self._facts: ModelFacts | None = None
        self._session: Session | None = None
        self._frame: Frame | None = None
        self._requested: RenderRequest | None = None
        self._held: RenderRequest | None = None
        """The full request of the newest picture that a gesture or the timeline asked for; None if none did."""
        self._is_new = False
        """Whether nothing of this model was requested yet."""
        self._first: RenderRequest | None = None
        """The first draft of this model, until its frame is there."""
        self._measured: RenderRequest | None = None
        self._measure_next = False
        self._wants_values = False
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
        self._facts = facts
        self._is_new = not has_picture
        self._colours.clear()
        self._requested = self._measured = self._held = None
        self._measure_next = False
        self.show_device(is_gpu)

    def show_no_model(self) -> None:
        """Request nothing until there is a model."""
        self._facts = self._requested = None

    def show_device(self, is_gpu: bool) -> None:
        """Measure costs from the start: another device renders, and repeats the last request by itself."""
        self._policy.clear(expects_quick=is_gpu)
        self._measured = None
        self.statistics.clear()
        self._dropped_before = self._renders.frames_dropped
        self.statistics_changed.emit()

    def refresh(self) -> None:
        """Request the picture on the screen again: it is rendered in another way now."""
        self.show_device(self._policy.expects_quick)
        self._requested = None
        self._request_again()

    @Slot(float)
    def input_came(self, age_s: float) -> None:
        """Record that an input event of this age is about to be handled: a gesture begins when the mouse moves."""
        now_s = self._clock()
        self._input = (now_s - age_s, now_s)

    def request(self, session: Session, *, live: bool, by_hand: bool = True) -> None:
        """Request the picture of a session immediately; during a gesture, small enough to keep up.

        The first of a model is as small as if it were live, and the full one follows: a large network takes seconds.

        `by_hand` is False where no input caused the request: it then counts in no latency.
        """
        self._session = session
        if self._facts is None or session.model.model_id != self._facts.model_id:
            return
        resolution = self._policy.resolution(self._facts) if live or self._is_new else None
        request = resolve(session, resolution=resolution)
        if request.resolution is not None:
            draft = draft_with_edits(request.resolution, request.edits, self._facts)
            request = request if draft == request.resolution else replace(request, resolution=draft)
        if live:
            full = replace(request, resolution=None)
            if full in (self._held, self._requested):
                return  # it does not move, though its sources go on, or a mask is painted: it is in full after a rest
            self._held = full
        elif by_hand:
            self._held = None
        is_full = request.resolution is None
        if self._is_new:
            self._is_new, self._first = False, None if is_full else request
        if is_full:
            self._rest.stop()
        else:
            self._rest.start()
        if request == self._requested:
            return  # requested already, or on the screen
        self._requested = request
        self._measured = None  # a measured request under way is replaced by this one
        if self._measure_next:  # until a measured frame arrives: a newer request may replace this one
            self._measured = request
            request = replace(request, measure_steps=True)
        if request.tap is not None and self._wants_values:
            request = replace(request, wants_tap_values=True)
        self._renders.submit(request, self._gesture_s() if by_hand else None, at_rest=is_full and not live)

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
        self._requested = self._measured = self._first = self._held = None

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
            self._measure_next = False

    def measure_again(self) -> None:
        """Measure the steps of the picture on the screen once more: there is more to be known of them now."""
        self._measured = None

    @Slot(bool)
    def set_reading_values(self, on: bool) -> None:
        """Include a shown layer's values in its frames, starting with the frame on the screen."""
        self._wants_values = on
        shown = self._frame.tap if self._frame is not None else None
        if on and shown is not None and shown.values is None:
            self._requested = None
            self._request_again()

    def close(self) -> None:
        """Request nothing more."""
        for timer in (self._rest, self._measure, self._statistics_timer):
            timer.stop()
        self._facts = None

    @Slot()
    def _take_frame(self) -> None:
        shown = self._renders.take_frame()
        if shown is None or self._facts is None or shown.frame.request.model_id != self._facts.model_id:
            return
        self._first = None
        if shown.frame.request.tap is None:  # layers have costs of their own
            self._policy.frame_arrived(shown.frame, self._facts)
        if shown.frame.request.measure_steps:
            self._measure_next = False
        if not shows_something(shown.frame):
            return  # a larger draft is requested next, or the full picture after a rest
        self._frame = shown.shown or shown.frame
        self._requested_s = shown.requested_s
        self.statistics.frame_arrived(shown.frame, self._clock())
        self.frame_changed.emit()
        if not self._statistics_timer.isActive():
            self._statistics_timer.start()
        if self._facts is not None:  # a slot may have closed the app
            self._order_draft_of(shown.frame, self._facts)

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

    def _order_draft_of(self, full: Frame, facts: ModelFacts) -> None:
        """If gestures will show drafts, request one of a picture at rest, rendered when idle."""
        resolution = self._policy.resolution(facts)
        request = self._colours.wanted(full, resolution) if resolution is not None else None
        if resolution is not None and request is not None:
            self._renders.request_thumbnail(DraftKey(resolution), lambda: request)

    def _request_full(self) -> None:
        """Request the full picture after a rest; not before the first draft has arrived, which it would replace."""
        if self._first is not None and self._first == self._requested:
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
        if is_timed and self._requested is not None and self._requested != self._measured:
            self._measure_next = True
            if not self._rest.is_active and self._frame_answers(self._requested):
                self._requested = None
                self._request_again()
