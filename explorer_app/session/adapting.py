"""Fits a session to a model: pure. Changes are returned as phrases, so that nothing changes silently."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from explorer_app.session.edits import SetParameters
from explorer_app.session.local_blends import LocalBlend
from explorer_app.session.local_edits import (
    StyleChannel,
    bends_of,
    fit_bends,
    fit_style_channels,
    resolve_edits,
    style_channels_of,
)
from explorer_app.session.parameters import (
    SetParameter,
    fit_cutoff,
    fit_rows,
    fixed_parameters,
    own_parameters,
    parameter,
)
from explorer_app.session.patches import Patch
from explorer_app.session.session import SLIDER_COUNT, ModelReference, Session, Slider
from explorer_app.session.taps import fit_tap
from explorer_app.session.tracks import STATE, WALK, Timeline, Track
from gpu_backend import (
    NO_EDITS,
    Latent,
    LocalEdits,
    ModelFacts,
    Recipe,
    RenderRequest,
    RowRange,
    StoredLatent,
    Truncation,
    dataclass,
)


@dataclass(frozen=True, slots=True)
class FittedSession:
    """A session that suits a model. `changes` are phrases such as "the class was reset"."""

    session: Session
    changes: tuple[str, ...] = ()


def adapt(session: Session, facts: ModelFacts, usual_cutoff: int | None = None) -> FittedSession:
    """Return the session with everything that the model does not have cut, padded or reset.

    Strengths get one number per row of w. Rows and the cutoff end where the model does. A class that it does not have
    becomes its first one. Axes of w, noise layers, a transform and a shown layer that it does not have are removed; of
    a layer without the shown channels, the first channels are shown.

    Parameters
    ----------
    usual_cutoff
        That of the model before; a session that has it gets this model's.
    """
    fitted = _fit_fields(session, facts, usual_cutoff)
    for row in (*fixed_parameters(), *own_parameters(fitted)):
        if row.path != "classes":  # fitted above: what no class means depends on the model before
            value = row.fit(row.read(fitted), facts) if row.is_available(facts) else row.default
            fitted = row.write(fitted, value) if value != row.read(fitted) else fitted
    return FittedSession(fitted, tuple(_changes(session, fitted, facts)))


@dataclass(frozen=True, slots=True)
class FitOrigin:
    """A session before it was fitted to a model, and after that, so that another model brings back what this one lacks.

    `usual_cutoff` is that of the model that `before` belongs to, `changes` is what the fit changed (`FittedSession`).
    """

    before: Session
    fitted: Session
    usual_cutoff: int | None = None
    changes: tuple[str, ...] = ()

    def restored(self, session: Session) -> Session:
        """Return a session that was edited since the fit, with everything that the fit changed and no edit has touched.

        A field that was edited keeps the edits; of sliders, style channels, patches and tracks, those that the fit
        removed come back nonetheless, at the end. A pinned latent hides the position, so both are one field here.
        """
        changed: dict[str, Any] = {
            field.name: _merged(
                getattr(self.before, field.name), getattr(self.fitted, field.name), getattr(session, field.name)
            )
            for field in fields(Session)
        }
        if (session.position, session.pinned_blend) != (self.fitted.position, self.fitted.pinned_blend):
            changed |= {"position": session.position, "pinned_blend": session.pinned_blend}
        return replace(session, **changed)


def _merged(before: object, fitted: object, now: object) -> object:
    """Return a field of a session: see `FitOrigin.restored`."""
    if now == fitted:
        return before
    match before, fitted, now:
        case Timeline(), Timeline(), Timeline():
            return replace(now, tracks=_with_lost(before.tracks, fitted.tracks, now.tracks))
        case (Slider() | StyleChannel() | Patch(), *_), tuple(), tuple():
            assert isinstance(before, tuple)
            return _with_lost(before, fitted, now)
        case _:
            return now


def _with_lost(before: tuple[Any, ...], fitted: tuple[Any, ...], now: tuple[Any, ...]) -> tuple[Any, ...]:
    there = {_key(item) for item in (*fitted, *now)}
    return (*now, *(item for item in before if _key(item) not in there))


def _key(item: Slider | StyleChannel | Patch | Track) -> object:
    match item:
        case Slider():
            return item.direction
        case StyleChannel():
            return item.key
        case Patch():
            return item.source, item.parameter
        case Track():
            return item.path


def _fit_fields(session: Session, facts: ModelFacts, usual_cutoff: int | None) -> Session:
    """Return the session with fields that suit the model; numbers within them are fitted as parameters."""
    is_other = session.model.model_id != facts.model_id
    return replace(
        session,
        model=ModelReference(facts.path, facts.name, facts.model_id, facts.c_dim or None),
        pinned_blend=_fit_pinned(session.pinned_blend, facts),
        classes=_fit_classes(session.classes, facts, is_other),
        truncation=_with_usual_cutoff(session.truncation, facts, is_other, usual_cutoff),
        noise=replace(session.noise, layer_gains=session.noise.layer_gains[: len(facts.noise_layers)]),
        sliders=tuple(slider for slider in session.sliders if _has_direction(slider, facts)),
        mix=tuple(
            replace(source, latent=_fit_latent(source.latent, facts))
            for source in session.mix
            if _takes(source.latent, facts)
        ),
        bends=fit_bends(session.bends, facts),
        style_channels=fit_style_channels(session.style_channels, facts),
        blends=_fit_blends(session.blends, facts),
        timeline=fit_timeline(session.timeline, facts),
        patches=_fit_patches(session.patches, facts),
    )


def _changes(before: Session, fitted: Session, facts: ModelFacts) -> Iterator[str]:
    """Yield a phrase for each change that a user notices."""
    had_model = bool(before.model.model_id)
    is_lowered = before.truncation.cutoff is not None and before.truncation.cutoff > facts.num_ws
    if had_model and before.classes and fitted.classes != before.classes:
        yield "the class was reset"
    if is_lowered:
        yield "the cutoff was lowered"
    elif had_model and fitted.truncation != before.truncation:
        yield _usual_words(facts)
    if (len(fitted.mix), len(fitted.pinned_blend)) != (len(before.mix), len(before.pinned_blend)):
        yield "stored latents of another shape were removed"
    if _strengths(fitted) != _strengths(before):
        yield "mix strengths were fitted to its rows"
    if _slider_count(fitted) != _slider_count(before):
        yield "directions it does not have were removed"
    if not _ranges(fitted).items() <= _ranges(before).items():
        yield "layer ranges were shortened"
    if fitted.noise != before.noise:
        yield "noise strengths of missing layers were dropped"
    if fitted.transform != before.transform:
        yield "the transform, which it does not have, was reset"
    if len(fitted.bends) != len(before.bends):
        yield "bends of layers and channels that it does not have were removed"
    elif fitted.bends != before.bends:
        yield "bends were limited to the channels that it has"
    if len(fitted.style_channels) != len(before.style_channels):
        yield "style channels that it does not have were removed"
    if len(fitted.blends) != len(before.blends):
        yield "blends with stored latents of another shape were removed"
    if fitted.tap is None and before.tap is not None:
        yield "the picture is shown, because it has no such layer"
    if len(fitted.timeline.tracks) != len(before.timeline.tracks):
        yield "tracks of parameters that it does not have were removed"
    if len(fitted.patches) != len(before.patches):
        yield "patches of parameters that it does not have were removed"
    if fitted.tap is not None and fitted.tap != before.tap:
        yield "the channels of the shown layer were limited to those that it has"


def fit_request(request: RenderRequest, facts: ModelFacts) -> RenderRequest:
    """Return the request of a picture without what a model lacks; stored latents of another shape stay if all are."""
    return replace(
        request,
        blend=_fit_pinned(request.blend, facts) or request.blend,
        noise=replace(request.noise, layer_gains=request.noise.layer_gains[: len(facts.noise_layers)]),
        transform=request.transform if facts.has_transform else None,
        tap=None if request.tap is None else fit_tap(request.tap, facts),
        edits=fit_edits(request.edits, facts),
    )


def fit_edits(edits: LocalEdits, facts: ModelFacts) -> LocalEdits:
    """Return the edits of a picture that a model can have."""
    if edits == NO_EDITS:
        return edits
    bends, channels = fit_bends(bends_of(edits), facts), fit_style_channels(style_channels_of(edits), facts)
    blends = tuple(
        replace(blend, recipe=_fit_recipe(blend.recipe, facts), rows=fit_rows(blend.rows, facts))
        for blend in edits.blends
        if _takes(blend.recipe.latent, facts)
    )
    return replace(resolve_edits(bends, channels), blends=blends)


def _fit_blends(blends: tuple[LocalBlend, ...], facts: ModelFacts) -> tuple[LocalBlend, ...]:
    """Return the blends with latents that a model has; their rows are fitted as parameters."""
    return tuple(replace(item, latent=_fit_latent(item.latent, facts)) for item in blends if _takes(item.latent, facts))


def fit_parameters(edit: SetParameters, facts: ModelFacts) -> SetParameters | None:
    """Return an edit without the parameters that the model does not have; None if it has none, or not the moved one."""
    fitted = {item.path: fit_edit(item, facts) for item in edit.edits}
    kept = tuple(item for item in fitted.values() if item is not None)
    if not kept or (edit.moves and fitted[edit.moves] is None):
        return None
    return edit if kept == edit.edits else replace(edit, edits=kept)


def fit_edit(edit: SetParameter, facts: ModelFacts) -> SetParameter | None:
    """Return an edit with a value that the model can have; None if the model has no such parameter.

    It may have been made for another model: a field takes what was typed into it when it loses the focus.
    """
    row, value = parameter(edit.path), edit.value
    if not _has_parameter(edit.path, facts):
        return None
    fitted = _fit_classes(value, facts, is_other=False) if edit.path == "classes" else row.fit(value, facts)
    return edit if fitted is value or fitted == value else replace(edit, value=fitted)


def fit_timeline(timeline: Timeline, facts: ModelFacts) -> Timeline:
    """Return a timeline that moves only parameters of the model; the same object if nothing changes."""
    tracks = tuple(fitted for track in timeline.tracks if (fitted := _fit_track(track, facts)) is not None)
    is_same = all(a is b for a, b in zip(tracks, timeline.tracks, strict=False)) and len(tracks) == len(timeline.tracks)
    z_dim = facts.z_dim if tracks else timeline.z_dim
    return timeline if is_same and z_dim == timeline.z_dim else replace(timeline, tracks=tracks, z_dim=z_dim)


def _fit_track(track: Track, facts: ModelFacts) -> Track | None:
    """Return a track with values that the model can have; None if it has no such parameter."""
    if track.path == WALK:
        return track
    if track.path == STATE:
        values = [key.value if _suits(key.value, facts) else adapt(key.value, facts).session for key in track.keys]
    else:
        if not _has_parameter(track.path, facts):
            return None
        row = parameter(track.path)
        if row.kind == "latent":
            values = [_fit_blend(key.value, facts) for key in track.keys]
            if not all(values):
                return None
        else:
            values = [row.fit(key.value, facts) for key in track.keys]
    if all(value == key.value for key, value in zip(track.keys, values, strict=True)):
        return track
    return replace(track, keys=tuple(replace(key, value=value) for key, value in zip(track.keys, values, strict=True)))


def _suits(state: Session, facts: ModelFacts) -> bool:
    """Return whether a key's session was made with the model, which still has all of its directions.

    Directions are in a file beside the model, which may be elsewhere now, or have others.
    """
    return (
        state.model.model_id == facts.model_id
        and all(_has_direction(slider, facts) for slider in state.sliders)
        and all(_has_directions(latent, facts) for latent in _latents_of(state))
    )


def _latents_of(state: Session) -> Iterator[Latent]:
    yield from (recipe.latent for recipe, _ in state.pinned_blend)
    yield from (source.latent for source in state.mix)
    yield from (blend.latent for blend in state.blends)


def _has_directions(latent: Latent, facts: ModelFacts) -> bool:
    """Return whether the model has every direction of a latent, and of what is mixed into it."""
    return all(_has_direction(Slider(item.name), facts) for item in latent.directions) and all(
        _has_directions(source.latent, facts) for source in latent.mix
    )


def _fit_patches(patches: tuple[Patch, ...], facts: ModelFacts) -> tuple[Patch, ...]:
    """Return the patches that move parameters of the model; the same object if all do, so that steps share it."""
    fitted = tuple(_fit_patch(patch, facts) for patch in patches if _has_parameter(patch.parameter, facts))
    return patches if fitted == patches else fitted


def _fit_patch(patch: Patch, facts: ModelFacts) -> Patch:
    """Return a patch that goes through no more classes than the model has."""
    if patch.parameter != "classes/number" or max(patch.low, patch.high) < facts.c_dim:
        return patch
    last = facts.c_dim - 1.0
    return replace(patch, low=min(patch.low, last), high=min(patch.high, last))


def _has_parameter(path: str, facts: ModelFacts) -> bool:
    """Return whether a model has a parameter, and its direction if it is one of a slider."""
    direction = path.partition("/")[2] if path.startswith(("slider/", "rows/")) else ""
    return parameter(path).is_available(facts) and (not direction or _has_direction(Slider(direction), facts))


def _fit_pinned(blend: tuple[tuple[Recipe, float], ...], facts: ModelFacts) -> tuple[tuple[Recipe, float], ...]:
    """Return the recipes of a pinned blend that suit the model, with the whole weight.

    Without the rows that an edit led to, the picture before it is left, which has no weight while the edit is shown.
    """
    kept = [(_fit_recipe(recipe, facts), weight) for recipe, weight in blend if _takes(recipe.latent, facts)]
    total = sum(weight for _, weight in kept)
    if len(kept) == len(blend):
        return tuple(kept)
    if total > 0.0:
        return tuple((recipe, weight / total) for recipe, weight in kept)
    return tuple((recipe, 1.0 / len(kept)) for recipe, _ in kept)


def _fit_blend(blend: tuple[tuple[Recipe, float], ...], facts: ModelFacts) -> tuple[tuple[Recipe, float], ...]:
    """Return a blend with recipes that suit the model; empty if a stored latent has another shape."""
    if not all(_takes(recipe.latent, facts) for recipe, _ in blend):
        return ()
    return tuple((_fit_recipe(recipe, facts), weight) for recipe, weight in blend)


def _fit_classes(
    classes: tuple[tuple[int, float], ...], facts: ModelFacts, is_other: bool
) -> tuple[tuple[int, float], ...]:
    first = ((0, 1.0),) if facts.c_dim else ()
    if any(index >= facts.c_dim for index, _ in classes):
        return first
    # No class at all is a choice with the model it was made for, if it can do without; with another one it only means
    # that there were none.
    return first if (is_other or facts.looks_classes_up) and not classes else classes


def _with_usual_cutoff(
    truncation: Truncation, facts: ModelFacts, is_other: bool, usual_before: int | None
) -> Truncation:
    """Return the cutoff of this model in place of the former model's, unless the user chose another."""
    if not is_other or truncation.cutoff != usual_before:
        return truncation
    return replace(truncation, cutoff=facts.usual_cutoff)


def _usual_words(facts: ModelFacts) -> str:
    count = "all" if facts.usual_cutoff is None else f"the first {facts.usual_cutoff}"
    return f"truncation acts on {count} rows, as is usual for it"


def _has_direction(slider: Slider, facts: ModelFacts) -> bool:
    """Return whether the model has a slider's direction.

    It has the named ones of the file beside it, an axis for each dimension of w, and no more of SeFa's than those.
    """
    if slider.direction in facts.named_directions:
        return True
    kind, _, number = slider.direction.partition("/")
    limit = {"axis": facts.w_dim, "sefa": min(facts.w_dim, SLIDER_COUNT)}.get(kind, 0)
    return number.isascii() and number.isdecimal() and int(number[:9]) < limit


def _takes(latent: Latent, facts: ModelFacts) -> bool:
    """Return whether a model has the rows of every stored latent in a latent."""
    point = latent.point
    if isinstance(point, StoredLatent) and (point.w_dim != facts.w_dim or point.num_ws not in (1, facts.num_ws)):
        return False
    return all(_takes(source.latent, facts) for source in latent.mix)


def _slider_count(session: Session) -> int:
    """Return how many sliders the session and its keys of pictures have."""
    states = session.timeline.track(STATE)
    return len(session.sliders) + sum(len(key.value.sliders) for key in (states.keys if states is not None else ()))


def _strengths(session: Session) -> list[tuple[float, ...]]:
    return [source.strengths for source in session.mix]


def _ranges(session: Session) -> dict[str, RowRange | None]:
    return {slider.direction: slider.rows for slider in session.sliders}


def _fit_recipe(recipe: Recipe, facts: ModelFacts) -> Recipe:
    truncation = replace(recipe.truncation, cutoff=fit_cutoff(recipe.truncation.cutoff, facts))
    return Recipe(_fit_latent(recipe.latent, facts), truncation)


def _fit_latent(latent: Latent, facts: ModelFacts) -> Latent:
    """Return a latent without what the model lacks; short strengths stay short, a missing one counts as 0."""
    return replace(
        latent,
        classes=_fit_classes(latent.classes, facts, is_other=False),
        mix=tuple(
            replace(source, latent=_fit_latent(source.latent, facts), strengths=source.strengths[: facts.num_ws])
            for source in latent.mix
        ),
        directions=tuple(
            replace(item, rows=fit_rows(item.rows, facts))
            for item in latent.directions
            if _has_direction(Slider(item.name), facts)
        ),
    )
