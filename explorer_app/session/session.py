"""The session: everything that a user has set, as one frozen snapshot.

A gesture makes a new session from the old one (`explorer_app.session.edits`); `explorer_app.session.resolve` turns
a session into a request; the history keeps sessions; a `.loom` file and a saved picture hold one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace

from explorer_app.session.local_blends import LocalBlend
from explorer_app.session.local_edits import LayerBend, StyleChannel
from explorer_app.session.patches import Patch
from explorer_app.session.tracks import NO_TIMELINE, Timeline
from gpu_backend import (
    MAX_STYLE_OFFSETS,
    Latent,
    Noise,
    PictureMask,
    Recipe,
    RowRange,
    Tap,
    Transform,
    Truncation,
    dataclass,
)

MIN_SCALE, MAX_SCALE = 1e-3, 1e3
"""How far a transform may scale."""

SLIDER_COUNT = 24
"""How many SeFa directions the sliders panel shows, after all named ones."""


@dataclass(frozen=True, slots=True)
class ModelReference:
    """Which model a session belongs to: its display name and its SHA-256.

    `path` is where this process last saw it. It is not part of the reference and never written to a session or a
    picture; `ModelPlaces` remembers it on this machine. `class_count` is None while it is not known, and for a model
    without classes; keys, sound and controllers stay below it.
    """

    path: str = field(default="", compare=False)
    name: str = ""
    model_id: str = ""
    class_count: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Position:
    """A place on the seed plane: x in seeds, y in rows of 100 seeds. Whole numbers are seeds."""

    x: float = 0.0
    y: float = 0.0


@dataclass(frozen=True, slots=True)
class Slider:
    """One direction's slider.

    `direction` is a name from `Renderer.directions` (``"world/sun height"``, ``"sefa/0"``) or ``"axis/17"``; `label` is
    what the user calls it, empty for the default. `rows` None are the direction's own, which the file of named
    directions suggests. Only sliders that differ from their default are kept in a session.
    """

    direction: str
    amount: float = 0.0
    rows: RowRange | None = None
    label: str = ""
    starred: bool = False


_UNTOUCHED = Slider("")


class _OpenSlider:
    """A slider whose fields can be set; it becomes a `Slider`, of the same layout, when they are."""

    __slots__ = ("amount", "direction", "label", "rows", "starred")

    direction: str
    amount: float
    rows: RowRange | None
    label: str
    starred: bool


def moved_sliders(sliders: Collection[Slider], amounts: Mapping[str, float]) -> tuple[Slider, ...]:
    """Return sliders with the amounts of many directions, new ones at the end; one at its default is not kept."""
    made: list[Slider] = []
    keep, amount_of, known = made.append, amounts.get, 0
    for slider in sliders:
        direction = slider.direction
        amount = amount_of(direction)
        if amount is None:
            keep(slider)
            continue
        known += 1
        if amount != slider.amount:
            slider = _moved(slider, direction, amount)
        if amount or slider != Slider(direction):
            keep(slider)
    if known < len(amounts):
        there = {slider.direction for slider in sliders}
        made += [
            _moved(_UNTOUCHED, direction, amount)
            for direction, amount in amounts.items()
            if amount and direction not in there
        ]
    return tuple(made)


def _moved(slider: Slider, direction: str, amount: float) -> Slider:
    """Return a slider like another one; `replace` takes ten times as long, and a frame may move hundreds."""
    moved = _OpenSlider()
    moved.direction = direction
    moved.amount = amount
    moved.rows = slider.rows
    moved.label = slider.label
    moved.starred = slider.starred
    moved.__class__ = Slider  # type: ignore[assignment]
    return moved  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Source:
    """A mix source: a seed or a latent that was kept.

    `strengths` has one number in 0..1 per row of w; `label` is what the panel shows ("seed 12", "kept 3").
    """

    latent: Latent
    strengths: tuple[float, ...]
    label: str


@dataclass(frozen=True, slots=True)
class Session:
    """Everything that a user has set.

    Attributes
    ----------
    pinned_blend
        (recipe, weight) pairs that replace the seed plane's point: a frame of an exported path that was dropped on
        the window. Empty while the plane's position counts; moving over the plane clears it.
    classes
        (class, weight) pairs; empty for an all-zero label.
    transform
        How the picture is moved, turned and scaled inside a network that has such an input; at rest the network's own
        counts.
    tap
        The layer that is shown instead of the picture; None for the picture.
    bends
        Bent channels of layers.
    style_channels
        Channels of styles that have a slider.
    blends
        Second latents that replace the picture under masks.
    mask
        The region that point dragging preserves; None if nothing.
    timeline
        What moves the rest over time.
    patches
        What sound and controllers move; later ones see what earlier ones made. Timeline and patches are the project's:
        a picture, a kept session and a key of the timeline hold neither (`as_still`).
    """

    model: ModelReference = ModelReference()
    position: Position = Position()
    pinned_blend: tuple[tuple[Recipe, float], ...] = ()
    classes: tuple[tuple[int, float], ...] = ()
    truncation: Truncation = Truncation(psi=0.7)
    noise: Noise = Noise()
    sliders: tuple[Slider, ...] = ()
    mix: tuple[Source, ...] = ()
    transform: Transform = Transform()
    tap: Tap | None = None
    bends: tuple[LayerBend, ...] = ()
    style_channels: tuple[StyleChannel, ...] = ()
    blends: tuple[LocalBlend, ...] = ()
    mask: PictureMask | None = None
    timeline: Timeline = NO_TIMELINE
    patches: tuple[Patch, ...] = ()

    def slider(self, direction: str) -> Slider:
        """Return the slider of a direction, the default one if it was never touched."""
        for slider in self.sliders:
            if slider.direction == direction:
                return slider
        return Slider(direction)

    def with_slider(self, slider: Slider) -> Session:
        """Return the session with a slider replaced, in its old place; one at its default is not kept."""
        sliders = [slider if item.direction == slider.direction else item for item in self.sliders]
        if all(item.direction != slider.direction for item in self.sliders):
            sliders.append(slider)
        return replace(self, sliders=tuple(item for item in sliders if item != Slider(item.direction)))

    def bend(self, number: int) -> LayerBend | None:
        """Return the bend with this number, or None."""
        return next((bend for bend in self.bends if bend.number == number), None)

    def blend(self, number: int) -> LocalBlend | None:
        """Return the blend with this number, or None."""
        return next((blend for blend in self.blends if blend.number == number), None)

    def style_channel(self, layer: str, channel: int) -> StyleChannel:
        """Return a style channel, an untouched one if the session does not have it."""
        found = (item for item in self.style_channels if item.key == (layer, channel))
        return next(found, StyleChannel(layer, channel))

    def with_style_channel(self, channel: StyleChannel) -> Session:
        """Return the session with a style channel in its old place, or at the end while a picture may have more."""
        channels = tuple(channel if item.key == channel.key else item for item in self.style_channels)
        if channel not in channels and len(channels) < MAX_STYLE_OFFSETS:
            channels = (*channels, channel)
        return replace(self, style_channels=channels)


def as_still(session: Session) -> Session:
    """Return a session without its timeline and patches, as pictures, kept sessions and keys hold it."""
    if session.timeline is NO_TIMELINE and not session.patches:
        return session
    return replace(session, timeline=NO_TIMELINE, patches=())


def in_project_of(still: Session, session: Session) -> Session:
    """Return a session with the timeline and the patches of another one."""
    return replace(still, timeline=session.timeline, patches=session.patches)
