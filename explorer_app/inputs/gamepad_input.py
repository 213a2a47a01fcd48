"""Gamepads and joysticks through SDL: sticks, triggers and buttons, as long as they are plugged in."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from explorer_app.inputs.board import ValueBoard
from explorer_app.inputs.errors import missing_extra
from explorer_app.inputs.midi_input import PortEvent
from gpu_backend import dataclass

POLL_S = 0.008
"""SDL is polled for changes twice a frame."""

_MAX_PADS = 8
_END_S = 2.0
"""Patience with SDL, in seconds: where there is no D-Bus it starts one first, and waits for that, maybe for ever."""
_DEAD_ZONE = 0.03
"""Share of its way by which a stick trembles at rest."""


@dataclass(frozen=True, slots=True)
class PadState:
    """State of a gamepad: axes in -1..1, buttons pressed or not. `key` distinguishes two with one name."""

    key: int
    name: str
    axes: tuple[float, ...]
    buttons: tuple[bool, ...]


class Pads(Protocol):
    """The gamepads of a system. All calls come from one thread."""

    def states(self) -> Iterator[PadState]:
        """Yield the state of each gamepad that is plugged in."""
        ...

    def close(self) -> None:
        """Let go of the gamepads."""
        ...


class GamepadInput:
    """Writes what moves on gamepads to the board, until it is closed.

    A stick at rest is 0.5. An axis or button becomes a source when it first moves.

    Parameters
    ----------
    board
        Receives the values.
    tell
        Called with each `PortEvent`, on this input's thread.
    make_pads
        Makes the system's gamepads, on this input's thread; None for SDL's.

    Raises
    ------
    InputError
        If PySDL2 is missing.
    """

    def __init__(
        self,
        board: ValueBoard,
        tell: Callable[[PortEvent], object] = lambda event: None,
        make_pads: Callable[[], Pads] | None = None,
        poll_s: float = POLL_S,
    ) -> None:
        self._board = board
        self._tell = tell
        self._make_pads = make_pads or _sdl_pads()
        self._poll_s = poll_s
        self._slots: list[PadState | None] = []
        """The state of each gamepad at the last look, by the number in its sources; None for a free one."""
        self.received = 0
        """Movements so far."""
        self.dropped = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gamepads", daemon=True)
        self._thread.start()

    @property
    def open_ports(self) -> tuple[str, ...]:
        """Names of the gamepads that are plugged in."""
        return tuple(pad.name for pad in self._slots if pad is not None)

    def close(self) -> None:
        """Stop. May be called twice. SDL that does not return from a call is left alone: the program is to end."""
        self._stopped.set()
        self._thread.join(_END_S)

    def look(self, pads: Pads) -> None:
        """Write what has changed since the last look. Called on this input's thread."""
        states = {state.key: state for state in pads.states()}
        for slot, before in enumerate(self._slots):
            if before is not None and before.key not in states:
                self._slots[slot] = None
                self._tell(PortEvent(before.name, is_there=False))
        for state in states.values():
            number = self._slot_of(state)
            if number is None:
                continue
            before = self._slots[number]
            self._slots[number] = state
            if before is None:
                self._tell(PortEvent(state.name, is_there=True))
            else:
                self._write(number, before, state)

    def _slot_of(self, state: PadState) -> int | None:
        """Return the number of a gamepad: its own, else the first free one; None if there are too many."""
        for slot, before in enumerate(self._slots):
            if before is not None and before.key == state.key:
                return slot
        if None in self._slots:
            return self._slots.index(None)
        if len(self._slots) >= _MAX_PADS:
            return None
        self._slots.append(None)
        return len(self._slots) - 1

    def _write(self, slot: int, before: PadState, state: PadState) -> None:
        values = {}
        for index, (old, new) in enumerate(zip(before.axes, state.axes, strict=False)):
            if old != new:
                values[f"gamepad/{slot}/axis/{index}"] = 0.5 + 0.5 * (0.0 if abs(new) < _DEAD_ZONE else new)
        for index, (was, is_pressed) in enumerate(zip(before.buttons, state.buttons, strict=False)):
            if was != is_pressed:
                values[f"gamepad/{slot}/button/{index}"] = float(is_pressed)
        if values:
            self.received += 1
            self._board.put_all(values)

    def _run(self) -> None:
        try:
            pads = self._make_pads()
        except OSError as error:
            self._tell(PortEvent("Gamepads", is_there=False, error=str(error)))
            return
        while not self._stopped.wait(self._poll_s):
            self.look(pads)
        pads.close()


def _sdl_pads() -> Callable[[], Pads]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # says from where it takes SDL
            import sdl2
    except ImportError as error:
        raise missing_extra("A gamepad") from error
    return lambda: SdlPads(sdl2)


class SdlPads:
    """The gamepads that SDL finds. Made, used and closed on one thread.

    Raises
    ------
    OSError
        If SDL cannot look for gamepads.
    """

    def __init__(self, sdl: Any) -> None:
        self._sdl = sdl
        for hint in (b"SDL_JOYSTICK_ALLOW_BACKGROUND_EVENTS", b"SDL_NO_SIGNAL_HANDLERS", b"SDL_JOYSTICK_THREAD"):
            sdl.SDL_SetHint(hint, b"1")
        if sdl.SDL_InitSubSystem(sdl.SDL_INIT_JOYSTICK) != 0:
            raise OSError(sdl.SDL_GetError().decode(errors="replace") or "SDL does not start")
        self._open: dict[int, Any] = {}

    def states(self) -> Iterator[PadState]:
        """Yield the state of each gamepad that is plugged in."""
        sdl = self._sdl
        sdl.SDL_JoystickUpdate()
        for index in range(sdl.SDL_NumJoysticks()):
            key = sdl.SDL_JoystickGetDeviceInstanceID(index)
            if key >= 0 and key not in self._open:
                pad = sdl.SDL_JoystickOpen(index)
                if pad:
                    self._open[key] = pad
        for key, pad in list(self._open.items()):
            if not sdl.SDL_JoystickGetAttached(pad):
                sdl.SDL_JoystickClose(self._open.pop(key))
                continue
            axes = (sdl.SDL_JoystickGetAxis(pad, axis) for axis in range(sdl.SDL_JoystickNumAxes(pad)))
            buttons = (sdl.SDL_JoystickGetButton(pad, button) for button in range(sdl.SDL_JoystickNumButtons(pad)))
            name = (sdl.SDL_JoystickName(pad) or b"Gamepad").decode(errors="replace")
            yield PadState(key, name, tuple(max(-1.0, axis / 32_767) for axis in axes), tuple(map(bool, buttons)))

    def close(self) -> None:
        """Let go of the gamepads, and of SDL."""
        for pad in self._open.values():
            self._sdl.SDL_JoystickClose(pad)
        self._open.clear()
        self._sdl.SDL_QuitSubSystem(self._sdl.SDL_INIT_JOYSTICK)
