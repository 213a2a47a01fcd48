"""A layer on show: what is asked for, and what the rest of the program makes of it."""

from __future__ import annotations

from dataclasses import replace

from explorer_app.exporting.picture import read_picture
from explorer_app.session.edits import GoToSeed, SetParameter
from gpu_backend import Tap
from tests.helpers.desk import Desk

LAYER = Tap("b8.conv1", (1,), 6.0)


def test_a_hand_that_moves_gets_the_layer_and_no_drafts(desk: Desk):
    desk.engine.full_ms = 5e3
    desk.start()
    desk.controller.edit(SetParameter("layer", LAYER))
    desk.rest()
    desk.walk(0.5, release=False)
    desk.rest()
    assert desk.frames[-1].width == 8
    assert all(request.resolution is None for request in desk.engine.requests if request.tap == LAYER)


def test_what_a_layer_takes_tells_nothing_about_drafts(desk: Desk):
    desk.engine.full_ms = 5e3
    desk.start()
    desk.walk(0.5, release=False)
    desk.until(lambda: desk.frames[-1].is_draft)
    side = desk.frames[-1].width
    desk.walk(0.5)
    desk.rest()
    desk.engine.full_ms = 1.0
    for channel in range(6):
        desk.controller.edit(SetParameter("layer", replace(LAYER, channels=(channel % 2,))))
        desk.rest()
    desk.engine.full_ms = 5e3
    desk.controller.edit(SetParameter("layer", None))
    desk.rest()
    desk.walk(0.7, release=False)
    desk.until(lambda: desk.frames[-1].is_draft)
    assert desk.frames[-1].width == side


def test_the_numbers_of_a_layer_come_along_while_they_are_read_and_the_layer_on_the_screen_has_its_own_at_once(
    open_desk: Desk,
):
    desk = open_desk
    desk.controller.edit(SetParameter("layer", LAYER))
    desk.rest()
    assert desk.frames[-1].tap.values is None
    desk.controller.set_reading_values(True)
    desk.until(lambda: desk.frames[-1].tap.values is not None)
    count = len(desk.engine.requests)
    desk.controller.set_reading_values(True)
    desk.walk(0.5)
    desk.until(lambda: len(desk.engine.requests) > count and desk.frames[-1].request.wants_tap_values)
    desk.controller.set_reading_values(False)
    desk.walk(0.7)
    desk.rest()
    assert desk.frames[-1].tap.values is None
    assert len(desk.engine.requests) == count + 2


def test_a_picture_has_no_numbers_to_read(open_desk: Desk):
    desk = open_desk
    count = len(desk.engine.requests)
    desk.controller.set_reading_values(True)
    desk.walk(0.5)
    desk.rest()
    assert len(desk.engine.requests) == count + 1


def test_small_pictures_show_the_picture_even_while_a_layer_is_on_the_screen(open_desk: Desk):
    desk = open_desk
    desk.controller.edit(SetParameter("layer", LAYER))
    desk.rest()
    desk.controller.request_thumbnail("here", desk.controller.session)
    desk.controller.request_thumbnail("there", GoToSeed(7).apply(desk.controller.session))
    desk.until(lambda: len(desk.controller.thumbnails) == 2)
    assert [request.tap for request in desk.engine.requests[-2:]] == [None, None]


def test_a_saved_picture_is_what_the_canvas_shows_and_brings_the_layer_back(open_desk: Desk):
    desk = open_desk
    desk.controller.set_reading_values(True)
    desk.controller.edit(SetParameter("layer", LAYER))
    desk.until(lambda: desk.frames[-1].tap is not None)
    count = len(desk.engine.requests)
    path = desk.folder / "layer.png"
    desk.controller.save_picture(path)
    desk.until(lambda: "Saved layer.png." in desk.said())
    assert len(desk.engine.requests) == count
    assert read_picture(path).request.tap == LAYER
    desk.controller.edit(SetParameter("layer", None))
    desk.controller.open_picture(path)
    desk.until(lambda: desk.controller.session.tap == LAYER)


def test_a_layer_that_the_next_model_lacks_gives_way_to_its_picture(open_desk: Desk):
    desk = open_desk
    desk.library.options["dogs"] = {"resolution": 16}
    desk.controller.edit(SetParameter("layer", Tap("b128.conv1")))
    desk.rest()
    desk.open("dogs")
    desk.until(lambda: desk.controller.session.model.name == "dogs")
    assert desk.controller.session.tap is None
    desk.rest()
    assert any("no such layer" in sentence for sentence in desk.said())
