"""The table of steps, as a hand uses it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from explorer_app.rendering.frame_statistics import StepCost
from explorer_app.window.look import appearance
from explorer_app.window.performance.step_columns import KEYS
from explorer_app.window.performance.step_table import StepTable
from tests.helpers.fonts import widened
from tests.helpers.kernel_costs import ROOFLINE, costs

LAYER, KERNEL, STATE, TIME, SHARE = (KEYS.index(key) for key in ("layer", "kernel", "state", "time", "share"))


def cpu_steps(scale: float = 1.0) -> list[StepCost]:
    shares = (0.1, 0.6, 0.3)
    return [
        StepCost(f"synthesis.b{8 << i}.conv0", "modulated_conv", 1000 * share * scale, share, 10_000_000, 1000)
        for i, share in enumerate(shares)
    ]


@pytest.fixture
def table(qtbot: QtBot) -> StepTable:
    table = StepTable()
    qtbot.addWidget(table)
    table.resize(420, 200)
    table.show_steps(cpu_steps())
    with qtbot.waitExposed(table):
        table.show()
    return table


@pytest.fixture
def gpu_table(table: StepTable) -> StepTable:
    table.resize(widened(1200), 240)
    table.show_steps(costs(fallback=2), ROOFLINE)
    return table


def column(table: StepTable, number: int) -> list[str]:
    model = table.model()
    return [model.index(row, number).data() for row in range(model.rowCount())]


def shown(table: StepTable) -> list[str]:
    return [key for number, key in enumerate(KEYS) if not table.isColumnHidden(number)]


def click_header(table: StepTable, number: int, qtbot: QtBot) -> None:
    header = table.horizontalHeader()
    at = header.viewport().rect().center()
    at.setX(header.sectionViewportPosition(number) + header.sectionSize(number) // 2)
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=at)


def cell_image(table: StepTable, row: int, number: int) -> QImage:
    return table.viewport().grab(table.visualRect(table.model().index(row, number))).toImage()


# -- rows -----------------------------------------------------------------------------------------------------------


def test_the_costliest_step_comes_first(table: StepTable) -> None:
    assert column(table, LAYER) == ["b16.conv0", "b32.conv0", "b8.conv0"]
    assert column(table, TIME) == ["600", "300", "100"]
    assert column(table, SHARE) == ["60 %", "30 %", "10 %"]


def test_rows_stay_where_they_are_while_the_pointer_is_on_them(table: StepTable) -> None:
    other = [
        StepCost(s.layer, s.kernel, s.time_us, share, 0, 0)
        for s, share in zip(cpu_steps(), (0.8, 0.1, 0.1), strict=True)
    ]
    table.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, True)
    table.show_steps(other)
    assert column(table, LAYER) == ["b16.conv0", "b32.conv0", "b8.conv0"]
    assert column(table, SHARE) == ["10 %", "10 %", "80 %"]
    table.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, False)
    table.show_steps([StepCost(s.layer, s.kernel, s.time_us + 1, s.share, 0, 0) for s in other])
    assert column(table, LAYER)[0] == "b8.conv0"


@pytest.mark.parametrize("key", ["time", "registers", "grid", "roofline", "compute"])
def test_a_click_on_a_header_sorts_by_number_and_another_the_other_way(
    gpu_table: StepTable, key: str, qtbot: QtBot
) -> None:
    number = KEYS.index(key)
    for _ in range(2):
        click_header(gpu_table, number, qtbot)
        keys = [gpu_table.steps._sort_key(gpu_table.steps.step_at(row), number) for row in range(6)]
        falls = gpu_table.horizontalHeader().sortIndicatorOrder() == Qt.SortOrder.DescendingOrder
        assert all(a >= b if falls else a <= b for a, b in pairwise(keys))


def test_words_are_sorted_too_and_without_a_column_the_order_is_that_of_execution(
    gpu_table: StepTable, qtbot: QtBot
) -> None:
    click_header(gpu_table, STATE, qtbot)
    assert column(gpu_table, STATE)[0] == "fallback"
    click_header(gpu_table, STATE, qtbot)
    click_header(gpu_table, STATE, qtbot)
    assert column(gpu_table, LAYER) == [f"b{4 << number}.conv1" for number in range(6)]


def test_new_figures_keep_order_selection_and_scroll(table: StepTable) -> None:
    many = [StepCost(f"layer{i}", "conv", float(100 + i), 0.01, 0, 0) for i in range(60)]
    table.show_steps(many)
    table.selectRow(30)
    table.verticalScrollBar().setValue(400)
    resets: list[int] = []
    table.steps.modelReset.connect(lambda: resets.append(1))

    table.show_steps([StepCost(s.layer, s.kernel, s.time_us * 2, s.share, 0, 0) for s in many])

    assert resets == []
    assert table.selectionModel().selectedRows()[0].row() == 30
    assert table.verticalScrollBar().value() == 400
    assert column(table, TIME)[0] == "200"


def test_the_selection_goes_with_its_row_when_rows_change_places(table: StepTable) -> None:
    table.choose(0)
    layer = table.steps.steps[0].layer
    for share in (0.9, 0.001, 0.5):
        first, *others = cpu_steps()
        table.show_steps([StepCost(first.layer, first.kernel, 1.0 + share, share, 0, 0), *others])
        assert table.steps.steps[table.chosen].layer == layer
        assert len(table.selectionModel().selectedRows()) == 1


def test_a_draft_with_fewer_steps_and_the_full_picture_after_it_keep_what_is_selected(table: StepTable) -> None:
    full = cpu_steps()
    table.selectRow(column(table, LAYER).index("b16.conv0"))
    for steps in (full[:2], full[:1], full):
        table.show_steps(steps)
    chosen = table.selectionModel().selectedRows()
    assert [index.data() for index in chosen] == ["b16.conv0"]


def test_without_a_selection_new_figures_select_nothing(table: StepTable) -> None:
    table.choose(1)
    table.choose(-1)
    for scale in (2.0, 3.0):
        table.show_steps(cpu_steps(scale))
        assert table.chosen == -1


def test_a_picture_with_more_steps_leaves_the_place_to_which_one_scrolled(table: StepTable) -> None:
    many = [StepCost(f"layer{i}", "conv", float(100 + i), 0.01, 0, 0) for i in range(80)]
    table.show_steps(many[:60])
    table.verticalScrollBar().setValue(400)
    table.show_steps(many)
    assert table.verticalScrollBar().value() == 400


def test_a_click_chooses_a_step_and_choosing_brings_it_into_view(table: StepTable, qtbot: QtBot) -> None:
    told: list[int] = []
    table.step_chosen.connect(told.append)
    at = table.visualRect(table.model().index(0, LAYER)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert told == [1]
    many = [StepCost(f"layer{i}", "conv", 100.0 - i, 0.01 * (60 - i), 0, 0) for i in range(60)]
    table.show_steps(many)
    table.choose(55)
    assert table.viewport().rect().contains(table.visualRect(table.currentIndex()).center())
    table.choose(-1)
    assert table.chosen == -1


# -- cells ----------------------------------------------------------------------------------------------------------


def test_the_bar_is_as_long_as_the_share_compared_to_the_largest(table: StepTable) -> None:
    lengths = []
    for row in range(3):
        image = cell_image(table, row, SHARE)
        y = round(6 * image.devicePixelRatio())
        plain = image.pixelColor(image.width() - 2, y)
        lengths.append(sum(image.pixelColor(x, y) != plain for x in range(image.width() - 2)))
    assert lengths[0] > lengths[1] > lengths[2] > 0
    assert lengths[1] / lengths[0] == pytest.approx(0.5, abs=0.12)


def test_a_kernel_that_fell_back_has_a_sign_and_says_why(gpu_table: StepTable) -> None:
    assert gpu_table.steps.sign(column(gpu_table, LAYER).index("b16.conv1")) is not None
    assert gpu_table.steps.sign(column(gpu_table, LAYER).index("b4.conv1")) is None
    index = gpu_table.model().index(column(gpu_table, LAYER).index("b16.conv1"), KERNEL)
    assert "self-check was off" in index.data(Qt.ItemDataRole.ToolTipRole)
    assert "fallback" in index.data(Qt.ItemDataRole.AccessibleTextRole)


def test_cells_are_repainted_in_another_theme(gpu_table: StepTable, qapp: object) -> None:
    dark = cell_image(gpu_table, 0, SHARE)
    appearance.apply(qapp, "light")  # type: ignore[arg-type]
    assert cell_image(gpu_table, 0, SHARE) != dark


# -- columns --------------------------------------------------------------------------------------------------------


def test_where_there_is_little_room_columns_give_way(gpu_table: StepTable) -> None:
    assert shown(gpu_table) == list(KEYS)
    gpu_table.resize(widened(326), 200)
    assert shown(gpu_table) == ["layer", "time", "share", "occupancy", "roofline"]
    assert not gpu_table.horizontalScrollBar().isVisible()


def test_on_the_processor_there_are_no_columns_of_kernels(table: StepTable) -> None:
    table.resize(1200, 200)
    assert shown(table) == ["layer", "kernel", "time", "share", "bandwidth", "compute"]


def pick(menu: QMenu, text: str) -> None:
    next(action for action in menu.actions() if action.text() == text).trigger()
    menu.close()


def test_columns_are_picked_by_a_right_click_on_the_header(gpu_table: StepTable, qtbot: QtBot) -> None:
    chosen: list[str] = []
    gpu_table.columns_chosen.connect(chosen.append)
    gpu_table.resize(widened(326), 200)
    gpu_table.horizontalHeader().customContextMenuRequested.emit(QPoint(5, 5))
    menu = gpu_table.findChild(QMenu)
    assert isinstance(menu, QMenu)
    ticked = [action.text() for action in menu.actions() if action.isChecked()]
    assert ticked == ["As many as fit", "Time", "Share", "Occupancy", "Roofline"]
    pick(menu, "Registers")
    assert chosen == ["layer,time,share,occupancy,registers,roofline"]
    assert shown(gpu_table) == chosen[0].split(",")
    pick(gpu_table.column_menu(), "Share")
    assert "share" not in shown(gpu_table)
    pick(gpu_table.column_menu(), "As many as fit")
    assert chosen[-1] == ""
    assert shown(gpu_table) == ["layer", "time", "share", "occupancy", "roofline"]


def test_chosen_columns_that_do_not_fit_are_scrolled_to(gpu_table: StepTable) -> None:
    gpu_table.resize(326, 240)
    gpu_table.show_columns(",".join(KEYS))
    assert shown(gpu_table) == list(KEYS)
    assert gpu_table.horizontalScrollBar().maximum() > 0


def test_a_choice_survives_the_processor_and_comes_back_with_the_gpu(gpu_table: StepTable) -> None:
    gpu_table.show_columns("layer,time,registers")
    gpu_table.show_steps(cpu_steps())
    assert shown(gpu_table) == ["layer", "time"]
    gpu_table.show_steps(costs(), ROOFLINE)
    assert shown(gpu_table) == ["layer", "time", "registers"]


def test_rows_that_show_the_same_share_do_not_change_places_while_figures_tremble(gpu_table: StepTable) -> None:
    names = [f"layer{i}" for i in range(8)]
    orders = set()
    for trembling in range(5):
        shares = [0.12 + 0.001 * ((i + trembling) % 3 - 1) for i in range(8)]
        gpu_table.show_steps(
            [StepCost(name, "conv", 1.0 + trembling, s, 0, 0) for name, s in zip(names, shares, strict=True)]
        )
        orders.add(tuple(column(gpu_table, LAYER)))
    assert len(orders) == 1


def test_the_columns_fit_beside_the_frame_of_the_focus(table: StepTable) -> None:
    table.show()
    QApplication.processEvents()
    assert table.frameWidth() > 0
    assert table.horizontalHeader().frameWidth() == 0, "the sort arrow stays above the names"
    assert table.horizontalScrollBar().maximum() == 0
