"""What modulation makes of a session."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from explorer_app.session import session_writer
from explorer_app.session.parameters import ParameterError, parameter
from explorer_app.session.resolve import Modulation, Modulator, evaluate, kept_latent, resolve
from explorer_app.session.session import Position, Session, Slider, Source
from gpu_backend import Latent, Noise, Point, Recipe


@dataclass(frozen=True)
class Ramp:
    """A curve that goes up by `speed` a second."""

    speed: float

    def at(self, t: float) -> float:
        return self.speed * t


@dataclass(frozen=True)
class Fixed:
    value: Any

    def at(self, t: float) -> Any:
        return self.value


def moved(session: Session, *modulators: Modulator, t: float = 0.0) -> Session:
    return evaluate(session, Modulation(modulators), t)


def test_without_modulation_the_session_is_in_effect() -> None:
    session = Session(position=Position(3.0, 0.0))
    assert evaluate(session, t=7.0) is session


def test_a_curve_moves_a_slider_over_time_and_the_session_stays_as_it_is() -> None:
    session = Session(sliders=(Slider("sefa/0", 1.0),))
    drift = Modulator("slider/sefa/0", Ramp(0.5), "add")
    assert [moved(session, drift, t=t).slider("sefa/0").amount for t in (0.0, 1.0, 4.0, 1.0)] == [1.0, 1.5, 3.0, 1.5]
    assert session.slider("sefa/0").amount == 1.0
    assert resolve(moved(session, drift, t=2.0)).blend[0][0].latent.directions[0].amount == 2.0


def test_values_are_kept_within_their_range() -> None:
    assert moved(Session(), Modulator("noise.gain", Fixed(-5.0))).noise == Noise(gain=0.0)
    assert moved(Session(), Modulator("truncation.psi", Ramp(1.0), "add"), t=99.0).truncation.psi == 2.0
    mixed = Session(mix=(Source(Latent(), (0.5, 1.0), "a"),))
    assert moved(mixed, Modulator("mix/0/strengths", Fixed((0.25, 0.5)), "add")).mix[0].strengths == (0.75, 1.0)


def test_a_walk_lets_go_of_a_held_latent() -> None:
    held = Session(pinned_blend=((Recipe(), 1.0),), position=Position(1.0, 1.0))
    walked = moved(held, Modulator("position", Fixed(Position(0.5, 0.0)), "add"))
    assert (walked.position, walked.pinned_blend) == (Position(1.5, 1.0), ())


def test_later_modulators_see_what_earlier_ones_made() -> None:
    session = moved(Session(), Modulator("truncation.psi", Fixed(0.25)), Modulator("truncation.psi", Fixed(0.5), "add"))
    assert session.truncation.psi == 0.75


def test_many_modulators_do_what_one_after_the_other_does() -> None:
    source = Source(Latent(), (0.5, 0.5), "a")
    session = Session(sliders=(Slider("a", 1.0, starred=True), Slider("b", 2.0)), mix=(source, source))
    numbers = random.Random(4)
    paths = [
        *("slider/a", "slider/b", "slider/c", "noise.gain", "noise.layer/0", "noise.layer/3", "noise.seed"),
        *("mix/0/strength", "mix/0/strength/0", "mix/0/strength/3", "mix/1/strength/1", "mix/4/strength/0"),
        *("position.x", "position.y", "transform.x", "transform.scale", "truncation.psi", "truncation.cutoff"),
    ]
    for _ in range(60):
        modulators = []
        expected = session
        for path in numbers.choices(paths, k=numbers.randrange(12)):
            row, value, mode = parameter(path), numbers.choice((0.0, 0.25, 1.0)), numbers.choice(("set", "add"))
            modulators.append(Modulator(path, Fixed(value), cast("Any", mode)))
            before = row.read(expected)
            is_added = mode == "add" and before is not None
            after = value if mode == "set" else before + value if is_added else before
            expected = row.write(expected, row.clamped(after))
        together = moved(session, *modulators)
        assert replace(together, sliders=()) == replace(expected, sliders=())
        assert set(together.sliders) == set(expected.sliders)


def test_many_modulators_copy_the_session_once(monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[object] = []

    def copied(item: Any, **changes: Any) -> Any:
        copies.append(item)
        return replace(item, **changes)

    monkeypatch.setattr(session_writer, "replace", copied)
    session = moved(Session(), *(Modulator(f"slider/axis/{index}", Fixed(1.0), "add") for index in range(32)))
    assert len(session.sliders) == 32
    assert len(copies) == 1


def test_values_that_cannot_be_added_stay_unchanged() -> None:
    assert moved(Session(), Modulator("noise.mode", Fixed("none"), "add")) == Session()
    assert moved(Session(), Modulator("noise.mode", Fixed("none"))).noise.mode == "none"


def test_a_path_without_a_parameter_is_refused() -> None:
    with pytest.raises(ParameterError):
        moved(Session(), Modulator("nothing", Fixed(1.0)))


def test_of_a_pinned_blend_the_heaviest_latent_is_kept_for_the_mix() -> None:
    light, heavy = Latent(Point(((1, 1.0),))), Latent(Point(((2, 1.0),)))
    session = replace(Session(), pinned_blend=((Recipe(light), 0.3), (Recipe(heavy), 0.7)))
    assert kept_latent(session) == heavy
