"""Searches of the controller that never run: each remembers what it was asked, and shows what a test wants."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, Signal

from explorer_app.controller.direction_finding import DirectionsState
from explorer_app.controller.encoder_learning import LearningState
from explorer_app.controller.ladder import LadderState
from explorer_app.controller.tuning import TuningState

Asked = list[tuple[Any, ...]]
"""Calls, as (what, *arguments)."""


class FakeDirectionFinding(QObject):
    """Stands for `DirectionFinding`."""

    changed = Signal()

    def __init__(self, asked: Asked) -> None:
        super().__init__()
        self._asked = asked
        self.state = DirectionsState()

    def find(self, search: Any, having: Any = (), lacking: Any = ()) -> None:
        self._asked.append(("find_directions", search, having, lacking))

    def cancel(self) -> None:
        self._asked.append(("cancel_directions",))

    def take_back(self) -> None:
        self._asked.append(("take_directions_back",))


class FakeLearning(QObject):
    """Stands for `EncoderLearning`; a test sets `state` by `show`."""

    changed = Signal()

    def __init__(self, asked: Asked) -> None:
        super().__init__()
        self._asked = asked
        self.state = LearningState()

    def start(self) -> None:
        self._asked.append(("learn",))

    def stop(self) -> None:
        self._asked.append(("stop_learning",))

    def show(self, state: LearningState) -> None:
        self.state = state
        self.changed.emit()


class FakeTuning(QObject):
    """Stands for `Tuning`; a test sets `state` by `show`."""

    changed = Signal()

    def __init__(self, asked: Asked) -> None:
        super().__init__()
        self._asked = asked
        self.state = TuningState()

    def start(self, budget_s: float) -> None:
        self._asked.append(("tune", budget_s))

    def stop(self) -> None:
        self._asked.append(("stop_tuning",))

    def show(self, state: TuningState) -> None:
        self.state = state
        self.changed.emit()


class FakeLadder(QObject):
    """Stands for `Ladder`; a test sets `state` by `show`."""

    changed = Signal()

    def __init__(self, asked: Asked) -> None:
        super().__init__()
        self._asked = asked
        self.state = LadderState()

    def start(self) -> None:
        self._asked.append(("measure_ladder",))

    def stop(self) -> None:
        self._asked.append(("stop_ladder",))

    def show(self, state: LadderState) -> None:
        self.state = state
        self.changed.emit()


class FakeLocalEditing(QObject):
    """Notes what the panel of local edits requests."""

    maps_made = Signal(object)
    maps_failed = Signal(str)
    search_changed = Signal()

    def __init__(self, asked: Asked) -> None:
        super().__init__()
        self._asked = asked
        self.text = ""
        self.is_searching = False

    def request_maps(self, layer: str) -> None:
        self._asked.append(("channel maps", layer))

    def find_style_channels(self) -> None:
        self._asked.append(("style channels",))

    def stop_search(self) -> None:
        self._asked.append(("stop style channels",))
