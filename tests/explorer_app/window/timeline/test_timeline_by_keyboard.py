"""The timeline without a mouse: tracks and keys by arrow keys, menus by the menu key, what screen readers hear."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QKeySequence, QShortcut
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer_app.session.timeline.edits import SetTimeline
from explorer_app.window.timeline.timeline_menus import ruler_menu, track_menu
from explorer_app.window.timeline.timeline_view import TimelineView
from tests.helpers.panels import CTRL, NO_KEYS, SHIFT, Edits
from tests.helpers.timelines import GAIN, PSI, at, drag, times

Key = Qt.Key


def press(view: TimelineView, *keys: Qt.Key, held: Qt.KeyboardModifier = NO_KEYS) -> None:
    for key in keys:
        QTest.keyClick(view, key, held)


def open_menu(view: TimelineView) -> None:
    """Do what Qt does for the menu key."""
    event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, view.rect().center(), QPoint())
    QApplication.sendEvent(view, event)


@pytest.fixture
def menus(edits: Edits, view: TimelineView) -> list[tuple[object, ...]]:
    """What menus were opened, in place of the menus."""
    heard: list[tuple[object, ...]] = []
    for name, kind in (("track_menu_requested", "track"), ("key_menu_requested", "key")):
        getattr(view, name).disconnect()
        add: Callable[..., None] = lambda *values, kind=kind: heard.append((kind, *values[:-1]))  # noqa: E731
        getattr(view, name).connect(add)
    view.ruler_menu_requested.disconnect()
    view.ruler_menu_requested.connect(lambda t, _place: heard.append(("ruler", t)))
    return heard


def test_ctrl_with_arrow_keys_selects_key_after_key_of_the_track(edits: Edits, view: TimelineView) -> None:
    press(view, Key.Key_Down)
    press(view, Key.Key_Right, held=CTRL)
    assert view.selection == {(PSI, 0)}, "the one at the playhead"
    press(view, Key.Key_Right, held=CTRL)
    assert view.selection == {(PSI, 4)}
    press(view, Key.Key_Right, held=CTRL | SHIFT)
    assert view.selection == {(PSI, 4), (PSI, 8)}
    press(view, Key.Key_Left, held=CTRL)
    assert view.selection == {(PSI, 0)}
    press(view, Key.Key_Left, held=CTRL)
    assert view.selection == {(PSI, 0)}, "there is none before"


def test_arrow_keys_move_the_key_that_ctrl_and_an_arrow_key_selected(edits: Edits, view: TimelineView) -> None:
    edits.panel.show_time(Fraction(3))
    press(view, Key.Key_Down)
    press(view, Key.Key_Right, held=CTRL)
    press(view, Key.Key_Right, Key.Key_Right)
    assert times(edits) == [0, Fraction(42, 10), 8]
    press(view, Key.Key_Right, held=CTRL)
    assert view.selection == {(PSI, 8)}


def test_ctrl_down_leaves_selected_keys_and_chooses_another_track(edits: Edits, view: TimelineView) -> None:
    press(view, Key.Key_Down)
    press(view, Key.Key_Right, held=CTRL)
    press(view, Key.Key_Down, held=CTRL)
    press(view, Key.Key_Right, held=CTRL)
    assert view.selection == {(GAIN, 2)}
    assert edits.steps == []


def test_enter_goes_to_the_selected_key_and_makes_one_where_none_is_selected(edits: Edits, view: TimelineView) -> None:
    sought: list[Fraction] = []
    view.sought.connect(lambda t, _final: sought.append(t))
    press(view, Key.Key_Down)
    press(view, Key.Key_Right, Key.Key_Right, held=CTRL)
    press(view, Key.Key_Return)
    assert sought == [4]
    press(view, Key.Key_Escape)
    edits.panel.show_time(Fraction(6))
    press(view, Key.Key_Enter)
    assert times(edits) == [0, 4, 6, 8]


def test_the_menu_key_opens_the_menu_of_what_the_keyboard_is_on(
    edits: Edits, view: TimelineView, menus: list[tuple[object, ...]]
) -> None:
    edits.panel.show_time(Fraction(3))
    open_menu(view)
    press(view, Key.Key_Down, Key.Key_Down)
    open_menu(view)
    press(view, Key.Key_Right, held=CTRL)
    open_menu(view)
    press(view, Key.Key_Left, held=CTRL)
    open_menu(view)
    assert menus == [("ruler", 3), ("track", GAIN), ("track", GAIN), ("key",)]
    assert view.selection == {(GAIN, 2)}


def test_the_menu_key_opens_the_menu_of_the_track_that_was_clicked(
    edits: Edits, view: TimelineView, menus: list[tuple[object, ...]]
) -> None:
    drag(view, QPoint(60, at(view, GAIN, 2).y()))
    open_menu(view)
    drag(view, at(view, PSI, 4))
    open_menu(view)
    assert menus == [("track", GAIN), ("key",)]


def test_screen_readers_hear_the_track_the_key_its_time_and_its_value(edits: Edits, view: TimelineView) -> None:
    press(view, Key.Key_Down)
    assert view.accessibleDescription() == "Truncation: 3 keys · linear, playhead at 0:00:00, 0.00"
    press(view, Key.Key_Right, Key.Key_Right, held=CTRL)
    assert view.accessibleDescription() == "Truncation: key 2 of 3 at 0:04:00, 1.00"
    press(view, Key.Key_Right, held=CTRL | SHIFT)
    assert view.accessibleDescription() == "Truncation: 2 keys selected, from 0:04:00"
    press(view, Key.Key_Escape)
    press(view, Key.Key_Up)
    assert view.accessibleDescription() == "Ruler: playhead at 0:00:00"


def test_screen_readers_hear_the_value_of_a_key_where_a_track_repeats(edits: Edits, view: TimelineView) -> None:
    track = edits.session.timeline.track(PSI)
    assert track is not None
    view.replace_track(replace(track, outside="loop"), "Outside of the keys")
    press(view, Key.Key_Down)
    press(view, Key.Key_Right, Key.Key_Right, Key.Key_Right, held=CTRL)
    assert view.accessibleDescription() == "Truncation: key 3 of 3 at 0:08:00, 0.50"


def test_the_track_of_the_keyboard_is_marked_while_the_timeline_has_the_focus(edits: Edits, view: TimelineView) -> None:
    other = edits.panel.play_button
    view.setFocus()
    press(view, Key.Key_Down)
    place = QPoint(1, at(view, PSI, 4).y())
    marked = view.viewport().grab().toImage().pixelColor(place)
    other.setFocus()
    assert view.viewport().grab().toImage().pixelColor(place) != marked


def test_space_with_ctrl_is_left_to_the_window(edits: Edits, view: TimelineView) -> None:
    taken = []
    for held in (NO_KEYS, CTRL, CTRL | SHIFT):
        event = QKeyEvent(QEvent.Type.ShortcutOverride, Key.Key_Space, held)
        event.ignore()
        QApplication.sendEvent(view, event)
        taken.append(event.isAccepted())
    assert taken == [True, False, False]


def test_ctrl_shift_space_records_although_the_timeline_has_the_focus(edits: Edits, view: TimelineView) -> None:
    heard: list[str] = []
    shortcut = QShortcut(QKeySequence("Ctrl+Shift+Space"), edits.panel)
    shortcut.activated.connect(lambda: heard.append("record"))
    view.play_toggled.connect(lambda: heard.append("play"))
    view.setFocus()
    press(view, Key.Key_Space, held=CTRL | SHIFT)
    assert heard == ["record"]


def test_a_track_is_armed_by_its_menu(edits: Edits, view: TimelineView) -> None:
    heard: list[tuple[str, bool]] = []
    edits.panel.armed.connect(lambda path, on: heard.append((path, on)))
    for armed in (frozenset[str](), frozenset({PSI})):
        view.show_recording(armed, is_recording=False, takes={})
        menu = track_menu(view, PSI, edits.session)
        next(action for action in menu.actions() if action.text() == "Arm for recording").trigger()
    assert heard == [(PSI, True), (PSI, False)]


@pytest.mark.parametrize(
    ("loop", "entry", "expected"),
    [
        (None, "Play from here", (3, 10)),
        (None, "Play up to here", (0, 3)),
        ((1, 2), "Play from here", (3, 10)),
        ((4, 6), "Play up to here", (0, 3)),
        ((1, 6), "Play from here", (3, 6)),
        ((1, 6), "Play the whole timeline", None),
    ],
)
def test_what_plays_is_chosen_by_the_menu_of_the_ruler(
    edits: Edits, view: TimelineView, loop: tuple[int, int] | None, entry: str, expected: tuple[int, int] | None
) -> None:
    given = None if loop is None else (Fraction(loop[0]), Fraction(loop[1]))
    edits.panel.edited.emit(SetTimeline(replace(edits.session.timeline, loop=given), "Loop"), True)
    menu = ruler_menu(view, Fraction(3))
    next(action for action in menu.actions() if action.text() == entry).trigger()
    assert edits.session.timeline.loop == expected
