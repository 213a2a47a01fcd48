from __future__ import annotations

from dataclasses import replace

from explorer_app.session.edits import AddSource, GoToSeed, SetParameter, SetSlider, set_transform, set_truncation
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Slider, Source
from gpu_backend import Latent, Noise, Tap, Transform, Truncation
from tests.helpers.desk import Desk
from tests.helpers.edits import set_noise


def slide(desk: Desk, amount: float, direction: str = "sefa/0", final: bool = True) -> None:
    slider = replace(desk.controller.session.slider(direction), amount=amount)
    desk.controller.edit(SetSlider(slider), final)


def test_after_three_thousand_events_the_last_gesture_comes_within_two_frames(open_desk: Desk):
    # One event a millisecond; the renderer gets time for a frame at every twentieth, and the window hears of frames.
    desk = open_desk
    desk.engine.gate.shut()
    for event in range(3000):
        desk.walk(event / 1000, release=False)
        if event % 20 == 19:
            desk.until(lambda: desk.engine.gate.has_visitor)
            desk.engine.gate.let_through()
            rendered = 1 + (event + 1) // 20
            desk.until(lambda rendered=rendered: len(desk.engine.requests) == rendered)
    before = len(desk.engine.requests)
    desk.walk(3.0)
    wanted = resolve(desk.controller.session)
    desk.engine.gate.open()
    desk.until(lambda: desk.frames[-1].request == wanted)
    assert 100 < before < 200
    assert len(desk.engine.requests) - before <= 2


def test_one_drag_is_one_step_of_undo(open_desk: Desk):
    desk = open_desk
    desk.walk(0.1, 0.2, 0.3)
    desk.walk(0.4, 0.5)
    assert desk.labels == ["Start", "Walk", "Walk"]
    desk.controller.undo()
    assert desk.x == 0.3
    desk.controller.undo()
    assert desk.x == 0.0
    desk.controller.undo()
    desk.controller.redo()
    desk.controller.redo()
    assert desk.x == 0.5
    desk.rest()


def test_a_drag_that_ends_where_it_began_is_no_step(open_desk: Desk):
    open_desk.walk(0.1, 0.0)
    assert open_desk.labels == ["Start"]


def test_escape_brings_back_what_was_before_the_drag(open_desk: Desk):
    desk = open_desk
    desk.walk(0.1, 0.2, release=False)
    desk.controller.cancel_gesture()
    assert (desk.x, desk.labels) == (0.0, ["Start"])
    desk.controller.cancel_gesture()
    desk.rest()


def test_undo_in_the_middle_of_a_drag_takes_back_that_drag(open_desk: Desk):
    open_desk.walk(0.1, 0.2, release=False)
    open_desk.controller.undo()
    assert open_desk.x == 0.0
    assert open_desk.controller.history.redo_label == "Walk"


def test_keyboard_steps_of_one_slider_in_a_row_are_one_step_of_undo(open_desk: Desk):
    desk = open_desk
    for amount in (0.1, 0.2, 0.3):
        slide(desk, amount)
        desk.now_s += 0.5
    assert desk.labels == ["Start", "Slider"]
    desk.controller.undo()
    assert desk.controller.session.slider("sefa/0").amount == 0.0


def test_keyboard_steps_apart_in_time_or_of_other_sliders_are_steps_of_their_own(open_desk: Desk):
    desk = open_desk
    slide(desk, 0.1)
    desk.now_s += 0.7
    slide(desk, 0.2)
    slide(desk, 0.1, "sefa/1")
    slide(desk, 0.3)
    assert desk.labels == ["Start"] + ["Slider"] * 4


def test_a_key_after_undo_does_not_change_the_step_that_is_undone(open_desk: Desk):
    desk = open_desk
    slide(desk, 0.1)
    slide(desk, 0.1, "sefa/1")
    desk.controller.undo()
    slide(desk, 0.2)
    assert [entry.session.slider("sefa/0").amount for entry in desk.controller.history.entries] == [0.0, 0.1, 0.2]


def test_renaming_and_starring_a_slider_are_steps_of_their_own(open_desk: Desk):
    desk = open_desk
    slide(desk, 0.1)
    desk.controller.edit(SetSlider(Slider("sefa/0", 0.1, label="sun"), "Rename"))
    desk.controller.edit(SetSlider(Slider("sefa/0", 0.1, label="sun", starred=True), "Star"))
    assert desk.labels == ["Start", "Slider", "Rename", "Star"]


def test_everything_that_a_person_sets_can_be_taken_back(open_desk: Desk):
    desk, before = open_desk, open_desk.controller.session
    desk.controller.edit(GoToSeed(1207))
    desk.controller.edit(set_truncation(Truncation(0.3, 2)))
    desk.controller.edit(set_noise(Noise("random", 4)))
    desk.controller.edit(AddSource(Source(Latent(), (1.0,) * 12, "seed 0")))
    desk.controller.random_seed()
    desk.controller.keep_current()
    slide(desk, 1.0)
    after = desk.controller.session
    for _ in range(7):
        desk.controller.undo()
    assert desk.controller.session == before
    desk.controller.go_to(7)
    assert desk.controller.session == after
    desk.rest()


def test_a_drag_of_the_transform_is_one_step(desk: Desk):
    desk.library.options["cats"] = {"has_transform": True}
    desk.start()
    for degrees in (1.0, 2.0, 3.0):
        desk.controller.edit(set_transform(Transform(degrees=degrees)), False)
    desk.controller.edit(set_transform(Transform(degrees=4.0)))
    assert desk.labels == ["Start", "Transform"]
    desk.rest()
    assert desk.frames[-1].request.transform == Transform(degrees=4.0).matrix
    desk.controller.undo()
    desk.rest()
    assert desk.frames[-1].request.transform is None
    desk.controller.redo()
    assert desk.controller.session.transform == Transform(degrees=4.0)


def test_layers_that_are_gone_through_quickly_are_one_step_and_the_picture_again_is_another(open_desk: Desk):
    desk = open_desk
    for layer in ("b4.conv1", "b8.conv0", "b8.conv1"):
        desk.controller.edit(SetParameter("layer", Tap(layer)))
        desk.now_s += 0.2
    desk.controller.edit(SetParameter("layer", None))
    assert desk.labels == ["Start", "Layer", "Layer"]
    desk.rest()
    desk.controller.undo()
    desk.rest()
    assert desk.frames[-1].request.tap == Tap("b8.conv1")
    desk.controller.undo()
    assert desk.controller.session.tap is None


def test_a_new_edit_after_undo_forgets_what_redo_would_have_brought(open_desk: Desk):
    desk = open_desk
    desk.walk(1.0)
    desk.now_s += 1
    desk.walk(2.0)
    desk.controller.undo()
    desk.controller.edit(GoToSeed(9))
    assert [entry.session.position.x for entry in desk.controller.history.entries] == [0.0, 1.0, 9.0]
    assert not desk.controller.history.can_redo


def test_the_latent_as_it_is_becomes_a_source_without_a_change_of_the_picture(open_desk: Desk):
    desk = open_desk
    desk.walk(3.25)
    slide(desk, 2.0)
    desk.controller.keep_current()
    desk.controller.keep_current()
    first, second = desk.controller.session.mix
    assert (first.label, second.label) == ("current 1", "current 2")
    assert first.strengths == (0.0,) * 12
    assert first.latent.point.seeds == ((3, 0.75), (4, 0.25))
    assert first.latent.directions[0].amount == 2.0


def test_a_random_seed_is_a_whole_seed_elsewhere(open_desk: Desk):
    seen = set()
    for _ in range(8):
        open_desk.controller.random_seed()
        seen.add(open_desk.controller.session.position)
    assert len(seen) > 1
    assert all(place.x == int(place.x) and place.y == int(place.y) for place in seen)


def test_the_window_hears_of_a_drag_once_a_frame_and_of_its_end_at_once(open_desk: Desk):
    desk = open_desk
    desk.engine.gate.shut()
    desk.heard.clear()
    desk.walk(*(step / 1000 for step in range(1, 1001)), release=False)
    assert desk.heard == ["session"]
    desk.until(lambda: desk.engine.gate.has_visitor)
    desk.engine.gate.open()
    desk.until(lambda: len(desk.heard) == 2)
    assert resolve(desk.controller.session).blend in [request.blend for request in desk.engine.requests]
    assert len(desk.engine.requests) <= 3, "one for the first event, one for all that came after it"
    desk.heard.pop()
    desk.walk(2.0)
    assert desk.heard == ["session", "session", "history"]


def test_a_star_keeps_a_step_that_the_history_forgets(open_desk: Desk):
    desk = open_desk
    desk.walk(1.0)
    number = desk.controller.history.entries[1].number
    desk.controller.set_starred(number, True)
    desk.controller.undo()
    desk.controller.edit(GoToSeed(5))
    assert desk.controller.history.is_kept(number)
    desk.controller.go_to_kept(number)
    assert (desk.x, desk.labels[-1]) == (1.0, "Kept")
    desk.controller.set_starred(number, False)
    assert desk.controller.history.kept == ()
