"""What a right click on a control offers."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QAction, QContextMenuEvent
from PySide6.QtWidgets import QApplication, QMenu, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.window.controls.drive_menu import usual_patch
from explorer_app.window.controls.number_field import NumberField
from explorer_app.window.controls.parameter_menu import (
    AnimateRequest,
    DriveRequest,
    ForgetRequest,
    LearnRequest,
    MappingQuery,
    SoundQuery,
)
from explorer_app.window.controls.slider_row import SliderRow
from explorer_app.window.latent.noise_section import NoiseSection


class Window(QWidget):
    """Notes what its controls ask for."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[Any, ...]] = []
        self.mapped = False
        self.sounds: tuple[str, ...] = ()

    def customEvent(self, event: QEvent) -> None:  # noqa: N802
        if isinstance(event, AnimateRequest):
            self.heard.append(("animate", event.path))
        elif isinstance(event, LearnRequest):
            self.heard.append(("learn", event.path, event.low, event.high))
        elif isinstance(event, ForgetRequest):
            self.heard.append(("forget", event.path))
        elif isinstance(event, DriveRequest):
            self.heard.append(("drive", event.patch))
        elif isinstance(event, SoundQuery):
            event.sounds = self.sounds
        elif isinstance(event, MappingQuery):
            event.is_mapped = self.mapped


@pytest.fixture
def window(qtbot: QtBot) -> Window:
    window = Window()
    qtbot.addWidget(window)
    return window


def menu_of(control: QWidget) -> QMenu:
    """Right-click a control, and return the menu that opens."""
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, QPoint(3, 3), QPoint(3, 3))
    QApplication.sendEvent(control, event)
    return next(menu for menu in control.findChildren(QMenu) if menu.isVisible())


def texts(menu: QMenu) -> list[str]:
    return [action.text() for action in menu.actions() if action.text()]


def entry(menu: QMenu, text: str) -> QAction:
    return next(action for action in menu.actions() if action.text() == text)


def test_a_slider_offers_a_key_and_a_controller_with_its_own_range(window: Window) -> None:
    row = SliderRow("Sun", -3.0, 3.0, parent=window)
    row.path = "slider/world/sun"
    menu = menu_of(row)
    assert texts(menu) == ["Animate: key here", "Learn controller", "Drive by sound"]
    for text in ("Animate: key here", "Learn controller"):
        entry(menu, text).trigger()
    sources = entry(menu, "Drive by sound").menu()
    assert isinstance(sources, QMenu)
    (reason,) = sources.actions()
    assert reason.text().startswith("No sound yet")
    assert not reason.isEnabled()
    menu.close()
    assert window.heard == [("animate", "slider/world/sun"), ("learn", "slider/world/sun", -3.0, 3.0)]


def test_a_number_is_driven_by_the_sounds_that_the_window_has(window: Window) -> None:
    window.sounds = ("drums",)
    row = SliderRow("Sun", -3.0, 3.0, parent=window)
    row.path = "slider/world/sun"
    menu = menu_of(row)
    features = entry(menu, "Drive by sound").menu()
    assert isinstance(features, QMenu)
    entry(features, "Onsets").trigger()
    menu.close()
    assert window.heard == [("drive", usual_patch("audio/drums/onset", "slider/world/sun"))]


def test_a_mapped_control_offers_to_forget_its_controller(window: Window) -> None:
    window.mapped = True
    field = NumberField(0.0, 5.0, parent=window)
    field.path, field.mapped_to = "noise.gain", (0.0, 2.0)
    menu = menu_of(field)
    entry(menu, "Forget controller").trigger()
    entry(menu, "Learn controller").trigger()
    menu.close()
    assert window.heard == [("forget", "noise.gain"), ("learn", "noise.gain", 0.0, 2.0)]


def test_only_continuous_numbers_can_have_a_controller(window: Window) -> None:
    row = SliderRow("Cutoff", 0.0, 14.0, parent=window)
    row.path = "truncation.cutoff"
    menu = menu_of(row)
    assert texts(menu) == ["Animate: key here"]
    menu.close()


def test_a_choice_gets_keys_of_itself_and_a_controller_that_counts_its_choices(window: Window) -> None:
    section = NoiseSection(window)
    menu = menu_of(section.mode)
    for text in ("Animate: key here", "Learn controller"):
        entry(menu, text).trigger()
    menu.close()
    assert window.heard == [("animate", "noise.mode"), ("learn", "noise.mode/number", 0.0, 2.0)]


def test_a_control_that_stands_for_nothing_opens_no_menu(window: Window) -> None:
    row = SliderRow("Drift", -1.0, 1.0, parent=window)
    QApplication.sendEvent(row, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, QPoint(3, 3), QPoint(3, 3)))
    assert row.findChildren(QMenu, options=Qt.FindChildOption.FindDirectChildrenOnly) == []


@pytest.mark.parametrize("path", ["position", "pinned_blend"])
def test_a_value_that_no_controller_moves_is_offered_a_key_alone(path: str, window: Window) -> None:
    field = NumberField(0.0, 5.0, parent=window)
    field.path = path
    menu = menu_of(field)
    assert texts(menu) == ["Animate: key here"]
    entry(menu, "Animate: key here").trigger()
    menu.close()
    assert window.heard == [("animate", path)]


def test_a_closed_menu_is_deleted(window: Window, qtbot: QtBot) -> None:
    field = NumberField(0.0, 5.0, parent=window)
    field.path = "noise.gain"
    menu = menu_of(field)
    with qtbot.waitSignal(menu.destroyed):
        menu.close()
