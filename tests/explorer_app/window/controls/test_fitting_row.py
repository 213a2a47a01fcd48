from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.window.controls.fitting_row import FittingRow


def button(name: str) -> QPushButton:
    made = QPushButton(name)
    made.setAccessibleName(name)
    made.setFixedWidth(100)
    return made


@pytest.fixture
def parts() -> list[QPushButton]:
    return [button(name) for name in ("play", "rate", "volume", "export")]


@pytest.fixture
def row(qtbot: QtBot, parts: list[QPushButton]) -> Iterator[FittingRow]:
    play, rate, volume, export = parts
    outer = QWidget()
    qtbot.addWidget(outer)
    made = FittingRow((play, rate, volume, None, export), (rate, volume), outer)
    outer.resize(900, 60)
    made.resize(900, 40)
    outer.show()
    yield made
    outer.close()


def shown(parts: list[QPushButton]) -> list[str]:
    return [part.text() for part in parts if not part.isHidden()]


def test_all_is_shown_where_there_is_room(row: FittingRow, parts: list[QPushButton]) -> None:
    assert shown(parts) == ["play", "rate", "volume", "export"]
    assert row.more_button.isHidden()


def test_without_room_the_first_to_be_dropped_go_first(row: FittingRow, parts: list[QPushButton]) -> None:
    row.resize(420, 40)
    assert shown(parts) == ["play", "volume", "export"]
    row.resize(300, 40)
    assert shown(parts) == ["play", "export"]
    assert not row.more_button.isHidden()
    assert [part.accessibleName() for part in row.left_out] == ["rate", "volume"]


def test_what_does_not_apply_is_neither_shown_nor_left_out(row: FittingRow, parts: list[QPushButton]) -> None:
    row.set_absent([parts[2]])
    assert shown(parts) == ["play", "rate", "export"]
    row.resize(300, 40)
    assert [part.accessibleName() for part in row.left_out] == ["rate"]


def test_the_popup_shows_what_was_left_out_and_gives_it_back(row: FittingRow, parts: list[QPushButton]) -> None:
    row.resize(300, 40)
    clicked: list[str] = []
    parts[2].clicked.connect(lambda: clicked.append("volume"))
    row.more_button.click()
    popup = parts[2].window()
    assert popup is not row.window()
    row.resize(500, 40)  # nothing moves between row and popup while it is open
    assert parts[2].window() is popup
    QTest.mouseClick(parts[2], Qt.MouseButton.LeftButton)
    assert clicked == ["volume"]
    assert not popup.isVisible()
    assert parts[2].window() is row.window()
    assert shown(parts) == ["play", "rate", "volume", "export"]
