"""Controllers over a fake renderer and MIDI ports made of Python, with a clock that the test winds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from pythonosc.udp_client import SimpleUDPClient

from explorer_app.controller.live_inputs import parsed_address
from explorer_app.inputs.errors import InputError
from explorer_app.inputs.feedback import Feedback
from explorer_app.inputs.gamepad_input import PadState
from explorer_app.inputs.midi_input import PortEvent
from explorer_app.inputs.osc_input import OscInput
from explorer_app.messages import Level
from explorer_app.session.parameters import SetParameter
from explorer_app.session.patch_file import save_patches
from explorer_app.session.patch_table import ADJUST, SetPatches, with_changed
from explorer_app.session.patches import Patch
from explorer_app.session.tracks import Timeline
from tests.helpers.controller_harness import Harness

PSI = "truncation.psi"
KNOBS = "knobs:knobs MIDI 1 20:0"
NAME = "knobs:knobs MIDI 1"
CC21, CC22 = f"midi/{NAME}/cc/1/21", f"midi/{NAME}/cc/1/22"
PATCH = Patch(CC21, PSI, 0.0, 1.0)


class Stage:
    """A harness with a controller of knobs plugged in."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.live = harness.controller.live
        self.editing = harness.controller.editing

    def turn(self, value: int, number: int = 21) -> None:
        """Turn a knob, and let the program notice."""
        self.harness.midi.play(KNOBS, 0xB0, number, value)
        self.tick()

    def tick(self, passed_s: float = 1 / 60) -> None:
        self.harness.now_s += passed_s
        self.live._tick()

    @property
    def psi(self) -> float:
        """Truncation of the newest picture."""
        return self.harness.frames[-1].request.blend[0][0].truncation.psi

    def shows(self, psi: float) -> None:
        self.harness.until(lambda: self.psi == pytest.approx(psi, abs=1e-6))


@pytest.fixture
def stage(open_harness: Harness) -> Stage:
    open_harness.midi.plugged = [KNOBS]
    open_harness.controller.live.inputs.set_on("midi", True)
    open_harness.until(lambda: open_harness.midi.opened)
    return Stage(open_harness)


def mapped(stage: Stage, *patches: Patch) -> None:
    stage.editing.edit(SetPatches(patches or (PATCH,)))
    stage.tick()


def test_a_knob_moves_the_picture_and_neither_the_session_nor_the_history(stage: Stage) -> None:
    mapped(stage)
    steps, session = len(stage.harness.labels), stage.editing.session
    stage.turn(127)
    stage.shows(1.0)
    stage.turn(0)
    stage.shows(0.0)
    assert stage.editing.session is session
    assert len(stage.harness.labels) == steps


def test_values_are_read_when_the_picture_is_requested_so_none_is_older_than_a_frame(stage: Stage) -> None:
    mapped(stage)
    stage.turn(10)
    stage.harness.midi.play(KNOBS, 0xB0, 21, 100)  # after the tick
    stage.editing._request_live()
    stage.shows(100 / 127)


def test_a_saved_picture_has_what_the_knob_shows(stage: Stage) -> None:
    mapped(stage)
    stage.turn(127)
    stage.shows(1.0)
    assert stage.editing.effective.truncation.psi == 1.0


def test_values_that_are_taken_become_the_sessions_in_one_step(stage: Stage) -> None:
    mapped(stage, replace(PATCH, mode="add"), Patch(CC22, "noise.gain", 0.0, 2.0))
    stage.turn(127)
    stage.turn(32, number=22)
    stage.shows(1.7)
    steps = len(stage.harness.labels)
    stage.live.take_values()
    session = stage.editing.session
    assert (session.truncation.psi, session.noise.gain) == (pytest.approx(1.7), pytest.approx(64 / 127))
    assert len(stage.harness.labels) == steps + 1
    assert stage.editing.effective.truncation.psi == pytest.approx(1.7), "what adds does not add twice"
    stage.live.take_values()
    assert len(stage.harness.labels) == steps + 1
    stage.editing.undo()
    assert stage.editing.session.truncation.psi == 0.7


def test_an_input_that_another_program_holds_is_tried_again_at_the_next_start(open_harness: Harness) -> None:
    inputs = open_harness.controller.live.inputs
    other = OscInput(inputs.board, port=0)
    inputs.set_address("osc", f"127.0.0.1:{other.port}")
    open_harness.settings.choose("live.osc", "on")
    inputs.restore()
    other.close()
    assert not inputs.state("osc").is_on
    assert open_harness.settings.choice("live.osc") == "on"


def test_learning_maps_the_control_that_moves_and_undo_takes_it_back(stage: Stage) -> None:
    stage.turn(64, number=22)
    stage.live.learn(PSI, -1.0, 1.5)
    assert stage.live.learning is not None
    stage.turn(65, number=22)  # trembles
    stage.turn(0)
    assert stage.live.learning is not None
    stage.turn(20)
    assert stage.live.learning is None
    assert stage.live.patches == (Patch(CC21, PSI, -1.0, 1.5),)
    assert stage.live.is_mapped(PSI)
    assert stage.harness.said()[-1] == "knobs · CC 21 moves truncation ψ."
    stage.editing.undo()
    assert stage.live.patches == ()


def test_learning_a_button_takes_its_first_press(stage: Stage) -> None:
    stage.live.learn(PSI, 0.0, 1.0)
    stage.harness.midi.play(KNOBS, 0x99, 36, 127)
    stage.tick()
    assert stage.live.patches == (Patch(f"midi/{NAME}/note/10/36", PSI, 0.0, 1.0),)


def test_learning_again_keeps_the_range_and_takes_the_other_control(stage: Stage) -> None:
    mapped(stage, replace(PATCH, low=0.25, curve=1.0))
    stage.live.learn(PSI, -1.0, 1.0)
    stage.turn(0, number=22)
    stage.turn(50, number=22)
    assert stage.live.patches == (replace(PATCH, low=0.25, curve=1.0, source=CC22),)


def test_learning_again_replaces_the_control_of_the_patch_that_is_meant(stage: Stage) -> None:
    second = Patch("osc/fader/0", PSI, -0.5, 0.5, mode="add")
    mapped(stage, PATCH, second)
    stage.live.learn_again(second)
    stage.turn(0, number=22)
    stage.turn(50, number=22)
    assert stage.live.patches == (PATCH, replace(second, source=CC22))
    stage.live.learn_again(second)  # which is no longer there: the first one of the parameter
    stage.turn(0, number=23)
    stage.turn(50, number=23)
    assert [patch.source for patch in stage.live.patches] == [f"midi/{NAME}/cc/1/23", CC22]


def test_learning_can_be_ended_and_a_parameter_forgets_its_controller(stage: Stage) -> None:
    stage.live.learn(PSI, 0.0, 1.0)
    stage.live.stop_learning()
    stage.turn(0)
    stage.turn(127)
    assert stage.live.patches == ()
    sound = Patch("audio/drums/rms", PSI)
    mapped(stage, PATCH, sound)
    stage.live.forget(PSI)
    assert stage.live.patches == (sound,)
    assert stage.harness.labels[-1] == "Forget controller"


def test_the_message_of_learning_is_needed_until_it_ends_and_can_cancel_it(stage: Stage) -> None:
    stage.live.learn(PSI, 0.0, 1.0)
    first = stage.harness.messages.messages[-1].action
    assert first is not None
    assert first.is_needed()
    stage.live.learn("noise.gain", 0.0, 1.0)
    second = stage.harness.messages.messages[-1].action
    assert second is not None
    assert second.is_needed()
    assert not first.is_needed()
    second.call()
    assert stage.live.learning is None
    assert not second.is_needed()


def test_values_are_read_once_a_refresh_of_the_screen(stage: Stage) -> None:
    stage.editing.follow_screen(120.0)
    assert stage.live._timer.interval() == 8
    stage.editing.follow_screen(0.0)
    assert stage.live._timer.interval() == 16, "the usual rate, if the screen's is unknown"


def test_only_numbers_can_be_learned(stage: Stage) -> None:
    stage.live.learn("pinned_blend", 0.0, 1.0)
    assert stage.live.learning is None
    assert stage.harness.said(Level.WARNING) == ["A controller moves numbers, but latent is not a number."]


def test_learning_opens_the_inputs_that_there_are(open_harness: Harness) -> None:
    live = open_harness.controller.live
    live.inputs.set_address("osc", "127.0.0.1:1")  # a port that only an administrator may open, or one that is free
    live.learn(PSI, 0.0, 1.0)
    assert [live.inputs.state(kind).is_on for kind in ("midi", "gamepad")] == [True, True]
    assert live.learning is not None


def test_a_gamepad_moves_the_picture(open_harness: Harness) -> None:
    stage, rest = Stage(open_harness), PadState(1, "Pad", (0.0,), ())
    mapped(stage, Patch("gamepad/0/axis/0", PSI, 0.0, 1.0))
    open_harness.pads.pads = [rest]
    assert stage.live.inputs.set_on("gamepad", True)
    open_harness.until(lambda: stage.live.inputs.state("gamepad").ports == ("Pad",))
    open_harness.pads.pads = [replace(rest, axes=(1.0,))]
    open_harness.until(lambda: stage.live.inputs.board.count)
    stage.tick()
    stage.shows(1.0)


def test_an_unplugged_controller_is_said_and_it_goes_on_when_it_is_back(stage: Stage) -> None:
    mapped(stage)
    stage.turn(127)
    midi = stage.live.inputs._midi
    assert midi is not None
    midi._stopped.set()  # its thread looks for ports once a second; here the test does
    midi._thread.join()
    stage.harness.midi.plugged = []
    midi.look()
    stage.harness.until(lambda: stage.harness.said(Level.WARNING))
    assert stage.harness.said(Level.WARNING)[-1].startswith(f"{NAME} was unplugged.")
    assert stage.live.inputs.state("midi").ports == ()
    stage.shows(1.0)
    stage.harness.midi.plugged = [KNOBS.replace("20", "28")]
    midi.look()
    stage.harness.until(lambda: stage.harness.said()[-1] == f"{NAME} is back.")


def test_the_inputs_of_the_last_start_are_opened_after_the_first_picture(stage: Stage) -> None:
    again = stage.harness.reopened()
    again.midi = stage.harness.midi
    again.start()
    again.until(lambda: again.controller.live.inputs.state("midi").is_on)


def test_osc_moves_the_picture_over_loopback(open_harness: Harness) -> None:
    stage = Stage(open_harness)
    inputs = stage.live.inputs
    mapped(stage, Patch("osc/psi/0", PSI, 0.0, 1.0))
    osc = inputs._osc = OscInput(inputs.board, port=0)
    client = SimpleUDPClient("127.0.0.1", osc.port)
    client.send_message("/psi", 0.25)
    client._sock.close()
    open_harness.until(lambda: inputs.board.count)
    stage.tick()
    stage.shows(0.25)
    assert inputs.state("osc").received == 1
    assert stage.live.level(stage.live.patches[0]).value == pytest.approx(0.25)


def test_a_port_in_use_is_said_and_remembered_as_off(open_harness: Harness) -> None:
    inputs = open_harness.controller.live.inputs
    other = OscInput(inputs.board, port=0)
    assert inputs.set_address("osc", f"127.0.0.1:{other.port}")
    assert not inputs.set_on("osc", True)
    assert "choose another port" in inputs.state("osc").problem
    assert open_harness.settings.choice("live.osc") == "off"
    other.close()
    assert inputs.set_on("osc", True)
    assert inputs.state("osc").problem == ""


@pytest.mark.parametrize(
    ("text", "address"),
    [("192.168.0.9:8000", ("192.168.0.9", 8000)), ("9000", ("127.0.0.1", 9000)), ("[::1]:7000", ("::1", 7000))],
)
def test_an_address_is_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    assert parsed_address(text) == address


@pytest.mark.parametrize("text", ["", "host", "host:0", "host:99999", "host:9000x", "host:0000801234567"])
def test_a_malformed_address_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(InputError, match="An OSC address is a host and a port"):
        parsed_address(text)


def recorded(stage: Stage, *values: int) -> None:
    """Record a knob's way, a tenth of a second a value."""
    playback = stage.harness.controller.playback
    stage.editing.edit(SetParameter("noise.gain", 1.0))
    playback.set_recording(True)
    for value in values:
        stage.harness.midi.play(KNOBS, 0xB0, 21, value)
        stage.editing._request_live()  # a frame
        stage.tick(0.1)


def test_a_recorded_knob_becomes_keys_in_one_step_of_undo(stage: Stage) -> None:
    mapped(stage)
    recorded(stage, 0, 32, 64, 96, 127)
    steps = len(stage.harness.labels)
    stage.harness.controller.playback.set_recording(False)
    track = stage.editing.session.timeline.track(PSI)
    assert track is not None
    assert [key.value for key in track.keys][-1] == pytest.approx(1.0)
    assert len(stage.harness.labels) == steps + 1
    stage.editing.undo()
    assert stage.editing.session.timeline == Timeline()


def test_two_knobs_that_are_recorded_at_once_become_a_track_and_a_step_each(stage: Stage) -> None:
    mapped(stage, PATCH, Patch(CC22, "noise.gain", 0.0, 2.0))
    playback = stage.harness.controller.playback
    playback.set_recording(True)
    for value in (0, 32, 64, 96, 127):
        stage.harness.midi.play(KNOBS, 0xB0, 21, value)
        stage.harness.midi.play(KNOBS, 0xB0, 22, 127 - value)
        stage.editing._request_live()
        stage.tick(0.1)
    steps = len(stage.harness.labels)
    playback.set_recording(False)
    recorded_timeline = stage.editing.session.timeline
    assert {track.path for track in recorded_timeline.tracks} == {PSI, "noise.gain"}
    ends = {track.path: track.keys[-1].value for track in recorded_timeline.tracks}
    assert ends == {PSI: pytest.approx(1.0), "noise.gain": pytest.approx(0.0)}
    assert len(stage.harness.labels) == steps + 2
    stage.editing.undo()
    assert len(stage.editing.session.timeline.tracks) == 1
    stage.editing.undo()
    assert stage.editing.session.timeline == Timeline()
    stage.editing.redo()
    stage.editing.redo()
    assert stage.editing.session.timeline == recorded_timeline


def test_a_recorded_knob_that_rests_lets_the_track_play(stage: Stage) -> None:
    mapped(stage)
    recorded(stage, 0, 64, 127)
    for _ in range(10):
        stage.editing._request_live()
        stage.tick(0.1)
    assert stage.editing.session.timeline.track(PSI) is not None, "the take ends when the knob rests"
    playback = stage.harness.controller.playback
    playback.set_playing(False)
    playback.seek(Fraction(1, 10))
    assert stage.editing.effective.truncation.psi < 0.9


def test_only_armed_parameters_are_recorded(stage: Stage) -> None:
    mapped(stage)
    stage.harness.controller.playback.animate("noise.gain")
    stage.harness.controller.playback.set_armed("noise.gain", True)
    recorded(stage, 0, 64, 127)
    stage.harness.controller.playback.set_recording(False)
    assert stage.editing.session.timeline.track(PSI) is None


def test_a_preset_brings_its_patches_and_leaves_those_of_sounds(stage: Stage, tmp_path: Path) -> None:
    path, sound = tmp_path / "stage.patches.json", Patch("audio/drums/rms", PSI)
    mapped(stage, PATCH, sound)
    stage.live.save_preset(path)
    stage.harness.until(lambda: "One patch is saved in stage.patches.json." in stage.harness.said())
    stage.editing.edit(SetPatches((sound,)))
    stage.live.load_preset(path)
    stage.harness.until(lambda: stage.live.patches == (sound, PATCH))
    path.write_text("[]")
    stage.live.load_preset(path)
    stage.harness.until(lambda: "is not a controller preset" in stage.harness.said()[-1])


def test_a_preset_leaves_out_what_the_model_does_not_have(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "stage.patches.json"
    save_patches(path, (PATCH, replace(PATCH, parameter="slider/world/zebras")))
    stage.live.load_preset(path)
    stage.harness.until(lambda: stage.live.patches == (PATCH,))
    assert stage.harness.said()[-1] == "One patch was left out of the preset: this model has no such parameter."


def test_a_preset_offers_to_switch_on_the_inputs_that_it_needs(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "stage.patches.json"
    save_patches(path, (PATCH,))
    stage.live.load_preset(path)
    stage.harness.until(lambda: stage.live.patches == (PATCH,))
    assert not any(message.action for message in stage.harness.messages.messages), "MIDI is on"
    stage.live.inputs.set_on("midi", False)
    save_patches(path, (PATCH, Patch("gamepad/0/axis/1", "noise.gain")))
    stage.live.load_preset(path)
    stage.harness.until(lambda: len(stage.live.patches) == 2)
    message = stage.harness.messages.messages[-1]
    assert message.sentence == "Controls of the preset act once MIDI and Gamepad are switched on."
    assert message.action is not None
    assert message.action.is_needed()
    message.action.call()
    assert stage.live.inputs.state("midi").is_on
    assert stage.live.inputs.state("gamepad").is_on
    assert not message.action.is_needed()


def test_feedback_sends_where_each_control_belongs(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr(type(stage.live.inputs), "sends", property(lambda self: True))
    monkeypatch.setattr(stage.live.inputs, "show", shown.append)
    mapped(stage)
    assert shown[-1] == {CC21: pytest.approx(0.7)}
    stage.editing.edit(SetParameter(PSI, 0.25))
    stage.tick()
    assert shown[-1] == {CC21: 0.25}
    stage.turn(127)
    stage.editing._request_live()
    stage.tick()
    assert shown[-1] == {}, "a hand on the fader is not fought"
    stage.tick(1.0)
    stage.editing._request_live()
    stage.tick()
    assert shown[-1] == {CC21: 1.0}


def test_a_controller_that_is_back_gets_the_values_that_it_had(stage: Stage) -> None:
    class Sent:
        """Implements `Sends`."""

        def __init__(self) -> None:
            self.values: list[dict[str, float]] = []

        def send(self, values: Mapping[str, float]) -> None:
            self.values.append(dict(values))

        def look_for_ports(self) -> None:
            pass

        def close(self) -> None:
            pass

    sent = Sent()
    stage.live.inputs._feedback = Feedback([sent], pace_s=0.0)
    mapped(stage)
    stage.harness.until(lambda: len(sent.values) == 1)
    stage.live.inputs._take_port(PortEvent(NAME, is_there=True))
    stage.tick()
    stage.harness.until(lambda: len(sent.values) == 2)
    assert sent.values == [{CC21: pytest.approx(0.7)}] * 2


def test_changes_of_a_patch_in_a_row_are_one_step(stage: Stage) -> None:
    mapped(stage)
    steps = len(stage.harness.labels)
    for low in (0.1, 0.2, 0.3):
        patches = with_changed(stage.live.patches, 0, replace(PATCH, low=low))
        stage.editing.edit(SetPatches(patches, ADJUST))
    assert len(stage.harness.labels) == steps + 1
    assert [patch.low for patch in stage.live.patches] == [0.3]
