"""What rows of the timeline say of their tracks."""

from __future__ import annotations

from PySide6.QtGui import QFontMetrics
from pytestqt.qtbot import QtBot

from explorer_app.window.look import fonts
from explorer_app.window.timeline.track_rows import fitted_name, row_of


def test_style_channels_of_a_layer_differ_in_a_column_that_is_too_narrow_for_their_names(qtbot: QtBot) -> None:
    metrics = QFontMetrics(fonts.table())
    room = metrics.horizontalAdvance("b32.conv1 · 1")
    names = [f"b32.conv1 · {channel}" for channel in (117, 118)]
    shown = [fitted_name(row_of("style/b32.conv1/117", name, 0, 0.0, 1.0), metrics, room) for name in names]
    assert shown[0] != names[0]
    assert [name[-3:] for name in shown] == ["117", "118"]
    assert all(metrics.horizontalAdvance(name) <= room for name in shown)
