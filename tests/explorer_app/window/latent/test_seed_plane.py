from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

from explorer_app.session.session import ModelReference, Position, Session, Slider
from explorer_app.window.latent.plane_view import PlaneView
from explorer_app.window.latent.seed_plane import SeedPlane
from gpu_backend import Truncation, plane_seed
from tests.helpers.near import near
from tests.helpers.panels import CTRL, SHIFT, Edits, double_click, drag, model_facts, move, press, release, wheel

HERE = Session(model=ModelReference(model_id="m"), position=Position(7.0, 12.0))


class WatchedPlane(SeedPlane):
    """A plane, its edits and the thumbnails that it wanted."""

    edits: Edits
    wanted: list[tuple[Any, Session]]


@pytest.fixture
def plane(qtbot: QtBot) -> WatchedPlane:
    plane = WatchedPlane()
    qtbot.addWidget(plane)
    plane.resize(320, plane.height())
    plane.show_model(model_facts())
    plane.edits = Edits(plane, HERE)
    plane.wanted = []
    plane.thumbnail_wanted.connect(lambda key, session: plane.wanted.append((key, session)))
    plane.show()
    plane.setFocus()
    return plane


def at(plane: SeedPlane, x: float, y: float) -> QPointF:
    return QPointF(*plane.view.to_px(x, y))


def test_a_drag_walks_as_far_as_the_hand_and_is_one_gesture(plane: WatchedPlane) -> None:
    drag(plane, at(plane, 7, 12), at(plane, 7.5, 12.25))
    assert plane.edits.session.position == Position(near(7.5, abs=0.02), near(12.25, abs=0.02))
    assert len(plane.edits.steps) == 1
    assert len(plane.edits.all) > 2


def test_the_ring_is_under_the_hand_and_the_cells_stay(plane: WatchedPlane) -> None:
    before = plane.view
    drag(plane, at(plane, 7, 12), at(plane, 7.8, 12.4))
    assert plane.view == before


def test_shift_walks_slowly(plane: WatchedPlane) -> None:
    drag(plane, at(plane, 7, 12), at(plane, 8, 12), SHIFT)
    assert plane.position.x == pytest.approx(7.1, abs=0.01)


def test_ctrl_keeps_to_whole_seeds(plane: WatchedPlane) -> None:
    drag(plane, at(plane, 7, 12), at(plane, 7.7, 12.1), CTRL)
    assert plane.position == Position(8.0, 12.0)


def test_a_drag_that_ends_where_it_began_ends_its_gesture_too(plane: WatchedPlane) -> None:
    press(plane, at(plane, 7, 12), CTRL)
    move(plane, at(plane, 8, 12), CTRL)
    move(plane, at(plane, 7, 12), CTRL)
    release(plane, at(plane, 7, 12), CTRL)
    assert [edit.value for edit, _ in plane.edits.all] == [Position(8.0, 12.0), HERE.position, HERE.position]
    assert plane.edits.all[-1][1]


def test_a_press_without_a_drag_is_no_edit(plane: WatchedPlane) -> None:
    press(plane, at(plane, 8, 12))
    release(plane, at(plane, 8, 12))
    assert plane.edits.all == []


def test_escape_in_a_drag_goes_back(plane: WatchedPlane, qtbot: QtBot) -> None:
    press(plane, at(plane, 7, 12))
    move(plane, at(plane, 8, 12))
    qtbot.keyClick(plane, Qt.Key.Key_Escape)
    assert plane.edits.cancelled == 1
    assert plane.position == Position(7.0, 12.0)
    move(plane, at(plane, 9, 12))
    release(plane, at(plane, 9, 12))
    assert plane.edits.session.position == Position(7.0, 12.0)
    assert plane.edits.steps == []


def test_undo_in_a_drag_goes_back_and_after_a_press_alone_only_ends_it(plane: WatchedPlane) -> None:
    assert not plane.undo_drag()
    press(plane, at(plane, 7, 12))
    assert not plane.undo_drag(), "undo reverts the last step"
    move(plane, at(plane, 8, 12))
    release(plane, at(plane, 8, 12))
    assert plane.edits.all == []
    press(plane, at(plane, 7, 12))
    move(plane, at(plane, 8, 12))
    assert plane.undo_drag()
    move(plane, at(plane, 9, 12))
    release(plane, at(plane, 9, 12))
    assert plane.edits.session.position == Position(7.0, 12.0)
    assert plane.edits.steps == []


def test_a_double_click_goes_to_the_seed_in_one_step(plane: WatchedPlane) -> None:
    double_click(plane, at(plane, 8.3, 11.2))
    assert plane.edits.session.position == Position(8.0, 11.0)
    assert len(plane.edits.steps) == 1


def test_a_held_arrow_key_is_one_gesture(plane: WatchedPlane, qtbot: QtBot) -> None:
    qtbot.keyPress(plane, Qt.Key.Key_Right)
    qtbot.keyPress(plane, Qt.Key.Key_Right)
    qtbot.keyPress(plane, Qt.Key.Key_Down, SHIFT)
    qtbot.keyRelease(plane, Qt.Key.Key_Right)
    assert plane.edits.steps == [], "the other key is held"
    qtbot.keyRelease(plane, Qt.Key.Key_Down)
    assert plane.position == Position(near(7.2), near(12.01))
    assert len(plane.edits.steps) == 1
    assert plane.edits.steps[0].by_key
    drag(plane, at(plane, 7.2, 12.01), at(plane, 7.5, 12.01))
    assert not plane.edits.steps[1].by_key


def test_arrow_keys_show_the_cells_around_the_ring(plane: WatchedPlane, qtbot: QtBot) -> None:
    for key in [Qt.Key.Key_Right] * 5 + [Qt.Key.Key_Down] * 4 + [Qt.Key.Key_Left] * 3:
        qtbot.keyClick(plane, key, CTRL)
        here = plane.position
        around = {(here.x + x, here.y + y) for x in (-1, 0, 1) for y in (-1, 0, 1)}
        assert around <= set(plane.view.cells())
        assert (plane.view.left % 1.0, plane.view.top % 1.0) == (near(0.5), near(0.5)), "whole cells"


def test_ctrl_and_an_arrow_key_go_to_the_next_seed(plane: WatchedPlane, qtbot: QtBot) -> None:
    plane.edits.show(replace(HERE, position=Position(7.3, 12.0)))
    qtbot.keyClick(plane, Qt.Key.Key_Right, CTRL)
    assert plane.position == Position(8.0, 12.0)


def test_a_session_that_comes_back_late_does_not_move_the_ring_in_the_hand(plane: WatchedPlane) -> None:
    press(plane, at(plane, 7, 12))
    move(plane, at(plane, 8, 12))
    plane.show_session(HERE)
    assert plane.position.x == pytest.approx(8.0, abs=0.02)
    release(plane, at(plane, 8, 12))


def test_the_view_follows_a_ring_that_drifts_away(plane: WatchedPlane) -> None:
    for step in range(60):
        position = Position(7.0 + step * 0.1, 12.0)
        plane.show_session(replace(HERE, position=position))
        x, y = plane.view.to_px(position.x, position.y)
        assert 0 <= x <= plane.width()
        assert 0 <= y <= plane.height()


def test_the_wheel_zooms_at_the_pointer_and_never_walks(plane: WatchedPlane) -> None:
    point = at(plane, 8, 12)
    before = plane.view.cell_width
    assert wheel(plane, point, 1)
    assert plane.view.cell_width > before
    under = plane.view.to_place(point.x(), point.y())
    assert (under.x, under.y) == (pytest.approx(8.0), pytest.approx(12.0))
    assert plane.edits.all == []


def test_pictures_are_requested_for_visible_cells_only(plane: WatchedPlane, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: len(plane.wanted) > 0)
    seeds = {key[1] for key, _ in plane.wanted}
    assert seeds == {x + 100 * y for x, y in plane.view.cells()}
    assert len(plane.wanted) == len(seeds)
    assert plane.wanted[-1][0][1] == 1207, "what is asked for last is made first"


def test_wanted_sessions_stand_on_their_seed_without_mix_and_sliders(plane: WatchedPlane, qtbot: QtBot) -> None:
    plane.edits.show(replace(HERE, sliders=(Slider("sefa/0", 2.0),)))
    qtbot.waitUntil(lambda: len(plane.wanted) > 0)
    key, session = plane.wanted[-1]
    assert session.position == Position(7.0, 12.0)
    assert session.sliders == ()
    assert hash(key) == hash(key)


def test_a_picture_that_came_is_not_wanted_again_until_it_would_look_different(
    plane: WatchedPlane, qtbot: QtBot
) -> None:
    qtbot.waitUntil(lambda: len(plane.wanted) > 0)
    image = QImage(8, 8, QImage.Format.Format_RGB32)
    for key, _ in list(plane.wanted):
        plane.show_thumbnail(key, image)
    plane.wanted.clear()
    plane.hide()
    plane.show()
    plane._request_pictures()
    assert plane.wanted == []
    plane.edits.show(replace(HERE, truncation=Truncation(0.3)))
    qtbot.waitUntil(lambda: len(plane.wanted) > 0)


def test_cells_are_painted_again_when_they_change_and_not_when_the_ring_moves(plane: WatchedPlane) -> None:
    key = ("plane", plane_seed(7.0, 12.0), None)
    plane.grab()
    first = plane._picture_of_cells().cacheKey()
    drag(plane, at(plane, 7, 12), at(plane, 7.4, 12.2))
    plane.grab()
    assert plane._picture_of_cells().cacheKey() == first
    image = QImage(8, 8, QImage.Format.Format_RGB32)
    image.fill(QColor("red"))
    plane.show_thumbnail(key, image)
    shown = plane.grab()
    place = (at(plane, 6.7, 11.7) * shown.devicePixelRatio()).toPoint()
    assert shown.toImage().pixelColor(place) == QColor("red")
    second = plane._picture_of_cells().cacheKey()
    wheel(plane, at(plane, 7, 12), 120)
    assert len({first, second, plane._picture_of_cells().cacheKey()}) == 3


def test_a_late_picture_of_a_former_look_replaces_no_picture_of_the_present_one(plane: WatchedPlane) -> None:
    plane._request_pictures()
    seed = plane_seed(7.0, 12.0)
    key = next(key for key, _ in plane.wanted if key[1] == seed)
    plane.edits.show(replace(HERE, truncation=Truncation(0.3)))
    plane.wanted.clear()
    plane._request_pictures()
    former = next(key for key, _ in plane.wanted if key[1] == seed)
    plane.edits.show(HERE)
    for name, colour in ((key, "red"), (former, "blue")):
        image = QImage(8, 8, QImage.Format.Format_RGB32)
        image.fill(QColor(colour))
        plane.show_thumbnail(name, image)
    assert plane._pictures[seed][0] == key[2]
    shown = plane.grab()
    place = (at(plane, 6.7, 11.7) * shown.devicePixelRatio()).toPoint()
    assert shown.toImage().pixelColor(place) == QColor("red")


def test_without_a_model_nothing_is_wanted(qtbot: QtBot) -> None:
    plane = SeedPlane()
    qtbot.addWidget(plane)
    plane.thumbnail_wanted.connect(lambda *_: pytest.fail("there is no model to make pictures with"))
    plane.show()
    plane._request_pictures()
    assert not plane.isEnabled()
    assert not plane.grab().isNull()


def test_pictures_for_others_are_left_alone(plane: WatchedPlane) -> None:
    plane.show_thumbnail(("history", 3), QImage(8, 8, QImage.Format.Format_RGB32))
    assert len(plane._pictures) == 0


def test_whole_columns_fill_the_width_and_the_ring_starts_inside() -> None:
    view = PlaneView(322.0, 156.0).around(Position(7.38, 11.96))
    assert view.columns * view.cell_width == pytest.approx(322.0)
    assert (view.left + 0.5) % 1.0 == 0.0
    assert len(list(view.cells())) == 12


def test_places_and_pixels_are_inverse() -> None:
    view = PlaneView(300.0, 150.0, left=3.25, top=-7.5, rows=4.0)
    place = view.to_place(*view.to_px(5.5, -6.25))
    assert (place.x, place.y) == (pytest.approx(5.5), pytest.approx(-6.25))


def test_following_moves_no_more_than_needed() -> None:
    view = PlaneView(300.0, 150.0).around(Position(0.0, 0.0))
    assert view.following(Position(0.4, 0.2)) is view
    edge = view.following(Position(view.left + view.columns, 0.0))
    assert edge.top == view.top
    assert 0 < edge.left - view.left < 1
