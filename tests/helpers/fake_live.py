"""Fakes of `LiveControl` and `PlayedValues`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from explorer_app.controller import InputKind, InputState, Learning
from explorer_app.inputs.sampler import Level
from explorer_app.session.patches import Patch


class FakeInputs(QObject):
    """Inputs that are opened by name."""

    changed = Signal()

    def __init__(self, calls: list[Any]) -> None:
        super().__init__()
        self._calls = calls
        self.states: dict[InputKind, InputState] = {
            "osc": InputState(address="127.0.0.1:9000"),
            "midi": InputState(),
            "gamepad": InputState(),
            "input": InputState(),
            "feedback": InputState(address="127.0.0.1:9001"),
        }

    def state(self, kind: InputKind) -> InputState:
        return self.states[kind]

    def show(self, kind: InputKind, state: InputState) -> None:
        self.states[kind] = state
        self.changed.emit()

    def set_on(self, kind: InputKind, on: bool) -> bool:
        self._calls.append(("set_input", kind, on))
        return on

    def set_address(self, kind: InputKind, address: str) -> bool:
        self._calls.append(("set_address", kind, address))
        return True


class FakeLive(QObject):
    """Records calls of the live control."""

    learning_changed = Signal()
    sampled = Signal()

    def __init__(self, calls: list[Any]) -> None:
        super().__init__()
        self._calls = calls
        self.inputs = FakeInputs(calls)
        self.learning: Learning | None = None
        self.mapped: set[str] = set()
        self.levels: dict[Patch, Level] = {}

    def level(self, patch: Patch) -> Level:
        return self.levels.get(patch, Level())

    def is_mapped(self, path: str) -> bool:
        return path in self.mapped

    def learn(self, path: str, low: float, high: float) -> None:
        self._calls.append(("learn", path, low, high))
        self.learning = Learning(path, path, low, high)
        self.learning_changed.emit()

    def learn_again(self, patch: Patch) -> None:
        self.learn(patch.parameter, patch.low, patch.high)

    def stop_learning(self) -> None:
        self._calls.append(("stop learning",))
        self.learning = None
        self.learning_changed.emit()

    def forget(self, path: str) -> None:
        self._calls.append(("forget", path))

    def refuse(self, sentence: str) -> None:
        self._calls.append(("refuse", sentence))

    def take_values(self) -> None:
        self._calls.append(("take values",))

    def save_preset(self, path: Path) -> None:
        self._calls.append(("save preset", path))

    def load_preset(self, path: Path) -> None:
        self._calls.append(("load preset", path))


class FakePlayed(QObject):
    """Values that a test sets."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, float] = {}

    def show(self, values: dict[str, float]) -> None:
        self.values = values
        self.changed.emit()
