"""The transform of the latent panel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer_app.session.session import Session
from explorer_app.window.latent.latent_panel import LatentPanel
from gpu_backend import Transform
from tests.helpers.fonts import narrow_dock
from tests.helpers.panels import Edits, double_click, model_facts

ALIAS_FREE = replace(model_facts(has_noise=False), family="StyleGAN3", has_transform=True)


@pytest.fixture
def panel(qtbot: QtBot) -> Any:
    panel: Any = LatentPanel()
    qtbot.addWidget(panel)
    panel.show_model(ALIAS_FREE, None)
    panel.edits = Edits(panel)
    panel.resize(322, 560)
    panel.show()
    return panel


def write(qtbot: QtBot, field: Any, text: str) -> None:
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, text)
    qtbot.keyClick(field, Qt.Key.Key_Return)


def test_it_is_there_only_for_a_network_that_has_one(panel: Any) -> None:
    assert panel.transform.isVisible()
    panel.show_model(model_facts(), None)
    assert not panel.transform.isVisible()
    panel.show_model(None, None)
    assert not panel.transform.isVisible()


def test_each_field_sets_its_part_and_keeps_the_others(panel: Any, qtbot: QtBot) -> None:
    row = panel.transform
    for field, text in ((row.place_x, "0.25"), (row.place_y, "-0,5"), (row.angle, "30"), (row.scale, "1.5")):
        write(qtbot, field, text)
    assert panel.edits.session.transform == Transform(0.25, -0.5, 30.0, 1.5)
    assert len(panel.edits.steps) == 4


def test_it_shows_the_session(panel: Any) -> None:
    panel.edits.show(Session(transform=Transform(0.25, -0.5, -90.0, 2.0)))
    row = panel.transform
    assert [field.text() for field in (row.place_x, row.place_y, row.angle, row.scale)] == [
        "+0.25",
        "−0.50",
        "−90.0",
        "2.000",
    ]
    assert panel.edits.all == []


def test_a_part_that_is_typed_leaves_the_others_as_exact_as_they_were(panel: Any, qtbot: QtBot) -> None:
    panel.edits.show(Session(transform=Transform(0.12345, 0.0, 12.3456, 1.23456)))
    write(qtbot, panel.transform.place_y, "0.5")
    assert panel.edits.session.transform == Transform(0.12345, 0.5, 12.3456, 1.23456)


def test_a_double_click_resets_a_part_and_the_button_all(panel: Any, qtbot: QtBot) -> None:
    panel.edits.show(Session(transform=Transform(0.1, 0.2, 45.0, 2.0)))
    row = panel.transform
    double_click(row.scale.lineEdit(), row.scale.lineEdit().rect().center())
    assert panel.edits.session.transform == Transform(0.1, 0.2, 45.0, 1.0)
    qtbot.mouseClick(row.reset, Qt.MouseButton.LeftButton)
    assert panel.edits.session.transform == Transform()
    assert not row.reset.isEnabled()


def test_noise_stands_grey_below_it_and_says_why(panel: Any) -> None:
    assert not panel.noise.isEnabled()
    assert panel.noise.toolTip() == "A StyleGAN3 network has no noise layers."


def test_the_panel_still_fits_a_narrow_dock(each_font: str, panel: Any) -> None:
    room = narrow_dock(each_font, 300)
    assert panel.minimumSizeHint().width() <= room
    panel.resize(room, 560)
    QApplication.processEvents()
    row = panel.transform
    for widget in (row.place_x, row.place_y, row.angle, row.scale, row.reset):
        assert widget.width() >= widget.minimumSizeHint().width()
        assert row.rect().contains(widget.geometry())


def test_every_control_says_what_it_is(panel: Any) -> None:
    row = panel.transform
    for widget in (row.place_x, row.place_y, row.angle, row.scale, row.reset):
        assert widget.toolTip().endswith(".")
        assert widget.accessibleName().split()[-1]
    assert "−180.0 to +180.0" in row.angle.toolTip()
