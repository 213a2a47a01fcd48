from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage, QPainter
from pytestqt.qtbot import QtBot

from explorer_app.controller import DragPoint
from explorer_app.window.canvas.point_painting import paint_points


def painted(point: DragPoint, *, shows_distance: bool) -> QImage:
    picture = QImage(200, 60, QImage.Format.Format_RGB32)
    picture.fill(Qt.GlobalColor.darkGray)
    painter = QPainter(picture)
    paint_points(painter, [point], 0, lambda place: place, shows_distance=shows_distance)
    painter.end()
    return picture


@pytest.mark.parametrize("why", ["", "is_lost", "is_weak", "is_covered"])
def test_the_way_of_a_handle_that_pulls_has_its_length_written_beside_it(why: str, qtbot: QtBot) -> None:
    reasons: dict[str, Any] = {why: True} if why else {}
    point = DragPoint((20.0, 30.0), (90.0, 30.0), found=(20.0, 30.0), **reasons)
    with_distance, without = (painted(point, shows_distance=shows) for shows in (True, False))
    assert (with_distance == without) is bool(why)
