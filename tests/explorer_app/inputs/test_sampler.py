"""What live values make of a session, frame by frame, with a clock that the test winds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer_app.inputs.sampler import TOUCH_S, LiveSampler, source_of
from explorer_app.session.parameters import parameter
from explorer_app.session.patches import Patch, shaped
from explorer_app.session.resolve import evaluate
from explorer_app.session.session import Session

PSI = "truncation.psi"
KNOB = "midi/knobs/cc/1/21"
SET = Patch(KNOB, PSI, 0.0, 1.0)
PICKED_UP = replace(SET, is_picked_up=True)


class Stage:
    """A session with patches, a sampler and a clock."""

    def __init__(self, *patches: Patch, psi: float = 0.7) -> None:
        self.session = Session(patches=patches)
        self.sampler = LiveSampler()
        self.now_s = 10.0
        self.values: dict[str, float] = {}
        self.move(psi)

    def move(self, psi: float) -> None:
        """Set the parameter as a hand does."""
        self.session = parameter(PSI).write(self.session, psi)

    def frame(self, knob: float | None = None, passed_s: float = 1 / 60) -> float:
        """Return psi as the next frame has it."""
        self.now_s += passed_s
        if knob is not None:
            self.values[KNOB] = knob
        return evaluate(self.session, self.sampler.sample(self.session, self.values, self.now_s)).truncation.psi


def test_a_control_that_never_moved_changes_nothing() -> None:
    stage = Stage(SET)
    assert stage.frame() == 0.7
    assert stage.sampler.level(SET).source is None


def test_a_control_sets_its_parameter_from_the_first_message_on() -> None:
    stage = Stage(SET)
    stage.frame()
    assert stage.frame(knob=0.2) == pytest.approx(0.2)
    assert stage.frame() == pytest.approx(0.2)


def test_a_patch_that_is_made_while_the_control_rests_waits_for_it_to_move() -> None:
    stage = Stage(SET)
    stage.values[KNOB] = 0.1
    assert stage.frame() == 0.7
    assert stage.frame(knob=0.11) == pytest.approx(0.11)


@pytest.mark.parametrize("way", [(0.1, 0.5, 0.8), (0.9, 0.75, 0.5)])
def test_with_pick_up_a_control_acts_once_it_has_passed_the_value(way: tuple[float, float, float]) -> None:
    stage = Stage(PICKED_UP)
    stage.frame()
    assert stage.frame(knob=way[0]) == 0.7
    assert stage.sampler.level(PICKED_UP).is_waiting
    assert stage.frame(knob=way[1]) == 0.7
    assert stage.frame(knob=way[2]) == pytest.approx(way[2])
    assert not stage.sampler.level(PICKED_UP).is_waiting


def test_with_pick_up_a_control_that_comes_close_acts() -> None:
    stage = Stage(PICKED_UP)
    stage.frame()
    assert stage.frame(knob=0.69) == pytest.approx(0.69)


def test_a_gesture_takes_over_from_a_control_at_rest_until_that_moves_again() -> None:
    stage = Stage(SET)
    stage.frame()
    stage.frame(knob=0.2)
    stage.frame(passed_s=TOUCH_S)
    stage.move(0.4)
    assert stage.frame() == 0.4
    assert stage.frame(knob=0.21) == pytest.approx(0.21)


def test_a_control_that_moves_wins_over_a_track_that_moves() -> None:
    stage = Stage(SET)
    stage.frame()
    for index in range(5):
        stage.move(0.5 + index / 100)
        assert stage.frame(knob=index / 10) == pytest.approx(index / 10)


def test_a_patch_that_adds_moves_what_the_session_has() -> None:
    stage = Stage(replace(SET, mode="add", low=-0.5, high=0.5))
    stage.frame()
    assert stage.frame(knob=0.5) == pytest.approx(0.7)
    assert stage.frame(knob=1.0) == pytest.approx(1.2)
    stage.move(0.1)
    assert stage.frame(passed_s=9.0) == pytest.approx(0.6)


def test_smoothing_glides_from_where_the_parameter_is_and_says_that_it_goes_on() -> None:
    patch = replace(SET, attack_s=0.5, release_s=0.5)
    stage = Stage(patch)
    stage.frame()
    first = stage.frame(knob=0.0)
    assert 0.6 < first < 0.7
    assert stage.sampler.is_settling
    later = [stage.frame() for _ in range(300)]
    assert later == sorted(later, reverse=True)
    assert later[-1] == pytest.approx(0.0, abs=1e-3)
    stage.frame(passed_s=10.0)
    assert not stage.sampler.is_settling


def test_a_range_may_be_inverted_and_is_clamped_to_that_of_the_parameter() -> None:
    stage = Stage(replace(SET, low=9.0, high=-9.0))
    stage.frame()
    assert stage.frame(knob=0.01) == 2.0
    assert stage.frame(knob=0.99) == -2.0


def test_patches_that_are_off_or_of_sound_do_nothing() -> None:
    stage = Stage(replace(SET, is_on=False), replace(SET, source="audio/drums/rms"))
    stage.values["audio/drums/rms"] = 0.1
    stage.frame()
    assert stage.frame(knob=0.2) == 0.7


def test_a_recorded_value_is_applied_once_and_released_afterwards() -> None:
    stage = Stage(replace(SET, mode="add"))
    stage.frame()
    stage.frame(knob=0.25)
    assert stage.sampler.touched == {PSI: pytest.approx(0.25)}
    assert stage.sampler.sample(stage.session, stage.values, stage.now_s, {PSI}).modulators == ()
    stage.sampler.release(PSI)
    assert stage.frame() == 0.7
    assert stage.sampler.touched == {}


def test_controls_of_other_parameters_keep_their_hold_when_one_is_released() -> None:
    stage = Stage(SET)
    stage.frame()
    stage.frame(knob=0.25)
    stage.sampler.release("noise.gain")
    assert stage.frame() == pytest.approx(0.25)
    assert stage.sampler.touched == {PSI: pytest.approx(0.25)}


def test_a_control_is_touched_for_a_moment_after_it_moved() -> None:
    stage = Stage(SET)
    stage.frame()
    stage.frame(knob=0.2)
    assert stage.sampler.touched == {PSI: 0.2}
    stage.frame(passed_s=TOUCH_S)
    assert stage.sampler.touched == {}


def test_a_patch_that_is_edited_keeps_its_hold() -> None:
    stage = Stage(SET)
    stage.frame()
    stage.frame(knob=0.5)
    stage.session = replace(stage.session, patches=(replace(SET, high=2.0),))
    assert stage.frame() == pytest.approx(1.0)


def test_a_sampler_remembers_only_the_patches_that_there_are() -> None:
    stage = Stage(SET)
    for index in range(100):
        stage.session = replace(stage.session, patches=(replace(SET, high=1.0 + index),))
        stage.frame(knob=index / 100)
    assert len(stage.sampler._holds) == len(stage.sampler._by_patch) == 1


@pytest.mark.parametrize("patch", [SET, replace(SET, low=2.0, high=-1.0, curve=1.5), replace(SET, curve=-2.0)])
def test_the_place_of_a_control_is_the_inverse_of_what_it_gives(patch: Patch) -> None:
    for value in (0.0, 0.25, 1.0):
        assert source_of(patch, shaped(patch, value)) == pytest.approx(value)
