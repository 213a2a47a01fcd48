"""A layer on show, in the whole window."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer_app.session.edits import PLACE
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Position, Session
from explorer_app.window.shell.file_commands import picture_name
from explorer_app.window.shell.main_window import MainWindow
from gpu_backend import Tap, Transform
from tests.helpers.fake_controller import FakeController, facts
from tests.helpers.windows import Make, calls, dock, without_model

LAYER = Tap("b8.conv1", (2,))


def test_the_layers_come_beside_the_performance_by_their_key(window: MainWindow) -> None:
    layers, performance = dock(window, "layers"), dock(window, "performance")
    assert layers.isHidden()
    QTest.keySequence(window.canvas, "Alt+6")
    QApplication.processEvents()
    assert layers in window.workspace.tabifiedDockWidgets(performance)
    assert not window.layers.visibleRegion().isEmpty()
    QTest.keySequence(window.canvas, "Alt+6")
    assert layers.isHidden()
    QTest.keySequence(window.canvas, "Alt+6")
    assert not layers.isHidden()


def test_numbers_are_read_only_while_the_panel_is_seen(window: MainWindow, controller: FakeController) -> None:
    window.workspace.reset()
    dock(window, "layers").reveal()
    QApplication.processEvents()
    assert calls(controller, "set_reading_values")[-1] == ("set_reading_values", True)
    dock(window, "performance").reveal()
    QApplication.processEvents()
    assert calls(controller, "set_reading_values")[-1] == ("set_reading_values", False)


def test_a_layer_that_is_chosen_is_shown_with_its_name_and_the_way_back(
    window: MainWindow, controller: FakeController
) -> None:
    badge = window.canvas.caption.badge
    assert badge.isHidden()
    window.layers.table.layer_chosen.emit("b8.conv1")
    assert controller.editing.session.tap == Tap("b8.conv1")
    assert window.canvas.frame is controller.engine.preview.frame
    assert "b8.conv1, channel 0" in badge.text()
    assert window.canvas.caption.text().startswith("8 × 8 → fit ")
    assert window.actions_by_key["layer"].isChecked()
    badge.click()
    assert controller.editing.session.tap is None
    assert badge.isHidden()
    assert window.canvas.hasFocus()
    assert not window.actions_by_key["layer"].isChecked()


def test_the_key_returns_to_the_layer_that_was_chosen_while_the_panel_was_hidden(
    window: MainWindow, controller: FakeController
) -> None:
    window.layers.table.layer_chosen.emit("b8.conv1")
    QTest.keySequence(window.canvas, "Alt+6")
    QApplication.processEvents()
    QTest.keySequence(window.canvas, "Alt+6")
    assert dock(window, "layers").isHidden()
    controller.editing.edit(SetParameter("layer", Tap("b4.conv1", (1,))))
    for expected in (None, Tap("b4.conv1", (1,))):
        QTest.keyClick(window.canvas, Qt.Key.Key_L)
        assert controller.editing.session.tap == expected


def test_the_badge_leaves_the_rest_of_the_line_its_room(window: MainWindow, controller: FakeController) -> None:
    controller.editing.edit(SetParameter("layer", LAYER))
    QApplication.processEvents()
    caption = window.canvas.caption
    assert window.canvas.caption_rect().toAlignedRect().contains(caption.badge.geometry())
    assert caption.badge.width() < window.canvas.caption_rect().width() / 2


def test_escape_on_the_canvas_shows_the_picture(window: MainWindow, controller: FakeController) -> None:
    controller.editing.edit(SetParameter(PLACE, Position(1.0, 0.0)))
    controller.editing.edit(SetParameter("layer", LAYER))
    QTest.keyClick(window.canvas, Qt.Key.Key_Escape)
    assert controller.editing.session.tap is None
    count = len(controller.calls)
    QTest.keyClick(window.canvas, Qt.Key.Key_Escape)
    assert len(controller.calls) == count


def test_a_key_goes_to_and_fro_between_picture_and_layer(window: MainWindow, controller: FakeController) -> None:
    controller.editing.edit(SetParameter("layer", LAYER))
    QTest.keySequence(window.canvas, "L")
    assert controller.editing.session.tap is None
    QTest.keySequence(window.canvas, "L")
    assert controller.editing.session.tap == LAYER


def test_handles_leave_the_badge_within_reach(make: Make) -> None:
    controller = FakeController(with_model=False)
    controller.show_model(facts(family="StyleGAN3", has_transform=True, noise_layers=()))
    window = make(controller)
    window.actions_by_key["transform"].trigger()
    controller.editing.edit(SetParameter("layer", LAYER))
    QApplication.processEvents()
    badge = window.canvas.caption.badge
    assert window.canvas.childAt(badge.geometry().center()) is badge
    QTest.keyClick(window.canvas, Qt.Key.Key_Escape)
    assert controller.editing.session.tap == LAYER, "the first one leaves the handles"
    QTest.keyClick(window.canvas, Qt.Key.Key_Escape)
    assert controller.editing.session.tap is None
    assert controller.editing.session.transform == Transform()


def test_a_small_layer_fills_the_place_of_the_picture_in_sharp_squares(
    window: MainWindow, controller: FakeController
) -> None:
    place = window.canvas.picture_rect()
    controller.editing.edit(SetParameter("layer", LAYER))
    assert window.canvas.picture_rect() == place
    assert controller.engine.preview.frame is not None
    image = window.canvas.grab(place.toAlignedRect().adjusted(1, 1, -1, -1)).toImage()
    row = image.height() // 2
    greys = {image.pixelColor(x, row).red() for x in range(image.width())}
    assert greys <= set(np.unique(controller.engine.preview.frame.pixels[4, :, 0]).tolist()), (
        "nothing between the layer's numbers"
    )


def test_a_file_of_a_layer_is_named_after_it() -> None:
    session = Session(position=Position(12.0, 0.0))
    assert picture_name(session) == "seed0012"
    assert picture_name(replace(session, tap=LAYER)) == "seed0012-b8.conv1"


@without_model
def test_without_a_model_there_is_nothing_to_show(window: MainWindow) -> None:
    assert not window.actions_by_key["layer"].isEnabled()
    assert not window.layers.table.isEnabled()
    assert window.canvas.caption.badge.isHidden()
