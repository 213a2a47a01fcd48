"""A layer on show: what is asked for, and what the rest of the program makes of it."""

from __future__ import annotations

from dataclasses import replace

from explorer_app.exporting.picture import read_picture
from explorer_app.session.edits import GoToSeed
from explorer_app.session.parameters import SetParameter
from gpu_backend import Frame, Tap
from tests.helpers.controller_harness import Harness

LAYER = Tap("b8.conv1", (1,), 6.0)


def values_of(frame: Frame) -> object:
    """Return the numbers of the layer that a frame shows, None if it brought none."""
    assert frame.tap is not None
    return frame.tap.values


def test_a_gesture_that_moves_gets_the_layer_and_no_drafts(harness: Harness) -> None:
    harness.engine.full_ms = 5e3
    harness.start()
    harness.controller.editing.edit(SetParameter("layer", LAYER))
    harness.rest()
    harness.drag(0.5, release=False)
    harness.rest()
    assert harness.frames[-1].width == 8
    assert all(request.resolution is None for request in harness.engine.requests if request.tap == LAYER)


def test_the_time_of_a_layer_picture_does_not_count_for_drafts(harness: Harness) -> None:
    harness.engine.full_ms = 5e3
    harness.start()
    harness.drag(0.5, release=False)
    side = harness.draft().width
    harness.drag(0.5)
    harness.rest()
    harness.engine.full_ms = 1.0
    for channel in range(6):
        harness.controller.editing.edit(SetParameter("layer", replace(LAYER, channels=(channel % 2,))))
        harness.rest()
    harness.engine.full_ms = 5e3
    harness.controller.editing.edit(SetParameter("layer", None))
    harness.rest()
    before = len(harness.frames)
    harness.drag(0.7, release=False)
    assert harness.draft(before).width == side


def test_the_numbers_of_a_layer_come_along_while_they_are_read_and_the_layer_on_the_screen_has_its_own_at_once(
    open_harness: Harness,
) -> None:
    harness = open_harness
    harness.controller.editing.edit(SetParameter("layer", LAYER))
    harness.rest()
    assert values_of(harness.frames[-1]) is None
    harness.controller.engine.preview.set_reading_values(True)
    harness.until(lambda: values_of(harness.frames[-1]) is not None)
    count = len(harness.engine.requests)
    harness.controller.engine.preview.set_reading_values(True)
    harness.drag(0.5)
    harness.until(lambda: len(harness.engine.requests) > count and harness.frames[-1].request.wants_tap_values)
    harness.controller.engine.preview.set_reading_values(False)
    harness.drag(0.7)
    harness.rest()
    assert values_of(harness.frames[-1]) is None
    assert len(harness.engine.requests) == count + 2


def test_a_picture_has_no_numbers_to_read(open_harness: Harness) -> None:
    harness = open_harness
    count = len(harness.engine.requests)
    harness.controller.engine.preview.set_reading_values(True)
    harness.drag(0.5)
    harness.rest()
    assert len(harness.engine.requests) == count + 1


def test_small_pictures_show_the_picture_even_while_a_layer_is_on_the_screen(open_harness: Harness) -> None:
    harness = open_harness
    harness.controller.editing.edit(SetParameter("layer", LAYER))
    harness.rest()
    harness.controller.thumbnails.request("here", harness.controller.editing.session)
    harness.controller.thumbnails.request("there", GoToSeed(7).apply(harness.controller.editing.session))
    harness.until(lambda: len(harness.controller.thumbnails.store) == 2)
    assert [request.tap for request in harness.engine.requests[-2:]] == [None, None]


def test_a_saved_picture_is_what_the_canvas_shows_and_brings_the_layer_back(open_harness: Harness) -> None:
    harness = open_harness
    harness.controller.engine.preview.set_reading_values(True)
    harness.controller.editing.edit(SetParameter("layer", LAYER))
    harness.until(lambda: harness.frames[-1].tap is not None)
    count = len(harness.engine.requests)
    path = harness.folder / "layer.png"
    harness.controller.pictures.save(path)
    harness.until(lambda: "Saved layer.png." in harness.said())
    assert len(harness.engine.requests) == count
    assert read_picture(path).request.tap == LAYER
    harness.controller.editing.edit(SetParameter("layer", None))
    harness.controller.files.open_picture(path)
    harness.until(lambda: harness.controller.editing.session.tap == LAYER)


def test_a_layer_that_the_next_model_lacks_is_replaced_by_its_picture(open_harness: Harness) -> None:
    harness = open_harness
    harness.library.options["dogs"] = {"resolution": 16}
    harness.controller.editing.edit(SetParameter("layer", Tap("b64.conv1")))
    harness.rest()
    harness.open("dogs")
    harness.until(lambda: harness.controller.editing.session.model.name == "dogs")
    assert harness.controller.editing.session.tap is None
    harness.rest()
    assert any("no such layer" in sentence for sentence in harness.said())
