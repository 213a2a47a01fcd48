"""Popups have no black corners where nothing composes windows."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.window.controls.popup import Popup


def test_without_a_compositor_the_corners_are_cut_off(qtbot: QtBot) -> None:
    host = QWidget()
    qtbot.addWidget(host)
    popup = Popup(host)
    QVBoxLayout(popup).addWidget(QLabel("A question"))
    popup.open_at(QPoint(10, 10))
    assert not popup.testAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
    mask = popup.mask()
    right, bottom = popup.width() - 1, popup.height() - 1
    assert not any(mask.contains(QPoint(x, y)) for x in (0, right) for y in (0, bottom))
    assert mask.contains(QPoint(right // 2, 0))
    assert mask.contains(QPoint(right // 2, bottom))
    assert mask.contains(QPoint(right, bottom // 2))
    popup.hide()
