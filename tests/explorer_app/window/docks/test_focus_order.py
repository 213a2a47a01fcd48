"""F6 and Tab go through the docks in their order."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QTabBar, QWidget

from explorer_app.window.docks.dock import is_uncovered
from explorer_app.window.shell.main_window import MainWindow
from tests.helpers.windows import dock, lay_out, without_model


def focused() -> QWidget:
    widget = QApplication.focusWidget()
    assert widget is not None
    return widget


_NOT_HERE = ("library-dock", "model-dock", "layers-dock", "edits-dock", "timeline-dock", "pad-dock", "controllers-dock")


def test_f6_goes_from_panel_to_panel_behind_tabs_too_and_shift_f6_back(window: MainWindow) -> None:
    lay_out(window, 1280, 700)
    dock(window, "model").hide()
    window.canvas.setFocus()
    there = [each for each in window.workspace.docks if each.objectName() not in _NOT_HERE]
    for keys, order in (("F6", there), ("Shift+F6", there[::-1])):
        for expected in order:
            QTest.keySequence(focused(), keys)
            QApplication.processEvents()
            focus = focused()
            assert expected.widget().isAncestorOf(focus), f"{keys} should lead to {expected.objectName()}"
            assert not expected.visibleRegion().isEmpty()
        QTest.keySequence(focused(), keys)
        assert window.canvas.hasFocus()


def test_a_panel_that_is_shown_by_its_key_has_the_focus_and_gives_it_back_when_it_is_hidden(window: MainWindow) -> None:
    lay_out(window, 1280, 700)
    for each in window.workspace.docks:
        keys = each.toggleViewAction().shortcut()
        assert not keys.isEmpty(), each.objectName()
        each.hide()
        window.canvas.setFocus()
        QTest.keySequence(window.canvas, keys)
        QApplication.processEvents()
        assert each.widget().isAncestorOf(focused()), f"{keys.toString()} should lead to {each.objectName()}"
        QTest.keySequence(focused(), keys)
        QApplication.processEvents()
        assert each.isHidden()
        assert window.canvas.hasFocus()


@without_model
def test_without_a_model_f6_passes_over_what_takes_no_keys(window: MainWindow) -> None:
    lay_out(window, 1280, 700)
    window.canvas.setFocus()
    reached: list[QWidget] = []
    for _ in range(20):
        QTest.keySequence(focused(), "F6")
        QApplication.processEvents()
        if window.canvas.hasFocus():
            break
        reached.append(focused())
    assert window.canvas.hasFocus()
    assert any(window.model.isAncestorOf(widget) for widget in reached)


def test_tab_goes_through_the_left_panels_in_their_order(window: MainWindow) -> None:
    assert window.sliders.directions.rows
    QApplication.processEvents()  # rows that were made just now are shown
    parts = [
        (window.latent.noise.layers_button,),
        (window.sliders.zero, window.sliders.rows),
        *((row.star, row.slider, row.field, row.rows) for row in window.sliders.directions.rows),
    ]
    expected = [widget for part in parts for widget in part]
    reached: list[QWidget] = []
    window.latent.noise.layers_button.setFocus()
    for _ in range(2 * len(expected)):
        focus = QApplication.focusWidget()
        assert focus is not None
        reached.append(focus)
        QTest.keyClick(focus, Qt.Key.Key_Tab)
    assert [widget for widget in reached if widget in expected][: len(expected)] == expected
    after = reached[reached.index(expected[-1]) + 1]
    assert dock(window, "mix").isAncestorOf(after) or not is_uncovered(dock(window, "mix"))
    between = reached[reached.index(window.sliders.rows) : reached.index(expected[-1]) + 1]
    assert len(between) == 1 + 4 * len(window.sliders.directions.rows), "nothing else comes between"


def test_tab_leaves_out_the_tab_bars_that_qt_has_put_away(window: MainWindow) -> None:
    away = QTabBar(window.workspace)  # Qt leaves bars like this one behind, and still counts them as visible
    away.addTab("Layers")
    away.setGeometry(-600, -530, 100, 30)
    away.show()
    try:
        assert away.isVisible()
        reached: list[QWidget] = [window.canvas]
        while len(reached) == 1 or reached[-1] is not window.canvas:
            stop = window.workspace.focus_order.tab_stop_after(reached[-1], 1)
            assert stop is not None
            assert stop not in reached[1:]
            reached.append(stop)
        assert away not in reached
    finally:
        away.setParent(None)


def test_the_focus_stays_near_what_is_hidden_and_goes_to_the_canvas_with_its_dock(window: MainWindow) -> None:
    panel = window.latent
    panel.noise.layers_button.setFocus()
    try:
        panel.noise.layers_button.setEnabled(False)
        here = focused()
        assert dock(window, "latent").isAncestorOf(here)
        assert here.isVisible()
        assert here.isEnabled()
        dock(window, "latent").hide()
        assert focused() is window.canvas
    finally:
        panel.noise.layers_button.setEnabled(True)
    dock(window, "sliders").raise_()
    window.sliders.zero.setFocus()
    window.actions_by_key["workspace-measure"].trigger()
    QApplication.processEvents()
    assert focused() is window.canvas
