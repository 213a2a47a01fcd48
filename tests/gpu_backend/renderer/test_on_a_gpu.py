"""What the renderer asks of a GPU's executor, with one that computes nothing."""

import gc
import time
import weakref
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import gpu_backend.device as device
from gpu_backend import (
    CancelledError,
    DeviceError,
    DeviceLostError,
    DeviceMemoryError,
    Latent,
    Noise,
    Point,
    Renderer,
    RenderOptions,
    RequestError,
    plane_point,
)
from gpu_backend.cuda.driver.probe import Gpu, Probe
from tests.helpers.fake_executor import FakeExecutor
from tests.helpers.networks import make_stylegan2
from tests.helpers.requests import request_for

MODEL = make_stylegan2(resolution=64)


@pytest.fixture
def executor() -> FakeExecutor:
    return FakeExecutor()


@pytest.fixture
def renderer(executor: FakeExecutor) -> Iterator[Renderer]:
    renderer = Renderer(MODEL, executor=executor)
    yield renderer
    renderer.close()


def seed(number: int) -> Latent:
    return Latent(Point(((number, 1.0),)))


def test_a_frame_on_its_way_leaves_the_thread_free(renderer: Renderer, executor: FakeExecutor) -> None:
    renderer.render(request_for(renderer, seed(1)))
    executor.delay_s = 0.2
    start = time.perf_counter()
    pending = renderer.submit(request_for(renderer, seed(1)))
    assert len(executor.in_flight) == 1, "nobody waited for it"
    frame = pending.wait()
    assert time.perf_counter() - start >= 0.19
    assert pending.wait() is frame
    assert frame.timings.total_ms >= 190
    assert frame.timings.device_ms == pytest.approx(200)
    assert frame.timings.timing_source == "events"


def test_two_frames_may_be_on_their_way_and_come_in_any_order(renderer: Renderer, executor: FakeExecutor) -> None:
    executor.delay_s = 0.05
    first, second = (renderer.submit(request_for(renderer, seed(number))) for number in (1, 2))
    assert len(executor.in_flight) == 2
    later, earlier = second.wait(), first.wait()
    assert (earlier.request.blend[0][0].latent, later.request.blend[0][0].latent) == (seed(1), seed(2))
    executor.delay_s = 0.0
    assert np.array_equal(earlier.pixels, renderer.render(earlier.request).pixels)
    assert not np.array_equal(earlier.pixels, later.pixels)


def test_waiting_is_not_counted_as_work(renderer: Renderer, executor: FakeExecutor) -> None:
    renderer.render(request_for(renderer))
    executor.delay_s = 0.1
    pending = [renderer.submit(request_for(renderer, seed(number))) for number in (1, 2, 3)]
    for frame in (item.wait() for item in pending):
        assert frame.timings.host_ms is not None
        assert frame.timings.host_ms <= frame.timings.total_ms - 50
    alone = renderer.render(request_for(renderer)).timings
    assert alone.latent_ms <= alone.total_ms
    assert alone.synthesis_ms >= 99


def test_the_pixels_of_a_frame_are_those_of_the_run_and_not_a_copy(renderer: Renderer, executor: FakeExecutor) -> None:
    pending = renderer.submit(request_for(renderer))
    run = weakref.ref(executor.in_flight[0])
    made = executor.in_flight[0].wait()["pixels"]
    frame = pending.wait()
    assert np.shares_memory(frame.pixels, made)
    assert not frame.pixels.flags.writeable
    del pending, made
    gc.collect()
    assert run() is None, "a frame keeps its pixels and nothing else of the run"


def test_a_drag_maps_each_new_seed_alone_and_binds_nothing(renderer: Renderer, executor: FakeExecutor) -> None:
    renderer.render(request_for(renderer))
    bound = len(executor.bound)
    for move in range(50):
        renderer.render(request_for(renderer, Latent(plane_point(3.25 + move / 50, 0.5))))
    assert len(executor.bound) == bound
    assert {run.key.batch for run in executor.runs("mapping")} == {1}
    assert len(executor.runs("mapping")) == 6
    assert {run.outputs for run in executor.runs("mapping")} == {("w",)}
    assert all(run.inputs == {"ws"} for run in executor.runs("synthesis")[1:])


def test_arrays_are_synthesized_in_larger_batches_than_on_the_cpu(renderer: Renderer, executor: FakeExecutor) -> None:
    renderer.synthesize(np.zeros((45, renderer.facts.num_ws, renderer.facts.w_dim)))
    assert [run.key.batch for run in executor.runs("synthesis")] == [32, 8, 4, 1]
    assert {run.outputs for run in executor.runs("synthesis")} == {("image",)}


def test_options_choose_how_a_frame_is_made(renderer: Renderer, executor: FakeExecutor) -> None:
    assert renderer.options == RenderOptions(use_graph=True, use_fused=True)
    for options in (RenderOptions(use_graph=False), RenderOptions(use_fused=False), RenderOptions()):
        renderer.options = options
        renderer.render(request_for(renderer))
    ways = [(run.use_graph, run.use_fused) for run in executor.runs("synthesis")]
    assert ways == [(False, True), (True, False), (True, True)]
    assert executor.standing(use_fused=False) == [], "what nobody looks at any more takes no memory"


def test_comparing_leaves_the_way_that_was_chosen(renderer: Renderer, executor: FakeExecutor) -> None:
    renderer.options = RenderOptions(use_fused=False)
    renderer.compare(request_for(renderer))
    assert [key.resolution for key in executor.standing(use_fused=False)] == [64]


def test_comparing_runs_every_way_and_leaves_nothing_behind(renderer: Renderer, executor: FakeExecutor) -> None:
    executor.delay_s = 0.001
    found = renderer.compare(request_for(renderer))
    ways = {(run.use_graph, run.use_fused) for run in executor.runs("synthesis")}
    assert ways == {(True, True), (False, True), (True, False)}
    assert found.graph_ms == found.no_graph_ms == found.fused_ms == found.reference_ms == pytest.approx(1.0)
    assert (found.largest_difference, found.mean_difference) == (0, 0.0)
    assert executor.standing(use_fused=False) == []


def test_counters_are_those_of_the_plan_that_renders_a_request(renderer: Renderer, executor: FakeExecutor) -> None:
    draft = request_for(renderer, resolution=32)
    for _ in renderer.counter_steps(draft):
        renderer.render(request_for(renderer, seed(1)))
    renderer.options = RenderOptions(use_fused=False)
    for _ in renderer.counter_steps(request_for(renderer)):
        pass
    assert [(key.resolution, is_fused) for key, is_fused in executor.counts] == [(32, True)] * 2 + [(64, False)] * 2
    executor.failing["count"] = DeviceLostError("Gone.")
    with pytest.raises(DeviceLostError):
        next(renderer.counter_steps(request_for(renderer)))
    with pytest.raises(DeviceLostError):
        renderer.render(request_for(renderer))


def test_steps_come_from_the_run(renderer: Renderer) -> None:
    assert renderer.render(request_for(renderer)).timings.steps == ()
    steps = renderer.render(request_for(renderer, measure_steps=True)).timings.steps
    assert steps
    assert {step.time_us for step in steps} == {2.5}


def test_memory_is_reported_in_its_parts(renderer: Renderer, executor: FakeExecutor) -> None:
    memory = renderer.memory
    assert (memory.weights, memory.pinned) == (1000, 30)
    assert memory.plans == sum(plan.nbytes for plan in executor.bound)
    assert memory.total == memory.weights + memory.plans + memory.pinned


def test_a_draft_makes_room_where_the_device_is_full(renderer: Renderer, executor: FakeExecutor) -> None:
    for side in (16, 8):
        renderer.render(request_for(renderer, resolution=side))
    executor.memory_nbytes = sum(plan.nbytes for plan in executor.bound)
    renderer.render(request_for(renderer, resolution=4, noise=Noise("random", 3)))
    assert [key.resolution for key in executor.standing()] == [0, 64, 4]


def test_a_run_that_finds_no_memory_is_tried_once_more(renderer: Renderer, executor: FakeExecutor) -> None:
    renderer.render(request_for(renderer, resolution=8))
    executor.failing["submit"] = DeviceMemoryError("The fake GPU has too little memory.")
    renderer.render(request_for(renderer, noise=Noise("random", 3)))
    assert [key.resolution for key in executor.standing()] == [0, 64]
    assert executor.runs("synthesis")[-1].inputs == {"ws", "noise_source", "noise_gain"}


def test_mapping_that_finds_no_memory_is_tried_once_more_too(renderer: Renderer, executor: FakeExecutor) -> None:
    renderer.render(request_for(renderer, resolution=8))
    executor.failing["submit"] = DeviceMemoryError("The fake GPU has too little memory.")
    renderer.render(request_for(renderer, seed(77)))
    assert [key.resolution for key in executor.standing()] == [0, 64]


def test_a_picture_too_large_for_memory_is_refused_with_one_sentence_and_others_still_render(
    renderer: Renderer, executor: FakeExecutor
) -> None:
    executor.memory_nbytes = 0
    sentence = r"FAKE GPU has not enough free memory for a picture of 32 x 32 pixels; close other programs .*\.$"
    with pytest.raises(DeviceMemoryError, match=sentence) as caught:
        renderer.render(request_for(renderer, resolution=32))
    assert caught.value.details == "The fake GPU has too little memory."
    with pytest.raises(DeviceMemoryError, match="for 32 pictures of 64 x 64 pixels"):
        renderer.synthesize(np.zeros((32, renderer.facts.num_ws, renderer.facts.w_dim)))
    renderer.render(request_for(renderer))


def test_a_model_that_has_no_room_is_refused_and_nothing_is_left() -> None:
    executor = FakeExecutor(memory_nbytes=0)
    with pytest.raises(DeviceMemoryError, match="has not enough free memory for this model"):
        Renderer(MODEL, executor=executor)
    assert executor.closed == 1
    assert executor.bound == []


def test_where_the_device_was_left_to_us_the_cpu_takes_over_from_a_gpu_without_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = Gpu(0, "FAKE GPU", "sm_90", "sm_90a", 1 << 30, 1, 1 << 16, 1 << 20, "GPU-0")
    made: list[FakeExecutor] = []

    def make(*_: object) -> FakeExecutor:
        made.append(FakeExecutor(memory_nbytes=0))
        return made[-1]

    monkeypatch.setattr(device, "_probe", lambda: Probe((gpu,), "", "580", "13.0"))
    monkeypatch.setattr(device, "_cuda_executor", make)
    with pytest.raises(DeviceMemoryError):
        Renderer(MODEL, "cuda")
    renderer = Renderer(MODEL)
    assert renderer.device.id == "cpu"
    assert renderer.device.reason.startswith("CPU: FAKE GPU has not enough free memory for this model;")
    assert not renderer.render(request_for(renderer)).is_draft
    renderer.close()
    assert [executor.closed for executor in made] == [1, 1]


@pytest.mark.parametrize("where", ["submit", "wait", "bind"])
def test_once_the_device_is_lost_every_call_reports_it_at_once(where: str) -> None:
    executor = FakeExecutor()
    renderer = Renderer(MODEL, executor=executor)
    request = request_for(renderer)
    pending = renderer.submit(request)
    executor.failing[where] = DeviceLostError("The fake GPU was lost.", "ECC")
    with pytest.raises(DeviceLostError):
        renderer.render(request_for(renderer, resolution=16))
    runs = len(executor.submitted)
    rows = np.zeros((1, renderer.facts.num_ws, renderer.facts.w_dim))
    for use in (
        lambda: renderer.render(request),
        lambda: renderer.submit(request),
        lambda: renderer.map(np.zeros((1, 8))),
        lambda: renderer.synthesize(rows),
        lambda: renderer.layer_statistics(rows),
        lambda: renderer.prepare(16),
        lambda: renderer.compare(request),
        pending.wait,
    ):
        with pytest.raises(DeviceLostError, match=r"The fake GPU was lost\.") as caught:
            use()
        assert caught.value.details == "ECC", "what happened first, not what came of it"
    assert len(executor.submitted) == runs
    renderer.close()
    renderer.close()
    assert executor.closed == 2


def test_the_kernels_of_a_draft_are_checked_in_steps_between_which_other_pictures_are_rendered(
    renderer: Renderer, executor: FakeExecutor
) -> None:
    draft, full = request_for(renderer, resolution=16), request_for(renderer)
    assert not renderer.prepare_step(full), "its plan is bound since the model was opened"
    key = replace(executor.bound[-1].plan.key, resolution=16)
    executor.unchecked[key] = 2
    assert renderer.prepare_step(draft)
    renderer.render(full)
    assert renderer.prepare_step(draft)
    assert key not in executor.standing()
    assert not renderer.prepare_step(draft), "the last step binds the plan"
    assert key in executor.standing()
    assert not renderer.prepare_step(draft)
    assert executor.checks_ended == [key]


def test_steps_for_another_draft_or_a_closed_renderer_end_those_under_way(
    renderer: Renderer, executor: FakeExecutor
) -> None:
    keys = [replace(executor.bound[-1].plan.key, resolution=side) for side in (16, 32)]
    executor.unchecked = dict.fromkeys(keys, 2)
    assert renderer.prepare_step(request_for(renderer, resolution=16))
    assert renderer.prepare_step(request_for(renderer, resolution=32))
    assert executor.checks_ended == keys[:1]
    renderer.close()
    assert executor.checks_ended == keys


def test_checks_that_find_no_memory_leave_the_draft_to_its_first_frame(
    renderer: Renderer, executor: FakeExecutor
) -> None:
    key = replace(executor.bound[-1].plan.key, resolution=16)
    executor.unchecked[key] = 2
    executor.failing["check"] = DeviceMemoryError("The fake GPU has too little memory.")
    assert not renderer.prepare_step(request_for(renderer, resolution=16))
    assert key in executor.standing()


def test_a_device_lost_while_kernels_are_checked_is_remembered(renderer: Renderer, executor: FakeExecutor) -> None:
    executor.unchecked[replace(executor.bound[-1].plan.key, resolution=16)] = 2
    executor.failing["check"] = DeviceLostError("The fake GPU was lost.", "ECC")
    for _ in range(2):
        with pytest.raises(DeviceLostError) as caught:
            renderer.prepare_step(request_for(renderer, resolution=16))
        assert caught.value.details == "ECC"


def test_plain_kernels_need_no_checks(renderer: Renderer, executor: FakeExecutor) -> None:
    executor.unchecked[replace(executor.bound[-1].plan.key, resolution=16)] = 2
    renderer.options = RenderOptions(use_fused=False)
    assert not renderer.prepare_step(request_for(renderer, resolution=16))


def test_a_device_lost_while_mapping_is_remembered_too(renderer: Renderer, executor: FakeExecutor) -> None:
    executor.failing["wait"] = DeviceLostError("The fake GPU was lost.", "ECC")
    with pytest.raises(DeviceLostError):
        renderer.render(request_for(renderer, seed(77)))
    with pytest.raises(DeviceLostError) as caught:
        renderer.render(request_for(renderer, seed(77)))
    assert caught.value.details == "ECC"


def test_a_cancelled_frame_gets_its_noise_again(renderer: Renderer, executor: FakeExecutor) -> None:
    noisy = request_for(renderer, noise=Noise("random", 3))
    with pytest.raises(CancelledError):
        renderer.render(noisy, should_cancel=lambda: True)
    renderer.render(noisy)
    assert executor.runs("synthesis")[-1].inputs == {"ws", "noise_source", "noise_gain"}


def test_a_frame_not_fetched_before_closing_is_lost(renderer: Renderer) -> None:
    pending = renderer.submit(request_for(renderer))
    renderer.close()
    with pytest.raises(DeviceError, match="it was closed; open the model again"):
        pending.wait()


def test_a_request_that_does_not_fit_costs_the_device_nothing(renderer: Renderer, executor: FakeExecutor) -> None:
    with pytest.raises(RequestError):
        renderer.submit(request_for(renderer, resolution=12))
    with pytest.raises(RequestError):
        renderer.compare(request_for(renderer, resolution=12))
    assert executor.submitted == []
