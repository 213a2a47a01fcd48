"""Values that a knob gives parameters, beside those of the session."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer_app.session.patch_table import SetPatches
from explorer_app.session.patches import Patch
from tests.helpers.controller_harness import Harness

PSI = "truncation.psi"
PORT = "knobs:knobs MIDI 1 20:0"
KNOB = Patch("midi/knobs:knobs MIDI 1/cc/1/21", PSI, -1.0, 1.0)


def test_the_value_of_a_knob_is_told_while_it_differs_from_that_of_the_session(open_harness: Harness) -> None:
    harness, live = open_harness, open_harness.controller.live
    editing, played = harness.controller.editing, harness.controller.played
    harness.midi.plugged = [PORT]
    live.inputs.set_on("midi", True)
    harness.until(lambda: harness.midi.opened)
    editing.edit(SetPatches((KNOB,)))
    told = []
    played.changed.connect(lambda: told.append(dict(played.values)))
    before = editing.session
    harness.midi.play(PORT, 0xB0, 21, 127)
    live._tick()
    harness.until(lambda: told)
    assert told == [{PSI: pytest.approx(1.0)}]
    assert editing.session is before
    editing.edit(SetPatches((replace(KNOB, is_on=False),)))
    harness.until(lambda: len(told) > 1)
    assert told[-1] == {}
    assert played.values == {}


def test_without_patches_no_frame_starts_a_timer(open_harness: Harness) -> None:
    harness = open_harness
    harness.drag(1.0)
    assert not harness.controller.played._timer.isActive()
