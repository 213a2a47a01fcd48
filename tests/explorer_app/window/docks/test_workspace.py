"""Docks around the canvas: their room, where they were, and how they come back."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt
from PySide6.QtGui import QScreen
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QTabBar, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.messages import MessageLog
from explorer_app.settings import Settings
from explorer_app.window.docks.dock import is_uncovered
from explorer_app.window.docks.layouts import first_layout
from explorer_app.window.docks.stored_layout import StoredLayout
from explorer_app.window.look import theme
from explorer_app.window.shell.main_window import MainWindow
from tests.helpers.fake_controller import FakeController, facts
from tests.helpers.fonts import widened
from tests.helpers.panels import move, press, release
from tests.helpers.windows import Make, calls, dock, lay_out, without_model


def shown(window: MainWindow) -> set[str]:
    """Keys of the docks that are not hidden; some may wait behind a tab."""
    return {key for key, each in window.docks.items() if not each.isHidden()}


def wait_for_layout(window: MainWindow, width: int, height: int) -> None:
    """Give the window a size, and the layout the time to follow."""
    window.resize(width, height)
    for _ in range(3):
        QApplication.processEvents()


def test_docks_and_size_come_back(make: Make, controller: FakeController, settings: Settings) -> None:
    first = make(controller)
    first.resize(1200, 700)
    dock(first, "mix").toggleViewAction().trigger()
    dock(first, "mix").toggleViewAction().trigger()  # the first brings it to the front of its tabs
    dock(first, "model").setFloating(True)
    QApplication.processEvents()
    first.close()

    second = make(FakeController())
    assert dock(second, "mix").isHidden()
    assert dock(second, "model").isFloating()
    assert dock(second, "latent").isVisible()


def test_docks_of_a_larger_screen_do_not_lie_over_each_other_on_a_low_one_and_come_back(
    make: Make, controller: FakeController, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make(controller)
    wait_for_layout(first, 1280, 720)
    first.workspace.tabifyDockWidget(dock(first, "mix"), dock(first, "layers"))
    dock(first, "layers").toggleViewAction().trigger()
    first.workspace.splitDockWidget(dock(first, "latent"), dock(first, "layers"), Qt.Orientation.Vertical)
    QApplication.processEvents()
    first.close()
    own = settings.values.layouts["explore"]

    with monkeypatch.context() as low:
        low.setattr(QScreen, "availableGeometry", lambda _: QRect(0, 0, 640, 360))
        second = make(FakeController())
        wait_for_layout(second, 640, 320)
        seen = [each for each in second.docks.values() if is_uncovered(each) and not each.isHidden()]
        assert len(seen) > 1
        for one, other in pairwise(sorted(seen, key=lambda each: (each.x(), each.y()))):
            assert not one.geometry().intersects(other.geometry())
        second.close()
    before, after = (StoredLayout.from_text(text).custom for text in (own, settings.values.layouts["explore"]))
    assert before is not None
    assert after is not None
    assert after.state == before.state


class Painted(QObject):
    """Names the classes of the widgets that are painted."""

    def __init__(self) -> None:
        super().__init__()
        self.classes: set[str] = set()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        if event.type() == QEvent.Type.Paint:
            self.classes.add(type(watched).__name__)
        return False


def test_a_number_that_changes_in_a_panel_repaints_nothing_below_the_panel(window: MainWindow) -> None:
    latent, painted = window.latent, Painted()
    QApplication.processEvents()
    qt = QApplication.instance()
    assert qt is not None
    qt.installEventFilter(painted)
    latent.seed.show_number(4321)
    latent.seed.repaint()
    qt.removeEventFilter(painted)
    assert type(latent.seed).__name__ in painted.classes
    assert not painted.classes & {"MainWindow", "Workspace", "Dock"}


def test_reset_layout_brings_everything_back(window: MainWindow) -> None:
    for name in ("mix", "latent", "performance"):
        dock(window, name).hide()
    dock(window, "model").setFloating(True)
    window.actions_by_key["reset-layout"].trigger()
    QApplication.processEvents()
    assert shown(window) == {"latent", "sliders", "mix", "performance", "model", "history"}
    assert not any(dock.isFloating() for dock in window.workspace.docks)
    canvas_x = window.canvas.mapTo(window.workspace, QPoint(0, 0)).x()
    assert dock(window, "latent").x() < canvas_x < dock(window, "performance").x()
    assert dock(window, "history").y() > window.canvas.y()


def test_panels_that_share_a_place_have_one_row_of_tabs_after_a_reset_too(window: MainWindow) -> None:
    lay_out(window, 1280, 720)
    for _ in range(3):
        window.actions_by_key["reset-layout"].trigger()
        QApplication.processEvents()
        bars = [bar for bar in window.workspace.findChildren(QTabBar) if bar.isVisible() and bar.count()]
        tabs = [sorted(bar.tabText(index) for index in range(bar.count())) for bar in bars]
        assert sorted(tabs) == [["Mix", "Sliders"], ["Model", "Performance"]]


def test_a_dock_has_a_shortcut_that_hides_and_shows_it(window: MainWindow) -> None:
    assert dock(window, "performance").isVisible()
    QTest.keySequence(window.canvas, "Alt+4")
    assert dock(window, "performance").isHidden()
    QTest.keySequence(window.canvas, "Alt+4")
    assert dock(window, "performance").isVisible()


def test_steps_are_measured_only_while_the_performance_panel_is_seen(
    window: MainWindow, controller: FakeController
) -> None:
    controller.calls.clear()
    dock(window, "performance").hide()
    assert calls(controller, "set_measuring")[-1] == ("set_measuring", False)
    dock(window, "performance").show()
    assert calls(controller, "set_measuring")[-1] == ("set_measuring", True)


def test_a_start_that_fails_leaves_the_stored_layouts_alone(
    controller: FakeController, settings: Settings, messages: MessageLog, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.change(layouts={"measure": "of the last start"}, workspace="measure")
    window = MainWindow(controller, settings, messages)  # type: ignore[arg-type]
    qtbot.addWidget(window)

    def fail(handle: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(window.input_age, "watch", fail)
    with pytest.raises(RuntimeError):
        window.show_restored()
    window.remember_layout()
    window.close_now()
    assert (settings.values.layouts, settings.values.workspace) == ({"measure": "of the last start"}, "measure")


def test_a_broken_layout_in_the_settings_does_not_stop_the_window(
    make: Make, controller: FakeController, settings: Settings
) -> None:
    broken = ("%%%", "[]", "{}", '{"state": 3, "sizes": {}}', '{"state": "AAAA", "sizes": {"mix": 2}}', '{"sizes": {}}')
    settings.change(window_geometry="nonsense!", workspace="nowhere", layouts={"explore": broken[0]})
    window = make(controller, 1600, 980)
    for text in broken:
        window.workspace.restore({"explore": text}, "explore")
        QApplication.processEvents()
        assert shown(window) == {"latent", "sliders", "mix", "performance", "model", "history"}


@pytest.mark.usefixtures("each_font")
@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1600, 980)])
def test_everything_has_its_room(window: MainWindow, controller: FakeController, width: int, height: int) -> None:
    lay_out(window, width, height)
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
            if not button.isVisible():
                continue  # of the panel's other page
            assert header.rect().contains(button.geometry()), f"{button.text()} in {item.windowTitle()}"
            assert button.width() >= button.minimumSizeHint().width(), button.text()


@without_model
def test_a_panel_keeps_its_margin_whatever_its_scroll_bar_did(window: MainWindow) -> None:
    lay_out(window, 1280, 720)
    window.workspace.reset()
    QApplication.processEvents()
    panel = window.latent
    assert panel.width() - panel.plane.geometry().right() - 1 == theme.MARGIN


def test_a_tab_that_is_dragged_while_the_panels_are_hidden_is_let_go(window: MainWindow) -> None:
    window.actions_by_key["workspace-animate"].trigger()
    wait_for_layout(window, 1500, 950)
    for index in range(3):
        bar = next(bar for bar in window.workspace.findChildren(QTabBar) if bar.isVisible() and bar.count() > 2)
        at = bar.tabRect(index).center()
        press(bar, at)
        move(bar, at + QPoint(24, 0))
        window.workspace.set_panels_shown(False)
        for x in range(30, 260, 10):
            move(bar, at + QPoint(x, 0))  # crashed
            move(bar, at - QPoint(x, 0))
        release(bar, at)
        window.workspace.set_panels_shown(True)
        QApplication.processEvents()


def test_a_panel_that_is_dragged_by_its_header_is_let_go_before_another_workspace(window: MainWindow) -> None:
    lay_out(window, 1500, 950)
    for key in ("latent", "performance", "history", "mix") * 2:
        window.actions_by_key["workspace-explore"].trigger()
        window.workspace.reset()
        QApplication.processEvents()
        header = dock(window, key).header
        at = QPoint(header.width() // 2, 8)
        press(header, at)
        for way in range(8, 400, 40):
            move(header, at + QPoint(way, way))
            QApplication.processEvents()
        assert QWidget.mouseGrabber() is dock(window, key)
        window.actions_by_key["workspace-animate"].trigger()
        QApplication.processEvents()
        for way in range(400, -300, -20):
            move(header, at + QPoint(way, way))
            QApplication.processEvents()
        release(header, at)
        QApplication.processEvents()
        for name in ("workspace-measure", "workspace-explore", "panels", "panels", "workspace-animate"):
            window.actions_by_key[name].trigger()  # crashed
            QApplication.processEvents()
        window.workspace.set_panels_shown(True)


def test_a_window_slightly_lower_than_the_first_one_scrolls_no_latent_panel(
    window: MainWindow, controller: FakeController
) -> None:
    lay_out(window, 1600, 980)
    window.workspace.reset()
    for height in (980, 974, 950, 930):
        window.resize(1600, height)
        QApplication.processEvents()
        viewport = window.latent.parentWidget()
        assert viewport is not None
        assert viewport.height() >= window.latent.height(), height


@pytest.mark.parametrize("family", ["StyleGAN3", "StyleGAN-XL"])
def test_the_first_window_on_a_small_laptop_shows_the_transform_and_all_above_and_below_it(
    window: MainWindow, controller: FakeController, family: str
) -> None:
    lay_out(window, 1264, max(672, widened(672)))  # a wide font needs more lines
    window.workspace.reset()
    QApplication.processEvents()
    for name in ("dogs", "cats"):
        controller.engine.model.facts = facts(family=family, name=name, has_transform=True, noise_layers=(), c_dim=10)
        controller.engine.model_changed.emit()
        QApplication.processEvents()
        viewport = window.latent.parentWidget()
        assert viewport is not None
        assert window.latent.transform.isVisible()
        assert viewport.height() >= window.latent.height()
        assert window.latent.plane.height() >= theme.px(108)


def test_docks_lie_six_px_apart(window: MainWindow) -> None:
    left = dock(window, "latent")
    gap = window.canvas.mapTo(window, QPoint(0, 0)).x() - left.mapTo(window, QPoint(left.width(), 0)).x()
    assert gap == theme.GAP


def test_in_a_low_window_the_table_of_kernels_keeps_its_height_and_the_model_waits_under_a_tab(
    window: MainWindow, controller: FakeController
) -> None:
    lay_out(window, 1280, 720)
    window.workspace.reset()
    QApplication.processEvents()
    performance, model = dock(window, "performance"), dock(window, "model")
    assert model in window.workspace.tabifiedDockWidgets(performance)
    assert performance.height() > 500
    assert window.performance.isVisible()


# -- workspaces -----------------------------------------------------------------------------------------------------


def test_each_workspace_has_docks_of_its_own_and_keeps_what_a_person_did_there(make: Make, settings: Settings) -> None:
    window = make(FakeController(), 1600, 980)
    QTest.keySequence(window.canvas, "Ctrl+3")
    wait_for_layout(window, 1600, 980)
    assert shown(window) == {"performance", "layers", "model"}
    assert window.actions_by_key["workspace-measure"].isChecked()
    dock(window, "model").toggleViewAction().trigger()
    QTest.keySequence(window.canvas, "Ctrl+1")
    wait_for_layout(window, 1600, 980)
    assert shown(window) == {"latent", "sliders", "mix", "performance", "model", "history"}
    window.top_bar.tabs[2].click()
    wait_for_layout(window, 1600, 980)
    assert shown(window) == {"performance", "layers"}
    window.close()
    assert (settings.values.workspace, set(settings.values.layouts)) == ("measure", {"measure"})

    second = make(FakeController(), 1600, 980)
    assert second.workspace.name == "measure"
    assert shown(second) == {"performance", "layers"}
    assert second.top_bar.tabs[2].isChecked()
    second.actions_by_key["reset-layout"].trigger()
    assert shown(second) == {"performance", "layers", "model"}


def places(window: MainWindow) -> dict[str, tuple[int, int]]:
    """Where the docks are that are to be seen."""
    return {key: (window.docks[key].x(), window.docks[key].y()) for key in in_front(window)}


@pytest.mark.parametrize("key", ["model", "mix", "layers", "timeline"])
def test_a_panel_that_is_toggled_on_a_small_screen_is_on_a_larger_one_in_its_own_place(
    make: Make, settings: Settings, key: str
) -> None:
    small = make(FakeController(), 800, 560)
    wait_for_layout(small, 800, 560)
    usual = shown(small)
    is_usual = key in usual
    for _ in range(2 if is_usual and not is_uncovered(dock(small, key)) else 1):  # the first brings it to the front
        QTest.keySequence(small.canvas, small.docks[key].toggleViewAction().shortcut())
        wait_for_layout(small, 800, 560)
    assert (key in shown(small)) != is_usual
    small.close()

    large = make(FakeController(), 1600, 980)
    wait_for_layout(large, 1600, 980)
    untouched = {"latent", "sliders", "mix", "performance", "model", "history"}
    assert shown(large) == (untouched - {key} if is_usual else untouched | {key})
    right = Qt.DockWidgetArea.RightDockWidgetArea
    assert large.workspace.dockWidgetArea(dock(large, "performance")) == right, "there is a second column"
    before = places(large)
    dock(large, key).toggleViewAction().trigger()
    wait_for_layout(large, 1600, 980)
    dock(large, key).toggleViewAction().trigger()
    wait_for_layout(large, 1600, 980)
    assert places(large) == before
    large.workspace.reset()
    wait_for_layout(large, 1600, 980)
    assert shown(large) == untouched
    large.close()
    assert not settings.values.layouts


def test_a_panel_that_is_shown_where_all_are_hidden_stays_the_only_one_in_windows_of_other_sizes(
    make: Make, settings: Settings
) -> None:
    window = make(FakeController(), 800, 560)
    QTest.keySequence(window.canvas, "P")
    wait_for_layout(window, 800, 560)
    QTest.keySequence(window.canvas, "Alt+4")
    wait_for_layout(window, 800, 560)
    assert shown(window) == {"performance"}
    wait_for_layout(window, 1600, 980)
    assert shown(window) == {"performance"}
    assert dock(window, "performance").x() > window.canvas.width() / 2, "at the right, where it belongs"
    dock(window, "latent").toggleViewAction().trigger()
    wait_for_layout(window, 1600, 980)
    assert shown(window) == {"performance", "latent"}
    assert dock(window, "latent").x() < window.canvas.mapTo(window.workspace, QPoint(0, 0)).x()


def in_front(window: MainWindow) -> set[str]:
    """Keys of the docks that are to be seen."""
    return {key for key in shown(window) if is_uncovered(window.docks[key])}


@pytest.mark.parametrize("ending", ["Ctrl+2", "F11", "P"])
def test_the_tab_in_front_is_there_again_in_its_workspace_and_after_a_restart(
    make: Make, settings: Settings, ending: str
) -> None:
    window = make(FakeController(), 1600, 980)
    QTest.keySequence(window.canvas, "Ctrl+2")
    wait_for_layout(window, 1600, 980)
    assert "library" in in_front(window)
    (bar,) = (bar for bar in window.workspace._tab_bars() if "Sliders" in map(bar.tabText, range(bar.count())))
    bar.setCurrentIndex([bar.tabText(index) for index in range(bar.count())].index("Sliders"))
    wait_for_layout(window, 1600, 980)
    wanted = in_front(window)
    assert "sliders" in wanted
    assert "library" not in wanted
    for keys in (("Ctrl+1", "Ctrl+2"), ("F11", "F11"), ("P", "P")):
        for key in keys:
            QTest.keySequence(window.canvas, key)
            wait_for_layout(window, 1600, 980)
        assert in_front(window) == wanted, keys
    QTest.keySequence(window.canvas, ending)
    window.close()
    assert set(settings.values.layouts) == {"animate"}

    second = make(FakeController(), 1600, 980)
    assert in_front(second) == wanted
    second.actions_by_key["reset-layout"].trigger()
    wait_for_layout(second, 1600, 980)
    assert "library" in in_front(second)
    second.close()
    assert not settings.values.layouts


@pytest.mark.usefixtures("each_font")
def test_at_1280_x_720_the_picture_has_half_of_the_width(window: MainWindow) -> None:
    lay_out(window, 1280, 720)
    wait_for_layout(window, 1280, 720)
    assert window.canvas.width() >= 640
    window.actions_by_key["workspace-animate"].trigger()
    wait_for_layout(window, 1280, 720)
    assert window.canvas.width() >= 640
    timeline, library = dock(window, "timeline"), dock(window, "library")
    assert timeline.x() == library.x()
    assert timeline.y() > library.geometry().bottom()
    window.actions_by_key["workspace-explore"].trigger()
    wait_for_layout(window, 1280, 720)
    assert dock(window, "history").x() > dock(window, "sliders").geometry().right()


@pytest.mark.usefixtures("each_font")
@pytest.mark.parametrize("workspace", ["explore", "measure"])
def test_the_window_is_usable_from_800_x_560_and_from_800_x_500(window: MainWindow, workspace: str) -> None:
    lay_out(window, 800, 560)
    window.actions_by_key[f"workspace-{workspace}"].trigger()
    for height in (560, 500):  # 1600 x 1000 at 200 % are 800 x 500
        wait_for_layout(window, 800, height)
        assert (window.width(), window.height()) == (800, height)
        assert window.canvas.width() >= (400 if workspace == "explore" else 320)
        assert window.canvas.height() >= 300
        for item in window.workspace.docks:
            if not item.visibleRegion().isEmpty():
                assert item.widget().height() >= 60, item.windowTitle()
        bar = window.top_bar
        parts = [bar.menu_bar, *bar.tabs, bar.model_button]
        places = [part.geometry() for part in parts]
        assert all(left.right() < right.left() for left, right in pairwise(places))
        assert places[-1].right() <= bar.width()


def test_a_layout_that_a_small_window_squeezed_comes_back_when_it_grows(window: MainWindow) -> None:
    lay_out(window, 1600, 980)
    wait_for_layout(window, 1600, 980)
    first = {key: each.size() for key, each in window.docks.items() if each.isVisible()}
    for size in ((800, 560), (1280, 720), (1000, 900)):
        wait_for_layout(window, *size)
    wait_for_layout(window, 1600, 980)
    assert {key: each.size() for key, each in window.docks.items() if each.isVisible()} == first


def test_sizes_that_a_person_gave_come_back_too(window: MainWindow) -> None:
    lay_out(window, 1600, 980)
    wait_for_layout(window, 1600, 980)
    latent = dock(window, "latent")
    line = latent.mapTo(window.workspace, QPoint(latent.width() + theme.GAP // 2, 200))
    press(window.workspace, line)
    move(window.workspace, line + QPoint(90, 0))
    QApplication.processEvents()
    release(window.workspace, line + QPoint(90, 0))
    wait_for_layout(window, 1600, 980)
    wide = latent.width()
    assert wide > 400
    for size in ((860, 560), (1000, 900)):
        wait_for_layout(window, *size)
    assert latent.width() < wide
    wait_for_layout(window, 1600, 980)
    assert latent.width() == wide


def test_one_key_hides_all_panels_and_brings_them_back(window: MainWindow) -> None:
    lay_out(window, 1600, 980)
    dock(window, "mix").toggleViewAction().trigger()
    wait_for_layout(window, 1600, 980)
    before = shown(window)
    width = window.canvas.width()
    QTest.keySequence(window.canvas, "P")
    wait_for_layout(window, 1600, 980)
    assert not shown(window)
    assert window.canvas.width() > 1500
    QTest.keySequence(window.canvas, "P")
    wait_for_layout(window, 1600, 980)
    assert shown(window) == before
    assert abs(window.canvas.width() - width) <= 2


def test_f11_shows_the_picture_alone_and_escape_brings_the_window_back(window: MainWindow) -> None:
    lay_out(window, 1280, 720)
    wait_for_layout(window, 1280, 720)
    before = shown(window)
    QTest.keySequence(window.canvas, "F11")
    QApplication.processEvents()
    assert window.isFullScreen()
    assert not shown(window)
    assert window.top_bar.isHidden()
    assert window.status_bar.isHidden()
    assert window.canvas.size() == window.size()
    picture = window.canvas.picture_rect()
    assert picture.top() == window.canvas.height() - picture.bottom(), "no caption below it"
    QTest.keyClick(window.canvas, Qt.Key.Key_Escape)
    wait_for_layout(window, 1280, 720)
    assert not window.isFullScreen()
    assert shown(window) == before
    assert window.top_bar.isVisible()


def test_a_dock_beside_others_leaves_its_title_to_the_tab(window: MainWindow) -> None:
    lay_out(window, 1280, 720)
    wait_for_layout(window, 1280, 720)
    assert dock(window, "latent").header.title.isVisible()
    mix, sliders = dock(window, "mix"), dock(window, "sliders")
    assert sliders.header.title.isHidden()
    wait_for_layout(window, 1600, 980)
    assert mix.header.title.isVisible()
    assert not window.workspace.tabifiedDockWidgets(sliders)
    assert sliders.header.title.isVisible() or widened(100) > 105, "of a wide font the pages' tabs take all the room"


def test_no_title_stands_above_its_own_tab_even_for_a_moment(window: MainWindow) -> None:
    lay_out(window, 1600, 980)
    window.workspace._arrange(first_layout("explore", 1280, 640, 290))
    titles = {key: each.header.title.isHidden() for key, each in window.docks.items() if not each.isHidden()}
    behind = {key for key, each in window.docks.items() if window.workspace.tabifiedDockWidgets(each)}
    assert behind >= {"sliders", "mix", "performance", "model"}
    assert {key for key, hidden in titles.items() if hidden} == behind & set(titles)


def test_the_view_menu_and_the_docks_have_the_same_names(window: MainWindow) -> None:
    for item in window.workspace.docks:
        assert item.toggleViewAction().text() == item.windowTitle() == item.header.title.text()


def test_tabs_are_there_from_the_first_moment_on(
    qtbot: QtBot, settings: Settings, messages: MessageLog, controller: FakeController
) -> None:
    window = MainWindow(controller, settings, messages)  # type: ignore[arg-type]
    qtbot.addWidget(window)
    window.show_restored()
    controller.show_devices(
        replace(controller.engine.devices.state, problem="The GPU is gone.")
    )  # before the first layout is done
    wait_for_layout(window, 900, 600)
    window.workspace.reset()
    controller.show_devices(replace(controller.engine.devices.state, problem=""))
    QApplication.processEvents()
    bars = [bar for bar in window.workspace.findChildren(QTabBar) if bar.count() > 1]
    assert [bar.isVisible() for bar in bars] == [True]
    assert all(bar.changeCurrentOnDrag() and bar.acceptDrops() for bar in bars)
    window.close()


@pytest.mark.usefixtures("each_font")
def test_no_panel_at_the_left_is_cut_at_its_side(window: MainWindow) -> None:
    lay_out(window, 1280, 720)
    wait_for_layout(window, 1280, 720)
    for key in ("latent", "sliders", "mix"):
        assert window.docks[key].width() >= window.docks[key].least_width(), key


def test_a_dock_that_scrolls_is_never_narrower_than_its_panel(window: MainWindow) -> None:
    latent = window.docks["latent"]
    window.workspace.resizeDocks([latent], [100], Qt.Orientation.Horizontal)
    QApplication.processEvents()
    assert latent.width() >= latent.least_width()
