"""The layers panel, over a record of edits that shows the session back."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

import gpu_backend
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Session
from explorer_app.window.layers.layers_panel import LayersPanel
from explorer_app.window.look import appearance, theme
from gpu_backend import Frame, FrameTimings, LayerFacts, RenderRequest, Tap, ValueStatistics
from tests.helpers.fake_controller import landscape
from tests.helpers.focus import has_frame
from tests.helpers.fonts import narrow_dock
from tests.helpers.panels import Edits, drag, model_facts, mouse
from tests.helpers.taps import layer_pixels, tapped_layer

FACTS = model_facts(64)
LAYER = Tap("b16.conv1", (3,))


def layer_frame(tap: Tap, *, has_values: bool = True) -> Frame:
    request = RenderRequest("m", tap=tap, wants_tap_values=has_values)
    return Frame(request, layer_pixels(request, FACTS), FrameTimings(1.0, 0.1, 0.9), tap=tapped_layer(request, FACTS))


def picture_frame(side: int = 64) -> Frame:
    return Frame(RenderRequest("m"), landscape(0, 0, side), FrameTimings(1.0, 0.1, 0.9))


class WatchedPanel(LayersPanel):
    """A panel, and its edits."""

    edits: Edits


@pytest.fixture
def panel(qtbot: QtBot) -> WatchedPanel:
    panel = WatchedPanel()
    qtbot.addWidget(panel)
    panel.resize(340, 560)
    panel.show_model(FACTS, None)
    with qtbot.waitExposed(panel):
        panel.show()
    panel.edits = Edits(panel)
    return panel


def test_nothing_inside_is_made_before_the_panel_is_shown(qtbot: QtBot) -> None:
    panel = LayersPanel()
    qtbot.addWidget(panel)
    panel.set_on_show(False)
    panel.show_model(FACTS, None)
    panel.show_session(replace(Session(), tap=LAYER))
    panel.show_frame(layer_frame(LAYER))
    panel.show()
    QApplication.processEvents()
    assert not panel.is_made, "behind another panel's tab"
    panel.set_on_show(True)
    assert panel.is_made
    assert panel.table.currentIndex().isValid()
    assert "Spectrum" in panel.about.text()


def click(panel: LayersPanel, row: int) -> None:
    place = panel.table.visualRect(panel.table.layers.index(row, 0)).center()
    QTest.mouseClick(panel.table.viewport(), Qt.MouseButton.LeftButton, pos=place)


def rows(panel: LayersPanel) -> list[tuple[str, ...]]:
    layers = panel.table.layers
    return [tuple(layers.index(row, column).data() for column in range(3)) for row in range(layers.rowCount())]


def channels_of(panel: WatchedPanel) -> tuple[int, ...]:
    tap = panel.edits.session.tap
    assert tap is not None
    return tap.channels


def shown_row(panel: LayersPanel) -> int:
    return panel.table.currentIndex().row()


def test_the_picture_comes_first_and_then_every_layer_with_its_size_and_channels(panel: WatchedPanel) -> None:
    assert rows(panel)[0] == ("Picture", "64 × 64", "3")
    assert rows(panel)[1:] == [
        (layer.name, f"{layer.side} × {layer.side}", str(layer.channels)) for layer in FACTS.layers
    ]
    assert shown_row(panel) == 0


def test_a_click_shows_a_layer_and_another_click_the_picture(panel: WatchedPanel) -> None:
    click(panel, 2)
    assert panel.edits.session.tap == Tap(FACTS.layers[1].name)
    click(panel, 0)
    assert panel.edits.session.tap is None
    assert all(final for _, final in panel.edits.all)


def test_arrow_keys_go_through_the_layers_and_escape_leads_to_the_picture(panel: WatchedPanel) -> None:
    panel.table.setFocus()
    for _ in range(2):
        QTest.keyClick(panel.table, Qt.Key.Key_Down)
    assert panel.edits.session.tap == Tap(FACTS.layers[1].name)
    QTest.keyClick(panel.table, Qt.Key.Key_Escape)
    assert panel.edits.session.tap is None
    assert shown_row(panel) == 0


def test_another_layer_is_shown_as_the_one_before_and_by_channels_that_it_has(panel: WatchedPanel) -> None:
    few = replace(FACTS, layers=(*FACTS.layers, LayerFacts("b64.torgb", 3, 64), LayerFacts("last", 1, 64)))
    panel.show_model(few, None)
    tap = Tap("b16.conv1", (5, 1, 9), 6.0, is_normalized=False)
    panel.edits.show(Session(tap=tap))
    panel.table.layer_chosen.emit("b32.conv0")
    assert panel.edits.session.tap == replace(tap, layer="b32.conv0")
    panel.table.layer_chosen.emit("b64.torgb")
    assert panel.edits.session.tap == replace(tap, layer="b64.torgb", channels=(0, 1, 2))
    panel.table.layer_chosen.emit("last")
    assert panel.edits.session.tap == replace(tap, layer="last", channels=(0,))
    assert not panel.controls.mode.segments["three"].isEnabled()


def test_the_last_layer_choice_returns_after_the_picture(panel: WatchedPanel) -> None:
    tap = Tap("b16.conv1", (5,), 6.0, is_normalized=False)
    panel.edits.show(Session(tap=tap))
    panel.toggle(False)
    assert panel.edits.session.tap is None
    panel.toggle(True)
    assert panel.edits.session.tap == tap


def test_the_last_layer_of_another_model_does_not_return(panel: WatchedPanel) -> None:
    panel.edits.show(Session(tap=Tap("b16.conv1", (5,), 6.0)))
    panel.show_model(replace(FACTS, layers=(LayerFacts("L0_36", 4, 36),)), None)
    panel.edits.show(Session())
    panel.toggle(True)
    assert panel.edits.session.tap == Tap("L0_36")


def test_the_first_layer_that_is_shown_lies_half_way_through_the_network(panel: WatchedPanel) -> None:
    panel.toggle(True)
    assert panel.edits.session.tap == Tap("b16.conv1")
    panel.show_model(None, None)
    panel.toggle(True)
    assert len(panel.edits.all) == 1


def test_a_channel_is_dragged_as_one_gesture(panel: WatchedPanel) -> None:
    panel.edits.show(Session(tap=LAYER))
    slider = panel.controls.channel.slider
    assert slider.ends == (0, 511)
    drag(slider, QPointF(12, 11), QPointF(slider.width() - 4, 11))
    assert channels_of(panel) == (511,)
    assert len(panel.edits.steps) == 1
    assert len(panel.edits.all) > 2


def test_a_layer_of_one_channel_offers_no_other(panel: WatchedPanel) -> None:
    grey = replace(FACTS, layers=(LayerFacts("b4.torgb", 1, 4), LayerFacts("b8.conv0", 2, 8)))
    panel.show_model(grey, None)
    row = panel.controls.channel
    for layer in ("b4.torgb", "b8.conv0", "b4.torgb"):
        panel.edits.show(Session(tap=Tap(layer)))
        count = next(known.channels for known in grey.layers if known.name == layer)
        assert row.slider.ends == (0, count - 1)
        QTest.keyClick(row.slider, Qt.Key.Key_End)
        assert channels_of(panel) == (count - 1,)
    drag(row.slider, QPointF(12, 11), QPointF(row.slider.width() - 4, 11))
    assert channels_of(panel) == (0,)


def test_escape_brings_the_channel_back(panel: WatchedPanel) -> None:
    panel.edits.show(Session(tap=LAYER))
    slider = panel.controls.channel.slider
    mouse(slider, QEvent.Type.MouseButtonPress, QPointF(100, 11))
    QTest.keyClick(slider, Qt.Key.Key_Escape)
    assert panel.edits.cancelled == 1
    assert panel.edits.session.tap == LAYER


def test_three_channels_begin_at_the_one_that_was_shown_and_each_can_be_set(panel: WatchedPanel) -> None:
    panel.edits.show(Session(tap=replace(LAYER, channels=(510,))))
    panel.controls.mode.segments["three"].click()
    assert channels_of(panel) == (510, 511, 0)
    assert panel.controls.three[0].isVisible()
    assert not panel.controls.channel.isVisible()
    panel.controls.three[1].entered.emit(7.0, True)
    assert channels_of(panel) == (510, 7, 0)
    panel.controls.mode.segments["one"].click()
    assert channels_of(panel) == (510,)


def test_gain_and_normalisation_are_set(panel: WatchedPanel) -> None:
    panel.edits.show(Session(tap=LAYER))
    panel.controls.gain.moved.emit(12.5, True)
    panel.controls.normalised.click()
    assert panel.edits.session.tap == replace(LAYER, gain_db=12.5, is_normalized=False)


@pytest.mark.parametrize("is_of_another_model", [False, True])
def test_a_number_that_was_being_typed_for_a_layer_that_is_gone_is_dropped(
    panel: WatchedPanel, is_of_another_model: bool
) -> None:
    panel.show_session(replace(Session(), tap=LAYER))
    field = panel.controls.gain.field
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, "7")
    if is_of_another_model:
        panel.show_model(model_facts(8), None)
    panel.show_session(Session())
    QTest.keyClick(field, Qt.Key.Key_Return)
    field.clearFocus()
    assert not panel.edits.all


def test_showing_a_session_asks_for_nothing(panel: WatchedPanel) -> None:
    for tap in (LAYER, Tap("b4.conv1", (0, 1, 2), -3.0, is_normalized=False), None):
        panel.edits.show(Session(tap=tap))
    assert panel.edits.all == []
    assert shown_row(panel) == 0


def test_controls_are_grey_and_say_why_while_there_is_no_layer(panel: WatchedPanel) -> None:
    controls = panel.controls
    assert not controls.isEnabled()
    assert controls.toolTip() == "Choose a layer first; these controls do not affect the picture."
    for control in (controls.mode, controls.normalised, controls.channels, controls.gain):
        assert controls.childAt(control.geometry().center()) is None, "so that the reason is seen there"
    panel.edits.show(Session(tap=LAYER))
    assert controls.isEnabled()
    assert controls.toolTip() == ""
    panel.show_model(None, None)
    assert not controls.isEnabled()
    assert controls.toolTip() == "Open a model first."
    assert not panel.table.isEnabled()
    assert panel.empty.isVisible()
    assert rows(panel) == []


def test_figures_are_those_of_the_layer_and_of_what_is_shown_of_it(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.show_frame(layer_frame(LAYER))
    figures = panel.figures.figures
    qtbot.waitUntil(lambda: figures["mean"][0].text() == "0.250")
    assert [figures[name][0].text() for name in ("mean", "std", "max")] == ["0.250", "1.500", "4.000"]
    assert [figures[name][1].text() for name in ("mean", "std", "max")] == ["3.000", "0.500", "4.000"]
    assert "channel 3" in panel.figures.heads[1].toolTip()
    panel.show_frame(layer_frame(replace(LAYER, channels=(0, 2, 4))))
    qtbot.waitUntil(lambda: figures["mean"][1].text() == "2.000")
    assert figures["max"][1].text() == "5.000"
    assert float(figures["std"][1].text()) == pytest.approx(np.sqrt(0.25 + 8 / 3), abs=1e-3)


def test_the_picture_has_figures_too(panel: WatchedPanel, qtbot: QtBot) -> None:
    frame = picture_frame()
    panel.show_frame(frame)
    qtbot.waitUntil(lambda: panel.figures.heads[0].text() == "picture")
    grey = frame.pixels[..., :3].mean(axis=2) / 127.5 - 1
    assert float(panel.figures.figures["mean"][0].text().replace("−", "-")) == pytest.approx(grey.mean(), abs=1e-3)
    assert panel.figures.figures["mean"][1].text() == ""


def test_a_number_that_is_not_finite_is_a_dash(panel: WatchedPanel) -> None:
    broken = ValueStatistics(float("nan"), float("nan"), float("-inf"), float("inf"))
    frame = layer_frame(LAYER)
    assert frame.tap is not None
    panel.figures.show_frame(replace(frame, tap=replace(frame.tap, whole=broken, shown=(broken,))))
    assert {figure.text() for pair in panel.figures.figures.values() for figure in pair} == {"–"}


def test_the_spectrum_has_the_waves_of_the_channel_at_their_frequency(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.show_frame(layer_frame(LAYER))
    qtbot.waitUntil(lambda: panel.spectrum.spectrum is not None)
    spectrum = panel.spectrum.spectrum
    assert spectrum is not None
    row, column = np.unravel_index(spectrum.argmax(), spectrum.shape)
    assert (row - 8, abs(column - 8)) == (0, 4), "channel 3 of 16 px has four waves across"
    assert "channel 3" in panel.about.text()
    square = panel.spectrum.square()
    place = square.topLeft() + QPointF(column + 0.5, row + 0.5) * square.width() / 16
    mouse(panel.spectrum, QEvent.Type.MouseMove, place, held=Qt.MouseButton.NoButton)
    assert "0.250, +0.000 cycles/px" in panel.about.text()
    assert panel.about.text().endswith("0 dB")
    QApplication.sendEvent(panel.spectrum, QEvent(QEvent.Type.Leave))
    assert "channel 3" in panel.about.text()


def test_the_legend_names_the_ends_of_the_colours(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.show_frame(layer_frame(LAYER))
    qtbot.waitUntil(lambda: panel.legend.words()[1] == "0 dB")
    assert panel.legend.words()[0] == "−100 dB"
    panel.show_frame(None)
    qtbot.waitUntil(lambda: panel.legend.words() == ("", ""))


def test_no_spectrum_stays_when_the_numbers_of_the_next_layer_are_not_there(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.show_frame(layer_frame(LAYER))
    qtbot.waitUntil(lambda: panel.spectrum.spectrum is not None)
    panel.show_frame(layer_frame(Tap("b32.conv1"), has_values=False))
    qtbot.waitUntil(lambda: panel.spectrum.spectrum is None)


def test_the_spectrum_is_painted_in_the_colours_of_the_theme(
    panel: WatchedPanel, qtbot: QtBot, qapp: QApplication
) -> None:
    panel.show_frame(layer_frame(LAYER))
    qtbot.waitUntil(lambda: panel.spectrum.spectrum is not None)
    corner = panel.spectrum.square().topLeft().toPoint() + QPoint(20, 20)
    assert panel.spectrum.grab().toImage().pixelColor(corner).name() == theme.DARK.well
    appearance.apply(qapp, "light")
    assert panel.spectrum.grab().toImage().pixelColor(corner).name() == theme.LIGHT.well


def test_a_hidden_panel_computes_nothing_and_catches_up(panel: WatchedPanel, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[object] = []
    monkeypatch.setattr(gpu_backend, "log_spectrum", counted.append)
    panel.hide()
    panel.show_frame(layer_frame(LAYER))
    assert counted == []
    monkeypatch.undo()
    panel.show()
    assert panel.spectrum.spectrum is not None


def test_the_spectrum_of_a_large_picture_waits_until_it_rests(
    panel: WatchedPanel, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[bool] = []
    running = SimpleNamespace(isActive=lambda: True, start=lambda: starts.append(True))
    monkeypatch.setattr(panel, "_spectrum_timer", running)
    panel.show_frame(layer_frame(LAYER))
    assert starts == [], "a small one does not wait for the next"
    for count in (1, 2, 3):
        panel.show_frame(picture_frame(512))
        assert len(starts) == count, "each begins the wait anew"
    qtbot.waitUntil(lambda: panel.figures.heads[0].text() == "picture")  # the figures do not wait
    assert panel.spectrum.spectrum is None
    monkeypatch.undo()
    panel.show_frame(picture_frame(512))
    qtbot.waitUntil(lambda: panel.spectrum.spectrum is not None)


def test_the_panel_fits_a_narrow_dock_and_a_low_one(each_font: str, panel: WatchedPanel) -> None:
    room = narrow_dock(each_font, 330)
    assert panel.minimumSizeHint().width() <= room
    panel.resize(room, 380)
    QApplication.processEvents()
    assert panel.table.height() >= 72
    assert panel.rect().contains(panel.spectrum.geometry())
    assert panel.spectrum.square().width() >= 100


def test_every_control_says_what_it_is(panel: WatchedPanel) -> None:
    panel.edits.show(Session(tap=LAYER))
    controls = panel.controls
    for widget in (controls.channel.slider, controls.gain.slider, *controls.three):
        assert widget.accessibleName()
        assert widget.toolTip()
    assert "0 to 511" in controls.channel.slider.toolTip()
    assert "−40.0 to +40.0" in controls.gain.slider.toolTip()
    assert isinstance(SetParameter("layer", None).label, str)


def test_the_table_shows_the_focus(panel: WatchedPanel) -> None:
    panel.table.clearFocus()
    assert not has_frame(panel.table)
    panel.table.setFocus()
    assert has_frame(panel.table)
