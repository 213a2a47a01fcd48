"""Which device renders: at once, after its kernels are compiled, another one, or the processor when it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.news import (
    Compared,
    CompareFailed,
    DeviceChanged,
    DeviceFailed,
    DevicesFound,
    ExportEnded,
    KernelsCompiling,
    MemoryChanged,
    ModelOpened,
    ModelRefused,
    RenderFailed,
    ThumbnailMade,
)
from explorer_app.rendering.render_thread import RenderThread
from gpu_backend import DeviceError, DeviceLostError, DeviceMemoryError, RenderOptions, RequestError
from tests.helpers.fake_renderer import GPU, OTHER_GPU, Engine
from tests.helpers.render_desk import MODEL, OTHER, Desk, Job, request, seed_of

LOST = DeviceLostError("The GPU stopped answering.")
SHORT = DeviceMemoryError("The GPU has no room for this plan.")


@pytest.fixture
def engine() -> Engine:
    return Engine(gpus=(GPU, OTHER_GPU))


@pytest.fixture
def start(engine: Engine, qtbot: Any, qapp: Any) -> Iterator[Callable[..., Desk]]:
    """Start a rendering thread with a wish, and open a model on it."""
    threads: list[RenderThread] = []

    def start(choice: DeviceChoice | None = None, *, opens: bool = True) -> Desk:
        thread = RenderThread(engine, choice, thumbnail_rest_s=0.0)
        threads.append(thread)
        desk = Desk(thread, qtbot)
        thread.start()
        if opens:
            desk.open()
        return desk

    yield start
    engine.gate.open()
    engine.compile_gate.open()
    for thread in threads:
        thread.close()


def devices(desk: Desk) -> list[str]:
    """The devices that rendered, in order."""
    return [news.device.id for news in desk.news if isinstance(news, ModelOpened | DeviceChanged)]


def compiling(desk: Desk) -> list[tuple[int, int]]:
    return [(news.done, news.total) for news in desk.of(KernelsCompiling)]


def show(desk: Desk, seed: int) -> None:
    """Have a picture on the screen."""
    desk.ask(seed)
    desk.until(lambda: desk.frames and seed_of(desk.frames[-1].request) == seed)


def made_on(engine: Engine) -> list[tuple[str, str]]:
    return [(renderer.device.id, renderer.device.precision) for renderer in engine.made]


def test_with_its_kernels_in_the_cache_the_gpu_renders_at_once(start: Callable[..., Desk], engine: Engine):
    desk = start()
    show(desk, 1)
    assert made_on(engine) == [("cuda:0", "fp16")]
    assert compiling(desk) == []
    assert desk.of(DevicesFound)[0].devices[:2] == (GPU, OTHER_GPU)
    assert desk.of(MemoryChanged)


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
    show(desk, 7)
    assert made_on(engine) == [("cpu", "fp32")]
    desk.until(lambda: compiling(desk) == [(0, 14)])
    engine.compile_gate.open()
    desk.until(lambda: len(desk.frames) == 2)
    assert compiling(desk) == [(done, 14) for done in range(15)]
    assert devices(desk) == ["cpu", "cuda:0"]
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
    desk.until(lambda: desk.thread._compiler.has_ended)
    engine.gate.open()
    desk.until(lambda: desk.frames)
    assert len(engine.given_up) == 1
    assert devices(desk) == ["cpu", "cuda:0"]


def test_kernels_that_do_not_compile_leave_the_processor_in_place(start: Callable[..., Desk], engine: Engine):
    engine.missing = 2
    engine.compile_failing = DeviceError("There is no compiler.")
    desk = start()
    desk.until(lambda: desk.of(DeviceFailed))
    show(desk, 1)
    assert devices(desk) == ["cpu"]
    assert not desk.of(DeviceFailed)[0].was_rendering


def test_opening_another_model_gives_the_compiling_up(start: Callable[..., Desk], engine: Engine):
    engine.missing = 5
    engine.compile_gate.shut()
    desk = start()
    desk.until(lambda: compiling(desk))
    desk.open(OTHER)
    engine.compile_gate.open()
    desk.until(lambda: devices(desk)[-1] == "cuda:0")
    assert engine.made[-1].facts.model_id == OTHER.facts.model_id
    assert devices(desk) == ["cpu", "cpu", "cuda:0"]


def test_closing_while_kernels_are_compiled_leaves_no_thread(start: Callable[..., Desk], engine: Engine):
    engine.missing = 5
    engine.compile_gate.shut()
    desk = start()
    desk.until(lambda: compiling(desk))
    desk.thread.close()
    assert not desk.thread._compiler._threads


def test_another_device_and_another_precision_take_over_with_the_same_picture(
    start: Callable[..., Desk], engine: Engine
):
    desk = start()
    show(desk, 3)
    for choice in (DeviceChoice("cuda:1"), DeviceChoice("cuda:1", "fp32"), DeviceChoice("cpu")):
        count = len(desk.frames)
        desk.thread.use(choice)
        desk.until(lambda count=count: len(desk.frames) > count)
    assert made_on(engine) == [("cuda:0", "fp16"), ("cuda:1", "fp16"), ("cuda:1", "fp32"), ("cpu", "fp32")]
    assert {seed_of(frame.request) for frame in desk.frames} == {3}
    assert [renderer.closed for renderer in engine.made] == [1, 1, 1, 0]
    assert len(desk.of(ModelOpened)) == 1


def test_a_wish_before_any_model_counts_for_the_first(start: Callable[..., Desk], engine: Engine):
    desk = start(opens=False)
    desk.thread.use(DeviceChoice("cuda:1"))
    desk.open()
    assert made_on(engine) == [("cuda:1", "fp16")]


def test_what_renders_goes_on_while_kernels_for_another_wish_are_compiled(start: Callable[..., Desk], engine: Engine):
    desk = start()
    engine.missing = 3
    engine.compile_gate.shut()
    desk.thread.use(DeviceChoice("cuda:0", "fp32"))
    desk.until(lambda: compiling(desk))
    show(desk, 4)
    assert made_on(engine) == [("cuda:0", "fp16")]
    engine.compile_gate.open()
    desk.until(lambda: len(engine.made) == 2)
    assert made_on(engine)[-1] == ("cuda:0", "fp32")


def test_a_wish_that_is_taken_back_while_kernels_are_compiled_is_forgotten(start: Callable[..., Desk], engine: Engine):
    desk = start(DeviceChoice("cpu"))
    engine.missing = 3
    engine.compile_gate.shut()
    desk.thread.use(DeviceChoice())
    desk.until(lambda: compiling(desk))
    desk.thread.use(DeviceChoice("cpu"))
    desk.until(lambda: desk.of(DeviceChanged))
    engine.compile_gate.open()
    show(desk, 1)
    assert {device for device, _ in made_on(engine)} == {"cpu"}


@pytest.mark.parametrize("error", [LOST, SHORT], ids=["lost", "out of memory"])
def test_a_gpu_that_fails_costs_no_picture(start: Callable[..., Desk], engine: Engine, error: Exception):
    desk = start()
    show(desk, 1)
    engine.gpu_failing = error
    show(desk, 2)
    assert devices(desk) == ["cuda:0", "cpu"]
    (failed,) = desk.of(DeviceFailed)
    assert (failed.error, failed.was_rendering) == (error, True)
    assert not desk.of(RenderFailed)
    assert engine.made[0].closed == 1
    order = [type(news) for news in desk.news]
    assert order.index(DeviceFailed) < order.index(DeviceChanged), "why comes before what"


def test_a_request_that_makes_no_sense_is_not_the_gpus_fault(start: Callable[..., Desk], engine: Engine):
    desk = start()
    engine.failing = RequestError("No such row.")
    desk.ask(1)
    desk.until(lambda: desk.of(RenderFailed))
    assert devices(desk) == ["cuda:0"]


def test_a_lost_gpu_is_left_alone_by_the_next_model_until_it_is_tried_again(start: Callable[..., Desk], engine: Engine):
    desk = start()
    engine.gpu_failing = LOST
    show(desk, 1)
    desk.open(OTHER)
    assert [device for device, _ in made_on(engine)] == ["cuda:0", "cpu", "cpu"]
    engine.gpu_failing = None
    desk.thread.use(DeviceChoice())
    desk.until(lambda: devices(desk)[-1] == "cuda:0")
    desk.ask(2, OTHER)
    desk.until(lambda: seed_of(desk.frames[-1].request) == 2)
    assert len(desk.of(DeviceFailed)) == 1


def test_a_gpu_that_was_short_of_memory_may_have_room_for_the_next_model(start: Callable[..., Desk], engine: Engine):
    desk = start()
    engine.gpu_failing = SHORT
    show(desk, 1)
    engine.gpu_failing = None
    desk.open(OTHER)
    assert devices(desk)[-1] == "cuda:0"


@pytest.mark.parametrize("reason", ["gpu_missing", "gpu_refusing"])
def test_a_gpu_that_cannot_begin_leaves_the_model_to_the_processor(
    start: Callable[..., Desk], engine: Engine, reason: str
):
    error = DeviceError("CUDA 13 needs driver 580 or newer, but this is 535.")
    setattr(engine, reason, error)
    desk = start(DeviceChoice("cuda"))
    show(desk, 1)
    desk.until(lambda: desk.of(DeviceFailed))
    assert [(news.error, news.was_rendering) for news in desk.of(DeviceFailed)] == [(error, False)]
    assert devices(desk) == ["cpu"]
    assert not desk.of(ModelRefused)


def test_a_gpu_that_cannot_be_used_leaves_the_one_that_renders_in_place(start: Callable[..., Desk], engine: Engine):
    desk = start()
    engine.gpu_missing = DeviceError("There is no cuda:7.")
    desk.thread.use(DeviceChoice("cuda:7"))
    desk.until(lambda: desk.of(DeviceFailed))
    show(desk, 1)
    assert devices(desk) == ["cuda:0"]


def test_where_memory_is_short_the_former_model_makes_room_for_the_next(
    start: Callable[..., Desk], engine: Engine, monkeypatch: Any
):
    desk = start()
    make = engine.make_renderer

    def with_little_memory(*arguments: Any) -> Any:
        if any(not renderer.closed for renderer in engine.made):
            raise SHORT
        return make(*arguments)

    monkeypatch.setattr(engine, "make_renderer", with_little_memory)
    desk.open(OTHER)
    assert devices(desk) == ["cuda:0", "cuda:0"]
    assert not desk.of(DeviceFailed)


def test_a_former_model_that_made_room_for_nothing_is_rendered_by_the_processor(
    start: Callable[..., Desk], engine: Engine, monkeypatch: Any
):
    desk = start()
    make = engine.make_renderer

    def refuse_the_other(model: Any, choice: DeviceChoice) -> Any:
        if model is OTHER:
            raise SHORT
        return make(model, choice)

    monkeypatch.setattr(engine, "make_renderer", refuse_the_other)
    desk.thread.open(OTHER)
    desk.until(lambda: desk.of(ModelRefused))
    show(desk, 1)
    assert made_on(engine)[-1] == ("cpu", "fp32")


def test_an_export_has_two_frames_in_flight_and_all_of_them_in_order(start: Callable[..., Desk], engine: Engine):
    desk = start()
    job = Job(*range(100, 120))
    desk.thread.export(job)
    desk.ask(1)
    desk.until(lambda: job.closed and desk.frames)
    assert job.got == list(range(100, 120))
    assert engine.made[0].most_in_flight == 2
    assert engine.made[0].in_flight == 0


def test_an_export_goes_on_with_the_processor_when_the_gpu_is_lost(start: Callable[..., Desk], engine: Engine):
    desk = start()
    engine.gate.shut()
    job = Job(*range(100, 108))
    desk.thread.export(job)
    engine.gate.wait_for_knock()
    engine.gate.let_through(3)
    desk.until(lambda: len(job.got) == 3)
    engine.gpu_failing = LOST
    engine.gate.open()
    desk.until(lambda: job.closed)
    assert job.got == list(range(100, 108))
    assert desk.of(ExportEnded)[0].error is None
    assert devices(desk) == ["cuda:0", "cpu"]


def test_an_export_that_is_cancelled_leaves_nothing_in_flight(start: Callable[..., Desk], engine: Engine):
    desk = start()
    engine.gate.shut()
    job = Job(*range(100, 108))
    desk.thread.export(job)
    engine.gate.wait_for_knock()
    desk.thread.cancel_export(job)
    engine.gate.open()
    desk.until(lambda: job.closed)
    assert job.closed == [True]
    assert len(job.got) <= 1
    assert engine.made[0].in_flight == 0


def test_a_picture_that_is_saved_passes_the_frames_in_flight(start: Callable[..., Desk], engine: Engine):
    desk = start()
    engine.gate.shut()
    sequence, picture = Job(*range(100, 106)), Job(50)
    desk.thread.export(sequence)
    engine.gate.wait_for_knock()
    desk.thread.export(picture, urgent=True)
    engine.gate.open()
    desk.until(lambda: sequence.closed and picture.closed)
    assert sequence.got == list(range(100, 106))
    assert desk.of(ExportEnded)[0].job is picture


def test_a_small_picture_that_the_gpu_failed_at_is_made_by_the_processor(start: Callable[..., Desk], engine: Engine):
    desk = start()
    engine.gpu_failing = LOST
    desk.thread.ask_thumbnail("key", lambda: request(50))
    desk.until(lambda: desk.of(ThumbnailMade))
    assert devices(desk) == ["cuda:0", "cpu"]


def test_options_reach_the_renderer_on_its_thread_and_every_one_after_it(start: Callable[..., Desk], engine: Engine):
    desk = start()
    options = RenderOptions(use_graph=False)
    desk.thread.set_options(options)
    show(desk, 1)
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
    assert devices(desk) == ["cuda:0", "cpu"]


def test_memory_is_told_again_only_when_it_changed(start: Callable[..., Desk]):
    from dataclasses import replace

    desk = start()
    measured = replace(request(1), measure_steps=True)
    for _ in range(3):
        desk.thread.ask(measured, 0.0)
        count = len(desk.frames)
        desk.until(lambda count=count: len(desk.frames) > count)
    assert len(desk.of(MemoryChanged)) == 1
