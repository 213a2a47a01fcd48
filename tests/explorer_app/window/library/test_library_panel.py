"""The library of kept pictures, by real mouse and key events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.session.history import History, KeptSession
from explorer_app.session.session import Position, Session
from explorer_app.window.library.kept_drop import KeptDrop, kept_numbers
from explorer_app.window.library.library_panel import LibraryPanel
from tests.helpers.panels import CTRL, LEFT, mouse

COPY = Qt.DropAction.CopyAction


def kept(count: int) -> History:
    names = ("dusk", "Alps", "fog", "birch")
    return History().with_kept(
        tuple(
            KeptSession(
                Session(position=Position(float(n), 0.0)),
                names[n % 4] if n < 4 else f"picture {n}",
                float(n % 3),
                ("snow",) if n == 1 else (),
            )
            for n in range(count)
        )
    )


@pytest.fixture
def panel(qtbot: QtBot) -> Iterator[LibraryPanel]:
    made = LibraryPanel()
    qtbot.addWidget(made)
    made.resize(300, 420)
    made.show_history(kept(4))
    made.show()
    yield made
    made.close()


def labels(panel: LibraryPanel) -> list[str]:
    return [entry.label for entry in panel.grid.entries.entries]


def centre(panel: LibraryPanel, row: int) -> QPoint:
    return panel.grid.visualRect(panel.grid.entries.index(row)).center()


def click(panel: LibraryPanel, row: int, keys: Any = Qt.KeyboardModifier.NoModifier) -> None:
    QTest.mouseClick(panel.grid.viewport(), LEFT, keys, centre(panel, row))


def heard(signal: Any) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []
    signal.connect(lambda *arguments: calls.append(arguments))
    return calls


def test_a_press_on_an_entry_that_goes_meanwhile_drags_and_chooses_nothing(panel: LibraryPanel) -> None:
    chosen = heard(panel.kept_requested)
    place = centre(panel, 3)
    QTest.mousePress(panel.grid.viewport(), LEFT, Qt.KeyboardModifier.NoModifier, place)
    panel.show_history(kept(2))
    mouse(panel.grid.viewport(), QEvent.Type.MouseMove, place + QPoint(0, -60))
    QTest.mouseRelease(panel.grid.viewport(), LEFT, Qt.KeyboardModifier.NoModifier, place)
    assert chosen == []


def test_the_tooltip_names_the_keys_of_the_library(panel: LibraryPanel) -> None:
    entries = panel.grid.entries
    tip = str(entries.data(entries.index(0), Qt.ItemDataRole.ToolTipRole))
    assert "Delete no longer keeps it" in tip
    assert "S keeps it" not in tip
    dropped = heard(panel.remove_requested)
    panel.grid.setCurrentIndex(entries.index(0))
    QTest.keyClick(panel.grid, Qt.Key.Key_S)
    assert dropped == []
    QTest.keyClick(panel.grid, Qt.Key.Key_Delete)
    assert len(dropped) == 1


def test_names_and_tags_are_found_and_the_orders_sort(panel: LibraryPanel) -> None:
    assert labels(panel) == ["dusk", "Alps", "fog", "birch"]
    panel.filter.setText("SNO al")
    assert labels(panel) == ["Alps"]
    panel.filter.setText("nothing")
    assert labels(panel) == []
    assert "No name" in panel.grid._empty
    panel.filter.clear()
    panel.set_order("name")
    assert labels(panel) == ["Alps", "birch", "dusk", "fog"]
    panel.set_order("time")
    assert labels(panel) == ["fog", "Alps", "birch", "dusk"]
    panel.show_history(History())
    assert "keep" in panel.grid._empty


def test_what_is_found_is_shown_from_its_beginning(panel: LibraryPanel) -> None:
    panel.show_history(kept(200))
    panel.grid.scrollToBottom()
    panel.filter.setText("picture 1")
    assert len(labels(panel)) > 100
    assert panel.grid.verticalScrollBar().value() == 0


def test_a_small_picture_lays_no_rows_out_again(panel: LibraryPanel) -> None:
    changed = heard(panel.grid.entries.dataChanged)
    number = panel.grid.entries.entries[0].number
    panel.show_thumbnail(("library", number), QImage(8, 8, QImage.Format.Format_RGB32))
    assert number in panel.grid.entries.pictures
    assert changed == []


def test_likeness_is_measured_in_w_and_what_is_unknown_comes_last(panel: LibraryPanel) -> None:
    numbers = [entry.number for entry in panel.grid.entries.entries]
    known = {numbers[0]: 3.0, numbers[1]: -1.0, numbers[2]: 0.5}
    panel.signature_of = lambda number: np.full(3, known[number], np.float16) if number in known else None
    panel.shown_signature = lambda: np.zeros(3, np.float16)
    wanted = heard(panel.thumbnail_wanted)
    panel.set_order("likeness")
    assert labels(panel) == ["fog", "Alps", "dusk", "birch"]
    assert [key for key, _ in wanted] == [("library", numbers[3])]
    known[numbers[3]] = 0.0
    panel.show_thumbnail(("library", numbers[3]), QImage(4, 4, QImage.Format.Format_RGB32))
    panel._sort_later.timeout.emit()
    assert labels(panel)[0] == "birch"


def test_a_click_goes_there_and_with_ctrl_it_selects(panel: LibraryPanel) -> None:
    chosen = heard(panel.kept_requested)
    numbers = [entry.number for entry in panel.grid.entries.entries]
    click(panel, 1)
    assert chosen == [(numbers[1],)]
    click(panel, 2, CTRL)
    assert panel.selected_numbers() == (numbers[1], numbers[2])
    assert len(chosen) == 1
    QTest.keyClick(panel.grid, Qt.Key.Key_Return)
    assert len(chosen) == 2


def test_the_menu_offers_what_one_and_several_can_do(panel: LibraryPanel) -> None:
    numbers = [entry.number for entry in panel.grid.entries.entries]
    click(panel, 0)
    one = {action.text().partition("\t")[0]: action for action in panel.menu().actions()}
    for text, signal, wanted in (
        ("Go there", panel.kept_requested, (numbers[0],)),
        ("Mix this in", panel.mix_requested, ((numbers[0],),)),
        ("Put this on the timeline", panel.key_requested, ((numbers[0],),)),
        ("Compare with the picture", panel.compare_requested, ((numbers[0],),)),
        ("Copy as command", panel.copy_requested, (numbers[0], "command")),
        ("Copy as Python", panel.copy_requested, (numbers[0], "python")),
        ("Export latent…", panel.export_requested, ((numbers[0],),)),
        ("Keep this no longer", panel.remove_requested, ((numbers[0],),)),
    ):
        calls = heard(signal)
        one[text].trigger()
        assert calls == [wanted], text
    QTest.keyClick(panel.grid, Qt.Key.Key_A, CTRL)
    several = [action.text().partition("\t")[0] for action in panel.menu().actions()]
    assert "Mix these 4 in" in several
    assert "Rename…" not in several
    assert "Copy as Python" not in several


def test_keys_rename_tag_and_remove(panel: LibraryPanel) -> None:
    numbers = [entry.number for entry in panel.grid.entries.entries]
    renamed, tagged, removed = (
        heard(panel.rename_requested),
        heard(panel.tags_requested),
        heard(panel.remove_requested),
    )
    click(panel, 1)
    QTest.keyClick(panel.grid, Qt.Key.Key_F2)
    assert panel.ask.text.text() == "Alps"
    panel.ask.text.setText("Dolomites")
    QTest.keyClick(panel.ask.text, Qt.Key.Key_Return)
    assert renamed == [(numbers[1], "Dolomites")]
    QTest.keyClick(panel.grid, Qt.Key.Key_T, CTRL)
    assert panel.ask.text.text() == "snow"
    panel.ask.text.setText("snow, high")
    QTest.keyClick(panel.ask.text, Qt.Key.Key_Return)
    assert tagged == [((numbers[1],), "snow, high")]
    QTest.keyClick(panel.grid, Qt.Key.Key_Delete)
    assert removed == [((numbers[1],),)]


def test_a_drag_carries_the_selected_ones_or_the_one_under_the_pointer(panel: LibraryPanel) -> None:
    numbers = [entry.number for entry in panel.grid.entries.entries]
    click(panel, 0)
    click(panel, 2, CTRL)
    assert kept_numbers(panel.grid.drag_data(2)) == (numbers[0], numbers[2])
    assert kept_numbers(panel.grid.drag_data(3)) == (numbers[3],)


def test_of_thousands_only_visible_pictures_are_requested(panel: LibraryPanel) -> None:
    panel.show_history(kept(5000))
    wanted = heard(panel.thumbnail_wanted)
    panel.grid._request_pictures()
    assert 0 < len(wanted) < 40
    wanted.clear()
    panel.grid.scrollToBottom()
    panel.grid._request_pictures()
    last = panel.grid.entries.entries[-1].number
    assert last in [key[1] for key, _ in wanted]
    assert len(wanted) < 40
    panel.grab()


def test_a_press_that_leaves_its_picture_is_no_click(panel: LibraryPanel) -> None:
    chosen = heard(panel.kept_requested)
    viewport = panel.grid.viewport()
    mouse(viewport, QEvent.Type.MouseButtonPress, centre(panel, 0), LEFT)
    mouse(viewport, QEvent.Type.MouseButtonRelease, centre(panel, 1), LEFT)
    assert chosen == []


def test_another_panel_takes_a_drop_of_kept_pictures_and_leaves_files_to_the_window(
    qtbot: QtBot, panel: LibraryPanel
) -> None:
    target = QWidget()
    qtbot.addWidget(target)
    taken: list[tuple[tuple[int, ...], QPointF]] = []
    KeptDrop(target, lambda numbers, place: taken.append((numbers, place)))
    files = QMimeData()
    files.setUrls([QUrl.fromLocalFile("/a.loom")])
    place, keys = QPointF(7, 5), Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(place.toPoint(), COPY, files, LEFT, keys)
    QApplication.sendEvent(target, enter)
    assert not enter.isAccepted()
    kept_ones = panel.grid.drag_data(2)
    QApplication.sendEvent(target, QDragEnterEvent(place.toPoint(), COPY, kept_ones, LEFT, keys))
    drop = QDropEvent(place, COPY, kept_ones, LEFT, keys)
    QApplication.sendEvent(target, drop)
    assert drop.isAccepted()
    assert taken == [((panel.grid.entries.entries[2].number,), QPointF(7, 5))]


def test_a_name_of_several_lines_is_shown_in_one(panel: LibraryPanel) -> None:
    def seen(name: str) -> QImage:
        panel.show_history(History().with_kept((KeptSession(Session(), name, 0.0),)))
        return panel.grid.viewport().grab().toImage()

    assert seen("a\nb") == seen("a\\nb")
