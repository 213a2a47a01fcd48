"""A ladder of optimisations on the render thread, while pictures rest."""

from __future__ import annotations

from collections.abc import Callable

from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.render_events import LadderAdvanced, LadderEnded, LadderFound
from gpu_backend import DeviceError
from tests.helpers.fake_renderer import GPU, Engine
from tests.helpers.render_harness import Harness


def test_each_rung_is_reported_and_the_device_freed(start: Callable[..., Harness], engine: Engine) -> None:
    engine.gpus = (GPU,)
    harness = start(DeviceChoice("cuda:0"))
    harness.thread.measure_ladder()
    harness.until(lambda: harness.of(LadderEnded))
    (ladder,) = engine.ladders
    assert (ladder.device, ladder.closed) == ("cuda:0", 1)
    assert [event.found.rung.what for event in harness.of(LadderFound)] == ["rung 1", "rung 2", "rung 3"]
    assert harness.of(LadderAdvanced)[-1].state.share == 2 / 3
    assert [event.error for event in harness.of(LadderEnded)] == [None]
    assert "preparing ladder" in engine.threads


def test_the_processor_has_a_ladder_too(start: Callable[..., Harness], engine: Engine) -> None:
    harness = start(DeviceChoice("cpu"))
    harness.thread.measure_ladder()
    harness.until(lambda: harness.of(LadderEnded))
    assert [ladder.device for ladder in engine.ladders] == ["cpu"]


def test_pictures_go_on_while_its_kernels_compile_and_stopping_frees_the_device(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.ladder_waits = True
    harness = start(DeviceChoice("cpu"))
    harness.thread.measure_ladder()
    harness.until(lambda: engine.ladders)
    harness.show(7)
    harness.thread.stop_ladder()
    harness.until(lambda: harness.of(LadderEnded))
    assert [(ladder.steps, ladder.closed) for ladder in engine.ladders] == [(0, 1)]


def test_a_ladder_that_cannot_be_made_says_why(start: Callable[..., Harness], engine: Engine) -> None:
    engine.ladder_failing = DeviceError("There is no such device.")
    harness = start(DeviceChoice("cpu"))
    harness.thread.measure_ladder()
    harness.until(lambda: harness.of(LadderEnded))
    assert harness.of(LadderEnded)[0].error is engine.ladder_failing
    harness.show(7)
