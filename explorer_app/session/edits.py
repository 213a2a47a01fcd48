"""Edits: what a gesture asks for, as frozen values that turn one session into the next.

Widgets make them and never apply them; the controller applies them and decides what becomes history. Every edit has
`label`, the words that undo shows, and `apply`, a pure function.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from explorer_app.session.session import Position, Session, Slider, Source
from gpu_backend import SEED_COUNT, Noise, RowRange, Tap, Transform, Truncation

ROW_STEP = 100
"""Seeds that one unit of y on the plane skips."""

PLACE = "position"
"""Target of edits that go somewhere on the seed plane."""


class Edit(Protocol):
    """What a gesture asks for."""

    @property
    def label(self) -> str:
        """Words for undo: "Walk", "Truncation"."""
        ...

    @property
    def target(self) -> Hashable:
        """What the edit sets. A later edit with the same target makes an earlier one void."""
        ...

    def is_nudge(self, session: Session) -> bool:
        """Return whether this is a small step of a value, of which several in a row are one step of undo."""
        ...

    def apply(self, session: Session) -> Session:
        """Return the session after the edit."""
        ...


class _Whole:
    """Base of edits of which each is a step of its own.

    What one sets is told by its class and the fields that `_named_by` lists.
    """

    __slots__ = ()
    _named_by: ClassVar[tuple[str, ...]] = ()

    @property
    def target(self) -> Hashable:
        """What the edit sets."""
        return (type(self).__name__, *(getattr(self, name) for name in self._named_by))

    def is_nudge(self, session: Session) -> bool:
        """Return whether several in a row are one step of undo."""
        return False


class _Nudge(_Whole):
    """Base of edits of which several in a row are one step of undo."""

    __slots__ = ()

    def is_nudge(self, session: Session) -> bool:
        """Return whether several in a row are one step of undo."""
        return True


class _Place:
    """Base of edits that set the place on the seed plane."""

    __slots__ = ()

    @property
    def target(self) -> Hashable:
        """What the edit sets."""
        return PLACE


@dataclass(frozen=True, slots=True)
class MoveTo(_Place, _Nudge):
    """Go to a place on the seed plane, letting go of a held latent."""

    position: Position
    label: str = "Walk"

    def apply(self, session: Session) -> Session:
        """Return the session at the new place."""
        return replace(session, position=self.position, held=())


@dataclass(frozen=True, slots=True)
class GoToSeed(_Place, _Whole):
    """Stand on one seed."""

    seed: int
    label: str = "Go to seed"

    def apply(self, session: Session) -> Session:
        """Return the session standing on the seed."""
        seed = self.seed % SEED_COUNT
        return replace(session, position=Position(float(seed % ROW_STEP), float(seed // ROW_STEP)), held=())


@dataclass(frozen=True, slots=True)
class SetTruncation(_Nudge):
    """Set psi and cutoff."""

    truncation: Truncation
    label: str = "Truncation"

    def apply(self, session: Session) -> Session:
        """Return the session with the new truncation; a held latent gets it too."""
        held = tuple((replace(recipe, truncation=self.truncation), weight) for recipe, weight in session.held)
        return replace(session, truncation=self.truncation, held=held)


@dataclass(frozen=True, slots=True)
class SetNoise(_Whole):
    """Set mode, seed, gain and layer gains of the noise."""

    noise: Noise
    label: str = "Noise"

    def apply(self, session: Session) -> Session:
        """Return the session with the new noise."""
        return replace(session, noise=self.noise)


@dataclass(frozen=True, slots=True)
class SetTransform(_Nudge):
    """Move, turn and scale the picture inside the network."""

    transform: Transform
    label: str = "Transform"

    def apply(self, session: Session) -> Session:
        """Return the session with the new transform."""
        return replace(session, transform=self.transform)


@dataclass(frozen=True, slots=True)
class SetTap(_Whole):
    """Show a layer instead of the picture, another way or another one; None for the picture again."""

    tap: Tap | None
    label: str = "Layer"

    def is_nudge(self, session: Session) -> bool:
        """Return whether several in a row are one step of undo."""
        return self.tap is not None  # going through layers; back to the picture is a step of its own

    def apply(self, session: Session) -> Session:
        """Return the session with the layer on show."""
        return replace(session, tap=self.tap)


@dataclass(frozen=True, slots=True)
class SetClasses(_Whole):
    """Set the class weights."""

    classes: tuple[tuple[int, float], ...]
    label: str = "Class"

    def apply(self, session: Session) -> Session:
        """Return the session with the new classes; a held latent gets them too."""
        held = tuple(
            (replace(recipe, latent=replace(recipe.latent, classes=self.classes)), weight)
            for recipe, weight in session.held
        )
        return replace(session, classes=self.classes, held=held)


@dataclass(frozen=True, slots=True)
class SetSlider(_Whole):
    """Replace one direction's slider; a slider at its default is dropped from the session."""

    slider: Slider
    label: str = "Slider"

    @property
    def target(self) -> Hashable:
        """What the edit sets."""
        return ("SetSlider", self.slider.direction)

    def is_nudge(self, session: Session) -> bool:
        """Return whether only the amount changes."""
        return replace(self.slider, amount=0.0) == replace(session.slider(self.slider.direction), amount=0.0)

    def apply(self, session: Session) -> Session:
        """Return the session with the slider replaced, in its old place if it had one."""
        default = Slider(self.slider.direction)
        kept = [self.slider if item.direction == self.slider.direction else item for item in session.sliders]
        if all(item.direction != self.slider.direction for item in session.sliders):
            kept.append(self.slider)
        return replace(session, sliders=tuple(item for item in kept if item != default))


@dataclass(frozen=True, slots=True)
class ZeroSliders(_Whole):
    """Bring every amount back to zero; names, stars and ranges stay."""

    label: str = "Zero all sliders"

    def apply(self, session: Session) -> Session:
        """Return the session with all amounts at zero."""
        return replace(
            session,
            sliders=tuple(
                slider
                for slider in (replace(item, amount=0.0) for item in session.sliders)
                if slider != Slider(slider.direction)
            ),
        )


@dataclass(frozen=True, slots=True)
class SetRowRange(_Whole):
    """Set the rows that a direction acts on."""

    direction: str
    rows: RowRange
    label: str = "Layer range"

    _named_by: ClassVar = ("direction",)

    def apply(self, session: Session) -> Session:
        """Return the session with the range replaced."""
        return SetSlider(replace(session.slider(self.direction), rows=self.rows)).apply(session)


@dataclass(frozen=True, slots=True)
class AddSource(_Whole):
    """Append a mix source."""

    source: Source
    label: str = "Add source"

    def apply(self, session: Session) -> Session:
        """Return the session with one more source."""
        return replace(session, mix=(*session.mix, self.source))


@dataclass(frozen=True, slots=True)
class RemoveSource(_Whole):
    """Take a mix source away."""

    index: int
    label: str = "Remove source"

    _named_by: ClassVar = ("index",)

    def apply(self, session: Session) -> Session:
        """Return the session without the source."""
        return replace(session, mix=(*session.mix[: self.index], *session.mix[self.index + 1 :]))


@dataclass(frozen=True, slots=True)
class SetStrengths(_Whole):
    """Set the strengths of one mix source, a number in 0..1 a row."""

    index: int
    strengths: tuple[float, ...]
    label: str = "Mix"

    _named_by: ClassVar = ("index",)

    def apply(self, session: Session) -> Session:
        """Return the session with the strengths replaced."""
        source = replace(session.mix[self.index], strengths=self.strengths)
        return replace(session, mix=(*session.mix[: self.index], source, *session.mix[self.index + 1 :]))


@dataclass(frozen=True, slots=True)
class SetSource(_Whole):
    """Replace one mix source (another seed, another name)."""

    index: int
    source: Source
    label: str = "Mix source"

    _named_by: ClassVar = ("index",)

    def apply(self, session: Session) -> Session:
        """Return the session with the source replaced."""
        return replace(session, mix=(*session.mix[: self.index], self.source, *session.mix[self.index + 1 :]))
