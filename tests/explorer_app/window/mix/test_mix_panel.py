from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QHelpEvent, QImage
from PySide6.QtWidgets import QApplication, QMenu, QToolTip
from pytestqt.qtbot import QtBot

from explorer_app.session.edits import AddSources, RemoveSource
from explorer_app.session.parameters import SetParameter
from explorer_app.session.row_groups import row_groups
from explorer_app.session.session import Session, Slider, Source
from explorer_app.window.controls.parameter_menu import LearnRequest
from explorer_app.window.mix.mix_panel import MixPanel
from gpu_backend import Latent, Point
from tests.helpers.panels import Edits, drag, lay_out, model_facts, move, press, wheel


def source(seed: int, strengths: tuple[float, ...] = (0.0,) * 14, label: str = "") -> Source:
    return Source(Latent(Point(((seed, 1.0),))), strengths, label or f"seed {seed}")


TWO = Session(mix=(source(1), source(2, (1.0,) * 14)))


class WatchedPanel(MixPanel):
    """A panel, and its edits."""

    edits: Edits


@pytest.fixture
def panel(qtbot: QtBot) -> WatchedPanel:
    panel = WatchedPanel()
    qtbot.addWidget(panel)
    for widget in panel.header_widgets():
        qtbot.addWidget(widget)
    panel.show_model(model_facts(), None)
    panel.edits = Edits(panel, TWO)
    panel.resize(322, 240)
    panel.show()
    return panel


def open_menu(panel: WatchedPanel, open_it: Callable[[], object]) -> QMenu:
    open_it()
    return next(menu for menu in panel.findChildren(QMenu) if menu.isVisible())


def choose(menu: QMenu, words: str) -> None:
    action = next(action for action in menu.actions() if action.text() == words)
    assert action.isEnabled()
    action.trigger()
    menu.close()


def test_painting_sets_strengths_in_one_gesture(panel: WatchedPanel) -> None:
    grid = panel.grid
    drag(grid, grid.cell_rect(0, 2).center(), grid.cell_rect(0, 4).center())
    assert panel.edits.session.mix[0].strengths == (0.0, 0.0, 1.0, 1.0, 1.0, *(0.0,) * 9)
    assert panel.edits.session.mix[1] == TWO.mix[1]
    assert len(panel.edits.steps) == 1
    assert len({type(edit) for edit, _ in panel.edits.all}) == 1, "one kind of edit a gesture, so that it is one step"


def test_escape_in_a_painting_brings_everything_back(panel: WatchedPanel, qtbot: QtBot) -> None:
    grid = panel.grid
    press(grid, grid.cell_rect(0, 2).center())
    move(grid, grid.cell_rect(1, 6).center())
    qtbot.keyClick(grid, Qt.Key.Key_Escape)
    assert panel.edits.cancelled == 1
    assert panel.edits.session == TWO
    assert panel.grid.strengths == tuple(item.strengths for item in TWO.mix)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Only coarse", (1.0,) * 5 + (0.0,) * 9),
        ("Only middle", (0.0,) * 5 + (1.0,) * 4 + (0.0,) * 5),
        ("Only fine", (0.0,) * 9 + (1.0,) * 5),
        ("All", (1.0,) * 14),
    ],
)
def test_a_right_click_on_a_source_offers_groups(panel: WatchedPanel, words: str, expected: Any) -> None:
    menu = open_menu(panel, lambda: panel.grid.menu_requested.emit(0, 2, QPoint(0, 0)))
    choose(menu, words)
    assert panel.edits.steps == [SetParameter("mix/0/strengths", expected)]


def test_a_source_can_be_emptied_and_removed_by_its_menu(panel: WatchedPanel) -> None:
    choose(open_menu(panel, lambda: panel.grid.menu_requested.emit(1, 2, QPoint(0, 0))), "None")
    choose(open_menu(panel, lambda: panel.grid.menu_requested.emit(0, 2, QPoint(0, 0))), "Remove")
    assert panel.edits.steps == [SetParameter("mix/1/strengths", (0.0,) * 14), RemoveSource(0)]
    assert [item.label for item in panel.edits.session.mix] == ["seed 2"]


def test_a_source_is_renamed_beside_where_it_was_clicked(panel: WatchedPanel, qtbot: QtBot) -> None:
    choose(open_menu(panel, lambda: panel.grid.menu_requested.emit(1, 2, QPoint(0, 0))), "Rename…")
    assert panel.ask.text.text() == "seed 2"
    panel.ask.text.selectAll()
    qtbot.keyClicks(panel.ask.text, "Evening")
    qtbot.keyClick(panel.ask.text, Qt.Key.Key_Return)
    assert panel.edits.session.mix[1].label == "Evening"
    assert not panel.ask.isVisible()


@pytest.mark.parametrize("words", ["Another seed…", "Rename…"])
def test_an_open_menu_asks_nothing_of_a_source_that_is_gone(panel: WatchedPanel, words: str) -> None:
    menu = open_menu(panel, lambda: panel.grid.menu_requested.emit(1, 2, QPoint(0, 0)))
    panel.show_session(Session())
    choose(menu, words)
    assert not panel.ask.isVisible()


def test_a_source_gets_another_seed_and_keeps_its_strengths(panel: WatchedPanel, qtbot: QtBot) -> None:
    choose(open_menu(panel, lambda: panel.grid.menu_requested.emit(1, 2, QPoint(0, 0))), "Another seed…")
    assert panel.ask.seed.value() == 2
    panel.ask.seed.selectAll()
    qtbot.keyClicks(panel.ask.seed, "77")
    qtbot.mouseClick(panel.ask.button, Qt.MouseButton.LeftButton)
    (edit,) = panel.edits.steps
    assert edit.label == "Source's seed"
    assert panel.edits.session.mix[1] == source(77, (1.0,) * 14)


def test_a_new_source_is_requested_by_its_seed_and_starts_with_the_fine_rows(panel: WatchedPanel, qtbot: QtBot) -> None:
    qtbot.mouseClick(panel.add, Qt.MouseButton.LeftButton)
    assert panel.ask.isVisible()
    panel.ask.seed.selectAll()
    qtbot.keyClicks(panel.ask.seed, "4711")
    qtbot.keyClick(panel.ask.seed, Qt.Key.Key_Return)
    (edit,) = panel.edits.steps
    assert isinstance(edit, AddSources)
    assert edit.sources[0] == source(4711, (0.0,) * 9 + (1.0,) * 5)
    assert len(panel.grid.strengths) == 3


def test_escape_in_the_question_adds_nothing(panel: WatchedPanel, qtbot: QtBot) -> None:
    qtbot.mouseClick(panel.add, Qt.MouseButton.LeftButton)
    qtbot.keyClick(panel.ask, Qt.Key.Key_Escape)
    assert not panel.ask.isVisible()
    assert panel.edits.all == []


def test_a_new_source_takes_the_class_one_looks_at(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.edits.show(Session(classes=((3, 1.0),)))
    qtbot.mouseClick(panel.add, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(panel.ask.button, Qt.MouseButton.LeftButton)
    assert panel.edits.session.mix[0].latent.classes == ((3, 1.0),)


def test_keeping_the_current_latent_is_requested_and_not_decided(panel: WatchedPanel, qtbot: QtBot) -> None:
    with qtbot.waitSignal(panel.mix_in_requested):
        qtbot.mouseClick(panel.mix_in, Qt.MouseButton.LeftButton)
    assert panel.edits.all == []


def test_presets_go_to_the_source_that_was_touched_last(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.grid.setFocus()
    qtbot.keyClick(panel.grid, Qt.Key.Key_Down)
    (button,) = panel.header_widgets()
    choose(open_menu(panel, lambda: qtbot.mouseClick(button, Qt.MouseButton.LeftButton)), "Half of everything")
    assert panel.edits.steps == [SetParameter("mix/1/strengths", (0.5,) * 14)]


def test_pictures_of_the_base_and_each_source_are_wanted_once(panel: WatchedPanel, qtbot: QtBot) -> None:
    wanted = []
    panel.thumbnail_wanted.connect(lambda key, session: wanted.append((key, session)))
    qtbot.waitUntil(lambda: len(wanted) == 3)
    assert [session.mix for _, session in wanted] == [(), (), ()]
    assert [session.pinned_blend[0][0].latent for _, session in wanted[:2]] == [TWO.mix[1].latent, TWO.mix[0].latent]
    assert wanted[2][1].pinned_blend == (), "the base is asked for last, to be made first"
    for key, _ in wanted:
        panel.show_thumbnail(key, QImage(8, 8, QImage.Format.Format_RGB32))
    wanted.clear()
    drag(panel.grid, panel.grid.cell_rect(0, 0).center(), panel.grid.cell_rect(0, 3).center())
    panel.edits.show(Session(mix=panel.edits.session.mix, sliders=(Slider("sefa/0", 1.0),)))
    panel._request_pictures()
    assert wanted == [], "neither strengths nor sliders change what a source looks like"


def test_the_corner_shows_what_is_pointed_at(panel: WatchedPanel, qtbot: QtBot) -> None:
    qtbot.mouseMove(panel.grid, panel.grid.cell_rect(1, 6).center().toPoint())
    panel.grid.pointed_at.emit(1, 6)
    assert panel.hint.full_text == "row 6 · 1.00"
    panel.grid.pointed_at.emit(1, -1)
    assert panel.hint.full_text == "seed 2"
    panel.grid.pointed_at.emit(-1, -1)
    assert panel.hint.full_text == "drag to paint"


def test_the_strength_one_points_at_is_shown_whole_in_the_narrowest_dock(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.grid.pointed_at.emit(0, 13)
    for width in (panel.minimumSizeHint().width(), 290, 340):
        panel.resize(width, 240)
        lay_out(panel)
        qtbot.waitUntil(lambda: panel.hint.text() in ("0.00", "row 13 · 0.00"))
        assert panel.hint.fontMetrics().horizontalAdvance(panel.hint.text()) <= panel.hint.width()
    qtbot.waitUntil(lambda: panel.hint.text() == "row 13 · 0.00")


def many(count: int) -> Session:
    return Session(mix=tuple(source(seed) for seed in range(count)))


def in_sight(panel: WatchedPanel, index: int) -> bool:
    top = panel.grid.mapTo(panel.area.viewport(), panel.grid.cell_rect(index, 0).topLeft().toPoint()).y()
    return top >= 0 and top + panel.grid.cell_rect(index, 0).height() <= panel.area.viewport().height()


def test_a_source_that_is_added_is_scrolled_to(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.edits.show(many(8))
    assert not in_sight(panel, 8)
    qtbot.mouseClick(panel.add, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(panel.ask.button, Qt.MouseButton.LeftButton)
    assert in_sight(panel, 8)


def test_a_source_that_comes_back_by_undo_is_scrolled_to(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.edits.show(many(8))
    qtbot.waitUntil(lambda: panel.area.verticalScrollBar().maximum() > 0)
    panel.area.verticalScrollBar().setValue(panel.area.verticalScrollBar().maximum())
    panel.edits.show(RemoveSource(1).apply(many(8)))
    panel.edits.show(many(8))
    qtbot.waitUntil(lambda: in_sight(panel, 1))


def test_the_row_that_keys_select_is_scrolled_into_view(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.edits.show(many(8))
    qtbot.waitUntil(lambda: panel.area.verticalScrollBar().maximum() > 0)
    for key, last in ((Qt.Key.Key_Down, 7), (Qt.Key.Key_Up, 0)):
        for _ in range(7):
            qtbot.keyClick(panel.grid, key)
        assert panel.grid.current[0] == last
        assert in_sight(panel, last)


@pytest.mark.parametrize("part", ["grid", "head"])
def test_the_wheel_over_pictures_and_labels_scrolls_by_one_source(panel: WatchedPanel, qtbot: QtBot, part: str) -> None:
    panel.edits.show(many(8))
    bar = panel.area.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    turned_over = getattr(panel, part)
    while not wheel(turned_over, QPoint(10, 10), -1):  # as Qt hands it on
        turned_over = turned_over.parentWidget()
    assert abs(bar.value() - panel.grid.height() / 8) <= 3
    assert panel.edits.all == []


def test_the_sources_take_all_the_height_there_is(panel: WatchedPanel) -> None:
    panel.edits.show(many(8))
    heights = []
    for height in (240, 400):
        panel.resize(322, height)
        lay_out(panel)
        heights.append(panel.area.viewport().height())
    assert heights[1] - heights[0] == 160
    assert panel.add.y() - panel.area.geometry().bottom() < 10


def test_labels_of_groups_keep_what_fits_of_their_range(panel: WatchedPanel) -> None:
    fine = row_groups(model_facts().row_resolutions)[-1]
    words = {}
    for width in range(320, 100, -5):
        panel.head.resize(width, panel.head.height())
        words[panel.head.group_text(fine)] = width
    assert list(words) == ["fine 128–256", "fine 128+", "fine"]


def test_a_label_of_a_group_shows_its_rows_and_range(panel: WatchedPanel) -> None:
    place = QPoint(panel.head.width() - 20, 4)
    QApplication.sendEvent(panel.head, QHelpEvent(QEvent.Type.ToolTip, place, panel.head.mapToGlobal(place)))
    assert QToolTip.text() == "Rows 9–13: fine 128–256 px."
    QToolTip.hideText()


def test_many_sources_scroll_under_their_labels(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.edits.show(Session(mix=tuple(source(seed) for seed in range(20))))
    qtbot.waitUntil(lambda: panel.area.verticalScrollBar().maximum() > 0)
    qtbot.waitUntil(lambda: panel.grid.width() == panel.head.width())
    assert panel.add.isVisible()


def test_without_sources_or_a_model_the_panel_says_what_to_do(panel: WatchedPanel) -> None:
    panel.edits.show(Session())
    assert panel.empty.isVisible()
    assert "Add a source" in panel.empty.text()
    panel.show_model(None, None)
    assert "Open a model" in panel.empty.text()
    assert not panel.add.isEnabled()
    assert not panel.mix_in.isEnabled()


def test_a_session_of_a_larger_network_is_shown_with_the_rows_there_are(panel: WatchedPanel) -> None:
    panel.show_model(model_facts(64), None)
    panel.edits.show(TWO)
    assert [len(row) for row in panel.grid.strengths] == [10, 10]


@pytest.mark.usefixtures("each_font")
def test_the_panel_fits_a_narrow_and_low_dock(panel: WatchedPanel) -> None:
    assert panel.minimumSizeHint().width() <= 280
    assert panel.minimumSizeHint().height() <= 170


def test_showing_a_session_emits_nothing(panel: WatchedPanel) -> None:
    panel.edits.show(Session(mix=(source(5, (0.25,)),)))
    assert panel.edits.all == []


class Learned(QObject):
    """Notes which parameters are to be learned."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[str, float, float]] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        if isinstance(event, LearnRequest):
            self.heard.append((event.path, event.low, event.high))
        return False


def test_a_controller_can_be_learned_for_a_source_and_for_one_of_its_rows(panel: WatchedPanel) -> None:
    learned = Learned()
    panel.window().installEventFilter(learned)
    menu = open_menu(panel, lambda: panel.grid.menu_requested.emit(1, 2, QPoint(0, 0)))
    for title in ("Strength of all rows", "Strength of row 3"):
        sub: Any = next(action for action in menu.actions() if action.text() == title).menu()
        next(action for action in sub.actions() if action.text() == "Learn controller").trigger()
    menu.close()
    assert learned.heard == [("mix/1/strength", 0.0, 1.0), ("mix/1/strength/2", 0.0, 1.0)]
