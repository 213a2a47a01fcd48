"""Steps of the preview, without a thread."""

from __future__ import annotations

from dataclasses import replace
from threading import Condition

import pytest

from explorer_app.rendering.preview_request import PreviewFrame, PreviewRequest
from explorer_app.rendering.render_events import RenderEvent, RenderFailed
from explorer_app.rendering.tasks.preview import PreviewTask
from gpu_backend import DeviceError
from tests.helpers.fake_renderer import Engine, FakeRenderer
from tests.helpers.render_harness import MODEL, request, seed_of


class Bench:
    """A preview task, a renderer whose drafts need preparation, and what came of both."""

    def __init__(self, **engine: object) -> None:
        self.engine = Engine()
        for name, value in engine.items():
            setattr(self.engine, name, value)
        self.renderer = FakeRenderer(MODEL, self.engine)
        self.shown: list[PreviewFrame] = []
        self.events: list[RenderEvent] = []
        self.task = PreviewTask(Condition(), self.shown.append, self.events.append, lambda error: False)

    def request(self, seed: int, resolution: int | None = 64) -> None:
        self.task.request(PreviewRequest(replace(request(seed), resolution=resolution), 0.0, False))

    def step(self) -> None:
        assert self.task.step(self.renderer, lambda: False)

    @property
    def seeds(self) -> list[int]:
        return [seed_of(frame.frame.request) for frame in self.shown]


@pytest.fixture
def bench() -> Bench:
    return Bench(draft_steps=2)


def test_each_step_before_the_first_draft_prepares_a_part_of_its_plan(bench: Bench) -> None:
    bench.request(1)
    for _ in range(3):
        assert bench.task.seconds_until_ready() == 0.0
        bench.step()
    assert bench.engine.calls == ["prepare", "prepare", "render"]
    assert bench.seeds == [1]
    assert bench.task.seconds_until_ready() is None


def test_a_newer_request_replaces_the_one_that_is_being_prepared_and_needs_only_the_steps_that_are_left(
    bench: Bench,
) -> None:
    bench.request(1)
    bench.step()
    bench.request(2)
    bench.step()
    bench.step()
    assert bench.engine.calls == ["prepare", "prepare", "render"]
    assert bench.seeds == [2]


def test_a_failing_preparation_is_reported_and_its_request_dropped() -> None:
    bench = Bench(prepare_failing=DeviceError("The GPU stopped answering."))
    bench.request(1)
    bench.step()
    assert bench.events == [RenderFailed(bench.engine.prepare_failing)]  # type: ignore[arg-type]
    assert bench.task.seconds_until_ready() is None
