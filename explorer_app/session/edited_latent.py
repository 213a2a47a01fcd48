"""A latent that was edited in the picture: the recipe before, the rows after, and how much of the edit is shown.

A session holds both in `Session.pinned_blend`, so that the edit can be faded at any time, undone and stored::

    ((recipe before, 1 - share), (stored rows after, share))
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from explorer_app.session.blend import Blend, resolve_blend, whole_blend
from explorer_app.session.session import Session, Slider
from gpu_backend import Latent, Recipe, StoredLatent, dataclass

DRAG = "Drag a point"
"""Label of the step that a stroke of dragging is."""

_DRAGGED = ", dragged"


@dataclass(frozen=True, slots=True)
class EditedLatent:
    """A session's edit.

    Attributes
    ----------
    before
        What the edit began with.
    rows
        What it led to.
    share
        Of the edit that is shown, 0..1.
    """

    before: Recipe
    rows: StoredLatent
    share: float = 1.0


def edited_latent(session: Session) -> EditedLatent | None:
    """Return the edit that a session shows, None if its latent was not edited.

    Directions and mix sources that came on top of the edit are not part of it.
    """
    if len(session.pinned_blend) != 2:
        return None
    (before, _), (after, share) = session.pinned_blend
    rows = after.latent.point
    if not isinstance(rows, StoredLatent) or after.latent.mix or after.latent.directions:
        return None
    return EditedLatent(before, rows, share)


def recipe_before(session: Session, rows: StoredLatent) -> Recipe:
    """Return what an edit that goes on is faded back to: the start of the edit, or the current latent without one.

    Parameters
    ----------
    rows
        Rows of w of the session, for a blend of several recipes, which is not a recipe.
    """
    return recipe_shown(session, rows) if edited_latent(session) is None else whole_blend(session)[0][0]


def recipe_shown(session: Session, rows: StoredLatent) -> Recipe:
    """Return the current latent of a session, whose rows of w are `rows`: they stand for a blend of several recipes."""
    pairs: Blend = resolve_blend(session)
    return pairs[0][0] if len(pairs) == 1 else Recipe(Latent(rows), session.truncation)


@dataclass(frozen=True, slots=True)
class TakeEditedRows:
    """The edit that shows edited rows of w in place of the latent.

    Directions and mix sources acted on the picture that was edited, so they are part of its rows: the amounts and
    strengths go to 0.
    """

    before: Recipe
    rows: StoredLatent
    label: str = DRAG

    @property
    def target(self) -> Hashable:
        """The latent: two gestures cannot edit it at once."""
        return type(self).__name__

    def is_nudge(self, session: Session) -> bool:
        """Return whether several in a row are one step of undo."""
        return False

    def apply(self, session: Session) -> Session:
        """Return the session with the rows."""
        after = Recipe(Latent(self.rows, session.classes), session.truncation)
        return replace(_without_additions(session), pinned_blend=((self.before, 0.0), (after, 1.0)))


def with_rows(session: Session, rows: StoredLatent) -> Session:
    """Return a session that shows rows of w of a file as they are: its own directions and mix sources go to 0."""
    return replace(_without_additions(session), pinned_blend=((Recipe(Latent(rows), session.truncation), 1.0),))


def _without_additions(session: Session) -> Session:
    """Return a session whose directions and mix sources add nothing to its latent."""
    sliders = (replace(slider, amount=0.0) for slider in session.sliders)
    return replace(
        session,
        sliders=tuple(slider for slider in sliders if slider != Slider(slider.direction)),
        mix=tuple(replace(source, strengths=(0.0,) * len(source.strengths)) for source in session.mix),
    )


@dataclass(frozen=True, slots=True)
class FadeEdit:
    """The edit that shows a share of an edited latent, 0..1: 0 is the picture before."""

    share: float
    label: str = "Fade edit"

    @property
    def target(self) -> Hashable:
        """The share."""
        return type(self).__name__

    def is_nudge(self, session: Session) -> bool:
        """Return whether several in a row are one step of undo."""
        return True

    def apply(self, session: Session) -> Session:
        """Return the session with the share; one without an edit stays."""
        if edited_latent(session) is None:
            return session
        (before, _), (after, _) = session.pinned_blend
        share = min(1.0, max(0.0, self.share))
        return replace(session, pinned_blend=((before, 1.0 - share), (after, share)))


@dataclass(frozen=True, slots=True)
class TakeBlendRows:
    """The edit that shows edited rows of w in place of the second latent of a blend."""

    number: int
    rows: StoredLatent
    label: str = DRAG

    @property
    def target(self) -> Hashable:
        """The second latent."""
        return f"blend/{self.number}/latent"

    def is_nudge(self, session: Session) -> bool:
        """Return whether several in a row are one step of undo."""
        return False

    def apply(self, session: Session) -> Session:
        """Return the session with the rows; its name says that they were dragged."""
        blends = tuple(
            replace(blend, latent=Latent(self.rows), label=_dragged(blend.label))
            if blend.number == self.number
            else blend
            for blend in session.blends
        )
        return replace(session, blends=blends)


def _dragged(label: str) -> str:
    """Return the label of a latent that was edited: "seed 12" is not what it shows any more."""
    return label if not label or label.endswith(_DRAGGED) else label + _DRAGGED
