"""The timeline as data: tracks of keys, a grid of beats, a range that plays. Frozen values without behaviour.

A track moves one parameter of the table (`explorer_app.session.parameters`), named by its path. Two paths are no
parameters: the keys of `STATE` hold whole sessions, and `WALK` is a closed random walk, which needs no keys.
`explorer_app.session.timeline` evaluates and edits these values.

Times are rational, so that a key is exactly on a frame at any frame rate. A key may count its time
in beats instead of seconds; it then moves with the tempo.
"""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from gpu_backend import PathKind, dataclass

STATE = "state"
"""Path of the track whose keys hold whole sessions ("keep the picture here")."""

WALK = "walk"
"""Path of the track that adds a closed random walk in w to the latent."""

NOISE_LOOP = "noise.phase"
"""Path of the track that turns the noise; over 360 degrees it comes back to its start."""

MAX_TRACKS = 512
MAX_KEYS = 50_000
"""Keys of a whole timeline."""

MAX_SOUNDS = 64
"""Sounds of a timeline."""

MAX_SECONDS = 86_400
"""A timeline is at most a day long."""

EasingKind = Literal["hold", "linear", "smooth", "in", "out", "in-out", "bezier"]
Handles = tuple[float, float, float, float]
Outside = Literal["hold", "loop", "mirror"]
Snap = Literal["frame", "beat", "off"]


@dataclass(frozen=True, slots=True)
class Easing:
    """How a value goes from one key to the next.

    `handles` are x1, y1, x2, y2 of a cubic Bezier curve from (0, 0) to (1, 1), as of CSS: x in 0..1 is the share of the
    time, y the share of the change, which may overshoot. They count for the kind "bezier" only.
    """

    kind: EasingKind = "smooth"
    handles: Handles = (1 / 3, 0.0, 2 / 3, 1.0)


HOLD, LINEAR, SMOOTH = Easing("hold"), Easing("linear"), Easing("smooth")


@dataclass(frozen=True, slots=True)
class Key:
    """A value at a time.

    Attributes
    ----------
    time
        In seconds, or in beats of the timeline's grid if `is_beat`.
    value
        Of the kind of the track's parameter; a `Session` without a timeline in a track of states.
    easing
        The way from this key to the next one.
    """

    time: Fraction
    value: Any
    easing: Easing = SMOOTH
    is_beat: bool = False


@dataclass(frozen=True)
class Track:
    """The keys of one path, in the order of their times; no two have the same time.

    Attributes
    ----------
    outside
        What comes before the first key and after the last: their values, the keys over again, or back and forth.
    way
        Interpolation of latents and states between two keys: straight, on a spline or on an arc in w,
        straight or on an arc in z.
    is_muted
        A muted track moves nothing.
    period, radius, seed
        Of a walk: seconds until it closes, its length in units of the distance between two seeds, and which walk.
    """

    path: str
    keys: tuple[Key, ...] = ()
    outside: Outside = "hold"
    way: PathKind = "w-cubic"
    is_muted: bool = False
    period: Fraction = Fraction(10)
    radius: float = 0.25
    seed: int = 0
    derived: dict[Any, Any] = field(init=False, default_factory=dict, repr=False, compare=False)
    """What other modules compute from the track and keep with it; no part of the value."""

    @cached_property
    def _hash(self) -> int:
        return hash((self.path, self.keys, self.outside, self.way, self.is_muted, self.period, self.radius, self.seed))

    def __hash__(self) -> int:
        """Hash the keys once: a track may have thousands, and sessions are looked up by value."""
        return self._hash


@dataclass(frozen=True, slots=True)
class BeatGrid:
    """Beats in a minute, the second at which beat 0 falls, and beats in a bar."""

    bpm: Fraction = Fraction(120)
    offset: Fraction = Fraction(0)
    beats_per_bar: int = 4

    def seconds(self, beat: Fraction) -> Fraction:
        """Return the time of a beat."""
        return self.offset + beat * 60 / self.bpm

    def beat(self, seconds: Fraction) -> Fraction:
        """Return the beat at a time."""
        return (seconds - self.offset) * self.bpm / 60


@dataclass(frozen=True, slots=True)
class Sound:
    """A sound file that plays along and may move parameters (`explorer_app.session.patches`).

    Attributes
    ----------
    name
        What patches call it; unlike the names of the timeline's other sounds.
    digest
        SHA-256 of the file.
    path
        Where the file is as seen from the project's folder, with slashes; its name alone where that is not below it.
    seconds
        Its length.
    start
        Second of the timeline at which it begins; may be below 0.
    gain_db, is_muted
        How loud it is. A muted sound moves parameters too.
    """

    name: str
    digest: str
    path: str
    seconds: float
    start: Fraction = Fraction(0)
    gain_db: float = 0.0
    is_muted: bool = False


@dataclass(frozen=True)
class Timeline:
    """Everything that moves a session over time.

    Attributes
    ----------
    fps
        Frames per second, of playing, of snapping and of an export.
    end
        Length in seconds.
    loop
        First and last second of the range that plays again and again; None for the whole.
    is_looping, is_ping_pong
        Whether playing begins again at its end, and whether it goes back and forth.
    snap
        What keys snap to while they are dragged.
    sounds
        Sound files that play along.
    z_dim
        Length of z of the model that is open; arcs in z depend on it. It belongs to the model and is not compared.
    """

    tracks: tuple[Track, ...] = ()
    fps: Fraction = Fraction(30)
    end: Fraction = Fraction(10)
    loop: tuple[Fraction, Fraction] | None = None
    is_looping: bool = True
    is_ping_pong: bool = False
    grid: BeatGrid = BeatGrid()
    snap: Snap = "frame"
    sounds: tuple[Sound, ...] = ()
    z_dim: int = field(default=512, compare=False)
    derived: dict[Any, Any] = field(init=False, default_factory=dict, repr=False, compare=False)
    """As of a track."""

    @cached_property
    def _hash(self) -> int:
        return hash(
            (self.tracks, self.fps, self.end, self.loop, self.is_looping, self.is_ping_pong, self.grid, self.sounds)
        )

    def __hash__(self) -> int:
        """Hash once, as a track does."""
        return self._hash

    def track(self, path: str) -> Track | None:
        """Return the track of a path, or None."""
        return next((track for track in self.tracks if track.path == path), None)

    def seconds(self, key: Key) -> Fraction:
        """Return the time of a key in seconds."""
        return self.grid.seconds(key.time) if key.is_beat else key.time

    @property
    def playing_range(self) -> tuple[Fraction, Fraction]:
        """First and last second of what plays."""
        return self.loop if self.loop is not None else (Fraction(0), self.end)


NO_TIMELINE = Timeline()
