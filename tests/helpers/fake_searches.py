"""Searches of the controller that never run: each remembers what it was asked, and shows what a test wants."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, Signal

from explorer_app.controller.direction_finding import DirectionsState
from explorer_app.controller.encoder_learning import LearningState
from explorer_app.controller.ladder import LadderState
from explorer_app.controller.tuning import TuningState

Calls = list[tuple[Any, ...]]
"""Calls, as (what, *arguments)."""


class FakeDirectionFinding(QObject):
    """Stands for `DirectionFinding`."""

    changed = Signal()

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls
        self.state = DirectionsState()

    def find(self, search: Any, having: Any = (), lacking: Any = ()) -> None:
        self._calls.append(("find_directions", search, having, lacking))

    def cancel(self) -> None:
        self._calls.append(("cancel_directions",))

    def take_back(self) -> None:
        self._calls.append(("take_directions_back",))


class FakeLearning(QObject):
    """Stands for `EncoderLearning`; a test sets `state` by `show`."""

    changed = Signal()

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls
        self.state = LearningState()

    def start(self) -> None:
        self._calls.append(("learn",))

    def stop(self) -> None:
        self._calls.append(("stop_learning",))

    def show(self, state: LearningState) -> None:
        self.state = state
        self.changed.emit()


class FakeTuning(QObject):
    """Stands for `Tuning`; a test sets `state` by `show`."""

    changed = Signal()

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls
        self.state = TuningState()

    def start(self, budget_s: float) -> None:
        self._calls.append(("tune", budget_s))

    def stop(self) -> None:
        self._calls.append(("stop_tuning",))

    def show(self, state: TuningState) -> None:
        self.state = state
        self.changed.emit()


class FakeLadder(QObject):
    """Stands for `Ladder`; a test sets `state` by `show`."""

    changed = Signal()

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls
        self.state = LadderState()

    def start(self) -> None:
        self._calls.append(("measure_ladder",))

    def stop(self) -> None:
        self._calls.append(("stop_ladder",))

    def show(self, state: LadderState) -> None:
        self.state = state
        self.changed.emit()


class FakeLocalEditing(QObject):
    """Notes what the panel of local edits requests."""

    maps_made = Signal(object)
    maps_failed = Signal(str)
    search_changed = Signal()
    mask_needed = Signal(int)

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls
        self.text = ""
        self.is_searching = False

    def blend_with_seed(self, seed: int, number: int = 0) -> None:
        self._calls.append(("blend with seed", seed, number))

    def blend_with_shown(self, number: int = 0) -> None:
        self._calls.append(("blend with shown", number))

    def blend_with_kept(self, kept: int, number: int = 0) -> None:
        self._calls.append(("blend with kept", kept, number))

    def request_maps(self, layer: str) -> None:
        self._calls.append(("channel maps", layer))

    def find_style_channels(self) -> None:
        self._calls.append(("style channels",))

    def stop_search(self) -> None:
        self._calls.append(("stop style channels",))
