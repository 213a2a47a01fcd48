"""Kernels that are checked before a GPU takes over, while another renderer shows pictures."""

from __future__ import annotations

from collections.abc import Callable

from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.render_events import DeviceFailed, KernelsChecking, ModelOpened, ModelRefused
from gpu_backend import DeviceLostError, DeviceMemoryError, TorchError
from tests.helpers.fake_renderer import GPU, OTHER_GPU, Engine
from tests.helpers.render_harness import MODEL, OTHER, Harness


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
    engine.unchecked = 0
    harness.open(OTHER)
    assert engine.checks[1].closed == 1


def test_closing_ends_the_checks(start: Callable[..., Harness], engine: Engine) -> None:
    engine.gpus, engine.missing, engine.unchecked = (GPU,), 1, 3
    engine.check_gate.shut()
    harness = start(DeviceChoice("cuda:0"))
    harness.until(lambda: engine.checks)
    harness.thread.close()
    assert engine.checks[0].closed == 1


def test_kernels_are_checked_one_by_one_before_the_renderer_of_the_first_model_is_made(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.gpus, engine.unchecked = (GPU,), 3
    engine.check_gate.shut()
    harness = start(DeviceChoice("cuda:0"), opens=False)
    harness.thread.open(MODEL)
    harness.until(lambda: engine.checks)
    assert engine.made == []
    engine.check_gate.open()
    harness.until(lambda: harness.devices == ["cuda:0"])
    assert [(event.done, event.total) for event in harness.of(KernelsChecking)] == [(1, 3), (2, 3)]
    assert [checks.closed for checks in engine.checks] == [1]
    assert engine.made_on == [("cuda:0", "fp16")]


def test_the_open_model_shows_pictures_while_the_kernels_of_the_next_one_are_checked(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.gpus = (GPU,)
    harness = start(DeviceChoice("cuda:0"))
    engine.unchecked = 2
    engine.check_gate.shut()
    harness.thread.open(OTHER)
    harness.until(lambda: engine.checks)
    for seed in range(4):
        harness.show(seed)
    assert [event.facts for event in harness.of(ModelOpened)] == [MODEL.facts]
    engine.check_gate.open()
    harness.until(lambda: len(harness.of(ModelOpened)) == 2)
    assert harness.of(ModelOpened)[1].facts == OTHER.facts
    assert not harness.of(KernelsChecking), "the menu of devices is about the renderer of the open model"


def test_cancelling_an_opening_ends_its_checks_and_changes_nothing(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.gpus = (GPU,)
    harness = start(DeviceChoice("cuda:0"))
    engine.unchecked = 2
    engine.check_gate.shut()
    harness.thread.open(OTHER)
    harness.until(lambda: engine.checks)
    harness.thread.cancel_opening()
    harness.until(lambda: engine.checks[0].closed)
    harness.show(3)
    assert len(engine.made) == 1


def test_closing_ends_the_checks_of_a_model_that_is_being_opened(start: Callable[..., Harness], engine: Engine) -> None:
    engine.gpus, engine.unchecked = (GPU,), 2
    engine.check_gate.shut()
    harness = start(DeviceChoice("cuda:0"), opens=False)
    harness.thread.open(MODEL)
    harness.until(lambda: engine.checks)
    harness.thread.close()
    assert engine.checks[0].closed == 1
    assert engine.made == []


def test_a_gpu_that_fails_while_a_model_is_opened_leaves_it_to_the_cpu(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.gpus, engine.unchecked = (GPU,), 2
    engine.check_failing = DeviceLostError("The GPU stopped answering.")
    harness = start(DeviceChoice("cuda:0"))
    harness.until(lambda: harness.of(DeviceFailed))
    assert harness.devices == ["cpu"]
    assert harness.of(DeviceFailed)[0].error is engine.check_failing


def test_without_torch_a_gpu_that_fails_in_its_checks_is_the_reason_why_a_model_does_not_open(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.gpus, engine.unchecked = (GPU,), 2
    engine.check_failing = DeviceLostError("The GPU stopped answering.")
    engine.cpu_refusing = TorchError("Rendering on the CPU needs torch.")
    harness = start(DeviceChoice("cuda:0"), opens=False)
    harness.thread.open(MODEL)
    harness.until(lambda: harness.of(ModelRefused))
    assert harness.of(ModelRefused)[0].error is engine.check_failing


def test_checks_that_find_no_memory_are_left_to_the_renderer(start: Callable[..., Harness], engine: Engine) -> None:
    engine.gpus, engine.unchecked = (GPU,), 2
    engine.check_failing = DeviceMemoryError("The GPU has too little memory.")
    harness = start(DeviceChoice("cuda:0"))
    assert harness.devices == ["cuda:0"]
    assert not harness.of(DeviceFailed)


def test_another_choice_while_a_model_is_opened_checks_its_kernels_on_that_device(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.gpus, engine.unchecked = (GPU, OTHER_GPU), 2
    engine.check_gate.shut()
    harness = start(DeviceChoice("cuda:0"), opens=False)
    harness.thread.open(MODEL)
    harness.until(lambda: engine.checks)
    harness.thread.use(DeviceChoice("cuda:1"))
    harness.until(lambda: len(engine.checks) == 2)
    assert engine.checks[0].closed == 1
    engine.check_gate.open()
    harness.until(lambda: harness.devices == ["cuda:1"])
