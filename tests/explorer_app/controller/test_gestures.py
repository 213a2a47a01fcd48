from __future__ import annotations

from dataclasses import replace

import pytest

from explorer_app.controller import live_updates
from explorer_app.session.edits import (
    AddSources,
    Edit,
    GoToSeed,
    SetParameters,
    set_slider,
    set_transform,
    set_truncation,
)
from explorer_app.session.parameters import SetParameter
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Slider, Source
from gpu_backend import Latent, Noise, RowRange, Tap, Transform, Truncation
from tests.helpers.controller_harness import Harness
from tests.helpers.edits import set_noise
from tests.helpers.patience import PATIENCE_MS, more_than
from tests.helpers.requests import point_of


def slide(harness: Harness, amount: float, direction: str = "sefa/0", final: bool = True) -> None:
    harness.controller.editing.edit(SetParameter(f"slider/{direction}", amount), final)


def test_after_three_thousand_events_the_last_gesture_comes_within_two_frames(open_harness: Harness) -> None:
    # One event a millisecond; the renderer gets time for a frame at every twentieth, and the window hears of frames.
    harness = open_harness
    harness.engine.gate.shut()
    for event in range(3000):
        harness.drag(event / 1000, release=False)
        if event % 20 == 19:
            harness.until(lambda: harness.engine.gate.has_visitor)
            harness.engine.gate.let_through()
            rendered = 1 + (event + 1) // 20
            harness.until(more_than(harness.engine.requests, rendered - 1))
            assert len(harness.engine.requests) == rendered
    before = len(harness.engine.requests)
    harness.drag(3.0)
    wanted = resolve(harness.controller.editing.session)
    harness.engine.gate.open()
    harness.until(lambda: harness.frames[-1].request == wanted)
    assert 100 < before < 200
    assert len(harness.engine.requests) - before <= 2


def test_one_drag_is_one_step_of_undo(open_harness: Harness) -> None:
    harness = open_harness
    harness.drag(0.1, 0.2, 0.3)
    harness.drag(0.4, 0.5)
    assert harness.labels == ["Start", "Walk", "Walk"]
    harness.controller.editing.undo()
    assert harness.x == 0.3
    harness.controller.editing.undo()
    assert harness.x == 0.0
    harness.controller.editing.undo()
    harness.controller.editing.redo()
    harness.controller.editing.redo()
    assert harness.x == 0.5
    harness.rest()


def test_a_drag_that_ends_where_it_began_is_no_step(open_harness: Harness) -> None:
    open_harness.drag(0.1, 0.0)
    assert open_harness.labels == ["Start"]


def test_escape_brings_back_what_was_before_the_drag(open_harness: Harness) -> None:
    harness = open_harness
    harness.drag(0.1, 0.2, release=False)
    harness.controller.editing.cancel_gesture()
    assert (harness.x, harness.labels) == (0.0, ["Start"])
    harness.controller.editing.cancel_gesture()
    harness.rest()


def test_undo_in_the_middle_of_a_drag_takes_back_that_drag(open_harness: Harness) -> None:
    open_harness.drag(0.1, 0.2, release=False)
    open_harness.controller.editing.undo()
    assert open_harness.x == 0.0
    assert open_harness.controller.editing.history.redo_label == "Walk"


def test_keyboard_steps_of_one_slider_in_a_row_are_one_step_of_undo(open_harness: Harness) -> None:
    harness = open_harness
    for amount in (0.1, 0.2, 0.3):
        slide(harness, amount)
        harness.now_s += 0.5
    assert harness.labels == ["Start", "Slider"]
    harness.controller.editing.undo()
    assert harness.controller.editing.session.slider("sefa/0").amount == 0.0


def test_keyboard_steps_apart_in_time_or_of_other_sliders_are_steps_of_their_own(open_harness: Harness) -> None:
    harness = open_harness
    slide(harness, 0.1)
    harness.now_s += 0.7
    slide(harness, 0.2)
    slide(harness, 0.1, "sefa/1")
    slide(harness, 0.3)
    assert harness.labels == ["Start"] + ["Slider"] * 4


def test_a_key_after_undo_does_not_change_the_step_that_is_undone(open_harness: Harness) -> None:
    harness = open_harness
    slide(harness, 0.1)
    slide(harness, 0.1, "sefa/1")
    harness.controller.editing.undo()
    slide(harness, 0.2)
    assert [entry.session.slider("sefa/0").amount for entry in harness.controller.editing.history.entries] == [
        0.0,
        0.1,
        0.2,
    ]


def test_renaming_and_starring_a_slider_are_steps_of_their_own(open_harness: Harness) -> None:
    harness = open_harness
    slide(harness, 0.1)
    harness.controller.editing.edit(SetParameter("name/sefa/0", "sun"))
    harness.controller.editing.edit(SetParameter("star/sefa/0", True))
    assert harness.labels == ["Start", "Slider", "Rename slider", "Star slider"]
    assert harness.controller.editing.session.sliders == (Slider("sefa/0", 0.1, label="sun", starred=True),)


def test_everything_that_a_person_sets_can_be_taken_back(open_harness: Harness) -> None:
    harness, before = open_harness, open_harness.controller.editing.session
    harness.controller.editing.edit(GoToSeed(1207))
    harness.controller.editing.edit(set_truncation(Truncation(0.3, 2)))
    harness.controller.editing.edit(set_noise(Noise("random", 4)))
    harness.controller.editing.edit(AddSources((Source(Latent(), (1.0,) * 12, "seed 0"),)))
    harness.controller.editing.random_seed()
    harness.controller.mixing.add_current()
    slide(harness, 1.0)
    after = harness.controller.editing.session
    for _ in range(7):
        harness.controller.editing.undo()
    assert harness.controller.editing.session == before
    harness.controller.editing.go_to(7)
    assert harness.controller.editing.session == after
    harness.rest()


def test_a_drag_of_the_transform_is_one_step(harness: Harness) -> None:
    harness.library.options["cats"] = {"has_transform": True}
    harness.start()
    for degrees in (1.0, 2.0, 3.0):
        harness.controller.editing.edit(set_transform(Transform(degrees=degrees)), False)
    harness.controller.editing.edit(set_transform(Transform(degrees=4.0)))
    assert harness.labels == ["Start", "Transform"]
    harness.rest()
    assert harness.frames[-1].request.transform == Transform(degrees=4.0).matrix
    harness.controller.editing.undo()
    harness.rest()
    assert harness.frames[-1].request.transform is None
    harness.controller.editing.redo()
    assert harness.controller.editing.session.transform == Transform(degrees=4.0)


def test_layers_that_are_gone_through_quickly_are_one_step_and_the_picture_again_is_another(
    open_harness: Harness,
) -> None:
    harness = open_harness
    for layer in ("b4.conv1", "b8.conv0", "b8.conv1"):
        harness.controller.editing.edit(SetParameter("layer", Tap(layer)))
        harness.now_s += 0.2
    harness.controller.editing.edit(SetParameter("layer", None))
    assert harness.labels == ["Start", "Layer", "Layer"]
    harness.rest()
    harness.controller.editing.undo()
    harness.rest()
    assert harness.frames[-1].request.tap == Tap("b8.conv1")
    harness.controller.editing.undo()
    assert harness.controller.editing.session.tap is None


def test_a_new_edit_after_undo_forgets_what_redo_would_have_brought(open_harness: Harness) -> None:
    harness = open_harness
    harness.drag(1.0)
    harness.now_s += 1
    harness.drag(2.0)
    harness.controller.editing.undo()
    harness.controller.editing.edit(GoToSeed(9))
    assert [entry.session.position.x for entry in harness.controller.editing.history.entries] == [0.0, 1.0, 9.0]
    assert not harness.controller.editing.history.can_redo


def test_the_latent_as_it_is_becomes_a_source_without_a_change_of_the_picture(open_harness: Harness) -> None:
    harness = open_harness
    harness.drag(3.25)
    slide(harness, 2.0)
    harness.controller.mixing.add_current()
    harness.controller.mixing.add_current()
    first, second = harness.controller.editing.session.mix
    assert (first.label, second.label) == ("current 1", "current 2")
    assert first.strengths == (0.0,) * 12
    assert point_of(first.latent).seeds == ((3, 0.75), (4, 0.25))
    assert first.latent.directions[0].amount == 2.0


def test_a_random_seed_is_a_whole_seed_elsewhere(open_harness: Harness) -> None:
    seen = set()
    for _ in range(8):
        open_harness.controller.editing.random_seed()
        seen.add(open_harness.controller.editing.session.position)
    assert len(seen) > 1
    assert all(place.x == int(place.x) and place.y == int(place.y) for place in seen)


def test_a_drag_updates_the_window_once_a_frame_and_at_once_when_it_ends(
    open_harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = open_harness
    harness.controller.engine.preview._rest._interval_s = (
        PATIENCE_MS / 100.0
    )  # a machine that pauses is no resting hand
    monkeypatch.setattr(live_updates, "_EARLY", float("-inf"))  # a thousand events arrive within one refresh
    harness.engine.gate.shut()
    harness.heard.clear()
    harness.drag(*(step / 1000 for step in range(1, 1001)), release=False)
    assert len(harness.heard) <= 1
    harness.until(lambda: harness.engine.gate.has_visitor)
    harness.engine.gate.open()
    newest = resolve(harness.controller.editing.session).blend
    harness.until(lambda: newest in [request.blend for request in harness.engine.requests])
    assert len(harness.engine.requests) <= 3, "one for the first event, one for all that came after it"
    harness.until(lambda: bool(harness.heard))
    assert set(harness.heard) == {"session"}
    assert len(harness.heard) <= 4
    harness.heard.clear()
    harness.drag(2.0)
    assert harness.heard[-2:] == ["session", "history"]
    assert len(harness.heard) <= 3


def test_a_star_keeps_a_step_that_the_history_forgets(open_harness: Harness) -> None:
    harness = open_harness
    harness.drag(1.0)
    number = harness.controller.editing.history.entries[1].number
    harness.controller.editing.kept.star(number, True)
    harness.controller.editing.undo()
    harness.controller.editing.edit(GoToSeed(5))
    assert harness.controller.editing.history.is_kept(number)
    harness.controller.editing.go_to_kept(number)
    assert (harness.x, harness.labels[-1]) == (1.0, "Kept")
    harness.controller.editing.kept.star(number, False)
    assert harness.controller.editing.history.kept == ()


def test_an_edit_that_was_made_for_another_model_sets_nothing_that_the_open_one_lacks(open_harness: Harness) -> None:
    editing, facts = open_harness.controller.editing, open_harness.controller.engine.model.facts
    assert facts is not None
    assert facts.c_dim == 0
    before = editing.session
    edits: tuple[Edit, ...] = (
        SetParameter("classes", ((0, 1.0),)),
        SetParameter("transform.x", 0.1),
        SetParameter("noise.layer/99", 0.5),
        SetParameter("layer", Tap("L2_52_6", (1,))),
        SetParameter("slider/world/of another model", 1.0),
        set_transform(Transform(x=0.1)),
        set_slider("world/of another model", RowRange(0, 1), SetParameter("slider/world/of another model", 1.0)),
    )
    for edit in edits:
        editing.edit(edit)
        assert editing.session == before, edit.target
    editing.edit(SetParameters((SetParameter("transform.x", 0.1), SetParameter("noise.gain", 0.5)), "Both"))
    assert editing.session == replace(before, noise=replace(before.noise, gain=0.5))
    before = editing.session
    slide(open_harness, 0.5)
    assert editing.session != before
    open_harness.rest()


def test_panels_are_told_when_an_edit_was_refused_so_that_they_show_the_session_again(open_harness: Harness) -> None:
    editing = open_harness.controller.editing
    told: list[int] = []
    editing.session_changed.connect(lambda: told.append(1))
    editing.edit(SetParameter("classes", ((3, 1.0),)))
    assert told == [1]
    assert open_harness.labels == ["Start"]
    open_harness.rest()
