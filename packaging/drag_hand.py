"""Measure what lies between a hand and the picture while points are dragged: ``python packaging/drag_hand.py``.

A thread moves a handle's target 250 times a second, as a hand does. The render thread's own tasks and queue do the
rest: bursts of the optimiser, and the picture of each latent. A sample is the time from a move to the first
picture of a latent that was optimised towards it, whose bytes are on the host. The window then paints it, which
`hand_benchmark.py` measures. Random weights; no Qt is needed.
"""

from __future__ import annotations

import argparse
import math
import queue
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drag_benchmark import write_table

from explorer_app.rendering.preview_request import PreviewFrame, PreviewRequest
from explorer_app.rendering.render_events import DragAdvanced, RenderEvent
from explorer_app.rendering.tasks.drag import DragTask
from explorer_app.rendering.tasks.preview import PreviewTask
from explorer_app.rendering.tasks.task_queue import TaskQueue
from gpu_backend import (
    DragOptimizer,
    DragReport,
    DragSettings,
    Handle,
    Latent,
    Recipe,
    Renderer,
    RenderRequest,
    StoredLatent,
    latent_statistics,
    open_gradients,
)
from gpu_backend.bench.random_model import random_model
from gpu_backend.bench.shapes import shape_of

_RATE = 250.0
_WARM_UP_S = 1.0
_LONGEST_WAIT_S = 0.05


class TimedTargets:
    """A drag that knows when the hand made the move which its steps follow; implements `DragLike`."""

    def __init__(self, drag: DragOptimizer) -> None:
        self._drag = drag
        self.moved_s: dict[tuple[float, float], float] = {}
        """Moves of the hand, by their target."""
        self.followed_s = math.nan
        """The move that the last steps followed; NaN before the first."""

    @property
    def steps(self) -> int:
        """Steps so far; checks are none."""
        return self._drag.count

    @property
    def report(self) -> DragReport:
        """The state after the last step."""
        return self._drag.report

    @property
    def latent(self) -> StoredLatent:
        """The present rows of w."""
        return self._drag.latent

    def set_target(self, index: int, target: tuple[float, float]) -> None:
        """Move the handle's target."""
        self.followed_s = self.moved_s[target]
        self._drag.set_target(index, target)

    def cancel(self) -> None:
        """End the drag."""
        self._drag.cancel()

    def step(self, should_yield: Callable[[], bool] | None = None) -> DragReport:
        """Do a step. Content that random weights do not move along is held on to all the same."""
        report = self._drag.step(should_yield)
        if any(self._drag._is_lost):
            self._drag._is_lost = [False] * len(report.handles)
            self._drag._choose_motions()
        return report


def measure(shape: str, device: str, seconds: float) -> dict[str, Any]:
    """Drag for some seconds and return the figures."""
    model = random_model(shape_of(shape))
    side = model.spec.resolution
    middle = side / 2, side / 3
    network = open_gradients(model, device="cpu" if device == "cpu" else "auto")
    rows = np.random.default_rng(0).standard_normal((model.spec.num_ws, model.spec.w_dim)).astype(np.float32)
    drag = TimedTargets(
        DragOptimizer(
            *(network, latent_statistics(network), rows, model.facts.row_resolutions),
            [Handle(middle, (middle[0] + 1.0, middle[1]))],
            DragSettings(),
        )
    )
    condition, is_over = threading.Condition(), threading.Event()
    advanced: queue.SimpleQueue[tuple[StoredLatent, float] | None] = queue.SimpleQueue()
    latencies_ms: list[float] = []
    shown: set[float] = set()
    problems: list[RenderEvent] = []

    def report(event: RenderEvent) -> None:
        if isinstance(event, DragAdvanced):
            advanced.put((event.latent, drag.followed_s))
        else:
            problems.append(event)
            is_over.set()

    def show(frame: PreviewFrame) -> None:
        moved_s = frame.requested_s
        if moved_s is not None and moved_s not in shown:
            shown.add(moved_s)
            latencies_ms.append(1e3 * (time.monotonic() - moved_s))

    preview, dragging = PreviewTask(condition, show, report, lambda error: False), DragTask(condition, report)
    tasks = TaskQueue(
        condition,
        (preview, dragging),
        has_renderer=lambda: True,
        is_closing=is_over.is_set,
        seconds_to_rest=preview.seconds_to_rest,
    )

    def ask() -> None:
        """Request the picture of each latent that is reported, as the window's thread does."""
        while (news := advanced.get()) is not None:
            latent, moved_s = news
            request = RenderRequest(model.facts.model_id, ((Recipe(Latent(latent)), 1.0),))
            preview.request(PreviewRequest(request, None if math.isnan(moved_s) else moved_s))

    def hand() -> None:
        start_s = time.monotonic()
        for count in range(1, math.ceil((_WARM_UP_S + seconds) * _RATE)):
            is_over.wait(max(0.0, start_s + count / _RATE - time.monotonic()))
            if is_over.is_set():
                break
            turn = 2 * math.pi * count / _RATE / 2.0  # a turn in two seconds
            target = middle[0] + side / 16 * math.cos(turn), middle[1] + side / 16 * math.sin(turn)
            drag.moved_s[target] = time.monotonic()
            dragging.aim(0, target)
        is_over.set()
        with condition:
            condition.notify_all()

    threads = [threading.Thread(target=ask, daemon=True), threading.Thread(target=hand, daemon=True)]
    with Renderer(model, device) as renderer:
        try:
            dragging.begin(0, lambda: drag)
            for thread in threads:
                thread.start()
            began_s = time.monotonic()
            while not is_over.is_set():
                with condition:
                    task = tasks.next()
                    if task is None:
                        # Never for long, since the hand may have ended before this thread waits.
                        condition.wait(min(_LONGEST_WAIT_S, tasks.seconds_to_wait() or _LONGEST_WAIT_S))
                        continue
                step_s = time.monotonic()
                done = task.step(renderer, partial(tasks.should_yield, task))
                tasks.note_step(task, done, time.monotonic() - step_s)
            took_s = time.monotonic() - began_s
        finally:
            is_over.set()
            advanced.put(None)
            for thread in threads:
                thread.join()
            tasks.close()
    if problems:
        raise SystemExit(f"The drag ended early: {problems[0]}")
    measured = latencies_ms[round(len(latencies_ms) * _WARM_UP_S / (_WARM_UP_S + seconds)) :]
    if len(measured) < 2:
        raise SystemExit(f"Too few pictures were shown in {seconds:g} s: {len(latencies_ms)}.")
    percentiles = statistics.quantiles(measured, n=100, method="inclusive")
    return {
        "shape": shape,
        "by": "own kernels" if network.own_kernels is not None and not network.own_kernels.problem else "torch",
        "device": renderer.device.name,
        "pictures": len(measured),
        "pictures_a_second": round(len(latencies_ms) / took_s, 1),
        "steps_a_second": round(drag.steps / took_s, 1),
        "median_ms": round(percentiles[49], 2),
        "p99_ms": round(percentiles[98], 2),
        "longest_ms": round(max(measured), 2),
    }


def main(words: Sequence[str] | None = None) -> None:
    """Measure what the command line says, write ``hand.csv`` and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", nargs="+", default=["ffhq1024", "ffhq256"])
    parser.add_argument("--device", default="auto", help="that renders; drags use its own kernels")
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args(words)
    rows = [measure(shape, options.device, options.seconds) for shape in options.shape]
    write_table("hand", rows)


if __name__ == "__main__":
    main()
