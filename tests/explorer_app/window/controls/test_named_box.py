"""Screen readers are told what a combo box without a label beside it is for."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QComboBox, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.window.controls.named_box import NamedBox
from explorer_app.window.shell.main_window import MainWindow


def labels_of(box: QComboBox) -> list[str]:
    """Return the names of the labels that screen readers find beside a box."""
    relations = QAccessible.queryAccessibleInterface(box).relations()
    return [other.text(QAccessible.Text.Name) for other, kind in relations if kind == QAccessible.RelationFlag.Label]


def test_a_box_that_is_laid_out_later_has_its_name(qtbot: QtBot) -> None:
    outer = QWidget()
    qtbot.addWidget(outer)
    box = NamedBox("Direction")
    QVBoxLayout(outer).addWidget(box)
    outer.show()
    assert labels_of(box) == ["Direction"]
    assert box.accessibleName() == "Direction"


@pytest.mark.parametrize("where", ["grid", "pad"])
def test_boxes_of_the_window_have_names(window: MainWindow, where: str) -> None:
    inside = window.variations.bar if where == "grid" else window.pad
    boxes = inside.findChildren(QComboBox)
    assert boxes
    assert [labels_of(box) for box in boxes] == [[box.accessibleName()] for box in boxes]
