"""The panel of controllers, by real mouse and key events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.controller import InputState, Learning
from explorer_app.inputs.sampler import Level
from explorer_app.session.patches import Patch
from explorer_app.session.session import Session
from explorer_app.session.tracks import Sound, Timeline
from explorer_app.window.controllers.controllers_panel import ControllersPanel
from explorer_app.window.controllers.patch_row import range_text
from tests.helpers.fonts import narrow_dock
from tests.helpers.panels import Edits, model_directions, model_facts

KNOB = Patch("midi/APC:APC 1/cc/1/21", "truncation.psi", -1.0, 1.0)
SUN = Patch("osc/sun/0", "slider/world/sun", -2.0, 2.0, "add")
SOUND = Patch("audio/drums/rms", "noise.gain")


@pytest.fixture
def edits(qtbot: QtBot) -> Iterator[Edits]:
    panel = ControllersPanel(lambda session, path: path.rpartition("/")[2])
    qtbot.addWidget(panel)
    panel.resize(400, 420)
    panel.show()
    heard = Edits(panel, Session(patches=(KNOB, SUN, SOUND)))
    yield heard
    panel.close()


@pytest.fixture
def panel(edits: Edits) -> ControllersPanel:
    found: ControllersPanel = edits.panel
    return found


def click(row: Any) -> None:
    QTest.mouseClick(row, Qt.MouseButton.LeftButton)


def test_without_patches_it_says_what_to_do(panel: ControllersPanel) -> None:
    panel.show_session(Session())
    assert panel.empty.isVisible()
    assert "choose “Learn controller”" in panel.empty.text()
    assert not panel.save.isEnabled()
    assert not panel.editor.isVisible()


def test_values_of_controllers_are_applied_where_there_are_controllers(panel: ControllersPanel) -> None:
    assert panel.take.isEnabled()
    panel.show_session(Session(patches=(SOUND,)))
    assert not panel.take.isEnabled(), "sounds have no values to apply"


def test_a_selected_patch_does_not_widen_a_narrow_dock(each_font: str, panel: ControllersPanel) -> None:
    click(panel.rows[0])
    assert panel.editor.isVisible()
    assert panel.minimumSizeHint().width() <= narrow_dock(each_font, 300)


def test_each_patch_says_what_moves_what(panel: ControllersPanel) -> None:
    assert [row.accessibleName() for row in panel.rows] == [
        "APC · CC 21 moves truncation.psi, −1 – 1",
        "OSC /sun adds to sun, −2 – 2",
        "drums · loudness moves noise.gain, 0 – 1",
    ]
    assert range_text(replace(KNOB, high=0.123456)) == "−1 – 0.1235"


def test_a_click_opens_the_settings_and_another_closes_them(panel: ControllersPanel) -> None:
    click(panel.rows[1])
    assert panel.editor.isVisible()
    assert (panel.editor.low.value(), panel.editor.mode.segments["add"].isChecked()) == (-2.0, True)
    click(panel.rows[1])
    assert not panel.editor.isVisible()


def test_settings_edit_the_patch_of_the_session(panel: ControllersPanel, edits: Edits) -> None:
    click(panel.rows[0])
    panel.editor.high.setValue(0.5)
    panel.editor.mode.segments["add"].click()
    panel.editor.attack.setValue(0.25)
    panel.editor.curve.setValue(-1.0)
    panel.editor.on.click()
    changed = replace(KNOB, high=0.5, mode="add", attack_s=0.25, curve=-1.0, is_on=False)
    assert edits.session.patches == (changed, SUN, SOUND)


def test_pick_up_is_for_controls_that_set_a_value(panel: ControllersPanel, edits: Edits) -> None:
    click(panel.rows[0])
    panel.editor.pick_up.click()
    assert edits.session.patches[0].is_picked_up
    for index in (1, 2):
        click(panel.rows[index])
        assert not panel.editor.pick_up.isEnabled()


def test_the_list_works_by_keyboard(panel: ControllersPanel, edits: Edits, qtbot: QtBot) -> None:
    panel.activateWindow()
    panel.rows[0].setFocus()
    QTest.keyClick(panel.rows[0], Qt.Key.Key_Return)
    assert panel.selected == 0
    QTest.keyClick(panel.rows[0], Qt.Key.Key_Down)
    assert panel.selected == 1
    QTest.keyClick(panel.rows[1], Qt.Key.Key_Delete)
    assert edits.session.patches == (KNOB, SOUND)
    assert panel.selected == 1
    QTest.keyClick(panel.rows[1], Qt.Key.Key_Up)
    assert panel.selected == 0


def test_tab_goes_from_the_inputs_at_the_top_to_the_commands_at_the_bottom(panel: ControllersPanel) -> None:
    stops: list[QWidget] = []
    stop = panel.nextInFocusChain()
    while stop is not None and stop is not panel:
        if stop.isVisible() and stop.focusPolicy() & Qt.FocusPolicy.TabFocus and stop.focusProxy() is None:
            stops.append(stop)
        stop = stop.nextInFocusChain()
    assert panel.inputs.isAncestorOf(stops[0])
    assert panel.commands.isAncestorOf(stops[-1])


def test_learn_again_asks_for_another_control_of_the_selected_patch(panel: ControllersPanel) -> None:
    heard: list[Patch] = []
    panel.learn_requested.connect(heard.append)
    click(panel.rows[1])
    panel.editor.learn.click()
    click(panel.rows[2])
    assert [(patch.parameter, patch.low, patch.high) for patch in heard] == [("slider/world/sun", -2.0, 2.0)]
    assert not panel.editor.learn.isEnabled(), "a sound is chosen by its own button"


def entry(menu: QMenu | None, *names: str) -> QAction:
    inner: Any = menu
    for name in names[:-1]:
        inner = next(item.menu() for item in inner.actions() if item.text() == name)
    found: QAction = next(item for item in inner.actions() if item.text() == names[-1])
    return found


def test_a_source_can_be_a_sound_of_the_timeline_or_the_microphone(edits: Edits, panel: ControllersPanel) -> None:
    timeline = Timeline(sounds=(Sound("drums", "a" * 64, "drums.wav", 2.0), Sound("bass", "b" * 64, "bass.wav", 2.0)))
    panel.show_session(replace(edits.session, timeline=timeline))
    click(panel.rows[0])
    entry(panel.editor.open_sources(), "bass", "Loudness").trigger()
    assert edits.session.patches[0] == replace(KNOB, source="audio/bass/rms")
    entry(panel.editor.open_sources(), "Microphone", "Onsets").trigger()
    assert edits.session.patches[0] == replace(KNOB, source="input/onset")


def test_a_sound_is_given_a_parameter_to_move(edits: Edits, panel: ControllersPanel) -> None:
    assert panel.open_parameters() is None
    panel.show_model(model_facts(), model_directions(2))
    timeline = Timeline(sounds=(Sound("drums", "a" * 64, "drums.wav", 2.0),))
    panel.show_session(replace(edits.session, timeline=timeline))
    entry(panel.open_parameters(), "Truncation.psi", "drums", "Beat").trigger()
    made = edits.session.patches[-1]
    assert (made.source, made.parameter, made.mode) == ("audio/drums/beat", "truncation.psi", "add")
    assert panel.selected == 3


def test_a_patch_that_was_not_made_is_not_selected(qtbot: QtBot) -> None:
    panel = ControllersPanel(lambda session, path: path.rpartition("/")[2])
    qtbot.addWidget(panel)
    panel.show()
    panel.show_model(model_facts(), model_directions(2))
    panel.show_session(Session(timeline=Timeline(sounds=(Sound("drums", "a" * 64, "drums.wav", 2.0),))))
    panel.learn_requested.connect(lambda *_: pytest.fail("there is nothing to learn"))
    entry(panel.open_parameters(), "Truncation.psi", "drums", "Beat").trigger()
    assert panel.selected is None
    panel.editor.learn_requested.emit()


def test_a_wait_for_a_control_is_shown_and_can_be_ended(panel: ControllersPanel) -> None:
    heard: list[str] = []
    panel.learning_cancelled.connect(lambda: heard.append("cancel"))
    panel.show_learning(Learning("truncation.psi", "truncation ψ", -1.0, 1.0))
    assert panel.learning.text() == "Move a control for truncation ψ …"
    panel.cancel.click()
    panel.show_learning(None)
    assert not panel.learning.isVisible()
    assert heard == ["cancel"]


def test_levels_reach_the_rows_of_their_patches(panel: ControllersPanel) -> None:
    panel.level_of = lambda patch: Level(0.5) if patch is KNOB else Level()
    panel.show_levels()
    assert [row.level.source for row in panel.rows] == [0.5, None, None]
    panel.grab()


def test_inputs_show_ports_addresses_and_problems(panel: ControllersPanel) -> None:
    panel.inputs.show_states(
        {
            "midi": InputState(True, ports=("APC:APC 1", "nano:nano 1"), received=3),
            "gamepad": InputState(True),
            "input": InputState(),
            "osc": InputState(address="127.0.0.1:9000", problem="OSC needs libraries: pip install latentloom[live]."),
            "feedback": InputState(address="127.0.0.1:9001"),
        }
    )
    inputs = panel.inputs
    assert [switch.isChecked() for switch in inputs.switches.values()] == [True, True, False, False, False]
    assert {kind: label.full_text for kind, label in inputs.ports.items()} == {
        "midi": "APC, nano",
        "gamepad": "none is plugged in",
    }
    assert inputs.lamps["midi"].is_lit
    assert not inputs.lamps["osc"].is_lit
    assert inputs.fields["osc"].text() == "127.0.0.1:9000"
    assert "pip install latentloom[live]" in inputs.problem.text()


def test_a_switch_and_a_typed_address_are_passed_on(panel: ControllersPanel) -> None:
    heard: list[tuple[Any, ...]] = []
    panel.inputs.switched.connect(lambda *what: heard.append(what))
    panel.inputs.address_entered.connect(lambda *what: heard.append(what))
    panel.inputs.switches["osc"].click()
    field = panel.inputs.fields["osc"]
    field.clear()
    QTest.keyClicks(field, "0.0.0.0:7000")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert heard == [("osc", True), ("osc", "0.0.0.0:7000")]


def test_escape_discards_an_address_that_is_being_typed(panel: ControllersPanel) -> None:
    heard: list[tuple[Any, ...]] = []
    panel.inputs.address_entered.connect(lambda *what: heard.append(what))
    field = panel.inputs.fields["osc"]
    panel.show_session(Session())
    used = field.text()
    field.setFocus()
    QTest.keyClicks(field, "7")
    assert field.text() != used
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert field.text() == used
    panel.inputs.switches["osc"].setFocus()
    assert heard == []
