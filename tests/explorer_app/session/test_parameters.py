"""The table of parameters: reading, writing, ranges, what lies between two values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from explorer_app.session.edits import SetParameters
from explorer_app.session.local_blends import LocalBlend
from explorer_app.session.local_edits import LayerBend, StyleChannel
from explorer_app.session.parameters import ParameterError, SetParameter, fixed_parameters, parameter, parameters_of
from explorer_app.session.picture_mask import inverted
from explorer_app.session.resolve import Modulation, Modulator, evaluate
from explorer_app.session.session import Position, Session, Slider, Source
from explorer_app.session.session_json import session_from_json, session_to_json, stored_of
from gpu_backend import BEND_REST, BendKind, Latent, Noise, Point, Recipe, RowRange, Tap, Transform, Truncation
from tests.helpers.fake_controller import facts


@dataclass(frozen=True)
class Fixed:
    """A curve with one value."""

    value: Any

    def at(self, t: float) -> Any:
        return self.value


KINDS: tuple[BendKind, ...] = ("gain", "move", "ablate", "threshold", "turn", "scale")

VALUES = {
    "position": Position(3.0, 4.0),
    "pinned_blend": ((Recipe(Latent(Point(((4, 1.0),)))), 1.0),),
    "classes": ((2, 1.0),),
    "truncation.psi": 0.25,
    "truncation.cutoff": 3,
    "noise.mode": "random",
    "noise.seed": 9,
    "noise.gain": 0.5,
    "noise.phase": 90.0,
    "noise.layer/2": 0.25,
    "transform.x": 0.5,
    "transform.y": -0.5,
    "transform.degrees": 30.0,
    "transform.scale": 2.0,
    "layer": Tap("b8.conv0"),
    "mask": inverted(None),
    "slider/world/sun height": 1.5,
    "rows/sefa/3": RowRange(1, 2),
    "name/sefa/3": "haze",
    "star/sefa/3": True,
    "mix/1/latent": Latent(Point(((7, 1.0),))),
    "mix/1/name": "dusk",
    "mix/1/strengths": (0.25, 0.5),
    "mix/0/strength/1": 0.75,
    "bend/1/gain": -2.0,
    "bend/1/on": False,
    "bend/1/name": "louder",
    "bend/2/right": 0.5,
    "bend/2/down": -0.25,
    "bend/3/ablate": 0.5,
    "bend/4/threshold": 1.5,
    "bend/5/turn": 45.0,
    "bend/6/scale": 2.0,
    "style/b8.conv0/3": 4.0,
    "style.name/b8.conv0/3": "haze",
    "blend/1/latent": Latent(Point(((7, 1.0),))),
    "blend/1/mask": inverted(None),
    "blend/1/rows": RowRange(1, 2),
    "blend/1/strength": 0.25,
    "blend/1/softness": 0.5,
    "blend/1/on": False,
    "blend/1/name": "sky",
    "position.x": 3.5,
    "position.y": -2.0,
}
SESSION = Session(
    mix=(Source(Latent(), (0.0, 0.0), "a"), Source(Latent(Point(((5, 1.0),))), (1.0, 1.0), "b")),
    bends=tuple(LayerBend(number, "b8.conv0", kind, BEND_REST[kind]) for number, kind in enumerate(KINDS, 1)),
    style_channels=(StyleChannel("b8.conv0", 3),),
    blends=(LocalBlend(1),),
)


@pytest.mark.parametrize("path", sorted(VALUES))
def test_a_value_is_read_as_it_was_written_and_nothing_else_changes(path: str) -> None:
    row, value = parameter(path), VALUES[path]
    changed = row.write(SESSION, value)
    assert row.read(changed) == value
    assert row.read(SESSION) != value
    assert row.write(changed, row.read(SESSION)) == SESSION
    assert row.label
    assert row.shown(value)


def test_every_fixed_parameter_has_the_default_of_a_new_session_and_a_test() -> None:
    for row in fixed_parameters():
        assert row.read(Session()) == row.default
        assert row.path in VALUES or row.path == "layer.gain"


@pytest.mark.parametrize("path", sorted(VALUES))
def test_every_parameter_is_in_a_file_and_in_a_session_that_is_modulated(path: str) -> None:
    value = VALUES[path]
    changed = SetParameter(path, value).apply(SESSION)
    assert parameter(path).read(session_from_json(session_to_json(changed), stored_of((changed,)))) == value
    modulation = Modulation((Modulator(path, Fixed(value)),))
    assert parameter(path).read(evaluate(SESSION, modulation, 0.0)) == parameter(path).clamped(value)


def test_the_gain_of_a_layer_needs_a_layer() -> None:
    gain = parameter("layer.gain")
    assert gain.write(Session(), 6.0) == Session()
    shown = Session(tap=Tap("b8.conv0"))
    assert gain.read(gain.write(shown, 6.0)) == 6.0


def test_a_held_latent_follows_truncation_and_classes_and_is_let_go_by_walking() -> None:
    held = Session(pinned_blend=((Recipe(Latent(), Truncation(1.0)), 1.0),))
    edit = SetParameters((SetParameter("truncation.psi", 0.5), SetParameter("classes", ((1, 1.0),))), "Both")
    recipe, _ = edit.apply(held).pinned_blend[0]
    assert (recipe.truncation.psi, recipe.latent.classes) == (0.5, ((1, 1.0),))
    assert SetParameter("position", Position(1.0, 0.0)).apply(held).pinned_blend == ()


@pytest.mark.parametrize("path", ["", "nothing", "truncation", "mix/x/strengths", "slider/", "noise.layer/99999"])
def test_a_path_that_names_nothing_is_refused(path: str) -> None:
    with pytest.raises(ParameterError, match="There is no parameter"):
        SetParameter(path, 1.0)


@pytest.mark.parametrize(
    ("path", "value", "clamped"),
    [
        ("truncation.psi", 9.0, 2.0),
        ("noise.gain", -1.0, 0.0),
        ("noise.seed", 2.6, 3),
        ("truncation.cutoff", None, None),
        ("transform.scale", 0.0, 0.001),
        ("noise.mode", "const", "const"),
    ],
)
def test_a_value_is_kept_within_its_range(path: str, value: Any, clamped: Any) -> None:
    assert parameter(path).clamped(value) == clamped


def test_a_number_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ParameterError, match="finite"):
        parameter("truncation.psi").clamped(float("nan"))


_HALF_WAY = ((Recipe(), 0.5), (Recipe(Latent(), Truncation(0.5)), 0.5))


@pytest.mark.parametrize(
    ("path", "first", "second", "middle"),
    [
        ("truncation.psi", 0.0, 1.0, 0.5),
        ("transform.degrees", 170.0, -170.0, 180.0),
        ("transform.scale", 0.5, 2.0, 1.0),
        ("noise.seed", 1, 4, 2),
        ("noise.mode", "none", "const", "none"),
        ("position", Position(0.0, 2.0), Position(1.0, 0.0), Position(0.5, 1.0)),
        ("classes", ((1, 1.0),), ((2, 1.0),), ((1, 0.5), (2, 0.5))),
        ("mix/0/strengths", (0.0, 1.0), (1.0, 1.0), (0.5, 1.0)),
        ("truncation.cutoff", None, 4, None),
        ("pinned_blend", ((Recipe(), 1.0),), ((Recipe(Latent(), Truncation(0.5)), 1.0),), _HALF_WAY),
        ("pinned_blend", (), ((Recipe(), 1.0),), ()),
    ],
)
def test_half_way_between_two_values(path: str, first: Any, second: Any, middle: Any) -> None:
    row = parameter(path)
    assert row.between(first, second, 0.5) == middle
    assert row.between(first, second, 0.0) == first
    assert row.between(first, second, 1.0) == second


def test_parameters_of_a_session_are_those_that_its_model_has() -> None:
    session = Session(sliders=(Slider("sefa/0", 1.0),), mix=SESSION.mix)
    paths = {row.path for row in parameters_of(session, facts())}
    assert {"position", "truncation.psi", "noise.layer/0", "slider/sefa/0", "star/sefa/0", "mix/1/strengths"} <= paths
    assert "transform.x" not in paths
    assert "classes" not in paths


def test_two_hands_on_one_group_of_fields_do_not_touch_each_others() -> None:
    session = Session(noise=Noise("random", 4), transform=Transform(degrees=10.0))
    session = SetParameter("noise.gain", 0.5).apply(SetParameter("transform.x", 0.25).apply(session))
    assert session.noise == Noise("random", 4, 0.5)
    assert session.transform == Transform(0.25, 0.0, 10.0)


def test_writing_to_a_mix_source_that_is_not_there_changes_nothing() -> None:
    for path in ("mix/5/latent", "mix/5/name", "mix/5/strengths"):
        row = parameter(path)
        assert row.write(SESSION, VALUES[path.replace("5", "1")]) == SESSION
        assert row.read(SESSION) == row.default


def test_a_number_goes_through_the_kinds_of_noise_and_through_the_classes() -> None:
    mode, classes = parameter("noise.mode/number"), parameter("classes/number")
    session = Session(classes=((3, 0.2), (5, 0.8)))
    assert (mode.read(session), classes.read(session)) == (1, 5)
    moved = classes.write(mode.write(session, mode.clamped(1.7)), classes.clamped(6.4))
    assert (moved.noise.mode, moved.classes) == ("random", ((6, 1.0),))


@pytest.mark.parametrize(("path", "text"), [("slider/a", "0.00"), ("noise.phase", "0°"), ("transform.x", "0.000")])
def test_a_value_that_rounds_to_zero_has_no_sign(path: str, text: str) -> None:
    assert parameter(path).shown(-0.0001) == text


def test_a_value_below_zero_has_a_true_minus() -> None:
    assert parameter("slider/a").shown(-0.76) == "−0.76"
    assert parameter("position").shown(Position(-1.5, 2.0)) == "−1.50, 2.00"
