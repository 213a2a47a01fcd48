"""The panel of local edits, and the dialog that adds bends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QColor, QImage, QScreen
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.session.edits import AddBend, RemoveBend, RemoveStyleChannel
from explorer_app.session.local_blends import LocalBlend
from explorer_app.session.local_edits import KIND_NAMES, LayerBend, StyleChannel
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import ModelReference, Position, Session
from explorer_app.window.edits.edit_rows import LABEL_PX
from explorer_app.window.edits.edits_panel import EditsPanel
from explorer_app.window.look import theme
from gpu_backend import MAX_BENDS, ChannelMaps, Latent, Tap
from tests.helpers.panels import model_facts

FACTS = model_facts(64)
LAYER = "b16.conv1"
SESSION = Session(
    bends=(LayerBend(2, LAYER, "gain", 3.0, (1, 4)), LayerBend(5, "b8.conv0", "move", 0.25, (), -0.5, is_on=False))
)


def maps_of(layer: str, count: int = 12) -> ChannelMaps:
    maps = np.zeros((count, 4, 4), np.uint8)
    return ChannelMaps(FACTS.model_id, layer, maps, np.arange(count) // 4, maps[: count // 4])


@pytest.fixture
def panel(qtbot: QtBot) -> EditsPanel:
    panel = EditsPanel()
    qtbot.addWidget(panel)
    panel.show_model(FACTS, None)
    return panel


def test_bends_of_both_layers_of_a_block_differ_in_a_narrow_panel(panel: EditsPanel) -> None:
    layers = ("b128.conv0", "b128.conv1")
    panel.show_session(
        Session(bends=tuple(LayerBend(number, layer, "gain", 1.0) for number, layer in enumerate(layers)))
    )
    panel.resize(panel.minimumSizeHint().width(), 500)
    panel.show()
    QApplication.processEvents()
    names = [row.sliders[0].label.text() for row in panel.bends]
    assert len(set(names)) == 2
    assert all("…" in name for name in names)


def test_each_bend_has_a_row_with_its_numbers_a_switch_and_a_button(panel: EditsPanel) -> None:
    panel.show_session(SESSION)
    gain, move = panel.bends
    assert [slider.slider.amount for slider in (*gain.sliders, *move.sliders)] == [3.0, 0.25, -0.5]
    assert [slider.path for slider in (*gain.sliders, *move.sliders)] == ["bend/2/gain", "bend/5/right", "bend/5/down"]
    assert (gain.switch.isChecked(), move.switch.isChecked()) == (True, False)
    assert not move.sliders[0].isEnabled()
    assert "2 channels of b16.conv1" in gain.sliders[0].slider.toolTip()
    assert panel.no_bends.isHidden()
    given: list[object] = []
    panel.edited.connect(lambda edit, final: given.append((edit, final)))
    gain.sliders[0].field.entered.emit(-1.0, True)
    move.switch.click()
    gain.sliders[0].label.renamed.emit("loud")
    move.remove.click()
    assert given == [
        (SetParameter("bend/2/gain", -1.0), True),
        (SetParameter("bend/5/on", True), True),
        (SetParameter("bend/2/name", "loud"), True),
        (RemoveBend(5), True),
    ]


def test_a_drag_changes_values_and_makes_no_rows(panel: EditsPanel) -> None:
    panel.show_session(SESSION)
    rows = list(panel.bends)
    panel.show_session(SetParameter("bend/2/gain", -1.5).apply(SESSION))
    assert panel.bends == rows
    assert rows[0].sliders[0].slider.amount == -1.5
    panel.show_session(RemoveBend(2).apply(SESSION))
    assert [row.number for row in panel.bends] == [5]
    panel.show_session(Session())
    assert not panel.no_bends.isHidden()


def test_bends_are_added_to_channels_a_cluster_or_a_whole_layer(panel: EditsPanel) -> None:
    calls: list[str] = []
    given: list[object] = []
    panel.maps_requested.connect(calls.append)
    panel.edited.connect(lambda edit, final: given.append((edit, final)))
    panel.show_session(Session(tap=Tap(LAYER)))
    panel.add.click()
    picker = panel.picker
    assert calls == [LAYER]
    assert "Rendering" in picker.about.text()
    picker.add.click()
    panel.show_maps(maps_of("b8.conv0"))
    assert picker.channels.count() == 0, "of another layer"
    panel.show_maps(maps_of(LAYER))
    picker.kind.segments["turn"].click()
    picker.clusters.item(1).setSelected(True)
    assert picker.selected == (4, 5, 6, 7)
    assert picker.add.text() == "Turn 4 channels"
    picker.add.click()
    picker.clusters.item(1).setSelected(False)
    picker.channels.item(9).setSelected(True)
    picker.add.click()
    assert given == [
        (AddBend(LAYER, "gain"), True),
        (AddBend(LAYER, "turn", (4, 5, 6, 7)), True),
        (AddBend(LAYER, "turn", (9,)), True),
    ]
    panel.show_maps(maps_of(LAYER))
    assert picker.selected == (9,), "newer pictures of the same channels"
    panel.show_failure("The device is lost.")
    assert picker.about.text() == "The device is lost."
    picker.close()


def test_no_button_of_the_picker_moves_when_another_bend_or_other_channels_are_chosen(panel: EditsPanel) -> None:
    panel.show_session(Session(tap=Tap(LAYER)))
    panel.add.click()
    picker = panel.picker
    panel.show_maps(maps_of(LAYER))
    places = set()
    for segment in picker.kind.segments.values():
        segment.click()
        for row in (0, 1):
            picker.channels.item(row).setSelected(True)
            QApplication.processEvents()
            places.add((picker.done_button.x(), picker.add.x()))
        picker.channels.clearSelection()
    assert len(places) == 1
    picker.close()


def test_another_model_has_its_own_layers_and_none_has_no_panel(panel: EditsPanel) -> None:
    layers = [panel.picker.layer.itemText(index) for index in range(panel.picker.layer.count())]
    assert LAYER in layers
    assert not any(layer.endswith((".torgb", ".skip")) for layer in layers)
    assert panel.no_model.isHidden()
    panel.show_model(None, None)
    assert panel.lists.isHidden()
    assert not panel.no_model.isHidden()
    assert panel.picker.layer.count() == 0
    assert not panel.picker.add.isEnabled()


def test_a_picture_with_as_many_bends_as_it_may_have_is_said_to_be_full(panel: EditsPanel) -> None:
    full = Session(bends=tuple(LayerBend(number, LAYER, "gain", 1.0) for number in range(MAX_BENDS)))
    panel.show_session(full)
    panel.add.click()
    panel.show_maps(maps_of(LAYER))
    assert not panel.picker.add.isEnabled()
    assert panel.picker.about.text() == f"A picture has at most {MAX_BENDS} bends; remove one to add another."
    panel.show_session(Session(bends=full.bends[1:]))
    assert panel.picker.add.isEnabled()
    assert panel.picker.about.text().endswith("channels chosen")
    panel.picker.close()


def test_the_picker_fits_on_a_low_screen(panel: EditsPanel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QScreen, "availableGeometry", lambda _: QRect(0, 0, 640, 360))
    panel.open_picker()
    assert panel.picker.width() < 640
    assert panel.picker.height() < 360
    assert panel.picker.channels.height() > theme.px(60)
    panel.picker.close()


def test_an_open_picker_shows_the_channels_of_another_model(panel: EditsPanel) -> None:
    calls: list[str] = []
    panel.maps_requested.connect(calls.append)
    panel.show_session(Session(tap=Tap(LAYER)))
    panel.add.click()
    panel.show_maps(maps_of(LAYER))
    panel.show_model(FACTS, None)
    assert panel.picker.channels.count() == 12, "the same model, for example on another device"
    other = replace(FACTS, model_id="d" * 64)
    panel.show_model(other, None)
    panel.show_session(Session(ModelReference(model_id=FACTS.model_id)))
    assert calls == [LAYER], "the session is not fitted to the model yet"
    for seed in (1, 2):
        panel.show_session(Session(ModelReference(model_id=other.model_id), Position(seed, 0.0)))
    layer = panel.picker.layer.currentText()
    assert calls == [LAYER, layer]
    assert "Rendering" in panel.picker.about.text()
    panel.show_maps(maps_of(layer))
    assert panel.picker.channels.count() == 0, "of the model before"
    panel.show_maps(replace(maps_of(layer), model_id=other.model_id))
    assert panel.picker.channels.count() == 12
    panel.picker.close()


def test_style_channels_are_sliders_and_a_search_shows_how_far_it_is(panel: EditsPanel) -> None:
    calls: list[str] = []
    given: list[object] = []
    panel.find_requested.connect(lambda: calls.append("find"))
    panel.stop_requested.connect(lambda: calls.append("stop"))
    panel.edited.connect(lambda edit, final: given.append((edit, final)))
    panel.search.click()
    panel.show_search("Searching: 40 %", True)
    assert panel.search.text() == "Stop"
    assert panel.about_styles.text() == "Searching: 40 %"
    panel.search.click()
    panel.show_search("", False)
    assert calls == ["find", "stop"]
    panel.show_session(Session(style_channels=(StyleChannel(LAYER, 7, 2.0, 8.0, "clouds"), StyleChannel(LAYER, 9))))
    assert panel.about_styles.isHidden()
    row = panel.styles[0]
    assert row.sliders[0].slider.ends == (-8.0, 8.0)
    assert row.sliders[0].path == f"style/{LAYER}/7"
    assert row.sliders[0].label.full_text == "clouds"
    row.sliders[0].field.entered.emit(-1.0, True)
    row.sliders[0].label.renamed.emit("haze")
    row.remove.click()
    assert given == [
        (SetParameter(f"style/{LAYER}/7", -1.0), True),
        (SetParameter(f"style.name/{LAYER}/7", "haze"), True),
        (RemoveStyleChannel(LAYER, 7), True),
    ]


def test_the_numbers_of_style_channels_can_be_read_however_narrow_their_names_are(panel: EditsPanel) -> None:
    panel.show_session(Session(style_channels=tuple(StyleChannel(LAYER, number) for number in (7, 9))))
    for row, number in zip(panel.styles, "79", strict=True):
        label = row.sliders[0].label
        width = label.fontMetrics().horizontalAdvance(label.full_text)
        label.setFixedWidth(max(25, 2 * width // 3))
        label.show_text(label.full_text)
        assert "…" in label.text()
        assert label.text().endswith(number)


def test_names_sliders_and_numbers_of_blends_and_bends_are_below_each_other(panel: EditsPanel) -> None:
    panel.show_session(Session(bends=(LayerBend(1, LAYER, "gain", 1.0),), blends=(LocalBlend(1, Latent()),)))
    panel.resize(420, 500)
    panel.show()
    QApplication.processEvents()
    rows = [*panel.bends[0].sliders, *panel.blends.rows[0].sliders]
    for part in ("label", "slider"):
        assert len({getattr(row, part).mapTo(panel, QPoint(0, 0)).x() for row in rows}) == 1
    assert len({row.field.mapTo(panel, QPoint(row.field.width(), 0)).x() for row in rows}) == 1
    panel.hide()


@pytest.mark.usefixtures("each_font")
def test_the_panel_fits_a_narrow_dock_with_bends_style_channels_and_blends(panel: EditsPanel) -> None:
    bends = tuple(LayerBend(number, LAYER, kind, 0.0) for number, kind in enumerate(KIND_NAMES, 1))
    channel = StyleChannel(LAYER, 511, -100.0, 100.0)
    panel.show_session(Session(bends=bends, style_channels=(channel,), blends=(LocalBlend(1, Latent()),)))
    assert panel.minimumSizeHint().width() <= 280


def test_names_of_bends_give_way_in_a_narrow_panel_and_sliders_stay_aligned(panel: EditsPanel) -> None:
    panel.show_session(Session(bends=(LayerBend(1, LAYER, "gain", 1.0), LayerBend(2, LAYER, "move", 0.0))))
    panel.show()
    rows = [slider for bend in panel.bends for slider in bend.sliders]
    for width in (panel.minimumSizeHint().width(), 600):
        panel.resize(width, 500)
        QApplication.processEvents()
        assert len({row.slider.x() for row in rows}) == 1
        assert all(row.field.width() >= row.field.sizeHint().width() for row in rows)
    assert all(row.label.width() == theme.px(LABEL_PX) for row in rows)
    assert [row.label.text() for row in rows] == [row.label.full_text for row in rows], "nothing is cut off"
    panel.hide()


def test_the_ends_of_a_style_channel_are_pictures_that_move_its_slider(panel: EditsPanel, qtbot: QtBot) -> None:
    asked: list[tuple[tuple[str, Session], Session]] = []
    given: list[object] = []
    panel.thumbnail_wanted.connect(lambda key, what: asked.append((key, what)))
    panel.edited.connect(lambda edit, final: given.append((edit, final)))
    channels = (StyleChannel(LAYER, 7, 2.0, 8.0, "clouds"), StyleChannel(LAYER, 9))
    panel.show_session(Session(style_channels=channels))
    panel.show()
    qtbot.waitUntil(lambda: bool(asked))
    amounts = [what.style_channels[0].amount for _, what in asked]
    assert amounts == [-1.0, 1.0, -8.0, 8.0], "the first channel's are rendered first"
    assert all(len(what.style_channels) == 1 for _, what in asked), "the others are at rest"
    image = QImage(8, 8, QImage.Format.Format_RGB32)
    image.fill(QColor("red"))
    panel.show_thumbnail(asked[3][0], image)
    low, high = panel.styles[0].ends
    assert low.icon().isNull()
    assert high.icon().pixmap(8, 8).toImage().pixelColor(4, 4) == QColor("red")
    high.click()
    assert given == [(SetParameter(f"style/{LAYER}/7", 8.0), True)]
    panel.hide()


def test_tab_visits_the_rows_below_the_head_of_their_list(panel: EditsPanel) -> None:
    sky = StyleChannel("b8.conv0", 7)
    panel.show_session(Session(bends=(LayerBend(1, "b8.conv0", "gain", 1.0),), style_channels=(sky,)))
    stops: list[QWidget] = []
    stop = panel.nextInFocusChain()
    while stop is not None and stop is not panel:
        if stop.focusPolicy() & Qt.FocusPolicy.TabFocus:
            stops.append(stop)
        stop = stop.nextInFocusChain()
    add, search = stops.index(panel.add), stops.index(panel.search)
    of_bend = [place for place, stop in enumerate(stops) if panel.bends[0].isAncestorOf(stop)]
    of_style = [place for place, stop in enumerate(stops) if panel.styles[0].isAncestorOf(stop)]
    assert add < min(of_bend) < max(of_bend) < search < min(of_style)


def test_buttons_of_the_panel_have_different_names_and_the_one_that_stops_says_so(panel: EditsPanel) -> None:
    channels = tuple(StyleChannel("b8.conv0", number, 0.0, 3.0) for number in (7, 9))
    panel.show_session(replace(SESSION, style_channels=channels))
    panel.show()
    names = [button.accessibleName() for button in panel.findChildren(QAbstractButton) if button.isVisible()]
    assert len(set(names)) == len(names)
    panel.show_search("Searching…", is_searching=True)
    assert panel.search.accessibleName() == "Stop the search"
    panel.show_search("", is_searching=False)
    assert panel.search.accessibleName() == "Find style channels"
