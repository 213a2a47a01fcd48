from __future__ import annotations

import math

from explorer_app.inputs.board import ValueBoard
from explorer_app.inputs.sources import (
    is_live,
    midi_parts,
    midi_source,
    osc_parts,
    osc_source,
    port_name,
    source_label,
)


def test_the_newest_value_of_a_source_wins() -> None:
    board = ValueBoard()
    board.put("osc/sun/0", 0.2)
    board.put("osc/sun/0", 0.7)
    board.put("osc/moon/0", 0.1)
    assert board.newest() == {"osc/sun/0": 0.7, "osc/moon/0": 0.1}
    assert board.count == 3


def test_values_stay_within_0_and_1_and_what_is_not_finite_is_ignored() -> None:
    board = ValueBoard()
    board.put_all({"a": 4.0, "b": -1.0, "c": math.nan})
    board.put("d", math.inf)
    assert board.newest() == {"a": 1.0, "b": 0.0}


def test_a_board_drops_the_source_that_was_silent_for_longest() -> None:
    board = ValueBoard(limit=3)
    for name in "abc":
        board.put(name, 0.5)
    board.put("a", 0.6)
    board.put("d", 0.1)
    assert board.newest() == {"c": 0.5, "a": 0.6, "d": 0.1}


def test_a_closed_input_takes_its_sources_along() -> None:
    board = ValueBoard()
    board.put_all({"osc/sun/0": 0.5, "midi/a/cc/1/2": 0.5})
    board.forget("osc/")
    assert board.newest() == {"midi/a/cc/1/2": 0.5}


def test_names_of_sources_can_be_taken_apart_again() -> None:
    assert midi_parts(midi_source("nano KONTROL", "cc", 3, 21)) == ("nano KONTROL", "cc", 3, 21)
    assert midi_parts(midi_source("keys", "bend", 16)) == ("keys", "bend", 16, 0)
    assert midi_parts("osc/midi/cc/1/0") is None
    assert osc_parts(osc_source("/mixer/1/fader", 2)) == ("/mixer/1/fader", 2)
    assert osc_parts("midi/a/cc/1/2") is None


def test_a_port_keeps_its_name_when_it_is_plugged_in_again() -> None:
    assert port_name("nanoKONTROL2:nanoKONTROL2 MIDI 1 20:0") == port_name("nanoKONTROL2:nanoKONTROL2 MIDI 1 24:0")
    assert port_name("a/b") == "a-b"
    assert port_name("  ") == "MIDI"


def test_sources_are_shown_as_people_name_them() -> None:
    assert source_label("midi/APC:APC MIDI 1/cc/1/21") == "APC · CC 21"
    assert source_label("midi/APC/note/10/36") == "APC · note ch 10 36"
    assert source_label("midi/keys/bend/1") == "keys · bend"
    assert source_label("osc/sun/0") == "OSC /sun"
    assert source_label("osc/pad/1") == "OSC /pad [2]"
    assert source_label("gamepad/0/axis/1") == "Gamepad 1 · axis 2"
    assert source_label("input/band/0") == "Microphone · band 1"
    assert source_label("audio/drums/onset") == "drums · onset"


def test_sounds_of_the_timeline_are_not_live() -> None:
    assert is_live("midi/a/cc/1/2")
    assert is_live("input/rms")
    assert not is_live("audio/drums/rms")
