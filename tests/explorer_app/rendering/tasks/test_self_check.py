"""Kernels that are checked before a GPU takes over, while another renderer shows pictures."""

from __future__ import annotations

from collections.abc import Callable

from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.render_events import DeviceFailed, KernelsChecking
from gpu_backend import DeviceLostError
from tests.helpers.fake_renderer import GPU, OTHER_GPU, Engine
from tests.helpers.render_harness import OTHER, Harness


def test_the_cpu_shows_every_picture_while_kernels_are_checked_and_then_the_gpu_takes_over(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.gpus, engine.missing, engine.unchecked = (GPU,), 2, 3
    engine.check_gate.shut()
    harness = start(DeviceChoice("cuda:0"))
    harness.until(lambda: engine.checks)
    for seed in range(4):
        harness.show(seed)
    assert harness.devices == ["cpu"]
    engine.check_gate.open()
    harness.until(lambda: harness.devices == ["cpu", "cuda:0"])
    assert [(event.done, event.total) for event in harness.of(KernelsChecking)] == [(1, 3), (2, 3)]
    assert [checks.closed for checks in engine.checks] == [1]


def test_a_picture_that_never_rests_does_not_keep_the_gpu_from_taking_over(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.gpus, engine.missing, engine.unchecked = (GPU,), 1, 5
    harness = start(DeviceChoice("cuda:0"))
    seed = 0
    while harness.devices[-1:] != ["cuda:0"]:
        seed += 1
        harness.show(seed)
        assert seed < 5000


def test_a_gpu_that_fails_in_its_checks_leaves_the_pictures_to_the_renderer_that_made_them(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.gpus, engine.missing, engine.unchecked = (GPU,), 1, 3
    engine.check_failing = DeviceLostError("The GPU stopped answering.")
    harness = start(DeviceChoice("cuda:0"))
    harness.until(lambda: harness.of(DeviceFailed))
    assert harness.of(DeviceFailed)[0].error is engine.check_failing
    harness.show(5)
    assert harness.devices == ["cpu"]
    assert engine.checks[0].closed == 1


def test_another_choice_or_model_ends_the_checks_for_the_former_one(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.gpus, engine.missing, engine.unchecked = (GPU, OTHER_GPU), 1, 3
    engine.check_gate.shut()
    harness = start(DeviceChoice("cuda:0"))
    harness.until(lambda: engine.checks)
    harness.thread.use(DeviceChoice("cuda:1"))
    harness.until(lambda: len(engine.checks) == 2)
    assert engine.checks[0].closed == 1
    harness.open(OTHER)
    assert engine.checks[1].closed == 1


def test_closing_ends_the_checks(start: Callable[..., Harness], engine: Engine) -> None:
    engine.gpus, engine.missing, engine.unchecked = (GPU,), 1, 3
    engine.check_gate.shut()
    harness = start(DeviceChoice("cuda:0"))
    harness.until(lambda: engine.checks)
    harness.thread.close()
    assert engine.checks[0].closed == 1


def test_where_nothing_shows_pictures_the_renderer_checks_its_kernels_when_it_is_made(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.gpus, engine.unchecked = (GPU,), 3
    harness = start(DeviceChoice("cuda:0"))
    assert harness.devices[-1] == "cuda:0"
    assert engine.checks == []
