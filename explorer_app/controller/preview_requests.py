"""Which request the picture of a session needs: a draft or the full one, measured or not, or none. No Qt."""

from __future__ import annotations

from dataclasses import replace

from explorer_app.controller.drafts import DraftPolicy, draft_with_edits
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Session
from gpu_backend import Frame, ModelFacts, RenderRequest, dataclass


@dataclass(frozen=True, slots=True)
class ChosenRequest:
    """What is to be done for a picture.

    Attributes
    ----------
    is_new
        Whether it has to be sent: it is not under way, nor on the screen.
    """

    request: RenderRequest
    is_full: bool
    is_new: bool


class PreviewRequests:
    """Chooses requests, and remembers what it needs of the ones before."""

    def __init__(self) -> None:
        self._policy = DraftPolicy()
        self._facts: ModelFacts | None = None
        self._newest: RenderRequest | None = None
        self._held: RenderRequest | None = None
        """The full request of the newest picture that a gesture or the timeline asked for; None if none did."""
        self._is_first = False
        """Whether nothing of this model was requested yet."""
        self._first: RenderRequest | None = None
        """The first draft of this model, until its frame is there."""
        self._measured: RenderRequest | None = None
        self._measures_next = False
        self._wants_values = False

    @property
    def facts(self) -> ModelFacts | None:
        """The model whose pictures are requested; None without one."""
        return self._facts

    @property
    def newest(self) -> RenderRequest | None:
        """The newest request, without what is measured of it; None if the same is to be made again."""
        return self._newest

    @property
    def draft_resolution(self) -> int | None:
        """Resolution of drafts now; None if the full picture keeps up with a gesture, and without a model."""
        return None if self._facts is None else self._policy.resolution(self._facts)

    @property
    def awaits_first(self) -> bool:
        """Whether the newest request is the first draft of a model, and its frame is not there yet."""
        return self._first is not None and self._first == self._newest

    def show_model(self, facts: ModelFacts, *, has_picture: bool) -> None:
        """Choose requests for another model; with `has_picture` a draft would only blur what is on the screen."""
        self._facts = facts
        self._is_first = not has_picture
        self._newest = self._measured = self._held = None
        self._measures_next = False

    def show_no_model(self) -> None:
        """Choose no request until there is a model."""
        self._facts = self._newest = None

    def show_device(self, is_gpu: bool | None) -> None:
        """Measure costs from the start: of another device, or of this one if `is_gpu` is None."""
        self._policy.clear(expects_quick=self._policy.expects_quick if is_gpu is None else is_gpu)
        self._measured = None

    def forget_newest(self) -> None:
        """Make the newest request again when its picture is wanted the next time."""
        self._newest = None

    def failed(self) -> None:
        """Forget the newest request and what follows from it."""
        self._newest = self._measured = self._first = self._held = None

    def choose(self, session: Session, *, live: bool, by_hand: bool) -> ChosenRequest | None:
        """Return the request for the picture of a session; None if it needs none.

        The first of a model is as small as if it were live, and the full one follows: a large network takes seconds.
        """
        facts = self._facts
        if facts is None or session.model.model_id != facts.model_id:
            return None
        resolution = self._policy.resolution(facts) if live or self._is_first else None
        request = resolve(session, resolution=resolution)
        if request.resolution is not None:
            draft = draft_with_edits(request.resolution, request.edits, facts)
            request = request if draft == request.resolution else replace(request, resolution=draft)
        if live:
            full = request if request.resolution is None else replace(request, resolution=None)
            if full in (self._held, self._newest):
                return None  # it does not move, though its sources go on, or a mask is painted: full after a rest
            self._held = full
        elif by_hand or request != self._held:
            self._held = None
        is_full = request.resolution is None
        if self._is_first:
            self._is_first, self._first = False, None if is_full else request
        if request == self._newest:
            return ChosenRequest(request, is_full, is_new=False)
        self._newest = request
        self._measured = None  # a measured request under way is replaced by this one
        if self._measures_next:  # until a measured frame arrives: a newer request may replace this one
            self._measured = request
            request = replace(request, measure_steps=True)
        if request.tap is not None and self._wants_values:
            request = replace(request, wants_tap_values=True)
        return ChosenRequest(request, is_full, is_new=True)

    def frame_arrived(self, frame: Frame) -> bool:
        """Learn from a frame; return whether it is of this model."""
        facts = self._facts
        if facts is None or frame.request.model_id != facts.model_id:
            return False
        self._first = None
        if frame.request.tap is None:  # layers have costs of their own
            self._policy.frame_arrived(frame, facts)
        if frame.request.measure_steps:
            self._measures_next = False
        return True

    def read_values(self, on: bool) -> None:
        """Include a layer's values in the requests that show one."""
        self._wants_values = on

    def measure_next(self) -> bool:
        """Measure the steps of the next request; return whether those of the newest one are unknown."""
        is_unknown = self._newest is not None and self._newest != self._measured
        if is_unknown:
            self._measures_next = True
        return is_unknown

    def measure_again(self) -> None:
        """Measure the newest request again: there is more to be known of its steps now."""
        self._measured = None

    def measure_no_more(self) -> None:
        """Do not measure the next request."""
        self._measures_next = False
