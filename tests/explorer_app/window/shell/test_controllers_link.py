"""Controllers in the window: from a right click to the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from explorer_app.controller import InputState
from explorer_app.inputs.sampler import Level
from explorer_app.session.edits import GoToSeed
from explorer_app.session.patch_table import SetPatches
from explorer_app.session.patches import Patch
from explorer_app.session.variations import GridAxis
from explorer_app.settings import Settings
from explorer_app.window.controls.parameter_menu import ForgetRequest, LearnRequest, MappingQuery
from explorer_app.window.shell.main_window import MainWindow
from tests.helpers.fake_controller import FakeController
from tests.helpers.windows import Make, dialog_of

BEAT = Patch("audio/drums/beat", "noise.gain", 0.5, 1.0)
KNOB = Patch("midi/APC:APC 1/cc/1/21", "truncation.psi", -1.0, 1.0)


@pytest.fixture
def controller() -> FakeController:
    return FakeController()


@pytest.fixture
def window(make: Make, controller: FakeController) -> MainWindow:
    return make(controller, 1600, 980)


def test_a_window_joins_controls_controllers_and_outputs(
    window: MainWindow, controller: FakeController, qtbot: QtBot, tmp_path: Path
) -> None:
    query = MappingQuery("truncation.psi")
    controller.live.mapped.add("truncation.psi")
    for event in (query, LearnRequest("truncation.psi", -1.0, 1.5), ForgetRequest("noise.gain")):
        QCoreApplication.sendEvent(window, event)
    assert query.is_mapped
    panel = window.controllers
    assert panel.learning.isVisibleTo(panel)
    QTest.keyClick(window.canvas, Qt.Key.Key_Escape)
    assert controller.calls[-3:] == [
        ("learn", "truncation.psi", -1.0, 1.5),
        ("forget", "noise.gain"),
        ("stop learning",),
    ]
    assert not panel.learning.isVisibleTo(panel)

    # The table follows the session, the inputs and the levels, and passes switches on.
    window.workspace.switch_to("animate")
    controller.editing.edit(SetPatches((KNOB,)), True)
    qtbot.waitUntil(lambda: len(panel.rows) == 1)
    assert panel.rows[0].accessibleName().startswith("APC · CC 21 moves truncation ψ")
    controller.live.levels[KNOB] = Level(0.5)
    controller.live.sampled.emit()
    qtbot.waitUntil(lambda: panel.rows[0].level.source == 0.5)
    controller.sounds.levels[BEAT] = 0.75
    controller.editing.edit(SetPatches((KNOB, BEAT)), True)
    qtbot.waitUntil(lambda: len(panel.rows) == 2 and panel.rows[1].level.source == 0.75)
    controller.editing.edit(SetPatches((KNOB,)), True)
    controller.live.inputs.show("midi", InputState(True, ports=("APC:APC 1",)))
    assert panel.inputs.ports["midi"].full_text == "APC"
    panel.inputs.switches["osc"].click()
    panel.inputs.address_entered.emit("osc", "9002")
    assert controller.calls[-2:] == [("set_input", "osc", True), ("set_address", "osc", "9002")]
    panel.take.click()
    assert controller.calls[-1] == ("take values",)
    panel.save.click()
    chooser = dialog_of(window, QFileDialog)
    assert chooser.defaultSuffix() == "patches.json", "Open preset… shows only files that end so"
    chooser.fileSelected.emit(str(tmp_path / "stage.patches.json"))
    chooser.close()
    assert controller.calls[-1] == ("save preset", tmp_path / "stage.patches.json")

    # The same action opens and closes the picture on a screen.
    action = window.actions_by_key["output"]
    action.trigger()
    assert window.outputs.is_open
    assert action.isChecked()
    action.trigger()
    assert not window.outputs.is_open
    assert not action.isChecked()


def test_the_bars_of_sounds_are_there_when_the_panel_is_opened(
    window: MainWindow, controller: FakeController, qtbot: QtBot
) -> None:
    controller.sounds.levels[BEAT] = 0.25
    controller.editing.edit(SetPatches((BEAT,)), True)
    window.workspace.switch_to("animate")
    qtbot.waitUntil(lambda: [row.level.source for row in window.controllers.rows] == [0.25])


def test_the_bars_of_sounds_follow_the_playhead(window: MainWindow, controller: FakeController, qtbot: QtBot) -> None:
    controller.editing.edit(SetPatches((BEAT,)), True)
    window.workspace.switch_to("animate")
    qtbot.waitUntil(lambda: [row.level.source for row in window.controllers.rows] == [None])
    controller.sounds.levels[BEAT] = 0.5
    controller.editing.edit(GoToSeed(3))  # as any change of the session, the playhead's too
    qtbot.waitUntil(lambda: [row.level.source for row in window.controllers.rows] == [0.5])


def test_sliders_show_what_controllers_set_also_in_panels_that_are_opened_later(
    window: MainWindow, controller: FakeController
) -> None:
    controller.played.show({"truncation.psi": 1.25, "slider/axis/3": 2.0})
    assert window.latent.psi.slider._played == 1.25
    assert window.sliders.axes.axes.played == {3: 2.0}
    controller.played.show({})
    assert window.latent.psi.slider._played is None
    assert window.sliders.axes.axes.played == {}


def test_the_volume_and_the_grid_are_those_of_the_last_start(
    make: Make, controller: FakeController, settings: Settings
) -> None:
    settings.choose("sound.volume", "40")
    settings.choose("grid.side", "7")
    settings.choose("grid.spread", "55")
    settings.choose("grid.kind", "axes")
    settings.choose("grid.down", "sefa/3")
    window = make(controller, 1600, 980)
    window.workspace.switch_to("animate")
    panel = window.timeline
    assert ("volume", 0.4) in controller.calls
    assert panel.volume_field.value() == 40.0
    assert (controller.grid.settings.side, controller.grid.settings.spread) == (7, 0.55)
    assert (controller.grid.settings.kind, controller.grid.settings.down.direction) == ("axes", "sefa/3")
    controller.grid.change(side=4, spread=0.2, across=GridAxis("sefa/2", 5.0))
    controller.grid.change(kind="children")
    panel.volume_field.entered.emit(65.0, True)
    assert controller.calls[-1] == ("volume", 0.65)
    assert [settings.choice(name) for name in ("sound.volume", "grid.side", "grid.spread")] == ["65", "4", "20"]
    assert [settings.choice(f"grid.{name}") for name in ("kind", "across", "down")] == ["axes", "sefa/2", "sefa/3"]
    assert not panel.volume_field.isVisibleTo(panel), "without a sound"


@pytest.mark.parametrize("damaged", ["loud", "99999999999999999999"])
def test_damaged_choices_are_the_usual_ones(
    damaged: str, make: Make, controller: FakeController, settings: Settings
) -> None:
    for name in ("grid.side", "grid.spread", "grid.kind"):
        settings.choose(name, damaged)
    make(controller, 1600, 980)
    assert (controller.grid.settings.side, controller.grid.settings.spread) == (5, 0.3)
    assert controller.grid.settings.kind == "random"
