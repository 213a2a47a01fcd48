"""Enter presses the focused button of the window, and Shift+F10 opens the menu of what has the focus."""

from __future__ import annotations

import sys

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu, QPushButton, QWidget

from explorer_app.window.shell.main_window import MainWindow
from tests.helpers.fake_controller import FakeController
from tests.helpers.windows import dock

SHIFT = Qt.KeyboardModifier.ShiftModifier


def texts_of_menu(
    widget: QWidget, key: Qt.Key, held: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
) -> list[str]:
    """Press a key, and return the entries of the menu that it opens, which is closed again."""
    found: list[str] = []

    def close() -> None:
        menu = QApplication.activePopupWidget()
        if isinstance(menu, QMenu):
            found.extend(action.text() for action in menu.actions())
            menu.close()

    widget.setFocus()
    closing = QTimer(interval=5)  # the menu of a button has an event loop of its own
    closing.timeout.connect(close)
    closing.start()
    QTest.keyClick(widget, key, held)
    close()
    return found


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_enter_presses_a_button(window: MainWindow, key: Qt.Key) -> None:
    heard: list[str] = []
    window.timeline.keep_requested.disconnect()
    window.timeline.keep_requested.connect(lambda: heard.append("keep"))
    window.timeline.keep_button.setFocus()
    QTest.keyClick(window.timeline.keep_button, key)
    assert heard == ["keep"]


def test_enter_switches_what_can_be_on(window: MainWindow) -> None:
    switch = window.controllers.inputs.switches["osc"]
    before = switch.isChecked()
    switch.setFocus()
    QTest.keyClick(switch, Qt.Key.Key_Return)
    assert switch.isChecked() is not before


def test_enter_opens_the_menu_of_a_button(window: MainWindow) -> None:
    assert texts_of_menu(window.top_bar.device_button, Qt.Key.Key_Return)


def test_enter_presses_a_button_of_a_panel_that_floats(window: MainWindow) -> None:
    heard: list[str] = []
    window.timeline.keep_requested.disconnect()
    window.timeline.keep_requested.connect(lambda: heard.append("keep"))
    panel = dock(window, "timeline")
    panel.setFloating(True)
    panel.show()
    panel.activateWindow()
    QApplication.processEvents()
    window.timeline.keep_button.setFocus()
    QTest.keyClick(window.timeline.keep_button, Qt.Key.Key_Return)
    assert heard == ["keep"]
    panel.setFloating(False)


def test_enter_in_a_field_that_passes_the_focus_on_presses_no_button(window: MainWindow) -> None:
    field, button = QLineEdit(window.canvas), QPushButton(window.canvas)
    heard: list[str] = []
    field.show()
    button.show()
    button.clicked.connect(lambda: heard.append("pressed"))
    field.setFocus()
    field.returnPressed.connect(button.setFocus)
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert button.hasFocus()
    assert heard == []
    QTest.keyClick(button, Qt.Key.Key_Return)
    assert heard == ["pressed"]
    for widget in (field, button):
        widget.setParent(None)
        widget.deleteLater()


@pytest.mark.skipif(sys.platform == "win32", reason="Qt takes Shift+F10 for the menu key there")
def test_shift_f10_opens_the_menu_of_what_has_the_focus(window: MainWindow, controller: FakeController) -> None:
    slider = window.sliders.directions.rows[0].slider
    assert any("Learn controller" in text for text in texts_of_menu(slider, Qt.Key.Key_F10, SHIFT))
