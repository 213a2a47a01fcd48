"""A scrolled column is as wide as its content, also when the content grows."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.window.controls.column_scroll import ColumnScroll


def test_content_that_grows_is_not_cut_at_the_side(qtbot: QtBot) -> None:
    window, content = QWidget(), QWidget()
    qtbot.addWidget(window)
    label = QLabel("short", content)
    QVBoxLayout(content).addWidget(label)
    scroll = ColumnScroll(content, window)
    QVBoxLayout(window).addWidget(scroll)
    window.resize(60, 60)
    window.show()
    qtbot.waitExposed(window)
    label.setText("49 frames · 2.0 s at 24 fps · about 4.5 MB")
    qtbot.waitUntil(lambda: scroll.viewport().width() >= content.minimumSizeHint().width() > 60)
    assert label.width() >= label.sizeHint().width()
