"""The list of blends in the panel of local edits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer_app.session.edits import RemoveBlend
from explorer_app.session.local_blends import LocalBlend
from explorer_app.session.parameters import SetParameter
from explorer_app.session.picture_mask import inverted, painted
from explorer_app.session.session import Session
from explorer_app.window.edits.blend_list import BlendList, mask_pixmap
from explorer_app.window.edits.edits_panel import EditsPanel
from gpu_backend import Latent, Point, RowRange, Tap
from tests.helpers.panels import model_facts

SEVEN = Latent(Point(((7, 1.0),)))
SKY = LocalBlend(2, SEVEN, inverted(None), strength=0.8, softness=0.25, label="sky")
SESSION = Session(blends=(SKY, LocalBlend(5, Latent(), is_on=False)))


@pytest.fixture
def panel(qtbot: QtBot) -> EditsPanel:
    panel = EditsPanel()
    qtbot.addWidget(panel)
    panel.show_model(model_facts(64), None)
    return panel


@pytest.fixture
def blends(panel: EditsPanel) -> BlendList:
    return panel.blends


def test_each_blend_has_a_row_with_its_values_which_a_drag_only_updates(panel: EditsPanel, blends: BlendList) -> None:
    panel.show_session(SESSION)
    sky, other = blends.rows
    assert [slider.slider.amount for slider in sky.sliders] == [0.8, 0.25]
    assert [slider.path for slider in sky.sliders] == ["blend/2/strength", "blend/2/softness"]
    assert [row.sliders[0].label.full_text for row in blends.rows] == ["sky", "Blend 5"]
    assert (sky.switch.isChecked(), other.switch.isChecked()) == (True, False)
    assert not other.sliders[0].isEnabled()
    assert sky.hint.isHidden()
    assert not other.hint.isHidden(), "nothing is painted yet"
    assert blends.empty.isHidden()
    given: list[object] = []
    panel.edited.connect(lambda edit, final: given.append((edit, final)))
    sky.sliders[0].field.entered.emit(0.5, True)
    other.switch.click()
    sky.sliders[0].label.renamed.emit("clouds")
    sky.rows.click()
    blends.picker.named.segments["coarse"].click()
    blends.picker.hide()
    other.remove.click()
    assert given == [
        (SetParameter("blend/2/strength", 0.5), True),
        (SetParameter("blend/5/on", True), True),
        (SetParameter("blend/2/name", "clouds"), True),
        (SetParameter("blend/2/rows", RowRange(0, 2)), True),
        (RemoveBlend(5), True),
    ]
    panel.show_session(SetParameter("blend/2/strength", 0.5).apply(SESSION))
    assert blends.rows == [sky, other]
    assert sky.sliders[0].slider.amount == 0.5
    panel.show_session(replace(SESSION, tap=Tap("b8.conv0")))
    assert "without blends" in blends.empty.text()
    assert not blends.empty.isHidden()
    panel.show_session(Session())
    assert not blends.rows
    assert "without blends" not in blends.empty.text()
    assert not blends.empty.isHidden()


def test_a_mask_is_painted_by_the_button_that_shows_it(panel: EditsPanel, blends: BlendList) -> None:
    panel.show_session(SESSION)
    asked: list[int] = []
    blends.paint_requested.connect(asked.append)
    blends.rows[0].mask_button.click()
    blends.show_painting(2)
    assert [row.mask_button.isChecked() for row in blends.rows] == [True, False]
    blends.rows[0].mask_button.click()
    blends.show_painting(0)
    assert asked == [2, 0]
    assert not any(row.mask_button.isChecked() for row in blends.rows)
    mask = painted(None, [(0.25, 0.25)], 0.2, 0.0, freezes=True)
    assert mask is not None
    image = mask_pixmap(mask).toImage()
    quarter = image.width() // 4
    assert image.pixelColor(quarter, quarter).lightness() == 255
    assert image.pixelColor(3 * quarter, 3 * quarter).lightness() == 0


def test_a_mask_that_is_not_painted_is_an_empty_tile(panel: EditsPanel, blends: BlendList) -> None:
    panel.show_session(Session(blends=(replace(SKY, mask=None),)))
    button = blends.rows[0].mask_button
    empty = button.icon().pixmap(40, 40).toImage()
    assert empty.pixelColor(1, 1).alpha() == 0, "a black square looks like a picture"
    assert button.property("role") == "empty-thumb"
    panel.show_session(Session(blends=(SKY,)))
    assert button.property("role") == "thumb"
    assert button.icon().pixmap(40, 40).toImage().pixelColor(20, 20).alpha() == 255


def test_the_pictures_of_a_blend_keep_their_size_once_it_is_painted(panel: EditsPanel, blends: BlendList) -> None:
    panel.setStyleSheet("QToolButton { min-height: 23px; }")  # as the window's sheet: it replaces the least height
    panel.resize(420, 600)
    panel.show_session(Session(blends=(replace(SKY, mask=None),)))
    panel.show()
    row = blends.rows[0]
    QApplication.processEvents()
    before = row.picture_button.size(), row.mask_button.size()
    panel.show_session(Session(blends=(SKY,)))
    QApplication.processEvents()
    assert row.hint.isHidden()
    assert (row.picture_button.size(), row.mask_button.size()) == before
    assert row.mask_button.height() == row.mask_button.width()


@pytest.mark.parametrize("width", [310, 420])
def test_what_to_do_with_a_mask_is_shown_in_full(panel: EditsPanel, blends: BlendList, width: int) -> None:
    panel.resize(width, 600)
    panel.show_session(Session(blends=(replace(SKY, mask=None),)))
    panel.show()
    QApplication.processEvents()
    row = blends.rows[0]
    assert row.hint.height() >= row.hint.heightForWidth(row.hint.width())
    assert row.rect().contains(row.hint.geometry())


def test_a_menu_offers_a_seed_what_is_shown_and_kept_pictures(panel: EditsPanel, blends: BlendList) -> None:
    calls: list[tuple[object, ...]] = []
    blends.seed_requested.connect(lambda *parts: calls.append(("seed", *parts)))
    blends.shown_requested.connect(lambda *parts: calls.append(("shown", *parts)))
    blends.kept_requested.connect(lambda *parts: calls.append(("kept", *parts)))
    assert len(blends.menu_of(0, QPoint()).actions()) == 2
    blends.kept_names = lambda: [(4, "dawn & dusk"), (3, "ridge")]
    panel.show_session(SESSION)
    actions = {action.text(): action for action in blends.menu_of(2, QPoint()).actions()}
    assert "dawn && dusk" in actions
    actions["A seed…"].trigger()
    assert blends.ask.seed.value() == 7, "that of the blend"
    blends.ask.seed.show_number(8)
    blends.ask.button.click()
    actions["The picture that is shown"].trigger()
    actions["ridge"].trigger()
    assert calls == [("seed", 8, 2), ("shown", 2), ("kept", 3, 2)]


def test_the_second_pictures_are_requested_once_and_shown(panel: EditsPanel, blends: BlendList) -> None:
    asked: list[tuple[object, Session]] = []
    panel.thumbnail_wanted.connect(lambda key, what: asked.append((key, what)))
    session = replace(SESSION, blends=(SKY,))
    panel.show_session(session)
    key, what = asked[-1]
    assert what.pinned_blend[0][0].latent == SEVEN
    image = QImage(8, 8, QImage.Format.Format_RGB32)
    image.fill(QColor("red"))
    panel.show_thumbnail(key, image)
    shown = blends.rows[0].picture_button.icon().pixmap(8, 8).toImage()
    assert shown.pixelColor(4, 4) == QColor("red")
    count = len(asked)
    panel.show_session(SetParameter("blend/2/strength", 0.5).apply(session))
    assert len(asked) == count
    full = replace(session, blends=tuple(replace(SKY, number=number) for number in (1, 2, 3)))
    panel.show_session(full)
    assert not blends.add.isEnabled()


def test_the_closed_menu_of_a_second_latent_is_deleted(blends: BlendList, qtbot: QtBot) -> None:
    menu = blends.menu_of(0, QPoint())
    menu.popup(QPoint(0, 0))
    with qtbot.waitSignal(menu.destroyed):
        menu.close()
