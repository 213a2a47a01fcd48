"""The dialog that finds directions, in the window."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton

from explorer_app.controller.direction_finding import DirectionsState
from explorer_app.session.direction_files import AddedDirections
from explorer_app.session.edits import GoToSeed
from explorer_app.window.shell.main_window import MainWindow
from explorer_app.window.sliders.find_directions import FindDirections
from gpu_backend import DirectionSearch, RowRange
from tests.helpers.fake_controller import FakeController
from tests.helpers.focus import has_frame
from tests.helpers.windows import calls, dialog_of


def opened(window: MainWindow, controller: FakeController) -> FindDirections:
    for seed in (1, 2, 3):
        controller.editing.edit(GoToSeed(seed))
        controller.editing.kept.star(controller.editing.history.entries[-1].number, True)
    window.actions_by_key["find-directions"].trigger()
    return dialog_of(window, FindDirections)


def press(button: QAbstractButton) -> None:
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def test_components_are_requested_with_name_rows_and_number(window: MainWindow, controller: FakeController) -> None:
    dialog = opened(window, controller)
    dialog.name.selectAll()
    QTest.keyClicks(dialog.name, "mountains")
    dialog.first_row.setValue(2)
    dialog.last_row.setValue(5)
    dialog.count.setValue(4)
    press(dialog.find_button)
    _, search, having, lacking = calls(controller, "find_directions")[0]
    assert isinstance(search, DirectionSearch)
    assert (search.method, search.name, search.rows, search.count) == ("pca", "mountains", RowRange(2, 5), 4)
    assert (having, lacking) == ((), ())
    dialog.close()


def test_examples_are_put_into_two_groups(window: MainWindow, controller: FakeController) -> None:
    dialog = opened(window, controller)
    dialog._choose("examples")
    assert not dialog.find_button.isEnabled()
    assert dialog.name.text() == "difference"
    dialog.list.item(0).setSelected(True)
    press(dialog.to_a)
    dialog.list.clearSelection()
    dialog.list.item(1).setSelected(True)
    dialog.list.item(2).setSelected(True)
    press(dialog.to_b)
    assert dialog.groups.text() == "A 1 · B 2"
    press(dialog.find_button)
    _, search, having, lacking = calls(controller, "find_directions")[0]
    kept = [entry.session for entry in controller.editing.history.kept]
    assert isinstance(search, DirectionSearch)
    assert search.method == "examples"
    assert (having, lacking) == ((kept[0],), tuple(kept[1:]))
    dialog.close()


def test_progress_is_shown_and_a_search_is_cancelled(window: MainWindow, controller: FakeController) -> None:
    dialog = opened(window, controller)
    controller.directions.state = DirectionsState(0.5)
    controller.directions.changed.emit()
    assert dialog.bar.isVisible()
    assert dialog.bar.value() == 500
    assert not dialog.find_button.isEnabled()
    press(dialog.cancel)
    assert calls(controller, "cancel_directions")
    controller.directions.state = DirectionsState(None, AddedDirections(Path("x"), ("pca/0", "pca/1"), None))
    controller.directions.changed.emit()
    assert not dialog.bar.isVisible()
    assert dialog.said.text() == "2 found; the sliders show them."
    press(dialog.back)
    assert calls(controller, "take_directions_back")
    dialog.close()
    controller.directions.changed.emit()


def test_a_second_dialog_gives_way_to_the_open_one_and_hears_no_more(
    window: MainWindow, controller: FakeController
) -> None:
    dialog = opened(window, controller)
    window.actions_by_key["find-directions"].trigger()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    controller.directions.state = DirectionsState(0.5)
    controller.directions.changed.emit()
    assert dialog.bar.isVisible()
    assert window.findChildren(FindDirections) == [dialog]
    dialog.close()


def test_an_open_dialog_offers_the_rows_of_the_model_that_is_opened(
    window: MainWindow, controller: FakeController
) -> None:
    dialog = opened(window, controller)
    before = controller.engine.model.facts
    assert before is not None
    for num_ws in (before.num_ws - 4, before.num_ws + 2):
        controller.engine.model.facts = replace(before, num_ws=num_ws)
        controller.engine.model_changed.emit()
        assert (dialog.last_row.value(), dialog.first_row.maximum()) == (num_ws - 1, num_ws - 1)
    dialog.last_row.setValue(3)
    controller.engine.model.facts = before
    controller.engine.model_changed.emit()
    press(dialog.find_button)
    search = calls(controller, "find_directions")[0][1]
    assert isinstance(search, DirectionSearch)
    assert search.rows == RowRange(0, 3)
    dialog.close()
    controller.engine.model_changed.emit()


def test_the_list_of_pictures_shows_the_focus(window: MainWindow, controller: FakeController) -> None:
    dialog = opened(window, controller)
    dialog._choose("examples")
    dialog.name.setFocus()
    assert not has_frame(dialog.list)
    dialog.list.setFocus()
    assert has_frame(dialog.list)
