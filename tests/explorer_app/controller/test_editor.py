"""Several gestures at once, and what undo makes of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from explorer_app.controller.editor import Editor
from explorer_app.session.edits import (
    PLACE,
    AddSources,
    Edit,
    GoToSeed,
    RemoveSource,
    RemoveStyleChannel,
    set_transform,
    set_truncation,
)
from explorer_app.session.history import KeptSession
from explorer_app.session.local_edits import StyleChannel
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import ModelReference, Position, Session, Source
from gpu_backend import Latent, Noise, Transform, Truncation
from tests.helpers.edits import set_noise


def walk(value: float) -> Edit:
    return SetParameter(PLACE, Position(value, 0.0))


def slide(value: float, name: str = "sefa/0") -> Edit:
    return SetParameter(f"slider/{name}", value)


def labels(editor: Editor) -> list[str]:
    return [entry.label for entry in editor.history.entries]


def test_a_drag_with_a_slider_beside_it_is_two_steps_and_undo_takes_back_one_of_them() -> None:
    editor = Editor()
    for event in range(1, 121):
        editor.edit(walk(event), False, event / 60, "canvas")
        editor.edit(slide(event), False, event / 60, "sliders")
    editor.edit(slide(120.0), True, 2.0, "sliders")
    editor.edit(walk(121.0), False, 2.0, "canvas")
    editor.edit(walk(122.0), True, 2.1, "canvas")
    assert labels(editor) == ["Start", "Slider", "Walk"]
    assert (editor.session.position.x, editor.session.slider("sefa/0").amount) == (122.0, 120.0)
    editor.undo()
    assert (editor.session.position.x, editor.session.slider("sefa/0").amount) == (0.0, 120.0)
    editor.undo()
    assert editor.session == Session()
    editor.redo()
    editor.redo()
    assert (editor.session.position.x, editor.session.slider("sefa/0").amount) == (122.0, 120.0)


def test_walks_by_keys_in_quick_succession_are_one_step_and_drags_are_not() -> None:
    editor = Editor()
    for press in range(1, 4):
        editor.edit(walk(press / 10), False, press * 0.4, "plane")
        editor.edit(SetParameter(PLACE, Position(press / 10, 0.0), by_key=True), True, press * 0.4 + 0.1, "plane")
    assert labels(editor) == ["Start", "Walk"]
    editor.edit(walk(0.4), False, 9.0, "plane")
    editor.edit(SetParameter(PLACE, Position(0.4, 0.0), by_key=True), True, 9.1, "plane")
    editor.edit(walk(0.5), False, 9.2, "canvas")
    editor.edit(walk(0.6), True, 9.3, "canvas")
    assert labels(editor) == ["Start", "Walk", "Walk", "Walk"]
    for x in (0.4, 0.3, 0.0):
        editor.undo()
        assert editor.session.position.x == x


def test_ten_sources_at_sixty_events_a_second_for_ten_seconds_are_ten_steps() -> None:
    editor = Editor()
    edits: list[Callable[[float], Edit]] = [
        walk,
        lambda value: set_truncation(Truncation(value)),
        lambda value: set_noise(Noise(gain=value)),
        lambda value: set_transform(Transform(degrees=value)),
        *(lambda value, name=f"sefa/{number}": slide(value, name) for number in range(6)),
    ]
    for event in range(600):
        for number, edit in enumerate(edits):
            editor.edit(edit(event / 600), event == 599, event / 60, f"controller {number}")
    assert len(editor.history.entries) == 1 + 10
    for _ in range(10):
        editor.undo()
    assert editor.session == Session()


def test_a_click_in_the_middle_of_a_drag_is_a_step_without_the_drag() -> None:
    editor = Editor()
    editor.edit(walk(1.0), False, 0.0, "canvas")
    editor.edit(AddSources((Source(Latent(), (1.0,), "seed 0"),)), True, 0.1, "mix")
    assert editor.session.position.x == 1.0
    assert editor.history.entries[-1].session.position.x == 0.0
    editor.edit(walk(2.0), True, 0.2, "canvas")
    assert labels(editor) == ["Start", "Add source", "Walk"]
    assert len(editor.session.mix) == 1


def test_escape_takes_back_the_gesture_of_its_source_and_no_other() -> None:
    editor = Editor()
    editor.edit(walk(1.0), False, 0.0, "canvas")
    editor.edit(slide(1.0), False, 0.0, "sliders")
    assert editor.cancel("canvas")
    assert (editor.session.position.x, editor.session.slider("sefa/0").amount) == (0.0, 1.0)
    assert not editor.cancel("canvas")
    editor.edit(slide(2.0), True, 0.0, "sliders")
    assert labels(editor) == ["Start", "Slider"]


def test_two_sources_that_move_one_thing_are_two_steps_and_the_newer_one_is_shown() -> None:
    editor = Editor()
    editor.edit(walk(1.0), False, 0.0, "canvas")
    editor.edit(walk(5.0), False, 0.1, "plane")
    editor.edit(walk(2.0), False, 0.2, "canvas")
    assert editor.session.position.x == 2.0
    editor.edit(walk(6.0), True, 0.3, "plane")
    assert [entry.session.position.x for entry in editor.history.entries] == [0.0, 2.0, 6.0]
    assert not editor.is_gesturing()


def test_going_to_a_seed_ends_a_walk_by_another_source_as_a_step() -> None:
    editor = Editor()
    editor.edit(walk(1.5), False, 0.0, "drift")
    editor.edit(GoToSeed(7), True, 0.1)
    assert [entry.session.position.x for entry in editor.history.entries] == [0.0, 1.5, 7.0]
    assert editor.session.position.x == 7.0


def test_removing_a_source_ends_gestures_that_count_sources() -> None:
    editor = Editor(Session(mix=tuple(Source(Latent(), (0.0,), str(number)) for number in range(2))))
    editor.edit(SetParameter("mix/1/strengths", (0.5,)), False, 0.0, "mix")
    editor.edit(RemoveSource(0), True, 0.1, "mix")
    assert [source.strengths for source in editor.session.mix] == [(0.5,)]
    editor.undo()
    assert [source.strengths for source in editor.session.mix] == [(0.0,), (0.5,)]


def test_a_gesture_that_moves_what_is_removed_does_not_bring_it_back() -> None:
    editor = Editor(Session(style_channels=(StyleChannel("b8.conv0", 5),)))
    editor.edit(SetParameter("style/b8.conv0/5", 0.5), False, 0.0, "midi")
    editor.edit(RemoveStyleChannel("b8.conv0", 5), True, 0.1)
    assert editor.session.style_channels == ()
    editor.undo()
    assert editor.session.style_channel("b8.conv0", 5).amount == 0.5


def test_undo_during_two_gestures_takes_back_the_newest_of_them() -> None:
    editor = Editor()
    editor.edit(walk(1.0), False, 0.0, "canvas")
    editor.edit(slide(1.0), False, 0.0, "sliders")
    editor.finish()
    editor.undo()
    assert (editor.session.position.x, editor.session.slider("sefa/0").amount) == (1.0, 0.0)


@pytest.mark.parametrize("source", [None, "canvas"])
def test_there_is_nothing_to_cancel_without_a_gesture(source: str | None) -> None:
    assert not Editor().cancel(source)


def test_kept_sessions_are_listed_once_a_change() -> None:
    editor = Editor()
    editor.keep((KeptSession(Session(position=Position(1.0, 0.0)), "one"),))
    listed = editor.kept
    assert editor.kept is listed
    editor.edit(walk(3.0), True, 0.0)
    assert editor.kept is listed
    editor.keep((KeptSession(Session(position=Position(2.0, 0.0)), "two"),))
    assert [item.label for item in editor.kept] == ["one", "two"]


def test_a_session_that_is_fitted_to_its_model_knows_more_of_it_without_a_step() -> None:
    editor = Editor()
    editor.begin(Session(model=ModelReference("", "cats", "ab")))
    before = editor.history
    editor.amend(Session(model=ModelReference("/cats.pkl", "cats", "ab", 5)))
    assert (editor.session.model.path, editor.session.model.class_count) == ("/cats.pkl", 5)
    assert editor.history is before
