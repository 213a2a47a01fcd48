"""The class list of a network whose classes have names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QColor, QHelpEvent, QImage
from PySide6.QtWidgets import QApplication, QStyleOptionViewItem, QToolTip
from pytestqt.qtbot import QtBot

from explorer_app.session.session import Position, Session
from explorer_app.window.latent.class_list_model import PICTURE
from explorer_app.window.latent.class_picker import ClassPicker
from explorer_app.window.latent.latent_panel import LatentPanel
from explorer_app.window.look import theme
from tests.helpers.panels import CTRL, Edits, click_row, model_facts

LONG = "great white shark, white shark, man-eater, man-eating shark, Carcharodon carcharias"
NAMES = ("tench, Tinca tinca", "goldfish", LONG, "needle & compass", *(f"finch {index}" for index in range(196)))


class WatchedPanel(LatentPanel):
    """A panel, and its edits."""

    edits: Edits


@pytest.fixture
def panel(qtbot: QtBot) -> WatchedPanel:
    panel = WatchedPanel()
    qtbot.addWidget(panel)
    panel.show_model(replace(model_facts(classes=200), class_names=NAMES, class_file="zoo.labels.txt"), None)
    panel.edits = Edits(panel)
    panel.resize(322, 520)
    panel.show()
    return panel


@pytest.fixture
def picker(panel: WatchedPanel, qtbot: QtBot) -> Iterator[ClassPicker]:
    qtbot.mouseClick(panel.class_button, Qt.MouseButton.LeftButton)
    picker = panel.picker
    yield picker
    picker.hide()


def shown(picker: ClassPicker) -> list[str]:
    return [picker.model.index(row).data() for row in range(picker.model.rowCount())]


def test_classes_are_listed_by_number_and_name(picker: ClassPicker) -> None:
    assert shown(picker)[:3] == ["No class", "0 tench, Tinca tinca", "1 goldfish"]
    assert picker.model.rowCount() == 201


def test_a_class_is_searched_by_words_of_its_name_or_by_its_number(
    panel: WatchedPanel, picker: ClassPicker, qtbot: QtBot
) -> None:
    qtbot.keyClicks(picker.filter, "Fish")
    assert shown(picker) == ["1 goldfish"]
    picker.filter.clear()
    qtbot.keyClicks(picker.filter, "shark man")
    assert shown(picker) == [f"2 {LONG}"]
    picker.filter.clear()
    qtbot.keyClicks(picker.filter, "104")
    assert shown(picker) == ["104 finch 100", "108 finch 104"]
    qtbot.keyClick(picker.filter, Qt.Key.Key_Return)
    assert panel.edits.session.classes == ((104, 1.0),)
    assert panel.class_button.text().startswith("104 finch")
    assert panel.class_button.toolTip().startswith("104 finch 100. ")


def test_the_arrow_down_goes_from_the_search_into_the_list(
    panel: WatchedPanel, picker: ClassPicker, qtbot: QtBot
) -> None:
    qtbot.keyClicks(picker.filter, "gold")
    qtbot.keyClick(picker.filter, Qt.Key.Key_Down)
    assert picker.list.hasFocus() or QApplication.focusWidget() is None
    qtbot.keyClick(picker.list, Qt.Key.Key_Return)
    assert panel.edits.session.classes == ((1, 1.0),)


def test_a_search_that_finds_nothing_reports_it(picker: ClassPicker, qtbot: QtBot) -> None:
    qtbot.keyClicks(picker.filter, "finch")
    before = picker.list.viewport().grab().toImage()
    picker.filter.clear()
    qtbot.keyClicks(picker.filter, "unicorn")
    empty = picker.list.viewport().grab().toImage()
    assert picker.model.rowCount() == 0
    assert empty != before
    colours = {empty.pixel(x, empty.height() // 2 + y) for x in range(empty.width()) for y in range(-6, 6)}
    assert len(colours) > 2, "words stand in the middle"
    qtbot.keyClick(picker.filter, Qt.Key.Key_Return)


def test_a_long_name_is_cut_on_the_button_and_shown_whole_in_its_tooltip(panel: WatchedPanel) -> None:
    panel.edits.show(Session(classes=((2, 1.0),)))
    button = panel.class_button
    assert button.text().startswith("2 great")
    assert "…" in button.text()
    assert button.geometry().right() <= panel.width() - theme.MARGIN
    assert button.toolTip().startswith(f"2 {LONG}. ")
    assert "zoo.labels.txt" in button.toolTip()
    panel.edits.show(Session(classes=((3, 1.0),)))
    assert "&&" in button.text(), "an ampersand is part of the name, not a key to press"


def test_a_name_that_is_cut_in_the_list_is_shown_whole_where_one_points(picker: ClassPicker, qtbot: QtBot) -> None:
    def pointed_at(row: int) -> str:
        index = picker.model.index(row)
        option = QStyleOptionViewItem()
        option.rect = picker.list.visualRect(index)
        place = option.rect.center()
        event = QHelpEvent(QEvent.Type.ToolTip, place, picker.list.viewport().mapToGlobal(place))
        picker.list.itemDelegate().helpEvent(event, picker.list, option, index)
        return QToolTip.text()

    assert pointed_at(2) == "", "a name that is seen whole needs none"
    assert LONG in pointed_at(3)
    QToolTip.hideText()


def test_weights_have_the_names_of_their_classes(panel: WatchedPanel, picker: ClassPicker) -> None:
    click_row(picker, 2)
    click_row(picker, 4, CTRL)
    assert [row.label.full_text for row in picker.rows] == ["1 goldfish", "3 needle & compass"]
    panel.show_model(model_facts(classes=200), None)
    assert [row.label.full_text for row in picker.rows] == ["Class 1", "Class 3"]


def test_the_list_stays_on_the_screen_when_weights_come(panel: WatchedPanel, picker: ClassPicker) -> None:
    area = picker.screen().availableGeometry()
    picker.hide()
    picker.open_at(QPoint(area.left(), area.bottom() - picker.height()))
    for number in range(8):
        picker.list.chosen.emit(number, True)
    assert len(picker.rows) == 8
    assert area.contains(picker.geometry())
    assert picker.height() >= picker.sizeHint().height()
    assert all(row.isVisible() for row in picker.rows)


def test_where_names_come_from_is_reported(panel: WatchedPanel, picker: ClassPicker) -> None:
    assert "zoo.labels.txt" in picker.filter.toolTip()
    panel.show_model(model_facts(classes=200), None)
    for tip in (picker.filter.toolTip(), panel.class_button.toolTip()):
        assert "MODEL.labels.txt" in tip


def test_where_a_picture_is_always_of_a_class_none_is_not_to_be_had(panel: WatchedPanel, qtbot: QtBot) -> None:
    facts = replace(model_facts(classes=5), looks_classes_up=True)
    panel.show_model(facts, None)
    panel.show_session(Session(classes=((3, 1.0),)))
    qtbot.mouseClick(panel.class_button, Qt.MouseButton.LeftButton)
    picker = panel.picker
    assert shown(picker) == [f"Class {number}" for number in range(5)]
    assert picker.list.currentIndex().row() == 3
    click_row(picker, 3, CTRL)
    assert panel.edits.steps == []
    click_row(picker, 1)
    assert [edit.value for edit in panel.edits.steps] == [((1, 1.0),)]
    picker.hide()


@pytest.fixture
def wanted(panel: WatchedPanel, qtbot: QtBot) -> Iterator[list[tuple[Any, Session]]]:
    """The picker of a person at seed 3, and what pictures it wants."""
    panel.edits.show(Session(position=Position(3.0, 0.0)))
    calls: list[tuple[Any, Session]] = []
    panel.thumbnail_wanted.connect(lambda key, session: calls.append((key, session)) if key[0] == "class" else None)
    qtbot.mouseClick(panel.class_button, Qt.MouseButton.LeftButton)
    panel.picker._request_pictures()
    yield calls
    panel.picker.hide()


def test_only_visible_classes_request_pictures_of_the_current_place(
    panel: WatchedPanel, wanted: list[tuple[Any, Session]]
) -> None:
    numbers = [session.classes[0][0] for _, session in reversed(wanted)]
    assert numbers == list(range(len(numbers)))
    assert 5 <= len(numbers) <= 9
    assert {session.position for _, session in wanted} == {Position(3.0, 0.0)}
    wanted.clear()
    picker = panel.picker
    picker.list.verticalScrollBar().setValue(picker.list.verticalScrollBar().maximum())
    picker._request_pictures()
    assert max(session.classes[0][0] for _, session in wanted) == 199


def test_a_class_shows_its_picture_until_one_is_somewhere_else(
    panel: WatchedPanel, wanted: list[tuple[Any, Session]], qtbot: QtBot
) -> None:
    white = QImage(8, 8, QImage.Format.Format_RGB32)
    white.fill(Qt.GlobalColor.white)
    key = next(key for key, session in wanted if session.classes[0][0] == 1)
    panel.show_thumbnail(key, white)
    picker = panel.picker
    index = picker.model.index(2)
    assert index.data(PICTURE) is not None
    rect = picker.list.visualRect(index)
    place = QPoint(rect.left() + theme.px(36), rect.center().y())
    assert picker.list.viewport().grab().toImage().pixelColor(place) == QColor(Qt.GlobalColor.white)
    picker.hide()
    panel.edits.show(Session(position=Position(4.0, 0.0)))
    qtbot.mouseClick(panel.class_button, Qt.MouseButton.LeftButton)
    assert index.data(PICTURE) is None
    panel.show_thumbnail(key, white)
    assert index.data(PICTURE) is None, "it is of the former place"
