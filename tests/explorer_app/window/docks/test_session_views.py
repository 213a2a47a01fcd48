"""A widget is told of a session if its part of it changed and somebody sees it."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest
from PySide6.QtCore import QObject, Signal

from explorer_app.session.session import Position, Session, Slider
from explorer_app.window.docks.session_views import SessionViews


class View(QObject):
    SESSION_PARTS: ClassVar[tuple[str, ...]] = ("position",)
    edited = Signal(object, bool)

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Session] = []

    def show_session(self, session: Session) -> None:
        self.told.append(session)


class SliderView(View):
    SESSION_PARTS: ClassVar[tuple[str, ...]] = ("sliders",)


START = Session()
WALKED = replace(START, position=Position(1.0, 0.0))
SLID = replace(START, sliders=(Slider("sefa/0", 1.0),))


@pytest.fixture
def plane(qapp: object) -> View:
    return View()


@pytest.fixture
def sliders(qapp: object) -> View:
    return SliderView()


def test_a_walk_updates_the_plane_and_not_the_sliders(plane: View, sliders: View) -> None:
    views = SessionViews((plane, sliders))
    views.show(START)
    views.show(WALKED)
    assert (plane.told, sliders.told) == ([START, WALKED], [START])
    views.show(SLID)
    assert (plane.told, sliders.told) == ([START, WALKED, SLID], [START, SLID])


def test_an_equal_part_of_a_new_session_notifies_no_view(plane: View) -> None:
    views = SessionViews((plane,))
    views.show(START)
    views.show(Session(position=Position(0.0, 0.0)))
    assert plane.told == [START]


def test_a_hidden_widget_is_not_updated_and_catches_up_once_when_it_is_shown(plane: View) -> None:
    views = SessionViews((plane,))
    views.show(START)
    views.set_on_show(plane, False)
    for x in range(100):
        views.show(replace(START, position=Position(float(x), 0.0)))
    views.show(WALKED)
    assert plane.told == [START]
    views.set_on_show(plane, True)
    views.set_on_show(plane, True)
    assert plane.told == [START, WALKED]


def test_a_widget_that_emitted_an_edit_is_updated_even_if_the_edit_changed_nothing(plane: View) -> None:
    views = SessionViews((plane,))
    views.show(START)
    plane.edited.emit(None, False)
    views.show(START)
    assert plane.told == [START, START]


def test_a_hidden_widget_that_emitted_an_edit_is_updated(plane: View) -> None:
    views = SessionViews((plane,))
    views.set_on_show(plane, False)
    views.show(START)
    plane.edited.emit(None, True)
    views.show(WALKED)
    views.show(SLID)
    assert plane.told == [WALKED]


def test_another_model_updates_all(plane: View, sliders: View) -> None:
    views = SessionViews((plane, sliders))
    views.show(START)
    views.refresh(START)
    assert (plane.told, sliders.told) == ([START, START], [START, START])


def test_a_widget_that_is_added_later_is_updated_at_once(plane: View) -> None:
    views = SessionViews()
    views.show(START)
    views.add(plane)
    assert plane.told == [START]
