"""Switching between dark and light while widgets react to it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from explorer_app.window.look import appearance, theme


class Reacting(QPushButton):
    """Asks for the dark theme in the middle of a change of the style sheet, and notes what it sees."""

    def __init__(self) -> None:
        super().__init__("theme")
        self.is_armed = False
        self.seen: list[tuple[bool, theme.Mode]] = []

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange and self.is_armed:
            self.is_armed = False
            app = QApplication.instance()
            assert isinstance(app, QApplication)
            before = app.styleSheet()
            appearance.apply(app, "dark")
            assert app.styleSheet() == before, "Qt is still going through the widgets"
            self.seen.append((gc.isenabled(), appearance.mode()))


@pytest.fixture
def app(qapp: QApplication) -> Iterator[QApplication]:
    before, was_on = appearance.mode(), gc.isenabled()
    yield qapp
    (gc.enable if was_on else gc.disable)()
    appearance.apply(qapp, before)


def test_a_theme_that_is_chosen_while_another_is_applied_comes_after_it_and_no_widget_is_collected_meanwhile(
    app: QApplication, qtbot: QtBot
) -> None:
    appearance.apply(app, "dark")
    button = Reacting()
    qtbot.addWidget(button)
    button.show()
    button.is_armed = True
    gc.enable()
    appearance.apply(app, "light")
    assert button.seen == [(False, "dark")]
    assert gc.isenabled()
    assert (appearance.mode(), theme.current()) == ("dark", theme.DARK)
