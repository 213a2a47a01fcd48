"""Edits: frozen values that turn one session into the next.

Widgets create them; only the controller applies them and decides what becomes history. Every edit has a `label` for
undo, a `target` that identifies what it sets, and a pure function `apply`. Most edits are a `SetParameter`, which is
defined beside the table that it reads (`parameters`); the others add, remove or replace parts of a session.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Protocol

from explorer_app.session.local_blends import LocalBlend
from explorer_app.session.local_edits import LayerBend, StyleChannel
from explorer_app.session.parameters import SetParameter, parameter
from explorer_app.session.session import Position, Session, Slider, Source
from explorer_app.session.tracks import STATE
from gpu_backend import (
    BEND_REST,
    MAX_BENDS,
    MAX_BLENDS,
    MAX_STYLE_OFFSETS,
    SEED_COUNT,
    BendKind,
    Latent,
    PictureMask,
    RowRange,
    Transform,
    Truncation,
    dataclass,
    flat_latent,
)

ROW_STEP = 100
"""Seeds that one unit of y on the plane skips."""

PLACE = "position"
"""Path of the place on the seed plane."""


class Edit(Protocol):
    """A change of a session."""

    @property
    def label(self) -> str:
        """Label for undo: "Walk", "Truncation"."""
        ...

    @property
    def target(self) -> Hashable:
        """Identifies what the edit sets. A later edit with the same target replaces an earlier one."""
        ...

    def is_nudge(self, session: Session) -> bool:
        """Return whether this is a small step of a value, of which several in a row are one step of undo."""
        ...

    def apply(self, session: Session) -> Session:
        """Return the session after the edit."""
        ...


@dataclass(frozen=True, slots=True)
class SetParameters:
    """Several parameters set as one: in one gesture, and as one step of undo.

    `moves` is the path of the parameter that the gesture moves, if the others only follow it; empty if it moves all.
    """

    edits: tuple[SetParameter, ...]
    label: str
    moves: str = ""

    @property
    def target(self) -> Hashable:
        """The path that it moves, else all paths that it sets."""
        return self.moves or tuple(edit.path for edit in self.edits)

    def is_nudge(self, session: Session) -> bool:
        """Return whether several in a row are one step of undo; values that stay as they are do not count."""
        changing = (edit for edit in self.edits if parameter(edit.path).read(session) != edit.value)
        return all(edit.is_nudge(session) for edit in changing)

    def apply(self, session: Session) -> Session:
        """Return the session after all of them."""
        for edit in self.edits:
            session = edit.apply(session)
        return session


def set_transform(transform: Transform) -> SetParameters:
    """Return the edit that moves, turns and scales the picture inside the network."""
    names = ("x", "y", "degrees", "scale")
    return SetParameters(
        tuple(SetParameter(f"transform.{name}", getattr(transform, name)) for name in names), "Transform"
    )


def set_truncation(truncation: Truncation) -> SetParameters:
    """Return the edit that sets psi and cutoff."""
    psi = SetParameter("truncation.psi", truncation.psi)
    return SetParameters((psi, SetParameter("truncation.cutoff", truncation.cutoff)), "Truncation")


def set_strengths(strengths: Sequence[tuple[float, ...]]) -> SetParameters:
    """Return the edit that sets the strengths of all mix sources; `strengths` has one tuple a source, in order."""
    edits = (SetParameter(f"mix/{index}/strengths", row) for index, row in enumerate(strengths))
    return SetParameters(tuple(edits), "Mix")


def set_row_ranges(rows: Mapping[str, RowRange | None]) -> SetParameters:
    """Return the edit that sets the rows that several directions act on."""
    return SetParameters(tuple(SetParameter(f"rows/{name}", acts_on) for name, acts_on in rows.items()), "Layer range")


def set_slider(direction: str, rows: RowRange | None, edit: SetParameter) -> SetParameters | SetParameter:
    """Return an edit of a direction's amount that also sets its rows of w, unless these are its own."""
    if rows is None:
        return edit
    return SetParameters((edit, SetParameter(f"rows/{direction}", rows)), edit.label, moves=edit.path)


def set_source(index: int, latent: Latent, name: str) -> SetParameters:
    """Return the edit that puts another latent with its name into a mix source; the strengths stay."""
    edits = SetParameter(f"mix/{index}/latent", latent), SetParameter(f"mix/{index}/name", name)
    return SetParameters(edits, "Source's seed")


class _Whole:
    """Base of edits that are a step each.

    Its target is its class and the fields that `_named_by` lists.
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


@dataclass(frozen=True, slots=True)
class GoToSeed(_Whole):
    """Go to one seed."""

    seed: int
    label: str = "Go to seed"

    @property
    def target(self) -> Hashable:
        """The path of the place on the plane."""
        return PLACE

    def apply(self, session: Session) -> Session:
        """Return the session at the seed."""
        seed = self.seed % SEED_COUNT
        return replace(session, position=Position(float(seed % ROW_STEP), float(seed // ROW_STEP)), pinned_blend=())


@dataclass(frozen=True, slots=True)
class TakeLatent(_Whole):
    """Take the latent of another session: place, pinned latent, classes, truncation, sliders and mix.

    Noise, transform, layer and timeline stay.
    """

    taken: Session
    label: str = "Take variation"

    def apply(self, session: Session) -> Session:
        """Return the session with the latent of another session."""
        taken = self.taken
        return replace(
            session,
            position=taken.position,
            pinned_blend=taken.pinned_blend,
            classes=taken.classes,
            truncation=taken.truncation,
            sliders=taken.sliders,
            mix=taken.mix,
        )


@dataclass(frozen=True, slots=True)
class ZeroSliders(_Whole):
    """Set every amount to zero; names, stars and ranges stay."""

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
class AddBend(_Whole):
    """Add a bend at rest after the others; its number is new to tracks and patches too."""

    layer: str
    kind: BendKind
    channels: tuple[int, ...] = ()
    label: str = "Add bend"

    def apply(self, session: Session) -> Session:
        """Return the session with the bend; the same one if it has as many as a picture may have."""
        if len(session.bends) >= MAX_BENDS:
            return session
        bend = LayerBend(
            next_number(session, "bend", session.bends), self.layer, self.kind, BEND_REST[self.kind], self.channels
        )
        return replace(session, bends=(*session.bends, bend))


def next_number(session: Session, kind: str, present: Iterable[LayerBend | LocalBlend]) -> int:
    """Return the number of the next bend or blend: above every number that something in the session names.

    Paths of the kind begin with its name.
    """
    paths = (*(track.path for track in session.timeline.tracks), *(patch.parameter for patch in session.patches))
    named = (path.split("/")[1] for path in paths if path.startswith(f"{kind}/"))
    track = session.timeline.track(STATE)
    states: tuple[Session, ...] = () if track is None else tuple(key.value for key in track.keys)
    kept = (item.number for state in states for item in (state.bends if kind == "bend" else state.blends))
    return 1 + max((0, *(item.number for item in present), *map(int, named), *kept))


def _with_moved_paths(session: Session, renamed: Callable[[str], str]) -> Session:
    """Return a session whose tracks and patches move other parameters: `renamed` returns a path's new name.

    Those whose parameter is gone, which has an empty name, are removed.
    """
    timeline, patches = session.timeline, session.patches
    tracks = tuple(
        track if path == track.path else replace(track, path=path)
        for track, path in ((track, renamed(track.path)) for track in timeline.tracks)
        if path
    )
    moved = tuple(
        replace(patch, parameter=path)
        for patch, path in ((patch, renamed(patch.parameter)) for patch in patches)
        if path
    )
    if tracks != timeline.tracks:
        timeline = replace(timeline, tracks=tracks)
    return replace(session, timeline=timeline, patches=patches if moved == patches else moved)


def _without_paths(session: Session, *gone: str) -> Session:
    """Return a session without the tracks and patches of some paths, and of those below them."""

    def renamed(path: str) -> str:
        return "" if path in gone or path.startswith(tuple(f"{item}/" for item in gone)) else path

    return _with_moved_paths(session, renamed)


def _in_keys_too(session: Session, without: Callable[[Session], Session]) -> Session:
    """Return a session from which something is removed, and from the keys of whole pictures: they would bring it back.

    `without` removes it from a session or from the state of a key.
    """
    session = without(session)
    track = session.timeline.track(STATE)
    if track is None:
        return session
    bare = ((key, without(key.value)) for key in track.keys)
    keys = tuple(key if state == key.value else replace(key, value=state) for key, state in bare)
    if keys == track.keys:
        return session
    tracks = tuple(replace(item, keys=keys) if item is track else item for item in session.timeline.tracks)
    return replace(session, timeline=replace(session.timeline, tracks=tracks))


@dataclass(frozen=True, slots=True)
class RemoveBend(_Whole):
    """Remove a bend, the tracks and patches that move it, and the bend of its number in keys of whole pictures."""

    number: int
    label: str = "Remove bend"

    _named_by: ClassVar = ("number",)

    def apply(self, session: Session) -> Session:
        """Return the session without the bend."""

        def without(state: Session) -> Session:
            return replace(state, bends=tuple(bend for bend in state.bends if bend.number != self.number))

        return _without_paths(_in_keys_too(session, without), f"bend/{self.number}")


@dataclass(frozen=True, slots=True)
class AddBlend(_Whole):
    """Blend with a second latent, under a mask; the number of the blend is new to tracks and patches too.

    Attributes
    ----------
    mask
        Where it shows; None until it is painted. If it is what is frozen, that is frozen no longer.
    name
        What the panel shows ("seed 12", "kept 3"); empty for the number.
    """

    latent: Latent
    mask: PictureMask | None = None
    name: str = ""
    label: str = "Add blend"

    def apply(self, session: Session) -> Session:
        """Return the session with the blend; the same one if it has as many as a picture may have."""
        if len(session.blends) >= MAX_BLENDS:
            return session
        number = next_number(session, "blend", session.blends)
        frozen = None if session.mask == self.mask else session.mask  # a mask that was frozen is now the blend's
        blend = LocalBlend(number, flat_latent(self.latent), self.mask, label=self.name)
        return replace(session, blends=(*session.blends, blend), mask=frozen)


@dataclass(frozen=True, slots=True)
class RemoveBlend(_Whole):
    """Remove a blend, the tracks and patches that move it, and the blend of its number in keys of whole pictures."""

    number: int
    label: str = "Remove blend"

    _named_by: ClassVar = ("number",)

    def apply(self, session: Session) -> Session:
        """Return the session without the blend."""

        def without(state: Session) -> Session:
            return replace(state, blends=tuple(blend for blend in state.blends if blend.number != self.number))

        return _without_paths(_in_keys_too(session, without), f"blend/{self.number}")


@dataclass(frozen=True, slots=True)
class AddStyleChannels(_Whole):
    """Show style channels as sliders: those that are there stay as they are."""

    channels: tuple[StyleChannel, ...]
    label: str = "Find style channels"

    def apply(self, session: Session) -> Session:
        """Return the session with the channels in place of those that nothing ever moved or named."""
        moved = {track.path for track in session.timeline.tracks} | {patch.parameter for patch in session.patches}
        kept = [item for item in session.style_channels if item.amount or item.label or item.path in moved]
        known = {item.key for item in kept}
        made = (*kept, *(item for item in self.channels if item.key not in known))
        return replace(session, style_channels=made[:MAX_STYLE_OFFSETS])


@dataclass(frozen=True, slots=True)
class RemoveStyleChannel(_Whole):
    """Remove the slider of a style channel, its offset also in keys of whole pictures, and what moves it."""

    layer: str
    channel: int
    label: str = "Remove style channel"

    _named_by: ClassVar = ("layer", "channel")

    def apply(self, session: Session) -> Session:
        """Return the session without the channel."""
        key, path = (self.layer, self.channel), f"{self.layer}/{self.channel}"

        def without(state: Session) -> Session:
            return replace(state, style_channels=tuple(item for item in state.style_channels if item.key != key))

        return _without_paths(_in_keys_too(session, without), f"style/{path}", f"style.name/{path}")


@dataclass(frozen=True, slots=True)
class AddSources(_Whole):
    """Append mix sources."""

    sources: tuple[Source, ...]
    label: str = "Add source"

    def apply(self, session: Session) -> Session:
        """Return the session with the sources after its own."""
        return replace(session, mix=(*session.mix, *self.sources))


@dataclass(frozen=True, slots=True)
class RemoveSource(_Whole):
    """Remove a mix source, and the tracks and patches that move it; those of later ones follow them.

    Keys of whole pictures lose it too if they have it in the same place, which is what tracks name a source by. Another
    source there is one of a picture with another mix, and stays.
    """

    index: int
    label: str = "Remove source"

    _named_by: ClassVar = ("index",)

    def apply(self, session: Session) -> Session:
        """Return the session without the source."""

        def renamed(path: str) -> str:
            kind, _, rest = path.partition("/")
            if kind != "mix":
                return path
            place, _, field = rest.partition("/")
            index = int(place)
            if index == self.index:
                return ""
            return path if index < self.index else f"mix/{index - 1}/{field}"

        gone = session.mix[self.index : self.index + 1]

        def without(state: Session) -> Session:
            there = state.mix[self.index : self.index + 1]
            if [source.latent for source in there] != [source.latent for source in gone]:
                return state
            return replace(state, mix=(*state.mix[: self.index], *state.mix[self.index + 1 :]))

        return _with_moved_paths(_in_keys_too(session, without), renamed)


REMOVALS = (RemoveBend, RemoveBlend, RemoveStyleChannel, RemoveSource)
"""Edits after which a gesture that moves what they removed has no place."""
