"""Tuning beside pictures: one tile a step while nothing moves, compiled elsewhere, ended whenever a person wants."""

from __future__ import annotations

from collections.abc import Callable

from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.render_events import TuningAdvanced, TuningEnded, TuningFound
from gpu_backend import DeviceLostError
from tests.helpers.fake_renderer import GPU, Engine
from tests.helpers.render_harness import Harness, seed_of


def test_a_tuning_takes_its_steps_on_the_render_thread_and_reports_each_finding(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.gpus = (GPU,)
    harness = start(DeviceChoice("cuda:0", "tf32"))
    harness.thread.tune(60.0)
    harness.until(lambda: harness.of(TuningEnded))
    (tuning,) = engine.tunings
    assert tuning.choice == DeviceChoice("cuda:0", "tf32"), "what renders is tuned"
    assert [event.found.shape.cout for event in harness.of(TuningFound)] == [8, 16, 24]
    assert harness.of(TuningAdvanced)[-1].state.share == 1.0
    assert [event.error for event in harness.of(TuningEnded)] == [None]
    assert tuning.closed == 1
    assert "preparing tuning" in engine.threads, "a look at every weight holds up no picture"


def test_while_kernels_are_compiled_every_picture_is_rendered(start: Callable[..., Harness], engine: Engine) -> None:
    engine.gpus, engine.tuning_waits = (GPU,), True
    harness = start(DeviceChoice("cuda:0"))
    harness.thread.tune(60.0)
    harness.until(lambda: engine.tunings)
    for seed in range(5):
        harness.show(seed)
    assert engine.tunings[0].steps == 0
    engine.tunings[0].is_waiting = False
    harness.until(lambda: harness.of(TuningEnded))
    assert [seed_of(item) for item in engine.requests] == list(range(5))


def test_a_tuning_that_is_stopped_frees_the_gpu_and_reports_it(start: Callable[..., Harness], engine: Engine) -> None:
    engine.gpus, engine.tuning_waits = (GPU,), True
    harness = start(DeviceChoice("cuda:0"))
    harness.thread.tune(60.0)
    harness.until(lambda: engine.tunings)
    harness.thread.tune(60.0)
    harness.thread.stop_tuning()
    harness.until(lambda: harness.of(TuningEnded))
    assert [tuning.closed for tuning in engine.tunings] == [1], "one at a time"
    engine.tuning_waits = False
    harness.thread.tune(60.0)
    harness.until(lambda: len(harness.of(TuningEnded)) == 2)
    assert len(harness.of(TuningFound)) == 3


def test_a_tuning_that_fails_reports_it_and_pictures_go_on(start: Callable[..., Harness], engine: Engine) -> None:
    engine.gpus, engine.tuning_failing = (GPU,), DeviceLostError("The GPU stopped answering.")
    harness = start(DeviceChoice("cuda:0"))
    harness.thread.tune(60.0)
    harness.until(lambda: harness.of(TuningEnded))
    assert harness.of(TuningEnded)[0].error is engine.tuning_failing
    harness.show(7)


def test_without_a_gpu_there_is_nothing_to_tune(start: Callable[..., Harness], engine: Engine) -> None:
    harness = start(DeviceChoice("cpu"))
    harness.thread.tune(60.0)
    harness.until(lambda: harness.of(TuningEnded))
    assert "for a GPU that renders" in str(harness.of(TuningEnded)[0].error)
    assert engine.tunings == []


def test_closing_frees_the_gpu_of_a_tuning_under_way(start: Callable[..., Harness], engine: Engine) -> None:
    engine.gpus, engine.tuning_waits = (GPU,), True
    harness = start(DeviceChoice("cuda:0"))
    harness.thread.tune(60.0)
    harness.until(lambda: engine.tunings)
    harness.thread.close()
    assert engine.tunings[0].closed == 1
