from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from explorer_app.window.controls.elided_label import ElidedLabel

LONG = "a name that is longer than its label"


def test_a_text_that_does_not_fit_is_cut_where_it_should_be_and_stays_whole(qtbot: QtBot) -> None:
    label = ElidedLabel(LONG, mode=Qt.TextElideMode.ElideMiddle)
    qtbot.addWidget(label)
    label.resize(80, 20)
    assert label.shown_text.startswith("a")
    assert label.shown_text.endswith("l")
    assert "…" in label.shown_text
    assert label.text() == LONG
    label.resize(2000, 20)
    assert label.shown_text == LONG


def test_it_may_be_as_narrow_as_its_ellipsis(qtbot: QtBot) -> None:
    label = ElidedLabel(LONG)
    qtbot.addWidget(label)
    assert label.minimumSizeHint().width() == label.fontMetrics().horizontalAdvance("…")
