"""Panels are made after the window's first paint, and those that are not on the screen when they are first seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from PySide6.QtCore import QEvent, QObject, QRect
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.messages import MessageLog
from explorer_app.session.edits import PLACE
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Position
from explorer_app.settings import Settings
from explorer_app.window.docks.dock import HeadedPanel, PagedPanel
from explorer_app.window.shell.dock_table import DOCKS, SessionPanel
from explorer_app.window.shell.main_window import MainWindow
from tests.helpers.fake_controller import FakeController
from tests.helpers.fonts import widened

IN_EXPLORE = {"latent", "sliders", "mix", "performance", "model", "history"}

Show = Callable[[], MainWindow]


@pytest.fixture
def show(controller: FakeController, settings: Settings, messages: MessageLog, qtbot: QtBot) -> Iterator[Show]:
    """Shows a window whose panels are not made."""
    windows: list[MainWindow] = []

    def build() -> MainWindow:
        window = MainWindow(controller, settings, messages)  # type: ignore[arg-type]
        windows.append(window)
        qtbot.addWidget(window)
        window.show_restored()
        window.resize(1600, 980)
        return window

    yield build
    for window in windows:
        window.close()


def made(window: MainWindow) -> set[str]:
    return {key for key, dock in window.docks.items() if dock.is_made}


def wait_for_panels(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: made(window) >= IN_EXPLORE)
    QApplication.processEvents()


def places(window: MainWindow) -> dict[str, QRect]:
    there = {key: dock.geometry() for key, dock in window.docks.items() if dock.isVisible()}
    return {**there, "canvas": window.canvas.geometry(), "window": window.geometry()}


def test_no_panel_is_made_before_the_first_paint_and_those_on_the_screen_are_made_after_it(
    show: Show, qtbot: QtBot
) -> None:
    window = show()
    at_first: list[set[str]] = []
    window.canvas.painted_first.connect(lambda: at_first.append(made(window)))
    assert made(window) == set()
    wait_for_panels(window, qtbot)
    assert at_first == [set()]
    assert made(window) == IN_EXPLORE


def test_one_panel_is_made_in_a_turn(show: Show, qtbot: QtBot) -> None:
    window = show()
    counts: list[int] = []
    for dock in window.docks.values():
        dock.made.connect(lambda: counts.append(len(made(window))))
    window.workspace._panel_timer.timeout.connect(lambda: counts.append(0))
    wait_for_panels(window, qtbot)
    assert [count for count in counts if count] == [1, 2, 3, 4, 5, 6]
    assert all(after == 0 for count, after in pairwise(counts) if count)


def test_no_panel_is_a_window_of_its_own_for_a_moment(show: Show, qtbot: QtBot, qapp: QApplication) -> None:
    window = show()
    others: list[object] = []

    class Watch(QObject):
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
            if event.type() == QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
                others.append(watched)
            return False

    watch = Watch()
    qapp.installEventFilter(watch)
    wait_for_panels(window, qtbot)
    qapp.removeEventFilter(watch)
    assert others == []


def test_nothing_moves_when_panels_take_their_places(show: Show, qtbot: QtBot) -> None:
    window = show()
    at_first: list[dict[str, QRect]] = []
    window.canvas.painted_first.connect(lambda: at_first.append(places(window)))
    wait_for_panels(window, qtbot)
    qtbot.wait(1)
    assert at_first == [places(window)]


def test_a_panel_behind_a_tab_is_made_when_its_tab_is_chosen_and_moves_nothing(show: Show, qtbot: QtBot) -> None:
    window = show()
    window.resize(1280, 720)
    qtbot.waitUntil(lambda: {"latent", "sliders", "performance", "history"} <= made(window))
    for _ in range(3):
        QApplication.processEvents()
    assert "mix" not in made(window)
    before = window.docks["latent"].geometry(), window.canvas.geometry()
    window.docks["mix"].raise_()
    qtbot.waitUntil(lambda: window.docks["mix"].is_made)
    for _ in range(3):
        QApplication.processEvents()
    assert (window.docks["latent"].geometry(), window.canvas.geometry()) == before


def test_a_panel_of_the_other_workspace_is_made_when_that_is_shown(show: Show, qtbot: QtBot) -> None:
    window = show()
    wait_for_panels(window, qtbot)
    window.workspace.switch_to("measure")
    qtbot.waitUntil(lambda: window.docks["layers"].is_made)


def test_a_panel_that_a_command_needs_is_made_for_it(show: Show) -> None:
    window = show()
    assert "layers" not in made(window)
    assert window.layers is window.docks["layers"].panel
    assert "layers" in made(window)


def test_a_late_panel_shows_the_model_and_the_session_and_edits_it(show: Show, controller: FakeController) -> None:
    window = show()
    controller.editing.edit(SetParameter(PLACE, Position(0.25, 0.25)), final=True, source="test")
    assert made(window) == set()
    assert window.latent.plane_x.value() == pytest.approx(0.25)
    window.latent.edited.emit(SetParameter(PLACE, Position(0.375, 0.25)), True)
    assert controller.editing.session.position == Position(0.375, 0.25)
    assert window.latent.plane_x.value() == pytest.approx(0.375, abs=0.01)


def test_the_page_that_was_chosen_before_a_panel_was_made_is_the_one_that_it_shows(show: Show) -> None:
    window = show()
    dock = window.docks["history"]
    dock.header.tabs[1].click()
    assert not dock.is_made
    assert window.history.kept.isVisibleTo(window.history)


def test_a_window_that_is_closed_makes_no_more_panels(show: Show) -> None:
    window = show()
    window.close()
    for _ in range(10):
        QApplication.processEvents()
    assert made(window) == set()


def test_the_table_says_what_a_dock_has_to_know_of_its_panel(show: Show) -> None:
    window = show()
    for spec in DOCKS:
        dock = window.docks[spec.key]
        panel = dock.panel
        assert tuple(panel.page_titles if isinstance(panel, PagedPanel) else ()) == spec.pages, spec.key
        assert isinstance(panel, SessionPanel) == spec.needs_model, spec.key
        widgets = panel.header_widgets() if isinstance(panel, HeadedPanel) else ()
        assert all(dock.header.isAncestorOf(widget) for widget in widgets), spec.key
        if spec.key in ("latent", "sliders", "mix", "history"):  # others grow with what is known of the device
            least, wanted = panel.minimumSizeHint(), panel.sizeHint()
            given_way = abs(widened(spec.least[0]) - spec.least[0])  # in some panels by a font of another width
            assert spec.least[0] == pytest.approx(least.width(), abs=12 + given_way), spec.key
            assert (spec.least[1], spec.wanted[1]) == pytest.approx((least.height(), wanted.height()), abs=12), spec.key
