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


@pytest.mark.parametrize("is_lost", [False, True])
def test_the_way_of_a_handle_has_its_length_written_beside_it_unless_it_is_frozen(is_lost: bool, qtbot: QtBot) -> None:
    point = DragPoint((20.0, 30.0), (90.0, 30.0), is_lost=is_lost, found=(20.0, 30.0))
    with_distance, without = (painted(point, shows_distance=shows) for shows in (True, False))
    assert (with_distance == without) is is_lost
