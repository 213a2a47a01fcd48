"""The main window, with a controller that obeys at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.controller.progress import ExportProgress, Loading
from explorer_app.messages import MessageLog
from explorer_app.session.edits import MoveTo, SetSlider, SetTruncation, ZeroSliders
from explorer_app.session.session import Position, Session, Slider
from explorer_app.settings import RecentModel, Settings
from explorer_app.window import theme
from explorer_app.window.about import AboutDialog
from explorer_app.window.commands import picture_name
from explorer_app.window.dock import Dock
from explorer_app.window.export_dialog import ExportDialog
from explorer_app.window.main_window import MainWindow
from explorer_app.window.model.model_details import ModelDetails
from explorer_app.window.shortcuts_dialog import ShortcutsDialog
from gpu_backend import Truncation
from tests.helpers.fake_controller import FakeController, facts
from tests.helpers.hands import drag, drop, move, press

LONG = "ffhq-1024x1024-config-f-finetuned-on-paintings-" + "kimg-025000-" * 8
Make = Callable[[FakeController], MainWindow]


@pytest.fixture
def make(qtbot: QtBot, settings: Settings, messages: MessageLog) -> Iterator[Make]:
    made: list[MainWindow] = []

    def build(controller: FakeController, width: int = 1280, height: int = 800) -> MainWindow:
        window = MainWindow(controller, settings, messages)  # type: ignore[arg-type]
        made.append(window)
        qtbot.addWidget(window)
        window.resize(width, height)
        with qtbot.waitExposed(window):
            window.show_restored()
        window.resize(width, height)
        QApplication.processEvents()
        return window

    yield build
    for window in made:
        window.close()


@pytest.fixture
def window(make: Make, controller: FakeController) -> MainWindow:
    return make(controller)


def dock(window: MainWindow, name: str) -> Dock:
    return next(dock for dock in window.workspace.docks if dock.objectName() == f"{name}-dock")


def asked(controller: FakeController, what: str) -> list[tuple[object, ...]]:
    return [call for call in controller.asked if call[0] == what]


def dialog_of(window: MainWindow, kind: type[QDialog]) -> QDialog:
    return next(dialog for dialog in window.findChildren(kind) if dialog.isVisible())


# -- picture and gestures -------------------------------------------------------------------------------------------


def test_it_opens_on_the_picture(window: MainWindow, controller: FakeController, qtbot: QtBot) -> None:
    assert window.canvas.frame is controller.frame
    assert "Landscapes 256" in window.windowTitle()
    assert window.state.isHidden()
    assert window.canvas.hasFocus()
    qtbot.waitUntil(lambda: controller.frame in controller.painted)


def test_a_drag_on_the_canvas_moves_picture_panels_and_history(window: MainWindow, controller: FakeController) -> None:
    steps = len(controller.history.entries)
    middle = window.canvas.rect().center()
    drag(window.canvas, [middle, middle + QPoint(60, 0), middle + QPoint(96, 24)])
    assert controller.session.position == Position(0.4, 0.1)
    assert len(controller.history.entries) == steps + 1
    assert window.canvas.frame is controller.frame
    assert window.latent.plane_x.value() == pytest.approx(0.4)


def test_escape_during_a_drag_brings_back_what_was(window: MainWindow, controller: FakeController) -> None:
    middle = window.canvas.rect().center()
    press(window.canvas, middle)
    move(window.canvas, middle + QPoint(60, 0))
    QTest.keyClick(window.canvas, Qt.Key.Key_Escape)
    assert asked(controller, "cancel_gesture")
    assert controller.session.position == Position(0.0, 0.0)
    assert window.latent.plane_x.value() == 0.0


def test_every_panel_reaches_the_controller(window: MainWindow, controller: FakeController) -> None:
    for panel in (window.latent, window.sliders, window.mix):
        controller.asked.clear()
        edit = SetTruncation(Truncation(0.5))
        panel.edited.emit(edit, True)
        assert asked(controller, "edit") == [("edit", edit, True)]
        panel.gesture_cancelled.emit()
        assert asked(controller, "cancel_gesture")


def test_three_thousand_gestures_leave_the_last_one_on_the_screen(
    window: MainWindow, controller: FakeController, qtbot: QtBot
) -> None:
    controller.painted.clear()
    for number in range(3000):
        controller.session = MoveTo(Position(number / 100, 0)).apply(controller.session)
        if number % 50 == 0:
            controller.render(resolution=16)
    last = controller.render()
    qtbot.waitUntil(lambda: last in controller.painted)
    assert controller.painted == [last]


# -- actions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "what"),
    [("R", "random_seed"), ("K", "keep_current"), ("Ctrl+Z", "undo"), ("Ctrl+Shift+Z", "redo"), ("Ctrl+Y", "redo")],
)
def test_shortcuts_ask_the_controller(window: MainWindow, controller: FakeController, key: str, what: str) -> None:
    for x in (1.0, 2.0, 3.0):
        controller.edit(MoveTo(Position(x, 0)))
    controller.undo()
    controller.asked.clear()
    QTest.keySequence(window.canvas, key)
    assert len(asked(controller, what)) == 1


def test_zoom_keys_work_on_the_canvas(window: MainWindow) -> None:
    fitted = window.canvas.picture_rect()
    QTest.keySequence(window.canvas, "1")
    assert window.canvas.picture_rect().width() * window.devicePixelRatioF() == 256
    QTest.keySequence(window.canvas, "+")
    assert window.canvas.picture_rect().width() * window.devicePixelRatioF() == 320
    QTest.keySequence(window.canvas, "F")
    assert window.canvas.picture_rect() == fitted


def test_keys_that_are_typed_into_a_field_stay_there(window: MainWindow, controller: FakeController) -> None:
    window.commands.export_sequence()
    dialog = dialog_of(window, ExportDialog)
    assert isinstance(dialog, ExportDialog)
    dialog.name.setFocus()
    dialog.name.clear()
    controller.asked.clear()
    QTest.keyClicks(dialog.name, "frk1")
    assert dialog.name.text() == "frk1"
    assert controller.asked == []
    dialog.close()


def test_sliders_and_truncation_are_reset_by_their_actions(window: MainWindow, controller: FakeController) -> None:
    controller.edit(SetSlider(Slider("sefa/0", 2.0)))
    controller.edit(SetTruncation(Truncation(0.1, 3)))
    window.actions_by_key["zero-sliders"].trigger()
    window.actions_by_key["reset-truncation"].trigger()
    assert asked(controller, "edit")[-2] == ("edit", ZeroSliders(), True)
    assert controller.session.truncation == Session().truncation
    assert controller.session.sliders == ()


def test_undo_says_what_it_takes_back_and_is_off_when_there_is_nothing(
    window: MainWindow, controller: FakeController
) -> None:
    assert not window.actions_by_key["undo"].isEnabled()
    controller.edit(MoveTo(Position(1, 0)))
    assert window.actions_by_key["undo"].isEnabled()
    assert window.actions_by_key["undo"].text() == "&Undo walk"
    controller.undo()
    assert window.actions_by_key["redo"].text() == "&Redo walk"
    assert not window.actions_by_key["undo"].isEnabled()


def test_the_buttons_beside_the_history_obey_their_actions(
    window: MainWindow, controller: FakeController, qtbot: QtBot
) -> None:
    controller.edit(MoveTo(Position(1, 0)))
    buttons = {
        button.accessibleName(): button for button in dock(window, "history").header.findChildren(QAbstractButton)
    }
    controller.asked.clear()
    qtbot.mouseClick(buttons["Undo"], Qt.MouseButton.LeftButton)
    assert asked(controller, "undo")
    assert not buttons["Undo"].isEnabled()
    assert buttons["Redo"].isEnabled()


def test_a_star_is_given_and_taken(window: MainWindow, controller: FakeController) -> None:
    QTest.keySequence(window.canvas, "S")
    current = controller.history.current
    assert current is not None
    assert controller.history.is_kept(current.number)
    QTest.keySequence(window.canvas, "S")
    assert not controller.history.is_kept(current.number)


def test_drifting_is_shown_wherever_it_was_begun(window: MainWindow, controller: FakeController) -> None:
    window.actions_by_key["drift"].trigger()
    assert asked(controller, "set_drifting") == [("set_drifting", True)]
    assert window.actions_by_key["drift"].isChecked()
    controller.set_drifting(False)
    assert not window.actions_by_key["drift"].isChecked()


def test_flick_glide_is_remembered(window: MainWindow, settings: Settings) -> None:
    window.actions_by_key["glide"].trigger()
    assert settings.values.flick_glide
    assert window.canvas.glides


def test_every_menu_holds_its_actions(window: MainWindow) -> None:
    def texts(menu: str) -> list[str]:
        return [action.text().replace("&", "") for action in window.menus[menu].actions() if not action.isSeparator()]

    assert texts("File")[:2] == ["Open model…", "Open recent"]
    assert {"Latent", "Sliders", "Mix", "Performance", "Model", "History", "Reset layout"} <= set(texts("View"))
    assert "Open model…" in texts("Model")
    assert texts("Help") == ["Shortcuts", "Copy report", "About Latent Loom"]


@pytest.mark.parametrize(
    ("key", "kind"),
    [("shortcuts", ShortcutsDialog), ("about", AboutDialog), ("inspect", ModelDetails), ("export", ExportDialog)],
)
def test_dialogs_open_once_and_do_not_block(window: MainWindow, key: str, kind: type[QDialog], qtbot: QtBot) -> None:
    window.actions_by_key[key].trigger()
    window.actions_by_key[key].trigger()
    QApplication.processEvents()
    dialogs = [dialog for dialog in window.findChildren(kind) if dialog.isVisible()]
    assert len(dialogs) == 1
    QTest.keyClick(dialogs[0], Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not window.findChildren(kind))


def test_the_report_is_copied(window: MainWindow, messages: MessageLog) -> None:
    messages.note("Something happened.", "with particulars")
    window.actions_by_key["report"].trigger()
    text = QGuiApplication.clipboard().text()
    assert "Latent Loom" in text
    assert facts().model_id in text
    assert "[note] Something happened.\n    with particulars" in text


# -- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "what", "name"),
    [
        ("open-model", "open_model", "m.pkl"),
        ("open-session", "open_session", "s.loom"),
        ("save-session", "save_session", "s.loom"),
        ("open-picture", "open_picture", "p.png"),
        ("save-picture", "save_picture", "p.png"),
    ],
)
def test_a_chosen_file_goes_to_the_controller_and_its_folder_is_remembered(
    window: MainWindow, controller: FakeController, settings: Settings, tmp_path: Path, key: str, what: str, name: str
) -> None:
    window.actions_by_key[key].trigger()
    chooser = dialog_of(window, QFileDialog)
    assert isinstance(chooser, QFileDialog)
    chooser.fileSelected.emit(str(tmp_path / name))
    chooser.close()
    assert asked(controller, what) == [(what, tmp_path / name)]
    assert tmp_path in (settings.folder("model"), settings.folder("session"), settings.folder("picture"))


def test_a_picture_is_named_after_its_seed() -> None:
    assert picture_name(Session(position=Position(12, 3))) == "seed0312"
    assert picture_name(Session(position=Position(12.5, 3))) == "picture"


@pytest.mark.parametrize("name", ["model.pkl", "evening.loom", "seed0001.png"])
def test_files_may_be_dropped_on_the_window(
    window: MainWindow, controller: FakeController, tmp_path: Path, name: str
) -> None:
    event = drop(window, str(tmp_path / name))
    assert event.isAccepted()
    assert asked(controller, "open_file") == [("open_file", tmp_path / name)]
    assert "Drop" not in window.canvas.caption()


def test_recent_models_open_from_the_chip_above(window: MainWindow, controller: FakeController) -> None:
    controller.recent_models = (RecentModel("/m/a.pkl", "A", "1"), RecentModel("/m/b.pkl", "B", "2"))
    menu = window.top_bar.model_button.menu()
    menu.aboutToShow.emit()
    assert [action.text() for action in menu.actions()[:2]] == ["A", "B"]
    menu.actions()[1].trigger()
    assert asked(controller, "open_model") == [("open_model", "/m/b.pkl")]


# -- states ---------------------------------------------------------------------------------------------------------


def test_without_a_model_it_says_how_to_begin(make: Make, qtbot: QtBot) -> None:
    window = make(FakeController(with_model=False))
    assert window.state.isVisible()
    assert window.state.title.text() == "No model is open"
    assert not window.actions_by_key["save-picture"].isEnabled()
    qtbot.mouseClick(window.state.open_button, Qt.MouseButton.LeftButton)
    dialog_of(window, QFileDialog).close()


def test_the_bundled_model_is_one_click_away(make: Make, qtbot: QtBot) -> None:
    controller = FakeController(with_model=False)
    window = make(controller)
    qtbot.mouseClick(window.state.bundled_button, Qt.MouseButton.LeftButton)
    assert asked(controller, "open_model") == [("open_model", None)]


def test_loading_shows_how_far_it_is_and_can_be_cancelled(
    window: MainWindow, controller: FakeController, qtbot: QtBot
) -> None:
    controller.load(Loading("/models/big.pkl", 430, 1000, "Reading"))
    assert window.state.isVisible()
    assert window.state.title.text() == "big.pkl"
    assert window.state.sentence.text() == "Reading 43 %"
    assert window.state.bar.value() == 430
    assert window.canvas.frame is controller.frame, "the last picture stays until the next"
    qtbot.mouseClick(window.state.cancel_button, Qt.MouseButton.LeftButton)
    assert asked(controller, "cancel_loading")
    assert window.state.isHidden()


def test_a_model_that_cannot_be_opened_says_why_over_the_canvas(make: Make, messages: MessageLog, qtbot: QtBot) -> None:
    controller = FakeController(with_model=False)
    window = make(controller)
    controller.load(Loading("/models/page.pkl", 0, 0, "Reading"))
    messages.error("This file is not a model: it begins with a web page.")
    controller.load(None)
    qtbot.waitUntil(lambda: window.state.title.text() == "The model could not be opened")
    assert window.state.sentence.text() == "This file is not a model: it begins with a web page."
    assert window.state.open_button.isVisible()
    controller.show_model(facts())
    assert window.state.isHidden()


def test_between_the_model_and_its_first_picture_it_says_so(make: Make) -> None:
    controller = FakeController()
    controller.frame = None
    window = make(controller)
    assert window.state.isVisible()
    assert window.state.sentence.text() == "The first picture is being made."
    controller.render()
    assert window.state.isHidden()


def test_an_export_is_told_in_the_status_bar_and_can_be_cancelled(
    window: MainWindow, controller: FakeController, qtbot: QtBot
) -> None:
    assert not window.status_bar.export.isVisible()
    controller.progress(ExportProgress("evening loop", 412, 960, 21.0))
    assert window.status_bar.export_text.text() == "Export “evening loop” 412 / 960 · 21 s left"
    assert window.actions_by_key["cancel-export"].isEnabled()
    qtbot.mouseClick(window.status_bar.export_cancel, Qt.MouseButton.LeftButton)
    assert asked(controller, "cancel_export")
    controller.progress(ExportProgress("evening loop", 413, 960, 21.0, is_stopping=True))
    assert "stopping" in window.status_bar.export_text.text()
    assert not window.status_bar.export_cancel.isEnabled()
    controller.progress(None)
    assert not window.status_bar.export.isVisible()


def test_the_export_dialog_starts_the_export(window: MainWindow, controller: FakeController, tmp_path: Path) -> None:
    window.actions_by_key["export"].trigger()
    dialog = dialog_of(window, ExportDialog)
    assert isinstance(dialog, ExportDialog)
    QTest.keyClicks(dialog.seeds, "1-3")
    QTest.keyClick(dialog.seeds, Qt.Key.Key_Return)
    dialog.folder.setText(str(tmp_path))
    QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    (call,) = asked(controller, "start_export")
    assert len(call[1].keys) == 3  # type: ignore[attr-defined]


def test_a_very_long_model_name_moves_nothing(window: MainWindow, controller: FakeController) -> None:
    sizes = [dock.size() for dock in window.workspace.docks]
    controller.show_model(facts(name=LONG))
    QApplication.processEvents()
    assert window.width() == 1280
    assert [dock.size() for dock in window.workspace.docks] == sizes
    assert window.top_bar.model_button.width() < 320
    assert LONG in window.top_bar.model_button.toolTip()


def test_the_device_is_told_with_its_reason(window: MainWindow) -> None:
    assert window.top_bar.device_button.text() == "CPU · fp32"
    assert window.top_bar.device_button.toolTip() == "CPU: this version renders on the processor."


def test_figures_above_keep_their_width(window: MainWindow, controller: FakeController, qtbot: QtBot) -> None:
    before = (window.top_bar.fps.width(), window.top_bar.time.width())
    controller.render(total_ms=1234.5)
    qtbot.waitUntil(lambda: "1234" in window.top_bar.time.text() or "1235" in window.top_bar.time.text())
    assert (window.top_bar.fps.width(), window.top_bar.time.width()) == before


def test_the_last_message_stays_in_the_status_bar(window: MainWindow, messages: MessageLog, qtbot: QtBot) -> None:
    messages.info("Saved seed0001.png.")
    qtbot.waitUntil(lambda: window.status_bar.message.text() == "Saved seed0001.png.")


def test_small_pictures_arrive_where_they_were_asked_for(make: Make, qtbot: QtBot) -> None:
    controller = FakeController(serves_thumbnails=True)
    window = make(controller)
    shown: list[object] = []
    history = window.history.show_thumbnail
    window.history.show_thumbnail = lambda key, image: (shown.append(key), history(key, image))[1]  # type: ignore[method-assign]
    controller.edit(MoveTo(Position(4, 4)))
    qtbot.waitUntil(lambda: bool(shown))


# -- where it was ---------------------------------------------------------------------------------------------------


def test_docks_and_size_come_back(make: Make, controller: FakeController, settings: Settings) -> None:
    first = make(controller)
    first.resize(1200, 700)
    dock(first, "mix").hide()
    dock(first, "model").setFloating(True)
    QApplication.processEvents()
    first.close()

    second = make(FakeController())
    assert dock(second, "mix").isHidden()
    assert dock(second, "model").isFloating()
    assert dock(second, "latent").isVisible()


def test_reset_layout_brings_everything_back(window: MainWindow) -> None:
    for name in ("mix", "latent", "performance"):
        dock(window, name).hide()
    dock(window, "model").setFloating(True)
    window.actions_by_key["reset-layout"].trigger()
    QApplication.processEvents()
    assert not any(dock.isHidden() or dock.isFloating() for dock in window.workspace.docks)
    assert dock(window, "latent").x() < window.canvas.x() < dock(window, "performance").x()
    assert dock(window, "history").y() > window.canvas.y()


def test_a_dock_has_a_shortcut_that_hides_and_shows_it(window: MainWindow) -> None:
    assert dock(window, "performance").isVisible()
    QTest.keySequence(window.canvas, "Ctrl+4")
    assert dock(window, "performance").isHidden()
    QTest.keySequence(window.canvas, "Ctrl+4")
    assert dock(window, "performance").isVisible()


def test_steps_are_measured_only_while_the_performance_panel_is_seen(
    window: MainWindow, controller: FakeController
) -> None:
    controller.asked.clear()
    dock(window, "performance").hide()
    assert asked(controller, "set_measuring")[-1] == ("set_measuring", False)
    dock(window, "performance").show()
    assert asked(controller, "set_measuring")[-1] == ("set_measuring", True)


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
    assert asked(controller, "close")
    assert settings.values.window_geometry
    assert settings.values.window_state
    window.close()


def test_a_broken_layout_in_the_settings_does_not_stop_the_window(
    make: Make, controller: FakeController, settings: Settings
) -> None:
    settings.change(window_geometry="nonsense!", window_state="%%%")
    window = make(controller)
    assert not any(dock.isHidden() for dock in window.workspace.docks)


# -- room and reach -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1600, 980)])
def test_everything_has_its_room(make: Make, controller: FakeController, width: int, height: int) -> None:
    window = make(controller, width, height)  # type: ignore[call-arg]
    window.workspace.reset()
    QApplication.processEvents()
    assert (window.width(), window.height()) == (width, height)
    assert window.canvas.width() >= 500
    assert window.canvas.height() >= 400
    for item in window.workspace.docks:
        if item.visibleRegion().isEmpty():
            continue  # behind a tab
        header = item.header
        for button in header.findChildren(QAbstractButton):
            assert header.rect().contains(button.geometry()), f"{button.text()} in {item.windowTitle()}"
            assert button.width() >= button.minimumSizeHint().width(), button.text()


def test_a_panel_keeps_its_margin_whatever_its_scroll_bar_did(make: Make) -> None:
    window = make(FakeController(with_model=False), 1280, 720)  # type: ignore[call-arg]
    window.workspace.reset()
    QApplication.processEvents()
    panel = window.latent
    assert panel.width() - panel.plane.geometry().right() - 1 == theme.MARGIN


def test_docks_lie_six_px_apart(window: MainWindow) -> None:
    left = dock(window, "latent")
    gap = window.canvas.mapTo(window, QPoint(0, 0)).x() - left.mapTo(window, QPoint(left.width(), 0)).x()
    assert gap == theme.GAP


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
        reached.append(focus)
    assert window.canvas in reached
    for part in (window.latent, window.sliders, window.history, window.performance, window.model, window.top_bar):
        assert any(part.isAncestorOf(widget) for widget in reached), part.objectName() or part.accessibleName()
    nameless = [
        f"{type(widget).__name__} in {type(widget.parent()).__name__}"
        for widget in reached
        if not widget.accessibleName() and not (isinstance(widget, QAbstractButton) and widget.text())
    ]
    assert nameless == []


def test_buttons_have_a_tooltip_of_one_sentence(window: MainWindow) -> None:
    own = (window.top_bar, window.model, window.status_bar, window.state, dock(window, "history").header)
    buttons = [button for part in own for button in part.findChildren(QAbstractButton) if not button.isCheckable()]
    assert buttons
    silent = [button.text() or button.accessibleName() for button in buttons if not button.toolTip()]
    assert silent == []
