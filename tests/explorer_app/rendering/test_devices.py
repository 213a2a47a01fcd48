"""Which device renders: at once, after its kernels are compiled, or another one that is wished for."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.news import (
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
from tests.helpers.render_desk import MODEL, OTHER, Desk, request, seed_of
from tests.helpers.stylegan3 import make_stylegan3

ALIAS_FREE = make_stylegan3(num_layers=3)
LOST = DeviceLostError("The GPU stopped answering.")


@pytest.fixture
def engine() -> Engine:
    return Engine(gpus=(GPU, OTHER_GPU))


def test_with_its_kernels_in_the_cache_the_gpu_renders_at_once(start: Callable[..., Desk], engine: Engine):
    desk = start()
    desk.show(1)
    assert engine.made_on == [("cuda:0", "fp16")]
    assert desk.compiling == []
    assert desk.of(DevicesFound)[0].devices[:2] == (GPU, OTHER_GPU)
    assert desk.of(MemoryChanged)


def test_once_a_gpu_renders_the_kernels_that_show_layers_are_compiled_before_anybody_asks(
    start: Callable[..., Desk], engine: Engine
):
    engine.missing = 14
    engine.compile_gate.shut()
    engine.layer_gate.shut()
    desk = start()
    desk.show(7)
    assert engine.layers_compiled == []
    engine.compile_gate.open()
    desk.until(lambda: desk.devices == ["cpu", "cuda:0"])
    desk.show(8)  # pictures do not wait for them
    engine.layer_gate.open()
    desk.until(lambda: engine.layers_compiled == [(MODEL.facts.model_id, "fp16")])
    desk.open(OTHER)
    assert len(engine.layers_compiled) == 1, "the first picture comes before"
    desk.ask(9, OTHER)
    desk.until(lambda: len(engine.layers_compiled) == 2)
    desk.ask(10, OTHER)
    desk.until(lambda: seed_of(desk.frames[-1].request) == 10)
    assert len(engine.layers_compiled) == 2, "once is enough"
    assert engine.layers_compiled[1] == (OTHER.facts.model_id, "fp16")
    assert desk.compiling[-1] == (14, 14), "nothing is said of them"


def test_on_the_processor_there_are_no_kernels_of_layers(start: Callable[..., Desk], engine: Engine):
    desk = start(DeviceChoice("cpu"))
    desk.show(1)
    desk.thread.close()
    assert engine.layers_compiled == []


def test_what_there_is_is_looked_up_before_a_gpu_renders_and_after_the_processor_does(
    start: Callable[..., Desk],
):
    wished = start()
    assert [type(news) for news in wished.news][:2] == [DevicesFound, ModelOpened]
    alone = start(DeviceChoice("cpu"))
    alone.until(lambda: alone.of(DevicesFound))
    assert isinstance(alone.news[0], ModelOpened)


def test_while_kernels_are_compiled_the_processor_shows_pictures_and_then_the_gpu_shows_the_same(
    start: Callable[..., Desk], engine: Engine
):
    engine.missing = 14
    engine.compile_gate.shut()
    desk = start()
    desk.show(7)
    assert engine.made_on == [("cpu", "fp32")]
    desk.until(lambda: desk.compiling == [(0, 14)])
    engine.compile_gate.open()
    desk.until(lambda: len(desk.frames) == 2)
    assert desk.compiling == [(done, 14) for done in range(15)]
    assert desk.devices == ["cpu", "cuda:0"]
    assert desk.frames[0].request == desk.frames[1].request, "the same picture, without being asked for again"
    assert [renderer.closed for renderer in engine.made] == [1, 0]
    assert engine.threads == {"rendering", "compiling kernels"}


def test_a_slow_picture_of_the_processor_gives_way_to_the_gpu(start: Callable[..., Desk], engine: Engine):
    engine.missing = 1
    engine.compile_gate.shut()
    desk = start()
    engine.gate.shut()
    desk.ask(1)
    engine.gate.wait_for_knock()
    engine.compile_gate.open()
    desk.until(lambda: desk.thread._device.has_change(is_model_waiting=False))
    engine.gate.open()
    desk.until(lambda: desk.frames)
    assert len(engine.given_up) == 1
    assert desk.devices == ["cpu", "cuda:0"]


def test_without_torch_the_first_picture_waits_for_the_gpus_kernels(start: Callable[..., Desk], engine: Engine):
    engine.cpu_refusing = TorchError("Rendering on the CPU needs torch.")
    engine.missing = 14
    desk = start()
    desk.show(7)
    assert desk.devices == ["cuda:0"]
    assert desk.compiling[-1] == (14, 14)


def test_without_torch_and_without_a_gpu_the_reason_is_told(start: Callable[..., Desk], engine: Engine):
    engine.cpu_refusing = TorchError("Rendering on the CPU needs torch.")
    engine.gpus = ()
    desk = start(opens=False)
    desk.thread.open(MODEL)
    desk.until(lambda: desk.of(ModelRefused))
    assert "needs torch" in str(desk.of(ModelRefused)[0].error)


def test_kernels_that_do_not_compile_leave_the_processor_in_place(start: Callable[..., Desk], engine: Engine):
    engine.missing = 2
    engine.compile_failing = DeviceError("There is no compiler.")
    desk = start()
    desk.until(lambda: desk.of(DeviceFailed))
    desk.show(1)
    assert desk.devices == ["cpu"]
    assert not desk.of(DeviceFailed)[0].was_rendering


@pytest.mark.parametrize("device", ["auto", "cuda", "cuda:1"])
def test_a_network_that_no_gpu_runs_is_rendered_by_the_processor_and_the_next_one_by_the_gpu(
    start: Callable[..., Desk], engine: Engine, device: str
):
    desk = start(DeviceChoice(device))
    wished = desk.devices[-1]
    desk.open(ALIAS_FREE)
    desk.thread.use(DeviceChoice("cuda:0"))
    desk.until(lambda: desk.of(DeviceChanged))
    desk.open(OTHER)
    assert desk.devices == [wished, "cpu", "cpu", "cuda:0"]
    assert desk.of(DeviceFailed) == desk.compiling == []
    desk.ask(3, OTHER)
    desk.until(lambda: desk.frames)


def test_opening_another_model_gives_the_compiling_up(start: Callable[..., Desk], engine: Engine):
    engine.missing = 5
    engine.compile_gate.shut()
    desk = start()
    desk.until(lambda: desk.compiling)
    desk.open(OTHER)
    engine.compile_gate.open()
    desk.until(lambda: desk.devices[-1] == "cuda:0")
    assert engine.made[-1].facts.model_id == OTHER.facts.model_id
    assert desk.devices == ["cpu", "cpu", "cuda:0"]


def test_closing_while_kernels_are_compiled_leaves_no_thread(start: Callable[..., Desk], engine: Engine):
    engine.missing = 5
    engine.compile_gate.shut()
    desk = start()
    desk.until(lambda: desk.compiling)
    desk.thread.close()
    assert "compiling kernels" not in {thread.name for thread in threading.enumerate()}


def test_another_device_and_another_precision_take_over_with_the_same_picture(
    start: Callable[..., Desk], engine: Engine
):
    desk = start()
    desk.show(3)
    for choice in (DeviceChoice("cuda:1"), DeviceChoice("cuda:1", "fp32"), DeviceChoice("cpu")):
        count = len(desk.frames)
        desk.thread.use(choice)
        desk.until(lambda count=count: len(desk.frames) > count)
    assert engine.made_on == [("cuda:0", "fp16"), ("cuda:1", "fp16"), ("cuda:1", "fp32"), ("cpu", "fp32")]
    assert {seed_of(frame.request) for frame in desk.frames} == {3}
    assert [renderer.closed for renderer in engine.made] == [1, 1, 1, 0]
    assert len(desk.of(ModelOpened)) == 1


def test_a_wish_before_any_model_counts_for_the_first(start: Callable[..., Desk], engine: Engine):
    desk = start(opens=False)
    desk.thread.use(DeviceChoice("cuda:1"))
    desk.open()
    assert engine.made_on == [("cuda:1", "fp16")]


def test_what_renders_goes_on_while_kernels_for_another_wish_are_compiled(start: Callable[..., Desk], engine: Engine):
    desk = start()
    engine.missing = 3
    engine.compile_gate.shut()
    desk.thread.use(DeviceChoice("cuda:0", "fp32"))
    desk.until(lambda: desk.compiling)
    desk.show(4)
    assert engine.made_on == [("cuda:0", "fp16")]
    engine.compile_gate.open()
    desk.until(lambda: len(engine.made) == 2)
    assert engine.made_on[-1] == ("cuda:0", "fp32")


def test_a_wish_that_is_taken_back_while_kernels_are_compiled_is_forgotten(start: Callable[..., Desk], engine: Engine):
    desk = start(DeviceChoice("cpu"))
    engine.missing = 3
    engine.compile_gate.shut()
    desk.thread.use(DeviceChoice())
    desk.until(lambda: desk.compiling)
    desk.thread.use(DeviceChoice("cpu"))
    desk.until(lambda: desk.of(DeviceChanged))
    engine.compile_gate.open()
    desk.show(1)
    assert {device for device, _ in engine.made_on} == {"cpu"}


def test_options_reach_the_renderer_on_its_thread_and_every_one_after_it(start: Callable[..., Desk], engine: Engine):
    desk = start()
    options = RenderOptions(use_graph=False)
    desk.thread.set_options(options)
    desk.show(1)
    assert engine.made[0].options == options
    desk.thread.use(DeviceChoice("cuda:1"))
    desk.until(lambda: len(engine.made) == 2 and engine.made[1].options is not None)
    assert engine.made[1].options == options


def test_a_comparison_comes_back_as_news(start: Callable[..., Desk], engine: Engine):
    desk = start()
    desk.thread.compare(request(1))
    desk.until(lambda: desk.of(Compared))
    assert desk.of(Compared)[0].comparison == f"comparison of {MODEL.facts.model_id} on Loom 9000"
    engine.failing = RequestError("No.")
    desk.thread.compare(request(1))
    desk.until(lambda: desk.of(CompareFailed))
    engine.failing = LOST
    desk.thread.compare(request(1))
    desk.until(lambda: desk.of(DeviceFailed))
    assert desk.devices == ["cuda:0", "cpu"]


def test_memory_is_told_again_only_when_it_changed(start: Callable[..., Desk]):
    from dataclasses import replace

    desk = start()
    measured = replace(request(1), measure_steps=True)
    for _ in range(3):
        desk.thread.ask(measured, 0.0)
        count = len(desk.frames)
        desk.until(lambda count=count: len(desk.frames) > count)
    assert len(desk.of(MemoryChanged)) == 1


@pytest.mark.parametrize(("device", "gives_way"), [("cpu", True), ("cuda:0", False)])
def test_a_comparison_on_the_processor_gives_way_to_the_hand_and_begins_again_when_it_rests(
    start: Callable[..., Desk], engine: Engine, device: str, gives_way: bool
):
    desk = start(DeviceChoice(device))
    engine.gate.shut()
    desk.thread.compare(request(1))
    engine.gate.wait_for_knock()
    desk.ask(2)
    engine.gate.open()
    desk.until(lambda: desk.of(Compared) and desk.frames)
    assert engine.comparisons_given_up == gives_way
    assert len(desk.of(Compared)) == 1


def test_a_comparison_under_way_keeps_nobody_from_closing(start: Callable[..., Desk], engine: Engine):
    desk = start()
    engine.gate.shut()
    desk.thread.compare(request(1))
    engine.gate.wait_for_knock()
    soon = threading.Timer(0.1, engine.gate.open)
    soon.start()
    desk.thread.close()
    soon.join()
    assert not [news for news in desk.thread.take_news() if isinstance(news, Compared)]
