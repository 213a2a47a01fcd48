"""The main window, with a controller that obeys at once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QScreen
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QMenuBar, QTabBar, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.messages import MessageLog
from explorer_app.session.edits import PLACE, ZeroSliders, set_truncation
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Position
from explorer_app.settings import Settings
from explorer_app.window.controls.fitting_row import FittingRow
from explorer_app.window.docks.dock import is_uncovered
from explorer_app.window.docks.layouts import WORKSPACES, WorkspaceName
from explorer_app.window.gestures.plane_drag import Glide
from explorer_app.window.look import theme
from explorer_app.window.shell.main_window import MainWindow
from gpu_backend import Truncation
from tests.helpers.fake_controller import FakeController, facts
from tests.helpers.mouse import drag, move, press, release
from tests.helpers.windows import Make, calls, dock


def test_it_opens_on_the_picture(window: MainWindow, controller: FakeController, qtbot: QtBot) -> None:
    assert window.canvas.frame is controller.engine.preview.frame
    assert "Landscapes 256" in window.windowTitle()
    assert window.state.isHidden()
    assert window.canvas.hasFocus()
    qtbot.waitUntil(lambda: controller.engine.preview.frame in controller.engine.preview.painted)


def test_its_title_names_the_project(window: MainWindow, controller: FakeController) -> None:
    controller.files.project = Path("/films/häuser\n.loom")
    controller.files.project_changed.emit()
    assert window.windowTitle() == r"häuser\n.loom – Landscapes 256 – Latent Loom"
    controller.files.is_changed = True
    controller.files.project_changed.emit()
    assert window.windowTitle().startswith(r"häuser\n.loom* – ")
    controller.files.project, controller.files.is_changed = None, False
    controller.files.project_changed.emit()
    assert window.windowTitle() == "Landscapes 256 – Latent Loom"


def test_the_first_time_it_leaves_room_for_the_frame_around_it(
    controller: FakeController, settings: Settings, messages: MessageLog, qtbot: QtBot
) -> None:
    window = MainWindow(controller, settings, messages)  # type: ignore[arg-type]
    qtbot.addWidget(window)
    with qtbot.waitExposed(window):
        window.show_restored()
    free = window.screen().availableGeometry()
    assert window.minimumHeight() < window.height() <= free.height() - 40, "a title bar is that high"


@pytest.fixture
def low_window(
    controller: FakeController,
    settings: Settings,
    messages: MessageLog,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
) -> MainWindow:
    """Show the window on a screen of 640 x 360."""
    monkeypatch.setattr(QScreen, "availableGeometry", lambda _: QRect(0, 0, 640, 360))
    window = MainWindow(controller, settings, messages)  # type: ignore[arg-type]
    qtbot.addWidget(window)
    with qtbot.waitExposed(window):
        window.show_restored()
    return window


def test_it_fits_on_a_low_screen(low_window: MainWindow) -> None:
    window = low_window
    assert window.height() <= 360 - 40
    status = window.statusBar().geometry()
    assert status.bottom() < window.height(), "the panels above leave room for it"
    assert window.canvas.height() >= window.canvas.minimumSizeHint().height()


@pytest.mark.parametrize("workspace", WORKSPACES)
def test_on_a_low_screen_each_panel_fits_or_scrolls(low_window: MainWindow, workspace: WorkspaceName) -> None:
    window = low_window
    window.resize(640, 351)
    window.workspace.switch_to(workspace)
    QApplication.processEvents()
    for panel in [panel for panel in window.docks.values() if not panel.isHidden()]:
        panel.raise_()
        QApplication.processEvents()
        assert panel.height() >= panel.minimumSizeHint().height(), panel.key
        assert panel.geometry().right() < window.workspace.width(), panel.key
        assert panel.geometry().bottom() < window.workspace.height(), panel.key


def test_on_a_low_screen_the_timeline_leaves_room_for_the_picture_and_for_cells_of_a_grid(
    low_window: MainWindow, qtbot: QtBot
) -> None:
    window = low_window
    window.resize(640, 320)
    window.workspace.switch_to("animate")
    qtbot.waitUntil(lambda: window.canvas.height() > 90)
    window.actions_by_key["variations"].trigger()
    QApplication.processEvents()
    cells = window.variations.cells
    assert cells.height() >= 48, "no line of text below takes their room"
    assert next(iter(cells.cell_rect(cell) for cell in [cells.focused] if cell is not None)).width() >= theme.px(40)


def test_the_bar_of_dragging_is_one_line_on_a_low_screen(
    low_window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = low_window
    window.actions_by_key["drag-points"].trigger()
    bar, canvas = window.tools.bar, window.canvas
    line = bar.findChild(FittingRow)
    assert line is not None

    def fits() -> None:
        assert canvas.height() >= canvas.minimumSizeHint().height()
        assert bar.y() >= canvas.geometry().bottom()
        assert bar.height() >= bar.minimumSizeHint().height()
        parent = bar.parentWidget()
        assert parent is not None
        assert bar.geometry().bottom() < parent.height()
        for part in (bar.close_button, *bar.modes.segments.values()):
            assert part.isVisible()
            assert part.width() >= part.sizeHint().width()

    qtbot.waitUntil(fits)
    assert {bar.reconstruct, bar.keys, bar.clear} <= set(line.left_out), "in a popup"
    line.open_rest()
    assert all(part.isVisible() for part in line.left_out)
    assert bar.reconstruct.width() >= bar.reconstruct.minimumWidth()
    popup = bar.reconstruct.window()
    assert popup is not window
    popup.close()
    monkeypatch.setattr(QScreen, "availableGeometry", lambda _: QRect(0, 0, 640, 1080))
    window.resize(900, 700)
    qtbot.waitUntil(lambda: bar.reconstruct.isVisible() and bar.keys.isVisible())
    assert not line.isVisible()
    assert bar.close_button.y() > bar.modes.y(), "on a higher screen there are several lines again"


def test_live_gestures_follow_the_refresh_rate_of_the_screen_that_it_is_on(
    window: MainWindow, controller: FakeController
) -> None:
    assert controller.editing.screen_hz == window.screen().refreshRate() > 0.0
    controller.editing.screen_hz = 0.0
    window.windowHandle().screenChanged.emit(window.screen())
    assert controller.editing.screen_hz == window.screen().refreshRate()


def test_another_model_ends_a_drag_in_a_panel_whose_value_it_may_not_have(
    window: MainWindow, controller: FakeController
) -> None:
    slider = window.latent.cutoff.slider
    middle = slider.rect().center()
    slider.setFocus()
    press(slider, middle)
    move(slider, middle + QPoint(10, 0))
    edits = len(calls(controller, "edit"))
    controller.show_model(facts(name="Small", model_id="c" * 64, num_ws=6, row_resolutions=(4, 4, 8, 8, 16, 16)))
    assert ("cancel_gesture",) in controller.calls
    move(slider, middle + QPoint(20, 0))
    release(slider, middle + QPoint(20, 0))
    assert len(calls(controller, "edit")) == edits > 0


def test_a_drag_on_the_canvas_moves_picture_panels_and_history(window: MainWindow, controller: FakeController) -> None:
    steps = len(controller.editing.history.entries)
    middle = window.canvas.rect().center()
    drag(window.canvas, [middle, middle + QPoint(60, 0), middle + QPoint(96, 24)])
    assert controller.editing.session.position == Position(0.4, 0.1)
    assert len(controller.editing.history.entries) == steps + 1
    assert window.canvas.frame is controller.engine.preview.frame
    assert window.latent.plane_x.value() == pytest.approx(0.4)


def test_escape_during_a_drag_brings_back_what_was(window: MainWindow, controller: FakeController) -> None:
    middle = window.canvas.rect().center()
    press(window.canvas, middle)
    move(window.canvas, middle + QPoint(60, 0))
    QTest.keyClick(window.canvas, Qt.Key.Key_Escape)
    assert calls(controller, "cancel_gesture")
    assert controller.editing.session.position == Position(0.0, 0.0)
    assert window.latent.plane_x.value() == 0.0


def test_undo_during_a_drag_of_a_slider_cancels_it_and_the_rest_of_the_drag_does_nothing(
    window: MainWindow, controller: FakeController
) -> None:
    slider = window.sliders.directions.rows[0].slider
    left, middle, right = (QPoint(slider.width() * part // 8, slider.height() // 2) for part in (2, 4, 6))
    press(slider, middle)
    move(slider, right)
    assert controller.editing.session.sliders
    QTest.keySequence(slider, "Ctrl+Z")
    assert controller.editing.session.sliders == ()
    move(slider, left)
    release(slider, left)
    assert controller.editing.session.sliders == ()
    assert not calls(controller, "undo")
    drag(slider, [middle, right])
    QTest.keySequence(slider, "Ctrl+Z")
    assert calls(controller, "undo"), "without a drag it undoes the step"


def press_keys(keys: str) -> Callable[[MainWindow], None]:
    return lambda window: QTest.keySequence(window.canvas, keys)


@pytest.mark.usefixtures("quick_hand")
@pytest.mark.parametrize(
    ("interrupt", "x"),
    [
        pytest.param(press_keys("Ctrl+Z"), 1.0, id="undo takes it back"),
        pytest.param(press_keys("Ctrl+Y"), None, id="redo finds it in its place"),
        pytest.param(press_keys("R"), 11.0, id="a jump"),
        pytest.param(lambda window: window.history.go_to_requested.emit(0), 0.0, id="another step"),
    ],
)
def test_a_glide_comes_to_rest_before_anything_else_happens(
    window: MainWindow,
    controller: FakeController,
    qtbot: QtBot,
    interrupt: Callable[[MainWindow], None],
    x: float | None,
) -> None:
    for place in (1.0, 5.0):
        controller.editing.edit(SetParameter(PLACE, Position(place, 0.0)))
    controller.editing.undo()
    window.canvas.glides = True
    middle = window.canvas.rect().center()
    drag(window.canvas, [middle, middle + QPoint(40, 0), middle + QPoint(100, 0)])
    let_go = controller.editing.session.position
    qtbot.waitUntil(lambda: controller.editing.session.position.x > let_go.x)
    interrupt(window)
    glide = window.canvas.findChild(Glide)
    assert glide is not None
    assert not glide.is_moving
    assert controller.editing.session.position.x == (glide.position.x if x is None else x)


@pytest.mark.usefixtures("quick_hand")
def test_a_glide_goes_on_while_a_slider_is_moved(window: MainWindow, controller: FakeController, qtbot: QtBot) -> None:
    window.canvas.glides = True
    middle = window.canvas.rect().center()
    drag(window.canvas, [middle, middle + QPoint(40, 0), middle + QPoint(100, 0)])
    window.sliders.edited.emit(ZeroSliders(), True)
    reached = controller.editing.session.position
    qtbot.waitUntil(lambda: controller.editing.session.position.x > reached.x)
    window.canvas.stop_glide()


def test_every_panel_reaches_the_controller(window: MainWindow, controller: FakeController) -> None:
    for panel in (window.latent, window.sliders, window.mix):
        controller.calls.clear()
        edit = set_truncation(Truncation(0.5))
        panel.edited.emit(edit, True)
        assert calls(controller, "edit") == [("edit", edit, True)]
        panel.gesture_cancelled.emit()
        assert calls(controller, "cancel_gesture")


def test_three_thousand_gestures_leave_the_last_one_on_the_screen(
    window: MainWindow, controller: FakeController, qtbot: QtBot
) -> None:
    controller.engine.preview.painted.clear()
    for number in range(3000):
        controller.editing.session = SetParameter(PLACE, Position(number / 100, 0)).apply(controller.editing.session)
        if number % 50 == 0:
            controller.render(resolution=16)
    last = controller.render()
    qtbot.waitUntil(lambda: controller.engine.preview.painted[-1] is last)
    assert len(controller.engine.preview.painted) == 61, "a frame is painted when it arrives"


def test_the_theme_is_changed_and_remembered(window: MainWindow, settings: Settings) -> None:
    window.actions_by_key["theme-light"].trigger()
    assert theme.current() is theme.LIGHT
    assert settings.values.theme == "light"
    shot = window.grab().toImage()
    assert shot.pixelColor(2, shot.height() // 2).name() == theme.LIGHT.ground
    window.actions_by_key["theme-dark"].trigger()
    assert theme.current() is theme.DARK


def test_closing_ends_the_controller_and_keeps_the_layout(
    make: Make, controller: FakeController, settings: Settings
) -> None:
    window = make(controller)
    window.close()
    assert calls(controller, "close")
    assert settings.values.window_geometry
    assert settings.values.workspace == "explore"
    window.close()


def test_the_window_is_hidden_before_it_waits_for_what_runs(
    make: Make, controller: FakeController, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = make(controller)
    shown: list[bool] = []
    monkeypatch.setattr(controller, "close", lambda: shown.append(window.isVisible()))
    assert window.isVisible()
    dock(window, "mix").toggleViewAction().trigger()
    QApplication.processEvents()
    before = window.workspace.texts()
    window.close()
    assert shown == [False]
    assert before
    assert settings.values.layouts == before


def test_everything_is_reached_by_tab_and_has_a_name(
    window: MainWindow, controller: FakeController, qtbot: QtBot
) -> None:
    controller.render(measured=True)
    qtbot.waitUntil(window.performance.table.isVisible)
    reached: list[QWidget] = []
    window.canvas.setFocus()
    for _ in range(400):
        QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_Tab)
        focus = QApplication.focusWidget()
        if focus is None or focus in reached:
            break
        assert is_uncovered(focus), f"{type(focus).__name__} {focus.accessibleName()}"
        reached.append(focus)
    assert window.canvas in reached
    parts = (window.latent, window.sliders, window.history, window.performance, window.model, window.top_bar)
    covered = [part for part in parts if not is_uncovered(part)]
    assert not covered or any(isinstance(widget, QTabBar) for widget in reached), "its tabs uncover it"
    for part in (part for part in parts if part not in covered):
        assert any(part.isAncestorOf(widget) for widget in reached), part.objectName() or part.accessibleName()
    nameless = [
        f"{type(widget).__name__} in {type(widget.parent()).__name__}"
        for widget in reached
        if not widget.accessibleName() and not (isinstance(widget, QAbstractButton) and widget.text())
    ]
    assert nameless == []
    docks = [next((key for key, dock in window.docks.items() if dock.isAncestorOf(widget)), "") for widget in reached]
    visited = [key for key, _ in groupby(docks) if key]
    assert len(visited) == len(set(visited)), f"Tab leaves a dock and comes back: {visited}"
    first = next(widget for widget, key in zip(reached, docks, strict=True) if key == "history")
    assert window.docks["history"].header.isAncestorOf(first)


def test_buttons_have_a_tooltip_of_one_sentence(window: MainWindow) -> None:
    own = (window.top_bar, window.model, window.status_bar, window.state, dock(window, "history").header)
    buttons = [button for part in own for button in part.findChildren(QAbstractButton) if not button.isCheckable()]
    qts = (QMenuBar, QLineEdit)  # their own buttons, for menus that do not fit and to clear a text
    buttons = [button for button in buttons if not isinstance(button.parent(), qts)]
    assert buttons
    silent = [button.text() or button.accessibleName() for button in buttons if not button.toolTip()]
    assert silent == []
