"""Session, modulation, time -> request: pure, and random access in time. Only here is known how the two relate.

    effective = evaluate(session, modulation, t)        the session with every source of change applied, at a time
    request   = resolve(effective)                      what the renderer renders

Modulation never goes through the undo history: a controller, sound or a timeline changes the effective session, never
the user's session.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Protocol

from explorer_app.session.blend import resolve_blend as resolve_blend
from explorer_app.session.local_edits import resolve_edits
from explorer_app.session.parameters import Parameter, Value, parameter
from explorer_app.session.session import Position, Session
from explorer_app.session.session_writer import SessionWriter
from gpu_backend import Latent, RenderRequest, Transform, dataclass, flat_latent


class Curve(Protocol):
    """A value for every time: a track of a timeline, a controller, an envelope."""

    def at(self, t: float) -> Value:
        """Return the value at a time in seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Modulator:
    """One parameter that is moved.

    Attributes
    ----------
    path
        The parameter's path.
    curve
        Its values over time, of the parameter's kind.
    mode
        ``"set"`` takes the curve's value, ``"add"`` adds it to the session's. Only numbers, angles, integers, points
        and strengths can be added.
    """

    path: str
    curve: Curve
    mode: Literal["set", "add"] = "set"


@dataclass(frozen=True, slots=True)
class Modulation:
    """Everything that moves a session besides the user's edits; later modulators see what earlier ones made."""

    modulators: tuple[Modulator, ...] = ()


NO_MODULATION = Modulation()


def evaluate(session: Session, modulation: Modulation = NO_MODULATION, t: float = 0.0) -> Session:
    """Return the session that is in effect at a time in seconds. Every value is kept within its parameter's range.

    Raises
    ------
    ParameterError
        If a path names no parameter, or a value is not finite.
    """
    if not modulation.modulators:
        return session
    writer = SessionWriter(session)
    for modulator in modulation.modulators:
        row = parameter(modulator.path)
        value = modulator.curve.at(t)
        if modulator.mode == "add":
            value = _sum(row, writer.read(row), value)
        writer.write(row, row.clamped(value))
    return writer.finish()


def resolve(session: Session, *, resolution: int | None = None, measure_steps: bool = False) -> RenderRequest:
    """Return the request for the picture that a session describes, or for the layer that it shows instead.

    A pinned latent (`Session.pinned_blend`) gets the session's mix and directions on top, as the plane's point does. A
    layer has its own resolution, whatever is requested.
    """
    return RenderRequest(
        model_id=session.model.model_id,
        blend=resolve_blend(session),
        noise=session.noise,
        transform=resolve_transform(session),
        resolution=resolution if session.tap is None else None,
        measure_steps=measure_steps,
        tap=session.tap,
        edits=resolve_edits(session.bends, session.style_channels, session.blends, session.truncation),
    )


def content_of(request: RenderRequest) -> tuple[object, ...]:
    """Return what moves the content of a picture: its latent and its edits."""
    return request.blend, request.edits.acting


def unobserved(request: RenderRequest) -> RenderRequest:
    """Return a request without what is only looked at beside the picture: as `resolve` makes it for a resolution."""
    return replace(request, measure_steps=False, wants_tap_values=False, wants_image=False)


def resolve_transform(session: Session) -> tuple[float, ...] | None:
    """Return the nine numbers of a session's transform; None at rest, so that the network keeps its own."""
    return None if session.transform == Transform() else session.transform.matrix


def kept_latent(session: Session) -> Latent:
    """Return the latent that "Mix in current" stores as a mix source: point, classes, mix and directions.

    Its sources hold no sources (`flat_latent`), so that keeping again and again never nests them. A pinned latent may
    blend several recipes, which one latent cannot express: the heaviest of them is kept, unless its rows are computed
    first (`take_latents`).
    """
    recipe, _ = max(resolve_blend(session), key=lambda pair: pair[1])
    return flat_latent(recipe.latent)


def _sum(row: Parameter, base: Value, added: Value) -> Value:
    match row.kind:
        case "number" | "angle":
            return base + added
        case "integer" if base is not None:
            return base + added
        case "point":
            return Position(base.x + added.x, base.y + added.y)
        case "strengths":
            return tuple(min(max(a + b, 0.0), 1.0) for a, b in zip(base, added, strict=False))
        case _:
            return base
