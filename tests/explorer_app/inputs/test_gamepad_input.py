"""Gamepads: scripted ones, and a virtual one of the real SDL."""

from __future__ import annotations

import importlib
import queue
import threading
import warnings
from dataclasses import replace
from typing import Any

import pytest

from explorer_app.inputs import gamepad_input
from explorer_app.inputs.gamepad_input import GamepadInput, PadState, SdlPads
from explorer_app.inputs.midi_input import PortEvent
from tests.helpers.live_inputs import PATIENCE_S, HeardBoard, ScriptedPads

REST = PadState(7, "Pad", (0.0, 0.0), (False, False))


@pytest.fixture
def pads() -> ScriptedPads:
    return ScriptedPads(REST)


@pytest.fixture
def events() -> queue.Queue[PortEvent]:
    return queue.Queue()


@pytest.fixture
def pad(pads: ScriptedPads, events: queue.Queue[PortEvent]) -> GamepadInput:
    """An input whose thread has ended, so that a test looks itself."""
    made = GamepadInput(HeardBoard(), events.put, lambda: pads, poll_s=0.0)
    assert events.get(timeout=PATIENCE_S) == PortEvent("Pad", is_there=True)
    made.close()
    return made


def test_a_stick_that_moves_becomes_a_source_and_rests_at_the_middle(pad: GamepadInput, pads: ScriptedPads) -> None:
    assert pad._board.newest() == {}
    pads.pads = [replace(REST, axes=(1.0, 0.0), buttons=(False, True))]
    pad.look(pads)
    assert pad._board.newest() == {"gamepad/0/axis/0": 1.0, "gamepad/0/button/1": 1.0}
    pads.pads = [replace(REST, axes=(0.01, -1.0))]
    pad.look(pads)
    assert pad._board.newest() == {"gamepad/0/axis/0": 0.5, "gamepad/0/axis/1": 0.0, "gamepad/0/button/1": 0.0}
    assert pad.received == 2


def test_a_gamepad_that_is_plugged_in_again_has_its_old_number(
    pad: GamepadInput, pads: ScriptedPads, events: queue.Queue[PortEvent]
) -> None:
    pads.pads = []
    pad.look(pads)
    assert events.get_nowait() == PortEvent("Pad", is_there=False)
    assert pad.open_ports == ()
    again = replace(REST, key=8)
    pads.pads = [again]
    pad.look(pads)
    assert events.get_nowait() == PortEvent("Pad", is_there=True)
    pads.pads = [replace(again, axes=(-1.0, 0.0))]
    pad.look(pads)
    assert pad._board.newest() == {"gamepad/0/axis/0": 0.0}


def test_closing_lets_go_of_the_gamepads(pad: GamepadInput, pads: ScriptedPads) -> None:
    assert pads.is_closed


def test_closing_does_not_wait_for_a_library_that_never_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gamepad_input, "_END_S", 0.05)
    begun, returns = threading.Event(), threading.Event()

    def make_pads() -> ScriptedPads:
        begun.set()
        returns.wait()
        return ScriptedPads(REST)

    pads = GamepadInput(HeardBoard(), make_pads=make_pads, poll_s=0.001)
    assert begun.wait(10.0)
    pads.close()
    returns.set()
    pads._thread.join()


def test_a_system_without_gamepads_is_reported(events: queue.Queue[PortEvent]) -> None:
    def refuse() -> ScriptedPads:
        raise OSError("no udev")

    GamepadInput(HeardBoard(), events.put, refuse).close()
    assert events.get_nowait() == PortEvent("Gamepads", is_there=False, error="no udev")


def test_sdl_reads_a_virtual_gamepad() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sdl2: Any = importlib.import_module("sdl2")
    pads = SdlPads(sdl2)
    index = sdl2.SDL_JoystickAttachVirtual(sdl2.SDL_JOYSTICK_TYPE_GAMECONTROLLER, 2, 2, 0)
    key = sdl2.SDL_JoystickGetDeviceInstanceID(index)
    assert key in {state.key for state in pads.states()}
    sdl2.SDL_JoystickSetVirtualAxis(pads._open[key], 1, -32768)
    sdl2.SDL_JoystickSetVirtualButton(pads._open[key], 0, 1)
    state = next(state for state in pads.states() if state.key == key)
    assert (state.axes[1], state.buttons) == (-1.0, (True, False))
    sdl2.SDL_JoystickDetachVirtual(index)
    assert key not in {state.key for state in pads.states()}
    pads.close()
