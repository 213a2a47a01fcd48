"""Patches as data: which source moves which parameter, and how. Frozen values and pure functions; see `patch_table`.

A source is a name whose values are 0..1:

=====================================  ====================================================================
``audio/<track>/rms``                  loudness of a sound of the timeline; `<track>` is its name
``audio/<track>/band/0`` .. ``7``      loudness of one of eight bands, from low to high
``audio/<track>/onset``, ``…/beat``    1 where a note begins or on a beat, then falling to 0
``input/rms``, ``input/band/0``, …     the same of a microphone or line input, without beats
``midi/…``, ``osc/…``, ``gamepad/…``   a controller
=====================================  ====================================================================

An audio source is a function of the timeline's time, so an export has the same values as the window. The others are
live: they count in the window only.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from gpu_backend import MAX_TEXT, LoomError, dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_PATCHES = 256
"""Patches of a session."""

MAX_CURVE = 4.0
MAX_FOLLOW_S = 60.0
"""Longest attack and release in seconds."""

MAX_OFFSET_S = 3600.0

AUDIO, INPUT = "audio/", "input/"
"""What the names of sounds and of live audio begin with."""

SOURCES = (AUDIO, INPUT, "midi/", "osc/", "gamepad/")
"""What the name of a source begins with."""

BAND_COUNT = 8
FEATURES = ("rms", *(f"band/{index}" for index in range(BAND_COUNT)), "onset", "beat")
"""How the name of a sound's source ends."""

PatchMode = Literal["set", "add"]


class PatchError(LoomError):
    """A patch has no source or target of that name, or a number out of range; or there are too many."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One source that moves one parameter.

    Attributes
    ----------
    source
        Name of the source.
    parameter
        Path of a number or an angle of the table of parameters.
    low, high
        The parameter's value ("set"), or what is added to it ("add"), where the source is 0 and 1. With `low` above
        `high` the patch is inverted.
    curve
        Between them: 0 is straight, 1 squares the source's value, -1 takes its root; -4..4.
    attack_s, release_s
        Time constants in seconds with which the value follows a source that rises or falls; 0 follows at once.
    offset_s
        Seconds by which a sound acts later; below 0 earlier. Live sources act when they come.
    is_picked_up
        A controller takes hold of the parameter only when it passes the parameter's present value ("set" only).
    is_on
        Whether the patch acts.

    Raises
    ------
    PatchError
        If a number is out of range or the source has no known beginning.
    """

    source: str
    parameter: str
    low: float = 0.0
    high: float = 1.0
    mode: PatchMode = "set"
    curve: float = 0.0
    attack_s: float = 0.0
    release_s: float = 0.0
    offset_s: float = 0.0
    is_picked_up: bool = False
    is_on: bool = True

    def __post_init__(self) -> None:
        """Check names and ranges."""
        if not (self.source.startswith(SOURCES) and len(self.source) <= MAX_TEXT):
            raise PatchError(f"A source's name must begin with one of {SOURCES}, but is {self.source[:80]!r}.")
        if self.mode not in ("set", "add"):
            raise PatchError(f"A patch's mode must be 'set' or 'add', but is {str(self.mode)[:40]!r}.")
        for what, value, low, high in (
            ("low value", self.low, -1e9, 1e9),
            ("high value", self.high, -1e9, 1e9),
            ("curve", self.curve, -MAX_CURVE, MAX_CURVE),
            ("attack", self.attack_s, 0.0, MAX_FOLLOW_S),
            ("release", self.release_s, 0.0, MAX_FOLLOW_S),
            ("offset", self.offset_s, -MAX_OFFSET_S, MAX_OFFSET_S),
        ):
            if not low <= value <= high:  # false for NaN too
                raise PatchError(f"A patch's {what} must be in {low:g}..{high:g}, but is {value:g}.")

    @property
    def is_of_sound(self) -> bool:
        """Whether the source is a sound of the timeline, so that the patch is a function of its time."""
        return self.source.startswith(AUDIO)


def audio_source(track: str, feature: str) -> str:
    """Return the name of a feature (`FEATURES`) of a sound."""
    return f"{AUDIO}{track}/{feature}"


def audio_parts(source: str) -> tuple[str, str]:
    """Return a sound's name and the feature of an audio source; ("", "") for any other name."""
    if source.startswith(AUDIO):
        for feature in FEATURES:
            track = source[len(AUDIO) : -len(feature) - 1]
            if track and source.endswith(f"/{feature}"):
                return track, feature
    return "", ""


def shaped(patch: Patch, value: float) -> float:
    """Return the parameter's value, or what is added to it, for a value of the source, which is kept within 0..1.

    low + (high - low) value^(2^curve)
    """
    inside = min(max(value, 0.0), 1.0)
    return patch.low + (patch.high - patch.low) * (inside ** (2.0**patch.curve) if patch.curve else inside)


class Follower:
    """A patch's attack and release, live: a one-pole filter with two time constants.

    y += (x - y) (1 - exp(-dt / tau)), tau being the attack while x > y and the release otherwise.
    """

    __slots__ = ("_attack_s", "_release_s", "value")

    def __init__(self, patch: Patch, value: float = 0.0) -> None:
        self._attack_s, self._release_s = patch.attack_s, patch.release_s
        self.value = value
        """What was followed so far, 0..1."""

    def step(self, value: float, passed_s: float) -> float:
        """Return the value `passed_s` seconds after the last step, with the source at `value` meanwhile."""
        tau = self._attack_s if value > self.value else self._release_s
        if tau <= 0.0:
            self.value = value
        else:
            self.value += (value - self.value) * -math.expm1(-max(passed_s, 0.0) / tau)
        return self.value


def followed(values: NDArray[np.float32], rate_hz: float, patch: Patch) -> NDArray[np.float32]:
    """Return an envelope after a patch's attack and release: `Follower` over every value, beginning at the first."""
    if len(values) == 0 or (patch.attack_s <= 0.0 and patch.release_s <= 0.0):
        return values
    rise, fall = (
        1.0 if tau <= 0.0 else -math.expm1(-1.0 / (rate_hz * tau)) for tau in (patch.attack_s, patch.release_s)
    )
    # A loop over Python floats: whether it rises or falls depends on the result so far. 0.1 us a value.
    result = values.copy()
    sources = values.tolist()
    level: float = sources[0]
    for index, value in enumerate(sources):
        level += (value - level) * (rise if value > level else fall)
        result[index] = level
    return result
