"""The roofline scatter."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QPointF
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer_app.window.look import appearance
from explorer_app.window.performance.roofline_plot import RooflinePlot
from tests.helpers.kernel_costs import ROOFLINE, costs
from tests.helpers.panels import mouse, press


@pytest.fixture
def plot(qtbot: QtBot) -> RooflinePlot:
    plot = RooflinePlot()
    qtbot.addWidget(plot)
    plot.resize(420, 300)
    with qtbot.waitExposed(plot):
        plot.show()
    plot.show_steps(costs(fallback=2), ROOFLINE)
    QApplication.processEvents()
    return plot


def hover(plot: RooflinePlot, step: int) -> None:
    mouse(plot, QEvent.Type.MouseMove, QPointF(*plot.place_of(step)))


def test_the_roof_rises_with_the_memory_and_is_flat_from_the_bend_on(plot: RooflinePlot) -> None:
    x, y = plot.roof
    assert y[0] == pytest.approx(x[0] * 4e12)
    assert x[1] == pytest.approx(200.0)
    assert y[1] == y[2] == pytest.approx(800e12)


def test_every_point_lies_in_view_and_a_faster_kernel_lies_higher(plot: RooflinePlot) -> None:
    assert plot.points == [0, 1, 2, 3, 4, 5]
    places = [plot.place_of(step) for step in plot.points]
    for x, y in places:
        assert 0 < x < plot.width()
        assert 0 < y < plot.height()
    assert [y for _, y in places] == sorted(y for _, y in places)


def test_steps_that_count_no_operations_have_no_point(plot: RooflinePlot) -> None:
    first, *others = costs()
    plot.show_steps((replace(first, flops=0), *others), ROOFLINE)
    assert plot.points == [1, 2, 3, 4, 5]


def test_hovering_names_the_kernel_and_leaving_names_the_chosen_one(plot: RooflinePlot) -> None:
    plot.show_chosen(0)
    assert plot.words.text().startswith("b4.conv1 · modulated_conv")
    hover(plot, 2)
    assert plot.words.text().startswith("b16.conv1 · modulated_conv · fallback")
    QApplication.sendEvent(plot, QEvent(QEvent.Type.Leave))
    assert plot.words.text().startswith("b4.conv1 · modulated_conv")
    assert "50 % of its roofline" in plot.words.text()


def test_a_click_on_a_point_chooses_it_and_one_beside_chooses_nothing(plot: RooflinePlot) -> None:
    told: list[int] = []
    plot.step_chosen.connect(told.append)
    press(plot, QPointF(*plot.place_of(3)))
    x, y = plot.place_of(0)
    press(plot, QPointF(x - 60, y + 60))
    assert told == [3]


def test_without_a_roofline_the_points_stand_alone(plot: RooflinePlot) -> None:
    plot.show_steps(costs(), None)
    assert plot.roof == ([], [])
    assert not any(label.isVisible() for label in plot._bounds)
    assert len(plot.points) == 6
    plot.show_chosen(1)
    assert "roofline" not in plot.words.text()


def test_the_view_does_not_move_while_figures_tremble(plot: RooflinePlot) -> None:
    before = plot._plot.getViewBox().viewRange()
    plot.show_steps([replace(step, time_us=step.time_us * 1.03) for step in costs()], ROOFLINE)
    assert plot._plot.getViewBox().viewRange() == before


def test_states_are_distinguished_by_shape(plot: RooflinePlot) -> None:
    symbols = [str(point.symbol()) for point in plot._points.points()]
    assert symbols == ["o", "o", "t1", "o", "o", "o"]


def test_the_line_says_what_the_device_can_do_and_its_axis_has_prefixes(plot: RooflinePlot) -> None:
    copies, operations = plot._bounds
    assert (copies.toPlainText(), operations.toPlainText()) == ("4.00 TB/s", "800 TFLOP/s")
    view = plot._plot.getViewBox().sceneBoundingRect()
    assert view.contains(operations.mapRectToScene(operations.boundingRect()).center())
    assert plot._plot.getAxis("left").logTickStrings([8, 10, 12, 14], 1.0, 1.0) == ["100 M", "10 G", "1 T", "100 T"]


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0.0, 1.0, ["1", "2", "5", "10"]),
        (-0.5, 0.8, ["0.5", "1", "2", "5"]),
        (-1.0, 2.0, ["0.1", "1", "10", "100"]),
        (-4.0, 8.0, ["0.0001", "0.01", "1", "100", "10000", "1e6", "1e8"]),
    ],
)
def test_texts_of_an_axis_have_room_however_little_or_much_is_in_view(
    plot: RooflinePlot, low: float, high: float, texts: list[str]
) -> None:
    axis = plot._plot.getAxis("bottom")
    ((_, ticks),) = axis.logTickValues(low, high, 230.0, [])
    assert axis.logTickStrings(ticks, 1.0, 1.0) == texts


def test_a_low_plot_names_each_power_of_ten_at_its_side(plot: RooflinePlot) -> None:
    axis = plot._plot.getAxis("left")
    ((_, ticks),) = axis.logTickValues(6.0, 11.5, 145.0, [])
    assert axis.logTickStrings(ticks, 1.0, 1.0) == ["1 M", "10 M", "100 M", "1 G", "10 G", "100 G"]


def test_rates_between_powers_of_ten_are_distinguished(plot: RooflinePlot) -> None:
    axis = plot._plot.getAxis("left")
    ((_, ticks),) = axis.logTickValues(8.0, 9.0, 200.0, [])
    assert axis.logTickStrings(ticks, 1.0, 1.0) == ["100 M", "200 M", "500 M", "1 G"]


def test_nothing_measured_is_an_empty_plot(plot: RooflinePlot) -> None:
    plot.show_steps((), None)
    plot.show_chosen(-1)
    assert plot.points == []
    assert "Point at a kernel" in plot.words.text()


def test_another_theme_recolours_it(plot: RooflinePlot, qapp: QApplication) -> None:
    dark = plot.grab().toImage()
    appearance.apply(qapp, "light")
    QApplication.processEvents()
    light = plot.grab().toImage()
    assert light.pixelColor(60, 40).lightnessF() - dark.pixelColor(60, 40).lightnessF() > 0.4


def test_a_kernel_as_slow_as_can_be_is_still_in_view(plot: RooflinePlot) -> None:
    slow = [replace(costs()[0], flops=10, nbytes=1_000_000)]
    plot.show_steps(slow, ROOFLINE)
    QApplication.processEvents()
    x, y = plot.place_of(0)
    assert math.isfinite(x)
    assert 0 < y < plot.height()
