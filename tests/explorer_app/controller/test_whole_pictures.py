"""Whole pictures of sessions beside the one on the screen."""

from __future__ import annotations

from explorer_app.session.edits import PLACE, GoToSeed
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Position
from tests.helpers.controller_harness import Harness


def test_a_whole_picture_is_made_as_large_as_the_model_makes_it(open_harness: Harness) -> None:
    open_harness.controller.editing.edit(GoToSeed(3))
    other = GoToSeed(7).apply(open_harness.controller.editing.session)
    assert open_harness.controller.whole_pictures.get(other) is None
    open_harness.until(lambda: open_harness.controller.whole_pictures.get(other) is not None)
    frame = open_harness.controller.whole_pictures.get(other)
    assert open_harness.controller.engine.model.facts is not None
    assert frame is not None
    assert (frame.width, frame.is_draft) == (open_harness.controller.engine.model.facts.resolution, False)


def test_a_picture_that_rested_on_the_screen_is_there_at_once(open_harness: Harness) -> None:
    open_harness.controller.editing.edit(GoToSeed(3))
    open_harness.rest()
    open_harness.controller.whole_pictures._keep_shown()
    open_harness.controller.editing.edit(GoToSeed(4))
    assert open_harness.controller.editing.session_before is not None
    name, before = open_harness.controller.editing.session_before
    assert name == "Before “Go to seed”"
    assert open_harness.controller.whole_pictures.get(before) is not None


def test_before_means_before_the_gesture_while_one_is_under_way(open_harness: Harness) -> None:
    controller = open_harness.controller
    controller.editing.edit(GoToSeed(3))
    controller.editing.edit(SetParameter(PLACE, Position(3.5, 0.0)), False)
    assert controller.editing.session_before is not None
    name, before = controller.editing.session_before
    assert (name, before.position.x) == ("Before this gesture", 3.0)
    controller.editing.edit(SetParameter(PLACE, Position(3.6, 0.0)), True)
    name, before = controller.editing.session_before
    assert before.position.x == 3.0
