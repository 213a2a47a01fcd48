from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.window.controls.number_field import NumberField, SpinBox
from tests.helpers.panels import double_click, wheel


class WatchedField(NumberField):
    """A field between others, and what was entered."""

    home: QWidget
    other: QWidget
    seen: list[tuple[float, bool]]


@pytest.fixture
def field(qtbot: QtBot) -> WatchedField:
    home = QWidget()
    qtbot.addWidget(home)
    field = WatchedField(-10.0, 10.0, signed=True, reset=0.0, parent=home)
    field.other = QWidget(home)
    field.other.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    field.home = home
    field.seen = []
    field.entered.connect(lambda value, final: field.seen.append((value, final)))
    home.show()
    field.setFocus()
    return field


def write(qtbot: QtBot, field: NumberField, text: str) -> None:
    field.selectAll()
    if text.isascii():
        qtbot.keyClicks(field, text)
    else:
        field.lineEdit().insert(text)


@pytest.mark.parametrize(("number", "text"), [(1.5, "+1.50"), (-0.04, "−0.04"), (0.0, "0.00"), (-0.001, "0.00")])
def test_numbers_have_a_sign_but_zero_has_none(field: WatchedField, number: float, text: str) -> None:
    assert field.textFromValue(number) == text


@pytest.mark.parametrize(("text", "number"), [("1.5", 1.5), ("-1,25", -1.25), ("−2", -2.0), ("+3", 3.0)])
def test_either_minus_and_either_decimal_mark_will_do(
    field: WatchedField, qtbot: QtBot, text: str, number: float
) -> None:
    write(qtbot, field, text)
    assert field.seen == []
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert field.seen == [(number, True)]


def test_leaving_the_field_takes_what_was_typed(field: WatchedField, qtbot: QtBot) -> None:
    write(qtbot, field, "4")
    field.other.setFocus()
    assert field.seen == [(4.0, True)]


def test_escape_forgets_what_was_typed(field: WatchedField, qtbot: QtBot) -> None:
    write(qtbot, field, "4")
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    field.other.setFocus()
    assert field.seen == []
    assert field.text() == "0.00"


@pytest.mark.parametrize(("prefix", "suffix"), [("", " s"), ("vol ", " %"), ("", "°")])
def test_a_number_with_a_unit_can_be_typed(field: WatchedField, qtbot: QtBot, prefix: str, suffix: str) -> None:
    field.setPrefix(prefix)
    field.setSuffix(suffix)
    write(qtbot, field, "-1,5")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert field.seen == [(-1.5, True)]
    assert field.text() == f"{prefix}−1.50{suffix}"
    write(qtbot, field, "4")
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    assert field.text() == f"{prefix}−1.50{suffix}"
    field.lineEdit().setText("4")  # all of the text was replaced, as by pasting
    field.lineEdit().setModified(True)
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert field.value() == 4.0


def test_words_cannot_be_typed(field: WatchedField, qtbot: QtBot) -> None:
    write(qtbot, field, "nan")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert field.seen == []
    assert field.value() == 0.0


def test_text_being_typed_survives_other_changes(field: WatchedField, qtbot: QtBot) -> None:
    write(qtbot, field, "4")
    field.show_number(7.0)
    assert field.lineEdit().text() == "4"


def test_steps_are_one_gesture(field: WatchedField, qtbot: QtBot) -> None:
    qtbot.keyClick(field, Qt.Key.Key_Up)
    qtbot.keyClick(field, Qt.Key.Key_Up)
    field.other.setFocus()
    assert field.seen == [(0.01, False), (0.02, False), (0.02, True)]


def test_a_double_click_resets(field: WatchedField, qtbot: QtBot) -> None:
    field.show_number(3.0)
    double_click(field.lineEdit(), QPoint(5, 5))
    assert field.seen == [(0.0, True)]


def test_the_wheel_needs_focus(field: WatchedField) -> None:
    field.other.setFocus()
    assert not wheel(field, QPoint(5, 5), 1)
    assert field.value() == 0.0


def test_the_width_is_that_of_the_widest_number(field: WatchedField) -> None:
    width = field.sizeHint().width()
    field.show_number(-10.0)
    assert field.sizeHint().width() == width


def test_the_width_has_room_for_prefix_and_suffix(field: WatchedField) -> None:
    text_px = field.fontMetrics().horizontalAdvance
    plain = field.sizeHint().width() - text_px("−10.00")
    field.setPrefix("vol ")
    field.setSuffix(" bpm")
    assert field.sizeHint().width() == plain + text_px("vol −10.00 bpm")


def test_a_number_clamped_by_a_new_range_emits_no_edit(field: WatchedField) -> None:
    field.show_number(5.0)
    field.setMaximum(2.0)
    assert (field.value(), field.text()) == (2.0, "+2.00")
    field.setMinimum(3.0)
    assert (field.value(), field.minimum(), field.maximum()) == (3.0, 3.0, 3.0)
    field.setRange(-1.0, 1.0)
    assert (field.value(), field.text()) == (1.0, "+1.00")
    assert field.seen == []


def test_in_a_form_a_whole_number_begins_where_the_texts_do(qtbot: QtBot) -> None:
    form = QWidget()
    qtbot.addWidget(form)
    column = QVBoxLayout(form)
    text, number = QLineEdit("24"), SpinBox(1, 100)
    for field in (text, number):
        column.addWidget(field)
    number.setValue(24)
    form.show()
    starts = []
    for line in (text, number.lineEdit()):
        line.setCursorPosition(0)
        starts.append(line.mapTo(form, line.cursorRect().topLeft()).x())
    assert abs(starts[0] - starts[1]) <= 1
