"""Live values -> modulation, once a frame: pick-up, attack and release, curve and range of every patch."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from explorer_app.inputs.sources import is_live
from explorer_app.session.parameters import parameter
from explorer_app.session.patches import Follower, Patch, shaped
from explorer_app.session.resolve import Modulation, Modulator
from explorer_app.session.session import Session
from explorer_app.session.session_writer import SessionWriter
from gpu_backend import dataclass

TOUCH_S = 0.25
"""A control counts as touched until it has rested for so long."""

_CLOSE = 1 / 48
"""How near to the parameter's value, as a share of the patch's range, counts as passing it."""

_SETTLED = 1e-4
"""Distance, as a share of the source's range, at which smoothing has arrived."""


@dataclass(frozen=True, slots=True)
class Level:
    """What a patch does at the moment, for its row in the table.

    Attributes
    ----------
    source
        Value of the source, 0..1; None before its first message.
    value
        The value that the patch gives its parameter; None while it gives none.
    is_waiting
        Whether it waits for the control to pass the parameter's value.
    """

    source: float | None = None
    value: float | None = None
    is_waiting: bool = False


@dataclass(frozen=True, slots=True)
class _Constant:
    """A curve that is the value of this frame at any time."""

    value: float

    def at(self, t: float) -> float:
        return self.value


class _Hold:
    """What is remembered of one patch between two frames."""

    __slots__ = ("base", "follower", "has_hold", "moved_s", "patch", "raw", "row", "value")

    def __init__(self, patch: Patch, raw: float | None, base: float) -> None:
        self.patch = patch
        self.row = parameter(patch.parameter)
        self.raw = raw
        self.value: float | None = None
        """What the patch gave its parameter in the last frame."""
        self.base = base
        self.moved_s = float("-inf")
        self.has_hold = patch.mode == "add"
        self.follower = Follower(patch, raw or 0.0)

    def follow(self, patch: Patch) -> None:
        """Continue with an edited range, curve or smoothing of a patch."""
        if patch != self.patch:
            self.has_hold |= patch.mode == "add" != self.patch.mode
            self.patch, self.follower = patch, Follower(patch, self.follower.value)


class LiveSampler:
    """Evaluates the live patches of a session. Keeps one small record a patch, and nothing else.

    A patch that sets a parameter takes hold of it when its control moves: at once, or with pick-up when the control
    passes the parameter's value. It lets go when the parameter is changed in another way (a hand, undo, a track of the
    timeline) while the control rests, so that the newest movement always wins. A patch that adds does so from the first
    message on.
    """

    def __init__(self) -> None:
        self._holds: dict[tuple[str, str, int], _Hold] = {}
        """By source, parameter, and which of several patches of these two."""
        self._patches: tuple[Patch, ...] = ()
        """The patches that `_holds` belong to."""
        self._by_patch: dict[Patch, _Hold] = {}
        self._sampled_s: float | None = None
        self.is_settling = False
        """Whether smoothing goes on although no value arrives."""
        self.touched: dict[str, float] = {}
        """Parameters whose control was moved during the last `TOUCH_S` -> the value that it gives."""

    def level(self, patch: Patch) -> Level:
        """Return what a patch did in the last frame."""
        hold = self._by_patch.get(patch)
        if hold is None:
            return Level()
        return Level(hold.raw, hold.value, hold.raw is not None and not hold.has_hold and patch.is_picked_up)

    def sample(
        self, session: Session, values: Mapping[str, float], now_s: float, left_out: Collection[str] = ()
    ) -> Modulation:
        """Return the modulation of this frame.

        Parameters
        ----------
        session
            The session at the playhead, before modulation.
        values
            Newest values of the sources, 0..1.
        now_s
            Seconds from any origin.
        left_out
            Parameters that get no modulator: what is being recorded is in the session already.
        """
        passed_s = 0.0 if self._sampled_s is None else max(0.0, now_s - self._sampled_s)
        self._sampled_s = now_s
        self.is_settling = False
        self.touched = {}
        reader = SessionWriter(session)
        if session.patches is not self._patches:
            self._take(session.patches, values, reader)
        modulators: list[Modulator] = []
        for hold in self._holds.values():
            patch = hold.patch
            raw = values.get(patch.source)
            value = hold.value = self._step(patch, hold, raw, float(reader.read(hold.row)), passed_s, now_s)
            if value is None:
                continue
            if now_s - hold.moved_s < TOUCH_S:
                self.touched[patch.parameter] = value
            if patch.parameter not in left_out:
                modulators.append(Modulator(patch.parameter, _Constant(value), patch.mode))
        return Modulation(tuple(modulators))

    def _take(self, patches: tuple[Patch, ...], values: Mapping[str, float], reader: SessionWriter) -> None:
        """Follow another table of patches; remaining patches keep their state."""
        holds: dict[tuple[str, str, int], _Hold] = {}
        for patch in patches:
            if not patch.is_on or not is_live(patch.source):
                continue
            number = 0
            while (key := (patch.source, patch.parameter, number)) in holds:
                number += 1
            hold = self._holds.get(key)
            if hold is None:
                base = float(reader.read(parameter(patch.parameter)))
                hold = _Hold(patch, values.get(patch.source), base)
            hold.follow(patch)
            holds[key] = hold
        self._holds, self._patches = holds, patches
        self._by_patch = {hold.patch: hold for hold in holds.values()}

    def release(self, path: str) -> None:
        """Let the patches of a parameter go until their controls move again: what they did is in the session now."""
        for hold in self._holds.values():
            if hold.patch.parameter == path:
                hold.has_hold = False
                hold.moved_s = float("-inf")

    def _step(
        self, patch: Patch, hold: _Hold, raw: float | None, base: float, passed_s: float, now_s: float
    ) -> float | None:
        """Follow a patch's source for a frame; return the parameter's value or its change, None if it has no hold."""
        if raw is None:
            return None
        if raw != hold.raw:
            if not hold.has_hold and (not patch.is_picked_up or patch.mode == "add" or _passes(patch, hold, raw)):
                hold.has_hold = True
                if patch.mode == "set" and (patch.attack_s or patch.release_s):
                    hold.follower.value = source_of(patch, hold.base)  # glides from where the parameter is
            hold.raw = raw
            hold.moved_s = now_s
        elif patch.mode == "set" and base != hold.base and now_s - hold.moved_s >= TOUCH_S:
            hold.has_hold = False
        hold.base = base
        if not hold.has_hold:
            hold.follower.value = raw
            return None
        value = hold.follower.step(raw, passed_s)
        if abs(value - raw) > _SETTLED:
            self.is_settling = True
        return shaped(patch, value)


def _passes(patch: Patch, hold: _Hold, raw: float) -> bool:
    """Return whether a control that moves from `hold.raw` to `raw` passes the parameter's value, or comes close."""
    after = shaped(patch, raw) - hold.base
    if abs(after) <= _CLOSE * abs(patch.high - patch.low):
        return True
    if hold.raw is None:
        return False
    before = shaped(patch, hold.raw) - hold.base
    return (before < 0.0) != (after < 0.0)


def source_of(patch: Patch, value: float) -> float:
    """Return where a patch's control belongs, 0..1, while its parameter has a value: the inverse of `shaped`."""
    span = patch.high - patch.low
    inside = min(max((value - patch.low) / span, 0.0), 1.0) if span else 0.0
    return float(inside ** (2.0**-patch.curve))
