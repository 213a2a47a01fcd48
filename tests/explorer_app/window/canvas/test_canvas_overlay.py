"""The card over an empty canvas."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from explorer_app.window.canvas.canvas_overlay import CanvasOverlay
from explorer_app.window.canvas.picture_stage import PictureStage


@pytest.mark.usefixtures("each_font")
def test_buttons_over_a_narrow_canvas_are_not_cut(qtbot: QtBot) -> None:
    stage = PictureStage()
    qtbot.addWidget(stage)
    card = CanvasOverlay(stage)
    card.show_no_model()
    stage.show()
    for width in (600, 420, 300, 260):
        stage.resize(width, 500)
        stage.resized.emit()
        layout = card.layout()
        assert layout is not None
        layout.activate()
        for button in (card.open_button, card.bundled_button):
            assert button.width() >= button.sizeHint().width()
            assert card.rect().contains(button.geometry())
