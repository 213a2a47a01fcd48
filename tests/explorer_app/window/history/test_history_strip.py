from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QAction, QColor, QImage
from pytestqt.qtbot import QtBot

from explorer_app.session.edits import PLACE
from explorer_app.session.history import History, KeptSession
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Position, Session
from explorer_app.window.history.history_entries import mark_rect, star_rect
from explorer_app.window.history.history_list import HistoryList
from explorer_app.window.history.history_strip import HistoryStrip
from explorer_app.window.shell.main_window import MainWindow
from gpu_backend import Tap
from tests.helpers.fake_controller import FakeController
from tests.helpers.panels import mouse, wheel


def history_of(count: int) -> History:
    history = History()
    for index in range(count):
        history = history.added(Session(position=Position(float(index), 0.0)), f"Walk {index}")
    return history


class WatchedStrip(HistoryStrip):
    """A strip, and the thumbnails that it wanted."""

    wanted: list[tuple[Any, object]]
    history: History


@pytest.fixture
def strip(qtbot: QtBot) -> WatchedStrip:
    strip = WatchedStrip()
    qtbot.addWidget(strip)
    strip.wanted = []
    strip.thumbnail_wanted.connect(lambda key, session: strip.wanted.append((key, session)))
    strip.resize(700, 90)
    strip.show()
    return strip


def click(view: HistoryList, place: QPointF | QPoint) -> None:
    mouse(view.viewport(), QEvent.Type.MouseButtonPress, QPointF(place))
    mouse(view.viewport(), QEvent.Type.MouseButtonRelease, QPointF(place))


def item(view: HistoryList, row: int) -> QRect:
    return view.visualRect(view.entries.index(row))


def test_steps_stand_in_one_line_in_order(strip: WatchedStrip) -> None:
    strip.show_history(history_of(5))
    places = [item(strip.steps, row) for row in range(5)]
    assert len({place.top() for place in places}) == 1
    assert [place.left() for place in places] == sorted(place.left() for place in places)


def test_a_click_goes_to_a_step(strip: WatchedStrip, qtbot: QtBot) -> None:
    strip.show_history(history_of(5))
    with qtbot.waitSignal(strip.go_to_requested) as signal:
        click(strip.steps, item(strip.steps, 2).center())
    assert signal.args == [2]


def test_a_click_on_the_star_keeps_and_does_not_go(strip: WatchedStrip, qtbot: QtBot) -> None:
    history = history_of(5)
    strip.show_history(history)
    strip.go_to_requested.connect(lambda _: pytest.fail("a star is no way to go"))
    with qtbot.waitSignal(strip.star_requested) as signal:
        click(strip.steps, star_rect(item(strip.steps, 2)).center())
    assert signal.args == [history.entries[2].number, True]
    strip.show_history(history.starred(history.entries[2].number, True))
    with qtbot.waitSignal(strip.star_requested) as signal:
        click(strip.steps, star_rect(item(strip.steps, 2)).center())
    assert signal.args == [history.entries[2].number, False]


def test_only_the_disc_of_the_star_keeps_and_the_rest_of_the_picture_goes_there(strip: WatchedStrip) -> None:
    strip.show_history(history_of(5))
    calls = []
    strip.star_requested.connect(lambda number, on: calls.append("star"))
    strip.go_to_requested.connect(lambda row: calls.append("go"))
    place = item(strip.steps, 2)
    star = star_rect(place)
    assert star.width() * 3 < place.width(), "the star is a small part of the picture"
    for there in (place.center(), star.topLeft(), star.bottomLeft(), star.center() + QPoint(0, star.height())):
        click(strip.steps, there)
    assert calls == ["go"] * 4
    click(strip.steps, star.center() + QPoint(star.width() // 2 - 2, 0))
    assert calls == ["go"] * 4 + ["star"]


def test_a_click_that_ends_elsewhere_than_it_began_does_nothing(strip: WatchedStrip) -> None:
    strip.show_history(history_of(5))
    strip.star_requested.connect(lambda *_: pytest.fail("kept"))
    strip.go_to_requested.connect(lambda _: pytest.fail("went"))
    view, place = strip.steps, item(strip.steps, 2)
    for begin, end in (
        (place.center(), star_rect(place).center()),
        (star_rect(place).center(), place.center()),
        (place.center(), item(view, 3).center()),
    ):
        mouse(view.viewport(), QEvent.Type.MouseButtonPress, QPointF(begin))
        mouse(view.viewport(), QEvent.Type.MouseButtonRelease, QPointF(end))


def test_undone_steps_are_faint_and_kept_ones_never(strip: WatchedStrip) -> None:
    history = history_of(3)
    for entry in history.entries:
        history = history.starred(entry.number, True)
    strip.show_history(history.moved(0))
    white = QImage(8, 8, QImage.Format.Format_RGB32)
    white.fill(Qt.GlobalColor.white)
    for entry in history.entries:
        strip.show_thumbnail(("history", entry.number), white)

    def is_faint(view: HistoryList, row: int) -> bool:
        return view.viewport().grab().toImage().pixelColor(item(view, row).center()) != QColor(Qt.GlobalColor.white)

    assert [is_faint(strip.steps, row) for row in range(3)] == [False, True, True]
    strip.show_page(1)
    assert strip.kept.entries.current == 0
    assert [is_faint(strip.kept, row) for row in range(3)] == [False, False, False]


def test_keys_go_along_the_line_choose_and_keep(strip: WatchedStrip, qtbot: QtBot) -> None:
    history = history_of(5)
    strip.show_history(history)
    view = strip.steps
    view.setFocus()
    view.setCurrentIndex(view.entries.index(0))
    qtbot.keyClick(view, Qt.Key.Key_Right)
    with qtbot.waitSignal(strip.go_to_requested) as signal:
        qtbot.keyClick(view, Qt.Key.Key_Return)
    assert signal.args == [1]
    with qtbot.waitSignal(strip.star_requested) as signal:
        qtbot.keyClick(view, Qt.Key.Key_S)
    assert signal.args == [history.entries[1].number, True]


def test_s_is_about_the_step_with_the_focus_and_not_about_the_window(strip: WatchedStrip, qtbot: QtBot) -> None:
    history = history_of(3)
    strip.show_history(history)
    action = QAction("Keep what is shown", strip)
    action.setShortcut("S")
    action.triggered.connect(lambda: pytest.fail("the window took the key"))
    strip.addAction(action)
    strip.steps.setFocus()
    strip.steps.setCurrentIndex(strip.steps.entries.index(1))
    with qtbot.waitSignal(strip.star_requested):
        qtbot.keyClick(strip.steps, Qt.Key.Key_S)


def test_kept_latents_have_a_page_of_their_own(strip: WatchedStrip, qtbot: QtBot) -> None:
    history = history_of(5).starred(2, True).starred(4, True)
    strip.show_history(history)
    strip.show_page(1)
    assert strip.kept.isVisible()
    assert [entry.number for entry in strip.kept.entries.entries] == [2, 4]
    with qtbot.waitSignal(strip.kept_requested) as signal:
        click(strip.kept, item(strip.kept, 1).center())
    assert signal.args == [4]


def test_the_current_step_is_scrolled_into_view(strip: WatchedStrip) -> None:
    history = history_of(60)
    strip.show_history(history)
    view = strip.steps
    assert view.viewport().rect().contains(item(view, 59).center())
    strip.show_history(history.moved(0))
    assert view.viewport().rect().contains(item(view, 0).center())
    assert view.entries.current == 0


def test_a_new_step_leaves_the_others_where_they_are(strip: WatchedStrip, qtbot: QtBot) -> None:
    history = history_of(6)
    strip.show_history(history)
    removed = []
    strip.steps.entries.rowsAboutToBeRemoved.connect(lambda *args: removed.append(args[1:]))
    strip.show_history(history.added(Session(), "Random"))
    assert removed == []
    strip.show_history(history.moved(2).added(Session(), "Mix"))
    assert removed == [(3, 6)]
    assert strip.steps.entries.rowCount() == 4


def test_pictures_are_requested_for_what_is_visible_only(strip: WatchedStrip, qtbot: QtBot) -> None:
    history = history_of(300).moved(0)
    strip.show_history(history)
    qtbot.waitUntil(lambda: len(strip.wanted) > 0)
    assert 5 < len(strip.wanted) < 20
    numbers = [key[1] for key, _ in strip.wanted]
    assert numbers == [entry.number for entry in reversed(history.entries[: len(numbers)])]
    assert strip.wanted[-1] == (("history", 1), history.entries[0].session)


def test_a_picture_that_came_is_not_wanted_again(strip: WatchedStrip, qtbot: QtBot) -> None:
    strip.show_history(history_of(3))
    qtbot.waitUntil(lambda: len(strip.wanted) == 3)
    for key, _ in list(strip.wanted):
        strip.show_thumbnail(key, QImage(8, 8, QImage.Format.Format_RGB32))
    strip.wanted.clear()
    strip.steps._request_pictures()
    assert strip.wanted == []


def test_five_thousand_kept_ask_for_a_screenful_at_the_far_end_too(strip: WatchedStrip, qtbot: QtBot) -> None:
    sessions = tuple((Session(position=Position(float(index), 0.0)), "Kept") for index in range(5000))
    strip.show_history(History().with_kept(tuple(KeptSession(*pair) for pair in sessions)))
    strip.show_page(1)
    bar = strip.kept.horizontalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    bar.setValue(bar.maximum())
    qtbot.waitUntil(lambda: any(key == ("history", 5000) for key, _ in strip.wanted))
    assert len(strip.wanted) < 40
    assert 4999 in strip.kept.visible_rows()


def test_the_wheel_scrolls_along_the_line(strip: WatchedStrip, qtbot: QtBot) -> None:
    strip.show_history(history_of(60).moved(0))
    qtbot.waitUntil(lambda: strip.steps.horizontalScrollBar().maximum() > 0)
    wheel(strip.steps.viewport(), QPointF(50, 20), -2)
    assert strip.steps.horizontalScrollBar().value() > 0


def test_steps_say_what_led_to_them(strip: WatchedStrip) -> None:
    history = history_of(3).starred(1, True)
    strip.show_history(history)
    entries = strip.steps.entries
    assert entries.data(entries.index(0), Qt.ItemDataRole.AccessibleTextRole) == "Walk 0, kept"
    assert entries.data(entries.index(2), Qt.ItemDataRole.AccessibleTextRole) == "Walk 2, here"
    assert "Walk 1" in str(entries.data(entries.index(1), Qt.ItemDataRole.ToolTipRole))


def test_tooltips_say_what_s_does_with_a_kept_step_and_with_others(strip: WatchedStrip) -> None:
    history = history_of(2)
    strip.show_history(history.starred(history.entries[1].number, True))
    entries = strip.steps.entries
    tips = [str(entries.data(entries.index(row), Qt.ItemDataRole.ToolTipRole)) for row in range(2)]
    assert "S keeps it" in tips[0]
    assert "S no longer keeps it" in tips[1]


def test_a_step_that_showed_a_layer_is_marked_on_its_picture(strip: WatchedStrip) -> None:
    walk = Session(position=Position(1.0, 0.0))
    history = History().added(walk, "Walk").added(replace(walk, tap=Tap("b64.conv1", (12,))), "Show layer")
    strip.show_history(history)
    grey = QImage(8, 8, QImage.Format.Format_RGB32)
    grey.fill(Qt.GlobalColor.gray)
    for entry in history.entries:
        strip.show_thumbnail(("history", entry.number), grey)
    view = strip.steps
    seen = view.viewport().grab().toImage()

    def colours(row: int) -> set[str]:
        mark = mark_rect(item(view, row)).adjusted(4, 4, -4, -4)
        return {
            seen.pixelColor(x, y).name()
            for x in range(mark.left(), mark.right() + 1)
            for y in range(mark.top(), mark.bottom() + 1)
        }

    assert len(colours(0)) == 1
    assert len(colours(1)) > 2
    assert not mark_rect(item(view, 1)).intersects(star_rect(item(view, 1)))
    assert item(view, 1).contains(mark_rect(item(view, 1)))
    words = [
        view.entries.data(view.entries.index(row), role)
        for row in range(2)
        for role in (Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole)
    ]
    assert ["showing b64.conv1, channel 12" in str(word) for word in words] == [False, False, True, True]


def test_an_empty_history_is_shown_calmly(strip: WatchedStrip) -> None:
    strip.show_history(History())
    assert strip.steps.entries.rowCount() == 0
    assert not strip.grab().isNull()
    assert strip.wanted == []


def test_in_the_window_a_star_keeps_a_step_and_its_picture_goes_back_to_it(
    window: MainWindow, controller: FakeController
) -> None:
    for x in (1.0, 2.0, 3.0):
        controller.editing.edit(SetParameter(PLACE, Position(x, 0.0)))
    strip = window.history
    entry = controller.editing.history.entries[1]
    click(strip.steps, star_rect(item(strip.steps, 1)).center())
    assert [kept.number for kept in strip.kept.entries.entries] == [entry.number]
    assert controller.editing.session.position.x == 3.0
    click(strip.steps, item(strip.steps, 1).center())
    assert controller.editing.session == entry.session


@pytest.fixture
def kept(strip: WatchedStrip) -> WatchedStrip:
    """Three kept pictures: Dawn, kept last; Bay; Alps."""
    history = history_of(4)
    for number, name, when in ((1, "Dawn", 30.0), (2, "Bay", 20.0), (3, "Alps", 10.0)):
        history = history.starred(number, True, when).renamed(number, name)
    strip.history = history
    strip.show_history(history)
    strip.show_page(1)
    return strip


def names(strip: WatchedStrip) -> list[str]:
    return [entry.label for entry in strip.kept.entries.entries]


def test_a_kept_name_of_several_lines_is_shown_in_one(kept: WatchedStrip) -> None:
    def seen(name: str) -> QImage:
        kept.history = kept.history.renamed(1, name)
        kept.show_history(kept.history)
        return kept.kept.viewport().grab().toImage()

    assert seen("a\nb") == seen("a\\nb")


def test_kept_pictures_are_filtered_by_name(kept: WatchedStrip, qtbot: QtBot) -> None:
    qtbot.keyClicks(kept.filter, "A")
    assert names(kept) == ["Dawn", "Bay", "Alps"]
    qtbot.keyClicks(kept.filter, "lp")
    assert names(kept) == ["Alps"]
    with qtbot.waitSignal(kept.kept_requested) as signal:
        click(kept.kept, item(kept.kept, 0).center())
    assert signal.args == [3]
    kept.filter.clear()
    assert names(kept) == ["Dawn", "Bay", "Alps"]


def test_kept_pictures_are_sorted_by_name_and_by_time(kept: WatchedStrip) -> None:
    for action, order in (("By name", ["Alps", "Bay", "Dawn"]), ("Newest first", ["Dawn", "Bay", "Alps"])):
        next(item for item in kept._menu.actions() if item.text() == action).trigger()
        assert names(kept) == order
        assert not kept.kept.can_move
        assert action in kept.order.text()


def test_a_kept_picture_is_renamed_where_it_stands(kept: WatchedStrip, qtbot: QtBot) -> None:
    kept.kept.setCurrentIndex(kept.kept.entries.index(1))
    qtbot.keyClick(kept.kept, Qt.Key.Key_F2)
    ask = kept.kept.ask
    assert ask.isVisible()
    assert ask.text.text() == "Bay"
    ask.text.clear()
    qtbot.keyClicks(ask.text, "Cove")
    with qtbot.waitSignal(kept.rename_requested) as signal:
        qtbot.keyClick(ask.text, Qt.Key.Key_Return)
    assert signal.args == [2, "Cove"]


def drag_kept(view: HistoryList, row: int, x: float) -> None:
    start = QPointF(item(view, row).center())
    mouse(view.viewport(), QEvent.Type.MouseButtonPress, start)
    for place in (start + QPointF(20.0, 0.0), QPointF(x, start.y())):
        mouse(view.viewport(), QEvent.Type.MouseMove, place, held=Qt.MouseButton.LeftButton)


@pytest.mark.parametrize(("row", "to", "move"), [(0, 2, [1, 3]), (2, 0, [3, 1]), (0, 3, [1, None])])
def test_dragging_a_kept_picture_puts_it_elsewhere(
    kept: WatchedStrip, qtbot: QtBot, row: int, to: int, move: list[int | None]
) -> None:
    kept.kept_requested.connect(lambda _: pytest.fail("a drag goes nowhere"))
    place = item(kept.kept, to - 1).right() if to else 1
    drag_kept(kept.kept, row, place)
    with qtbot.waitSignal(kept.move_requested) as signal:
        mouse(kept.kept.viewport(), QEvent.Type.MouseButtonRelease, QPointF(place, 20.0))
    assert signal.args == move


def test_escape_leaves_a_dragged_picture_where_it_was(kept: WatchedStrip, qtbot: QtBot) -> None:
    kept.move_requested.connect(lambda *_: pytest.fail("it was left where it was"))
    drag_kept(kept.kept, 0, 180.0)
    qtbot.keyClick(kept.kept, Qt.Key.Key_Escape)
    mouse(kept.kept.viewport(), QEvent.Type.MouseButtonRelease, QPointF(180.0, 20.0))


def test_a_drag_ends_if_the_list_changes_under_it(kept: WatchedStrip) -> None:
    kept.move_requested.connect(lambda *_: pytest.fail("the dragged picture is gone"))
    kept.kept_requested.connect(lambda _: pytest.fail("a drag goes nowhere"))
    drag_kept(kept.kept, 2, 1.0)
    kept.show_history(kept.history.starred(3, False))
    mouse(kept.kept.viewport(), QEvent.Type.MouseButtonRelease, QPointF(1.0, 20.0))


def test_an_open_menu_means_its_picture_when_the_list_changes(kept: WatchedStrip) -> None:
    view = kept.kept
    menus = [view.menu_of(row) for row in (0, 1)]
    offered = [{action.text(): action for action in menu.actions()} for menu in menus]
    kept.show_history(kept.history.starred(1, False))
    went: list[int] = []
    kept.kept_requested.connect(went.append)
    for of_menu in offered:
        of_menu["Go there"].trigger()
    assert went == [2]
    offered[0]["Rename…"].trigger()
    assert not view.ask.isVisible()
    offered[1]["Rename…"].trigger()
    assert view.ask.text.text() == "Bay"
    for menu in menus:
        menu.deleteLater()


def test_control_and_an_arrow_move_a_kept_picture(kept: WatchedStrip, qtbot: QtBot) -> None:
    kept.kept.setCurrentIndex(kept.kept.entries.index(1))
    with qtbot.waitSignal(kept.move_requested) as signal:
        qtbot.keyClick(kept.kept, Qt.Key.Key_Left, Qt.KeyboardModifier.ControlModifier)
    assert signal.args == [2, 1]


def test_control_clicks_select_two_and_go_nowhere(kept: WatchedStrip) -> None:
    kept.kept_requested.connect(lambda _: pytest.fail("a click with Ctrl selects"))
    for row in (0, 2):
        place = QPointF(item(kept.kept, row).center())
        for kind in (QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonRelease):
            mouse(kept.kept.viewport(), kind, place, keys=Qt.KeyboardModifier.ControlModifier)
    assert kept.selected_numbers() == (1, 3)
    kept.show_page(0)
    assert kept.selected_numbers() == ()


def test_the_menu_of_kept_pictures_offers_mix_grids_sums_and_differences(kept: WatchedStrip) -> None:
    view = kept.kept
    for row in (0, 1):
        view.selectionModel().select(view.entries.index(row), view.selectionModel().SelectionFlag.Select)
    numbers = view.selected_numbers()
    heard: list[tuple[Any, ...]] = []
    kept.mix_grid_requested.connect(lambda *arguments: heard.append(("mix", *arguments)))
    kept.average_requested.connect(lambda *arguments: heard.append(("average", *arguments)))
    kept.difference_requested.connect(lambda *arguments: heard.append(("difference", *arguments)))
    kept.weighted_requested.connect(lambda *arguments: heard.append(("weighted", *arguments)))
    menu = view.menu_of(0)
    offered = {action.text(): action for action in menu.actions()}
    for words in ("Rows of a mix grid", "Columns of a mix grid", "Average of 2"):
        offered[words].trigger()
    next(action for words, action in offered.items() if "as a direction" in words).trigger()
    offered["Weighted sum…"].trigger()
    view.ask.text.setText("1, 2")
    view.ask._take()
    assert heard == [
        ("mix", numbers, "rows"),
        ("mix", numbers, "columns"),
        ("average", numbers),
        ("difference", *numbers),
        ("weighted", numbers, "1, 2"),
    ]
    menu.deleteLater()


def test_without_a_model_an_unchanged_session_is_no_step(strip: WatchedStrip) -> None:
    strip.set_has_model(False)
    strip.show_history(history_of(1))
    assert not strip.steps.entries.entries
    strip.set_has_model(True)
    assert len(strip.steps.entries.entries) == 1
    strip.show_history(history_of(3))
    strip.set_has_model(False)
    assert len(strip.steps.entries.entries) == 3, "of a session whose model was not found"
    assert strip.steps.entries.current == 2
