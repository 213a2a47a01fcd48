"""Optimisers of a drag without a network, and a render thread that begins them when a test says so."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from explorer_app.rendering.render_events import DragAdvanced, DragFailed
from explorer_app.rendering.tasks.drag import BURST_S, DragLike
from gpu_backend import CancelledError, DragReport, DragSettings, Handle, HandleState, LocalEdits, Noise, StoredLatent

Pixels = tuple[float, float]


class FakeDrag:
    """Settles after a number of steps of a set duration; its rows count the steps.

    With `is_checking` its next step follows the handles, which gives way to previews.
    """

    def __init__(self, clock: list[float], steps: int = 10, step_s: float = BURST_S / 2.5) -> None:
        self._clock, self._left, self._step_s = clock, steps, step_s
        self.steps = 0
        self.targets: list[tuple[int, tuple[float, float]]] = []
        self.error: Exception | None = None
        self.is_cancelled = False
        self.is_checking = False

    @property
    def report(self) -> DragReport:
        return DragReport(self.steps, 0.0, (), self._left <= 0)

    @property
    def latent(self) -> StoredLatent:
        return StoredLatent(np.full((1, 1), self.steps, "<f4").tobytes(), 1, 1)

    def set_target(self, index: int, target: tuple[float, float]) -> None:
        self.targets.append((index, target))
        self._left = 3

    def cancel(self) -> None:
        self.is_cancelled = True

    def step(self, should_yield: Callable[[], bool] | None = None) -> DragReport:
        if self.error is not None:
            raise self.error
        if self.is_checking and should_yield is not None and should_yield():
            raise CancelledError("The picture was cancelled.")
        self.is_checking = False
        self._clock[0] += self._step_s
        self.steps += 1
        self._left -= 1
        return self.report


class FollowingDrag:
    """Each step brings every handle eight pixels nearer to its target; its rows are those of the start plus the steps.

    Attributes
    ----------
    weak, lost, covered
        Indices of handles that do not follow.
    follows
        Share of its way by which the content follows, as tracking finds it.
    """

    def __init__(self, latent: StoredLatent, handles: Sequence[Handle], settings: DragSettings) -> None:
        self.start, self.handles, self.settings = latent, tuple(handles), settings
        self.targets = [handle.target for handle in handles]
        self.places = [handle.source for handle in handles]
        self.steps = 0
        self.weak: set[int] = set()
        self.lost: set[int] = set()
        self.covered: set[int] = set()
        self.follows = 1.0

    @property
    def report(self) -> DragReport:
        states = tuple(
            HandleState(
                place,
                self._content(index),
                math.dist(place, target),
                index in self.weak,
                index in self.lost,
                index in self.covered,
            )
            for index, (place, target) in enumerate(zip(self.places, self.targets, strict=True))
        )
        given_up = self.weak | self.lost | self.covered
        settled = all(state.distance < 1e-6 for index, state in enumerate(states) if index not in given_up)
        return DragReport(self.steps, 0.5, states, settled)

    @property
    def latent(self) -> StoredLatent:
        rows = np.frombuffer(self.start.rows, "<f4") + np.float32(self.steps)
        return StoredLatent(rows.astype("<f4").tobytes(), self.start.num_ws, self.start.w_dim)

    def _content(self, index: int) -> Pixels:
        (x, y), (to_x, to_y) = self.handles[index].source, self.places[index]
        return x + self.follows * (to_x - x), y + self.follows * (to_y - y)

    def set_target(self, index: int, target: Pixels) -> None:
        self.targets[index] = target

    def cancel(self) -> None:
        pass

    def step(self, should_yield: Callable[[], bool] | None = None) -> DragReport:
        moved = False
        for index, (place, target) in enumerate(zip(self.places, self.targets, strict=True)):
            if index not in self.weak | self.lost | self.covered:
                length = math.dist(place, target)
                share = 1.0 if length <= 8.0 else 8.0 / length
                self.places[index] = (
                    place[0] + share * (target[0] - place[0]),
                    place[1] + share * (target[1] - place[1]),
                )
                moved = True
        self.steps += moved
        return self.report


class FakeDragMaker:
    """Stands for `gpu_backend.DragMaker`."""

    def __init__(self) -> None:
        self.made: list[FollowingDrag] = []
        self.prepared = 0
        self.error: Exception | None = None
        self.weak: set[int] = set()
        self.edits: list[LocalEdits] = []
        self.slower_because = ""

    def prepare(self, model: object, noise: Noise, edits: LocalEdits) -> None:
        self.prepared += 1

    def make(
        self,
        model: object,
        noise: Noise,
        edits: LocalEdits,
        latent: StoredLatent,
        handles: Sequence[Handle],
        settings: DragSettings,
    ) -> FollowingDrag:
        self.edits.append(edits)
        if self.error is not None:
            raise self.error
        drag = FollowingDrag(latent, handles, settings)
        drag.weak = set(self.weak)
        self.made.append(drag)
        return drag


class FakeDragRenders:
    """Stands for the render thread: `advance` does a step and reports it to the point drag."""

    def __init__(self, model: object = "a model") -> None:
        self.model: Any = model
        self.point_drag: Any = None
        self.number = -1
        self.drag: Any = None
        self._error: Exception | None = None

    def begin_drag(self, number: int, make: Callable[[], DragLike]) -> None:
        self.number, self.drag, self._error = number, None, None
        try:
            self.drag = make()
        except Exception as error:
            self._error = error

    def aim_drag(self, index: int, target: Pixels) -> None:
        if self.drag is not None:
            self.drag.set_target(index, target)

    def end_drag(self) -> None:
        self.drag = None

    def advance(self, steps: int = 1) -> None:
        """Do so many steps, each with its event."""
        if self._error is not None:
            self.point_drag.take_failed(DragFailed(self.number, self._error))
            self._error = None
        for _ in range(steps):
            if self.drag is not None:
                report = self.drag.step()
                self.point_drag.take_advanced(DragAdvanced(self.number, report, self.drag.latent))

    def run_to_rest(self) -> None:
        """Advance until the stroke has ended."""
        for _ in range(400):
            if self.point_drag.phase == "rest":
                return
            self.advance()
        raise AssertionError("the stroke does not settle")
