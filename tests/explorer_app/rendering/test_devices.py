"""Which device renders: at once, after its kernels are compiled, or another one that is wished for."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.render_events import (
    Compared,
    CompareFailed,
    DeviceChanged,
    DeviceFailed,
    DevicesFound,
    MemoryChanged,
    ModelOpened,
    ModelRefused,
)
from gpu_backend import DeviceError, DeviceLostError, RenderOptions, RequestError, TorchError
from tests.helpers.fake_renderer import GPU, OTHER_GPU, Engine
from tests.helpers.patience import more_than
from tests.helpers.render_harness import MODEL, OTHER, Harness, request, seed_of
from tests.helpers.stylegan3 import make_stylegan3

ALIAS_FREE = make_stylegan3(num_layers=3)
LOST = DeviceLostError("The GPU stopped answering.")


@pytest.fixture
def engine() -> Engine:
    return Engine(gpus=(GPU, OTHER_GPU))


def test_with_its_kernels_in_the_cache_the_gpu_renders_at_once(start: Callable[..., Harness], engine: Engine) -> None:
    harness = start()
    harness.show(1)
    assert engine.made_on == [("cuda:0", "fp16")]
    assert harness.compiling == []
    assert harness.of(DevicesFound)[0].devices[:2] == (GPU, OTHER_GPU)
    assert harness.of(MemoryChanged)


def test_the_layer_kernels_compile_ahead_once_a_gpu_renders(start: Callable[..., Harness], engine: Engine) -> None:
    engine.missing = 14
    engine.compile_gate.shut()
    engine.layer_gate.shut()
    harness = start()
    harness.show(7)
    assert engine.layers_compiled == []
    engine.compile_gate.open()
    harness.until(lambda: harness.devices == ["cpu", "cuda:0"])
    harness.show(8)  # pictures do not wait for them
    engine.layer_gate.open()
    harness.until(lambda: engine.layers_compiled == [(MODEL.facts.model_id, "fp16")])
    harness.open(OTHER)
    assert len(engine.layers_compiled) == 1, "the first picture comes before"
    harness.submit(9, OTHER)
    harness.until(lambda: len(engine.layers_compiled) == 2)
    harness.submit(10, OTHER)
    harness.until(lambda: seed_of(harness.frames[-1].request) == 10)
    assert len(engine.layers_compiled) == 2, "once is enough"
    assert engine.layers_compiled[1] == (OTHER.facts.model_id, "fp16")
    assert harness.compiling[-1] == (14, 14), "nothing is said of them"


def test_on_the_processor_there_are_no_kernels_of_layers(start: Callable[..., Harness], engine: Engine) -> None:
    harness = start(DeviceChoice("cpu"))
    harness.show(1)
    harness.thread.close()
    assert engine.layers_compiled == []


def test_devices_are_listed_before_a_gpu_renders_and_after_the_cpu_does(
    start: Callable[..., Harness],
) -> None:
    wished = start()
    assert [type(event) for event in wished.event][:2] == [DevicesFound, ModelOpened]
    alone = start(DeviceChoice("cpu"))
    alone.until(lambda: alone.of(DevicesFound))
    assert isinstance(alone.event[0], ModelOpened)


def test_while_kernels_are_compiled_the_processor_shows_pictures_and_then_the_gpu_shows_the_same(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.missing = 14
    engine.compile_gate.shut()
    harness = start()
    harness.show(7)
    assert engine.made_on == [("cpu", "fp32")]
    harness.until(lambda: harness.compiling == [(0, 14)])
    engine.compile_gate.open()
    harness.until(lambda: len(harness.frames) == 2)
    assert harness.compiling == [(done, 14) for done in range(15)]
    assert harness.devices == ["cpu", "cuda:0"]
    assert harness.frames[0].request == harness.frames[1].request, "the same picture, without being asked for again"
    assert [renderer.closed for renderer in engine.made] == [1, 0]
    assert engine.threads == {"rendering", "compiling kernels"}


def test_a_slow_picture_of_the_processor_yields_to_the_gpu(start: Callable[..., Harness], engine: Engine) -> None:
    engine.missing = 1
    engine.compile_gate.shut()
    harness = start()
    engine.gate.shut()
    harness.submit(1)
    engine.gate.wait_for_knock()
    engine.compile_gate.open()
    harness.until(lambda: harness.thread._device.has_change(is_model_waiting=False))
    engine.gate.open()
    harness.until(lambda: harness.frames)
    assert len(engine.given_up) == 1
    assert harness.devices == ["cpu", "cuda:0"]


def test_without_torch_the_first_picture_waits_for_the_gpus_kernels(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.cpu_refusing = TorchError("Rendering on the CPU needs torch.")
    engine.missing = 14
    harness = start()
    harness.show(7)
    assert harness.devices == ["cuda:0"]
    assert harness.compiling[-1] == (14, 14)


def test_few_kernels_are_compiled_before_the_first_picture_which_needs_no_torch_then(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.missing = engine.quick_kernels = 14
    harness = start()
    harness.show(7)
    assert engine.made_on == [("cuda:0", "fp16")]
    assert harness.compiling[-1] == (14, 14)


def test_few_kernels_that_do_not_compile_leave_the_first_picture_to_the_cpu(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.missing = engine.quick_kernels = 2
    engine.compile_failing = DeviceError("There is no compiler.")
    harness = start()
    harness.show(1)
    assert harness.devices == ["cpu"]
    assert harness.of(DeviceFailed)[0].error is engine.compile_failing


def test_closing_while_few_kernels_are_compiled_makes_no_renderer(
    threads_before: set[threading.Thread], start: Callable[..., Harness], engine: Engine
) -> None:
    engine.missing = engine.quick_kernels = 5
    engine.compile_gate.shut()
    harness = start(opens=False)
    harness.thread.open(MODEL)
    harness.until(lambda: "rendering" in engine.threads)
    harness.thread.close()
    assert set(threading.enumerate()) <= threads_before
    assert engine.made == []


def test_a_chosen_gpu_is_started_once_devices_are_known_and_none_for_the_cpu(
    start: Callable[..., Harness], engine: Engine
) -> None:
    harness = start()
    harness.until(lambda: engine.prepared == ["auto"])
    start(DeviceChoice("cpu", "fp32")).show(1)
    assert engine.prepared == ["auto"]


def test_without_torch_and_without_a_gpu_the_reason_is_reported(start: Callable[..., Harness], engine: Engine) -> None:
    engine.cpu_refusing = TorchError("Rendering on the CPU needs torch.")
    engine.gpus = ()
    harness = start(opens=False)
    harness.thread.open(MODEL)
    harness.until(lambda: harness.of(ModelRefused))
    assert "needs torch" in str(harness.of(ModelRefused)[0].error)


def test_kernels_that_do_not_compile_leave_the_processor_in_place(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.missing = 2
    engine.compile_failing = DeviceError("There is no compiler.")
    harness = start()
    harness.until(lambda: harness.of(DeviceFailed))
    harness.show(1)
    assert harness.devices == ["cpu"]
    assert not harness.of(DeviceFailed)[0].was_rendering


@pytest.mark.parametrize("device", ["auto", "cuda", "cuda:1"])
def test_a_network_that_no_gpu_runs_is_rendered_by_the_processor_and_the_next_one_by_the_gpu(
    start: Callable[..., Harness], engine: Engine, device: str
) -> None:
    harness = start(DeviceChoice(device))
    wished = harness.devices[-1]
    harness.open(ALIAS_FREE)
    harness.thread.use(DeviceChoice("cuda:0"))
    harness.until(lambda: harness.of(DeviceChanged))
    harness.open(OTHER)
    assert harness.devices == [wished, "cpu", "cpu", "cuda:0"]
    assert harness.of(DeviceFailed) == harness.compiling == []
    harness.submit(3, OTHER)
    harness.until(lambda: harness.frames)


def test_opening_another_model_cancels_compiling(start: Callable[..., Harness], engine: Engine) -> None:
    engine.missing = 5
    engine.compile_gate.shut()
    harness = start()
    harness.until(lambda: harness.compiling)
    harness.open(OTHER)
    engine.compile_gate.open()
    harness.until(lambda: harness.devices[-1] == "cuda:0")
    assert engine.made[-1].facts.model_id == OTHER.facts.model_id
    assert harness.devices == ["cpu", "cpu", "cuda:0"]


def test_closing_while_kernels_are_compiled_leaves_no_thread(
    threads_before: set[threading.Thread], start: Callable[..., Harness], engine: Engine
) -> None:
    engine.missing = 5
    engine.compile_gate.shut()
    harness = start()
    harness.until(lambda: harness.compiling)
    harness.thread.close()
    assert set(threading.enumerate()) <= threads_before


def test_another_device_and_another_precision_take_over_with_the_same_picture(
    start: Callable[..., Harness], engine: Engine
) -> None:
    harness = start()
    harness.show(3)
    for choice in (DeviceChoice("cuda:1"), DeviceChoice("cuda:1", "fp32"), DeviceChoice("cpu")):
        count = len(harness.frames)
        harness.thread.use(choice)
        harness.until(more_than(harness.frames, count))
    assert engine.made_on == [("cuda:0", "fp16"), ("cuda:1", "fp16"), ("cuda:1", "fp32"), ("cpu", "fp32")]
    assert {seed_of(frame.request) for frame in harness.frames} == {3}
    assert [renderer.closed for renderer in engine.made] == [1, 1, 1, 0]
    assert len(harness.of(ModelOpened)) == 1


def test_a_device_chosen_before_any_model_counts_for_the_first(start: Callable[..., Harness], engine: Engine) -> None:
    harness = start(opens=False)
    harness.thread.use(DeviceChoice("cuda:1"))
    harness.open()
    assert engine.made_on == [("cuda:1", "fp16")]


def test_the_renderer_stays_in_use_while_kernels_for_another_choice_compile(
    start: Callable[..., Harness], engine: Engine
) -> None:
    harness = start()
    engine.missing = 3
    engine.compile_gate.shut()
    harness.thread.use(DeviceChoice("cuda:0", "fp32"))
    harness.until(lambda: harness.compiling)
    harness.show(4)
    assert engine.made_on == [("cuda:0", "fp16")]
    engine.compile_gate.open()
    harness.until(lambda: len(engine.made) == 2)
    assert engine.made_on[-1] == ("cuda:0", "fp32")


def test_a_choice_that_is_reverted_while_kernels_are_compiled_is_forgotten(
    start: Callable[..., Harness], engine: Engine
) -> None:
    harness = start(DeviceChoice("cpu"))
    engine.missing = 3
    engine.compile_gate.shut()
    harness.thread.use(DeviceChoice())
    harness.until(lambda: harness.compiling)
    harness.thread.use(DeviceChoice("cpu"))
    harness.until(lambda: harness.of(DeviceChanged))
    engine.compile_gate.open()
    harness.show(1)
    assert {device for device, _ in engine.made_on} == {"cpu"}


def test_options_reach_the_renderer_on_its_thread_and_every_one_after_it(
    start: Callable[..., Harness], engine: Engine
) -> None:
    harness = start()
    options = RenderOptions(use_graph=False)
    harness.thread.set_options(options)
    harness.show(1)
    assert engine.made[0].options == options
    harness.thread.use(DeviceChoice("cuda:1"))
    harness.until(lambda: len(engine.made) == 2 and engine.made[1].options is not None)
    assert engine.made[1].options == options


def test_a_comparison_comes_back_as_news(start: Callable[..., Harness], engine: Engine) -> None:
    harness = start()
    harness.thread.compare(request(1))
    harness.until(lambda: harness.of(Compared))
    assert harness.of(Compared)[0].comparison == f"comparison of {MODEL.facts.model_id} on Loom 9000"
    engine.failing = RequestError("No.")
    harness.thread.compare(request(1))
    harness.until(lambda: harness.of(CompareFailed))
    engine.failing = LOST
    harness.thread.compare(request(1))
    harness.until(lambda: harness.of(DeviceFailed))
    assert harness.devices == ["cuda:0", "cpu"]


def test_memory_is_reported_again_only_when_it_changed(start: Callable[..., Harness]) -> None:
    from dataclasses import replace

    harness = start()
    measured = replace(request(1), measure_steps=True)
    for _ in range(3):
        harness.thread.submit(measured, 0.0)
        count = len(harness.frames)
        harness.until(more_than(harness.frames, count))
    assert len(harness.of(MemoryChanged)) == 1


@pytest.mark.parametrize(("device", "should_yield"), [("cpu", True), ("cuda:0", False)])
def test_a_comparison_on_the_processor_should_yield_to_the_hand_and_begins_again_when_it_rests(
    start: Callable[..., Harness], engine: Engine, device: str, should_yield: bool
) -> None:
    harness = start(DeviceChoice(device))
    engine.gate.shut()
    harness.thread.compare(request(1))
    engine.gate.wait_for_knock()
    harness.submit(2)
    engine.gate.open()
    harness.until(lambda: harness.of(Compared) and harness.frames)
    assert engine.comparisons_given_up == should_yield
    assert len(harness.of(Compared)) == 1


def test_closing_does_not_wait_for_a_comparison(start: Callable[..., Harness], engine: Engine) -> None:
    harness = start()
    engine.gate.shut()
    harness.thread.compare(request(1))
    engine.gate.wait_for_knock()
    soon = threading.Timer(0.1, engine.gate.open)
    soon.start()
    harness.thread.close()
    soon.join()
    assert not [event for event in harness.thread.take_events() if isinstance(event, Compared)]
