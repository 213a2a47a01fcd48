"""What parameters and tracks are called: pure."""

from __future__ import annotations

from explorer_app.session.direction_names import default_name
from explorer_app.session.parameters import parameter
from explorer_app.session.session import Session
from explorer_app.session.tracks import STATE, WALK

_NAMES = {
    STATE: "Picture",
    WALK: "Walk",
    "pinned_blend": "Latent",
    "position": "Seed plane",
    "classes": "Class",
    "classes/number": "Class",
    "noise.mode": "Noise kind",
    "noise.mode/number": "Noise kind",
    "noise.gain": "Noise gain",
    "noise.phase": "Noise phase",
    "transform.x": "Move right",
    "transform.y": "Move down",
    "transform.degrees": "Turn",
    "transform.scale": "Scale",
}


def parameter_name(path: str, session: Session) -> str:
    """Return what a parameter or a track is called: by the slider's own name, else as its panel calls it."""
    kind, _, rest = path.partition("/")
    if path in _NAMES:
        return _NAMES[path]
    if kind == "slider":
        return session.slider(rest).label or default_name(rest)
    if kind == "rows":
        return f"Rows of {session.slider(rest).label or default_name(rest)}"
    if kind == "mix" and rest:
        number = rest.partition("/")[0]
        index = int(number)
        name = session.mix[index].label if index < len(session.mix) else f"Source {index + 1}"
        row = rest.partition("strength/")[2]
        return f"{name}, row {int(row) + 1}" if row else name
    if kind == "bend":
        return _bend_name(path, session)
    if kind == "blend":
        return _blend_name(path, session)
    if kind in ("style", "style.name"):
        layer, _, channel = rest.rpartition("/")
        return session.style_channel(layer, int(channel)).name
    if kind == "noise.layer":
        return f"Noise of layer {int(rest) + 1}"
    return parameter(path).label


def _bend_name(path: str, session: Session) -> str:
    """Return the name of a bend, and which of its numbers it is if it has several."""
    _, number, quantity = path.split("/")
    bend = session.bend(int(number))
    if bend is None:
        return f"Bend {number}"
    return f"{bend.name}, {quantity}" if quantity in ("right", "down") else bend.name


def _blend_name(path: str, session: Session) -> str:
    """Return the name of a blend, with the field that the path names unless that is the strength."""
    _, number, field = path.split("/")
    blend = session.blend(int(number))
    name = f"Blend {number}" if blend is None else blend.name
    part = {"softness": "soft edge", "latent": "latent", "mask": "mask", "rows": "layers"}.get(field, "")
    return f"{name}, {part}" if part else name


def name_in_text(path: str, session: Session) -> str:
    """Return what a parameter is called within a sentence: a slider by its own name."""
    if path.startswith(("slider/", "mix/", "bend/", "blend/", "style/")):
        return parameter_name(path, session)
    name = "truncation ψ" if path == "truncation.psi" else parameter_name(path, session)
    return name[:1].lower() + name[1:]
