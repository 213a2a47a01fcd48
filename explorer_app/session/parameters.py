"""The table of parameters: every quantity that a gesture, the timeline or a controller can change.

A parameter has a path (``truncation.psi``, ``slider/world/sun height``, ``mix/0/strength/3``), a kind, a range, a
default, and knows how it is read from a session and put into one. Everything that deals with quantities in general
reads this table: the edit `SetParameter`, undo (which nudges are one step), storage, fitting to another model,
modulation, and what comes later (timeline tracks, controllers, axes of grids).

A dotted path names a field of `Session` or of a value in it, so such a row needs no further code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, get_args

from explorer_app.session.edit_parameters import bend_field, bend_number, blend_field, style_field
from explorer_app.session.local_edits import QUANTITIES
from explorer_app.session.parameter_row import (
    Kind as Kind,
    Parameter as Parameter,
    ParameterError as ParameterError,
    Value as Value,
)
from explorer_app.session.session import MAX_SCALE, MIN_SCALE, Position, Session, Slider
from explorer_app.session.taps import MAX_GAIN_DB, fit_tap
from gpu_backend import MAX_ITEMS, SEED_COUNT, Latent, ModelFacts, NoiseMode, RowRange, dataclass

BLEND_FIELDS = ("latent", "mask", "rows", "strength", "softness", "on", "name")
"""Last words of the paths of a blend's parameters."""


@lru_cache(maxsize=4096)
def parameter(path: str) -> Parameter:
    """Return the parameter of a path.

    Raises
    ------
    ParameterError
        If there is none.
    """
    row = _rows().get(path)
    if row is not None:
        return row
    for pattern, make in _FAMILIES:
        match = re.fullmatch(pattern, path, re.DOTALL)
        if match is not None:
            return make(path, *match.groups())
    raise ParameterError(f"There is no parameter {path[:80]!r}.")


def fixed_parameters() -> tuple[Parameter, ...]:
    """Return the parameters that every session has, in the order of the table."""
    return tuple(_rows().values())


def parameters_of(session: Session, facts: ModelFacts) -> Iterator[Parameter]:
    """Return every parameter that a session has with a model: the fixed ones, layers of noise, and its own."""
    yield from (row for row in fixed_parameters() if row.is_available(facts))
    yield from (parameter(f"noise.layer/{index}") for index in range(len(facts.noise_layers)))
    yield from own_parameters(session)


def own_parameters(session: Session) -> Iterator[Parameter]:
    """Return the parameters of the sliders, mix sources, bends, style channels and blends of a session."""
    for slider in session.sliders:
        yield from (parameter(f"{field}/{slider.direction}") for field in ("slider", "rows", "name", "star"))
    for index in range(len(session.mix)):
        yield from (parameter(f"mix/{index}/{field}") for field in ("latent", "name", "strengths"))
    for bend in session.bends:
        yield from (parameter(f"bend/{bend.number}/{field}") for field in (*bend.quantities, "on", "name"))
    for channel in session.style_channels:
        yield from (parameter(channel.path), parameter(f"style.name/{channel.layer}/{channel.channel}"))
    for blend in session.blends:
        yield from (parameter(f"blend/{blend.number}/{field}") for field in BLEND_FIELDS)


@dataclass(frozen=True, slots=True)
class SetParameter:
    """The edit that sets one parameter; see `explorer_app.session.edits` for what edits have in common.

    An empty label means the label of the table. Raises ParameterError if there is no such parameter.

    Attributes
    ----------
    by_key
        Whether it ends a gesture of a key. Several in a row are one step of undo, as values that keys set at once.
    """

    path: str
    value: Value
    label: str = ""
    by_key: bool = False

    def __post_init__(self) -> None:
        """Take the label from the table."""
        if not self.label:
            object.__setattr__(self, "label", parameter(self.path).label)

    @property
    def target(self) -> Hashable:
        """The parameter's path."""
        return self.path

    def is_nudge(self, session: Session) -> bool:
        """Return whether several in a row are one step of undo."""
        # Going through layers is one step; back to the picture is a separate step.
        return parameter(self.path).is_merged and (self.path != "layer" or self.value is not None)

    def apply(self, session: Session) -> Session:
        """Return the session with the value."""
        return parameter(self.path).write(session, self.value)


# -- the table ----------------------------------------------------------------------------------------------------


@cache
def _rows() -> dict[str, Parameter]:
    default = Session()
    rows = (
        Parameter("position", "Walk", "point", default.position, read=attrgetter("position"), write=_write_position),
        Parameter(
            "pinned_blend",
            "Latent",
            "latent",
            default.pinned_blend,
            read=attrgetter("pinned_blend"),
            write=lambda session, value: replace(session, pinned_blend=value),
            is_merged=False,
        ),
        Parameter(
            "classes",
            "Class",
            "weights",
            default.classes,
            read=attrgetter("classes"),
            write=_write_classes,
            is_merged=False,
            is_available=lambda facts: facts.c_dim > 0,
        ),
        _field("truncation.psi", "Truncation", "number", low=-2.0, high=2.0, write=_write_psi, is_batched=True),
        _field(
            "truncation.cutoff",
            "Cutoff",
            "integer",
            low=0,
            high=MAX_ITEMS,
            write=_write_cutoff,
            is_batched=True,
            fit=fit_cutoff,
        ),
        _field("noise.mode", "Noise", "choice", is_merged=False),
        _field("noise.seed", "Noise seed", "integer", low=0, high=SEED_COUNT - 1, is_merged=False),
        _field("noise.gain", "Noise", "number", low=0.0, high=10.0, is_merged=False),
        _field("noise.phase", "Noise phase", "angle", text="{:z.0f}°", is_merged=False),
        *(
            _field(
                f"transform.{name}",
                "Transform",
                kind,
                low=low,
                high=high,
                is_geometric=name == "scale",
                text="{:z.1f}°" if kind == "angle" else "{:z.3f}",
                is_available=lambda facts: facts.has_transform,
            )
            for name, kind, low, high in _TRANSFORM
        ),
        Parameter(
            "mask",
            "Freeze",
            "mask",
            None,
            read=attrgetter("mask"),
            write=lambda session, value: replace(session, mask=value),
            is_merged=False,
        ),
        Parameter(
            "layer",
            "Layer",
            "layer",
            None,
            read=attrgetter("tap"),
            write=lambda session, value: replace(session, tap=value),
            fit=lambda value, facts: None if value is None else fit_tap(value, facts),
        ),
        Parameter(
            "layer.gain",
            "Layer gain",
            "number",
            0.0,
            read=lambda session: session.tap.gain_db if session.tap is not None else 0.0,
            write=lambda session, value: (
                session if session.tap is None else replace(session, tap=replace(session.tap, gain_db=value))
            ),
            low=-MAX_GAIN_DB,
            high=MAX_GAIN_DB,
            text="{:+z.1f} dB",
        ),
    )
    return {row.path: row for row in rows}


_TRANSFORM: tuple[tuple[str, Kind, float, float], ...] = (
    ("x", "number", -math.inf, math.inf),
    ("y", "number", -math.inf, math.inf),
    ("degrees", "angle", -math.inf, math.inf),
    ("scale", "number", MIN_SCALE, MAX_SCALE),
)


def _field(path: str, label: str, kind: Kind, **options: Any) -> Parameter:
    """Return the parameter of a field of the session, named by its dotted path."""
    read = attrgetter(path)
    write = options.pop("write", None)
    is_batched = options.pop("is_batched", write is None)
    return Parameter(
        path, label, kind, read(Session()), read=read, write=write or _writer(path), is_batched=is_batched, **options
    )


def _writer(path: str) -> Callable[[Session, Value], Session]:
    names = path.split(".")

    def write(target: Any, value: Value, depth: int = 0) -> Any:
        name = names[depth]
        last = depth == len(names) - 1
        return replace(target, **{name: value if last else write(getattr(target, name), value, depth + 1)})

    return write


def _write_position(session: Session, value: Position) -> Session:
    """Go to a place on the seed plane, unpinning a latent."""
    return replace(session, position=value, pinned_blend=())


def _write_classes(session: Session, value: tuple[tuple[int, float], ...]) -> Session:
    """Set the class weights, of a pinned latent too."""
    pinned = tuple(
        (replace(recipe, latent=replace(recipe.latent, classes=value)), weight)
        for recipe, weight in session.pinned_blend
    )
    return replace(session, classes=value, pinned_blend=pinned)


def _write_psi(session: Session, value: float) -> Session:
    return replace(session, **with_truncation(session, {"psi": value}))


def _write_cutoff(session: Session, value: int | None) -> Session:
    return replace(session, **with_truncation(session, {"cutoff": value}))


def with_truncation(session: Session, changes: Mapping[str, Value]) -> dict[str, Any]:
    """Return the fields of a session that change with some of its truncation, which a pinned latent has too."""
    pinned = tuple(
        (replace(recipe, truncation=replace(recipe.truncation, **changes)), weight)
        for recipe, weight in session.pinned_blend
    )
    return {"truncation": replace(session.truncation, **changes), "pinned_blend": pinned}


# -- families -----------------------------------------------------------------------------------------------------


def _noise_layer(path: str, index: str) -> Parameter:
    layer = int(index)

    def read(session: Session) -> float:
        gains = session.noise.layer_gains
        return gains[layer] if layer < len(gains) else 1.0

    def write(session: Session, value: float) -> Session:
        gains = with_layers(session.noise.layer_gains, {layer: value})
        return replace(session, noise=replace(session.noise, layer_gains=gains))

    return Parameter(
        path,
        "Layer's noise",
        "number",
        1.0,
        read,
        write,
        low=0.0,
        high=10.0,
        is_merged=False,
        is_available=lambda facts: layer < len(facts.noise_layers),
        is_batched=True,
    )


def with_layers(gains: tuple[float, ...], changes: Mapping[int, float]) -> tuple[float, ...]:
    """Return the gains of the layers' noise with some changed, without the ones at their end."""
    made = list(gains)
    made += [1.0] * (max(changes) + 1 - len(made))
    for layer, value in changes.items():
        made[layer] = value
    while made and made[-1] == 1.0:
        made.pop()
    return tuple(made)


def _slider_field(name: str, label: str, kind: Kind, **options: Any) -> Callable[[str, str], Parameter]:
    """Return what makes the parameter of one field of a direction's slider."""

    def make(path: str, direction: str) -> Parameter:
        return Parameter(
            path,
            label,
            kind,
            getattr(Slider(direction), name),
            read=lambda session: getattr(session.slider(direction), name),
            write=lambda session, value: session.with_slider(replace(session.slider(direction), **{name: value})),
            **options,
        )

    return make


def _source_field(name: str, label: str, kind: Kind, default: Value, **options: Any) -> Callable[[str, str], Parameter]:
    """Return what makes the parameter of one field of a mix source; writing to a missing source does nothing."""

    def make(path: str, index_text: str) -> Parameter:
        index = int(index_text)

        def read(session: Session) -> Value:
            return getattr(session.mix[index], name) if index < len(session.mix) else default

        def write(session: Session, value: Value) -> Session:
            if index >= len(session.mix):
                return session
            changed = replace(session.mix[index], **{name: value})
            return replace(session, mix=(*session.mix[:index], changed, *session.mix[index + 1 :]))

        return Parameter(path, label, kind, default, read=read, write=write, is_merged=False, **options)

    return make


def fit_cutoff(cutoff: int | None, facts: ModelFacts) -> int | None:
    """Return a cutoff within the w rows of a model; None means all rows."""
    return None if cutoff is None else min(cutoff, facts.num_ws)


def fit_rows(rows: RowRange, facts: ModelFacts) -> RowRange:
    """Return the part of a range of w rows that a model has; all rows if the model has none of these."""
    if rows.first >= facts.num_ws:
        return RowRange()
    if rows.last is None or rows.last < facts.num_ws:
        return rows
    return RowRange(rows.first, facts.num_ws - 1)


def fit_slider_rows(rows: RowRange | None, facts: ModelFacts) -> RowRange | None:
    """Return the part of a slider's rows that a model has; the direction's own stay its own."""
    return None if rows is None else fit_rows(rows, facts)


def fit_strengths(strengths: tuple[float, ...], facts: ModelFacts) -> tuple[float, ...]:
    """Return one strength for each w row of a model; missing ones are 0."""
    return (*strengths[: facts.num_ws], *(0.0,) * (facts.num_ws - len(strengths)))


_strengths = _source_field("strengths", "Mix", "strengths", (), fit=fit_strengths)


def _strength(path: str, index: str, row_text: str) -> Parameter:
    whole, row = _strengths(path, index), int(row_text)

    def read(session: Session) -> float:
        strengths = whole.read(session)
        return float(strengths[row]) if row < len(strengths) else 0.0

    def write(session: Session, value: float) -> Session:
        return whole.write(session, with_strengths(whole.read(session), {row: value}))

    return Parameter(
        path,
        "Mix",
        "number",
        0.0,
        read,
        write,
        low=0.0,
        high=1.0,
        is_merged=False,
        is_available=lambda facts: row < facts.num_ws,
        is_batched=True,
    )


def with_strengths(strengths: tuple[float, ...], changes: Mapping[int, float]) -> tuple[float, ...]:
    """Return the strengths of a mix source with some rows changed."""
    made = list(strengths)
    made += [0.0] * (max(changes) + 1 - len(made))
    for row, value in changes.items():
        made[row] = value
    return tuple(made)


def _whole_strength(path: str, index: str) -> Parameter:
    """Return the parameter of a source's largest strength; the others keep their share of it."""
    whole = _strengths(path, index)

    def read(session: Session) -> float:
        return float(max(whole.read(session), default=0.0))

    def write(session: Session, value: float) -> Session:
        strengths = whole.read(session)
        most = max(strengths, default=0.0)
        scaled = tuple(value * item / most for item in strengths) if most > 0.0 else (value,) * len(strengths)
        return whole.write(session, scaled)

    return Parameter(path, "Mix", "number", 0.0, read, write, low=0.0, high=1.0, is_merged=False)


def _coordinate(path: str, name: str) -> Parameter:
    """Return the parameter of one coordinate on the seed plane; a pinned latent stays pinned."""
    return Parameter(
        path,
        f"Walk {name}",
        "number",
        0.0,
        read=lambda session: getattr(session.position, name),
        write=lambda session, value: replace(session, position=replace(session.position, **{name: value})),
        is_batched=True,
    )


def _numbered(path: str) -> Parameter:
    """Return the parameter that counts the kinds of noise, or the classes: the heaviest one, alone with weight 1."""
    choice, modes = parameter(path.partition("/")[0]), get_args(NoiseMode)
    options: dict[str, Any] = {"low": 0, "is_merged": False, "is_available": choice.is_available}
    if choice.path == "noise.mode":
        options |= {"high": len(modes) - 1, "is_available": lambda facts: bool(facts.noise_layers)}
        read = lambda session: modes.index(session.noise.mode)  # noqa: E731
        write = lambda session, index: choice.write(session, modes[index])  # noqa: E731
    else:
        options |= {"high": MAX_ITEMS, "fit": lambda index, facts: min(index, facts.c_dim - 1)}
        read = lambda session: max(session.classes, key=lambda pair: pair[1], default=(0, 0.0))[0]  # noqa: E731
        write = _write_class
    return Parameter(path, choice.label, "integer", 0, read, write, **options)


def _write_class(session: Session, index: int) -> Session:
    """Set one class, the last one of the model for those after it: what sound adds to a class may be too much."""
    count = session.model.class_count
    return _write_classes(session, ((index if count is None else min(index, count - 1), 1.0),))


_FAMILIES: tuple[tuple[str, Callable[..., Parameter]], ...] = (
    (r"noise\.mode/number|classes/number", _numbered),
    (r"noise\.layer/(\d{1,4})", _noise_layer),
    (r"slider/(.{1,4096})", _slider_field("amount", "Slider", "number", is_batched=True)),
    (r"rows/(.{1,4096})", _slider_field("rows", "Layer range", "rows", is_merged=False, fit=fit_slider_rows)),
    (r"name/(.{1,4096})", _slider_field("label", "Rename slider", "text", is_merged=False)),
    (r"star/(.{1,4096})", _slider_field("starred", "Star slider", "flag", is_merged=False)),
    (r"mix/(\d{1,4})/latent", _source_field("latent", "Source's latent", "source", Latent())),
    (r"mix/(\d{1,4})/name", _source_field("label", "Rename source", "text", "")),
    (r"mix/(\d{1,4})/strengths", _strengths),
    (r"mix/(\d{1,4})/strength", _whole_strength),
    (r"mix/(\d{1,4})/strength/(\d{1,4})", _strength),
    (r"position\.(x|y)", _coordinate),
    (rf"bend/(\d{{1,6}})/({'|'.join(QUANTITIES)})", bend_number),
    (r"bend/(\d{1,6})/on", bend_field("is_on", "Switch bend", "flag", default=True)),
    (r"bend/(\d{1,6})/name", bend_field("label", "Rename bend", "text", "")),
    (r"blend/(\d{1,6})/strength", blend_field("strength", "Blend", "number", low=0.0, high=1.0)),
    (r"blend/(\d{1,6})/softness", blend_field("softness", "Blend's soft edge", "number", low=0.0, high=1.0)),
    (r"blend/(\d{1,6})/rows", blend_field("rows", "Blend's layers", "rows", is_merged=False, fit=fit_rows)),
    (r"blend/(\d{1,6})/mask", blend_field("mask", "Blend's mask", "mask", is_merged=False)),
    (r"blend/(\d{1,6})/latent", blend_field("latent", "Blend's latent", "source", is_merged=False)),
    (r"blend/(\d{1,6})/on", blend_field("is_on", "Switch blend", "flag", is_merged=False)),
    (r"blend/(\d{1,6})/name", blend_field("label", "Rename blend", "text", is_merged=False)),
    (r"style/([^/]{1,200})/(\d{1,5})", style_field("amount", "Style channel", "number", low=-1e4, high=1e4)),
    (r"style\.name/([^/]{1,200})/(\d{1,5})", style_field("label", "Rename style channel", "text", is_merged=False)),
)
