"""The CPU executor against the composition of the reference functions, and what it promises about memory and time."""

import gc
import threading
import tracemalloc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import gpu_backend.cpu.convolution as convolution
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.cpu.modulated_conv import suits_winograd
from gpu_backend.ops.noise import noise_picture
from gpu_backend.plan.executor import BoundPlan, Executor
from gpu_backend.plan.mapping import build_mapping_plan
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from gpu_backend.reference.mapping import run_mapping
from gpu_backend.reference.synthesis import run_synthesis
from gpu_backend.reference.to_display import to_display
from tests.helpers.networks import StyleGAN2Model, make_stylegan2
from tests.helpers.selection import in_turn

NETWORKS: dict[str, dict[str, Any]] = {
    "skip": {},
    "resnet": {"architecture": "resnet"},
    "orig": {"architecture": "orig"},
    "grey": {"img_channels": 1},
    "rgba, odd channels": {"img_channels": 4, "channels": {4: 7, 8: 5, 16: 3}},
    "resnet, odd channels, clamp": {"architecture": "resnet", "channels": {8: 5, 16: 9}, "conv_clamp": 0.8},
    "clamp": {"conv_clamp": 0.5, "resolution": 32},
    "no noise": {"use_noise": False},
    "one tap": {"fir": (1,), "architecture": "resnet", "conv_clamp": 2.0},
    "two taps": {"fir": (1, 1)},
    "three taps": {"fir": (1, 2, 1), "architecture": "resnet"},
    "lopsided taps": {"fir": (1, 2, 3, 4), "architecture": "resnet"},
    "six taps": {"fir": (1, 5, 10, 10, 5, 1), "resolution": 32},
    "eight lopsided taps": {"fir": (1, 2, 3, 4, 4, 3, 2, 9), "resolution": 32},
    "twelve taps": {"fir": tuple(range(1, 13)), "architecture": "resnet"},
    "swish": {"activation": "swish", "conv_clamp": 1.0},
    "selu": {"activation": "selu"},
    "softplus": {"activation": "softplus"},
    "large, lopsided taps": {"resolution": 64, "channel_base": 256, "fir": (1, 2, 3, 4), "architecture": "resnet"},
    "large, twelve taps": {"resolution": 64, "channel_base": 256, "fir": tuple(range(1, 13))},
    "large, three taps, odd channels": {"resolution": 64, "channels": {32: 5, 64: 3}, "fir": (1, 2, 1)},
    "large and wide enough for Winograd": {"resolution": 64, "channel_base": 4160, "channel_max": 65},
    "wide enough for Winograd": {"resolution": 32, "channel_base": 4096, "channel_max": 72, "conv_clamp": 256.0},
}


def tensors(model: StyleGAN2Model) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in model.weights.items()}


def rows_of(model: StyleGAN2Model, batch: int, seed: int = 0) -> np.ndarray:
    shape = (batch, model.spec.num_ws, model.spec.w_dim)
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.fixture
def executors() -> Iterator[list[CpuExecutor]]:
    """Executors to close after the test."""
    opened: list[CpuExecutor] = []
    yield opened
    for executor in opened:
        executor.close()


def bind(model: StyleGAN2Model, *, batch: int = 1, resolution: int | None = None) -> BoundPlan:
    plan = build_synthesis_plan(model.spec, model.facts.model_id, batch=batch, resolution=resolution)
    return CpuExecutor(model.weights, threads=1).bind(plan)


def run(bound: BoundPlan, inputs: dict[str, np.ndarray], **options: Any) -> Any:
    """Run and return every output."""
    outputs = tuple(buffer.name for buffer in bound.plan.buffers if buffer.role == "output")
    return bound.run(inputs, outputs=outputs, **options)


def assert_near(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-5) -> None:
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= tolerance * max(1.0, float(np.abs(expected).max()))


def reference(model: StyleGAN2Model, ws: np.ndarray, noise: dict[str, torch.Tensor] | None = None) -> np.ndarray:
    return run_synthesis(model.spec, tensors(model), torch.from_numpy(ws), noise).numpy()


@pytest.mark.parametrize(("name", "way"), in_turn(NETWORKS, [(1, 1), (3, 1), (2, 2), (1, 3)], each=2))
def test_the_picture_equals_the_reference(name: str, way: tuple[int, int], executors: list[CpuExecutor]) -> None:
    batch, threads = way
    model = make_stylegan2(**NETWORKS[name])
    ws = rows_of(model, batch)
    executors.append(CpuExecutor(model.weights, threads=threads))
    outputs = run(executors[0].bind(build_synthesis_plan(model.spec, "id", batch=batch)), {"ws": ws})
    expected = reference(model, ws)
    assert_near(outputs["image"].transpose(0, 3, 1, 2), expected)
    display = build_synthesis_plan(model.spec, "id").steps[-1].attributes
    pixels = to_display(torch.from_numpy(outputs["image"].transpose(0, 3, 1, 2)), display).numpy()
    assert np.array_equal(outputs["pixels"], pixels)


def test_the_list_of_networks_has_one_that_uses_winograd() -> None:
    def uses(name: str) -> bool:
        plan = build_synthesis_plan(make_stylegan2(**NETWORKS[name]).spec, "id")
        return any(suits_winograd(step.attributes) for step in plan.steps if step.op == "modulated_conv")

    assert uses("wide enough for Winograd")
    assert not uses("skip")


@pytest.mark.parametrize("options", [{}, {"c_dim": 3, "embed_dim": 5, "mapping_widths": (7, 9, 8), "z_dim": 6}])
def test_the_mapping_equals_the_reference(options: dict[str, Any]) -> None:
    model = make_stylegan2(**options)
    generator = np.random.default_rng(3)
    inputs = {"z": generator.standard_normal((3, model.spec.mapping.z_dim)).astype(np.float32)}
    if model.spec.mapping.c_dim:
        inputs["c"] = np.eye(3, dtype=np.float32)
    w = run(CpuExecutor(model.weights, threads=1).bind(build_mapping_plan(model.spec, "id", batch=3)), inputs)["w"]
    expected = run_mapping(model.spec, tensors(model), *(torch.from_numpy(array) for array in inputs.values()))
    assert_near(w, expected.numpy(), 1e-6)


def test_layer_outputs_equal_the_reference() -> None:
    for architecture in ("skip", "resnet", "orig"):
        model = make_stylegan2(architecture=architecture, img_channels=4, resolution=32)
        ws = rows_of(model, 2)
        expected: dict[str, torch.Tensor] = {}
        run_synthesis(model.spec, tensors(model), torch.from_numpy(ws), observed=expected)
        found = bind(model, batch=2).observe({"ws": ws})
        assert list(found) == list(expected)
        for name, value in found.items():
            assert_near(value, expected[name].numpy())


def test_the_source_of_noise_and_its_strengths_are_inputs() -> None:
    model = make_stylegan2(resolution=16)
    ws, bound, weights = rows_of(model, 2), bind(model, batch=2), tensors(model)
    stored = run(bound, {"ws": ws})["image"].copy()
    pictures = {
        name: noise_picture(9, index, int(name[1:].split(".")[0])) for index, name in enumerate(model.spec.noise_layers)
    }
    gains = np.linspace(0.5, 2, len(pictures), dtype=np.float32)
    inputs = {"noise_source": np.array([1, 9, 0, 0], np.uint32), "noise_gain": gains}
    found = run(bound, inputs)["image"].transpose(0, 3, 1, 2).copy()
    noise = {
        name: torch.from_numpy(picture) * weights[f"synthesis.{name}.noise_strength"] * float(gain)
        for (name, picture), gain in zip(pictures.items(), gains, strict=True)
    }
    assert_near(found, reference(model, ws, noise))
    silent = run(bound, {"noise_gain": np.zeros_like(gains)})["image"].transpose(0, 3, 1, 2).copy()
    assert_near(silent, reference(model, ws, {}))
    assert np.abs(silent - found).max() > 0.01
    again = run(bound, {"noise_source": np.zeros(4, np.uint32), "noise_gain": np.ones_like(gains)})["image"]
    assert np.array_equal(again, stored)


def test_a_draft_is_the_full_network_s_partial_picture() -> None:
    model = make_stylegan2(resolution=64, channel_base=4096, channel_max=64)
    ws = rows_of(model, 1)
    executor = CpuExecutor(model.weights, threads=1)
    full = executor.bind(build_synthesis_plan(model.spec, "id"))
    full_image = run(full, {"ws": ws})["image"].copy()
    observed = full.observe({})
    for side in model.spec.draft_resolutions:
        draft = executor.bind(build_synthesis_plan(model.spec, "id", resolution=side))
        outputs = run(draft, {"ws": ws})
        assert outputs["pixels"].shape == (1, side, side, 4)
        draft_layers = draft.observe({})
        for name, value in draft_layers.items():
            assert np.array_equal(value, observed[name]), name
    assert np.array_equal(run(full, {})["image"], full_image)


def test_the_same_inputs_give_the_same_bytes_whatever_ran_before() -> None:
    model = make_stylegan2(resolution=32, channel_base=4096, channel_max=72)
    ws, other = rows_of(model, 1), rows_of(model, 1, seed=1)
    bound = bind(model)
    first = {name: array.copy() for name, array in run(bound, {"ws": ws}).items()}
    run(bound, {"ws": other})
    bound.observe({"ws": other})
    second = run(bound, {"ws": ws}, measure=True)
    fresh = run(bind(model), {"ws": ws})
    for name, array in first.items():
        assert np.array_equal(second[name], array)
        assert np.array_equal(fresh[name], array)


def test_inputs_that_are_left_out_keep_what_they_held() -> None:
    model = make_stylegan2()
    ws, bound = rows_of(model, 1), bind(model)
    first = run(bound, {"ws": ws})["image"].copy()
    assert np.array_equal(run(bound, {})["image"], first)


def place_of_image(bound: BoundPlan, ws: np.ndarray) -> int:
    """Return where the picture lies that is asked for without its bytes."""
    return int(bound.run({"ws": ws}, outputs=("image",))["image"].ctypes.data)


def test_an_image_alone_is_a_view_of_a_fixed_buffer_and_frames_allocate_nothing_that_stays() -> None:
    model = make_stylegan2(resolution=32)
    ws, bound = rows_of(model, 1), bind(model)
    first = place_of_image(bound, ws)
    before_nbytes = bound.nbytes
    for _ in range(3 + len(bound.plan.steps)):  # until every kernel is recorded
        run(bound, {"ws": ws})
    tracemalloc.start()
    try:
        start = tracemalloc.get_traced_memory()[0]
        for _ in range(30):
            run(bound, {"ws": ws})
        grown = tracemalloc.get_traced_memory()[0] - start
    finally:
        tracemalloc.stop()
    assert grown < 20_000
    assert place_of_image(bound, ws) == first
    assert bound.nbytes == before_nbytes


def test_only_packed_convolutions_allocate_activations() -> None:
    model = make_stylegan2(resolution=64, channel_base=8192, channel_max=64)
    ws, bound = rows_of(model, 1), bind(model)
    run(bound, {"ws": ws})
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, acc_events=True
    ) as profile:
        run(bound, {"ws": ws})
    large = [event for event in profile.events() if event.cpu_memory_usage > 1 << 18 and not of_a_convolution(event)]
    assert large == []


def of_a_convolution(event: Any) -> bool:
    while event is not None:
        if "convolution" in event.name:
            return True
        event = event.cpu_parent
    return False


def test_measured_times_cover_every_step() -> None:
    model = make_stylegan2(architecture="resnet")
    bound = bind(model)
    unmeasured = bound.submit({"ws": rows_of(model, 1)})
    assert (unmeasured.steps, unmeasured.device_ms) == ((), None)
    steps = bound.submit({}, measure=True).steps
    assert [(step.layer, step.kernel) for step in steps] == [(step.layer, step.op) for step in bound.plan.steps]
    assert all(step.time_us > 0 and step.facts is None for step in steps)


def test_pixels_are_the_caller_s_own_and_only_what_is_requested_comes() -> None:
    model = make_stylegan2()
    bound = bind(model)
    first = bound.submit({"ws": rows_of(model, 1)})
    pixels = first.wait()["pixels"]
    before = pixels.copy()
    second = bound.run({"ws": rows_of(model, 1, seed=5)})
    assert not np.array_equal(second["pixels"], before)
    assert np.array_equal(pixels, before)
    assert set(second) == {"pixels", "flags"}
    assert first.wait()["pixels"] is pixels


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("use_fused", [True, False])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_flag_marks_the_pictures_of_a_batch_that_are_not_finite(value: float, use_fused: bool, threads: int) -> None:
    model = make_stylegan2()
    executor = CpuExecutor(model.weights, threads=threads)
    bound = executor.bind(build_synthesis_plan(model.spec, "id", batch=3), use_fused=use_fused)
    ws = rows_of(model, 3)
    assert run(bound, {"ws": ws})["flags"].tolist() == [0, 0, 0]
    ws[1] = value
    assert run(bound, {"ws": ws})["flags"].tolist() == [0, 1, 0]
    ws[1] = 1.0
    assert run(bound, {"ws": ws})["flags"].tolist() == [0, 0, 0]
    executor.close()


def test_weights_are_shared_and_never_written() -> None:
    model = make_stylegan2(resolution=32, channel_base=4096, channel_max=72, conv_clamp=1.0)
    before = {name: array.copy() for name, array in model.weights.items()}
    for array in model.weights.values():
        array.flags.writeable = False
    run(bind(model, batch=2), {"ws": rows_of(model, 2)})
    assert all(np.array_equal(array, before[name]) for name, array in model.weights.items())


def test_plain_convolutions_stand_in_where_packed_ones_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_stylegan2(resolution=32)
    ws = rows_of(model, 2)
    packed = run(bind(model, batch=2), {"ws": ws})["image"].copy()
    monkeypatch.setattr(convolution, "has_packed_convolutions", lambda: False)
    assert_near(run(bind(model, batch=2), {"ws": ws})["image"], packed)


def test_wrong_inputs_are_refused_with_a_sentence() -> None:
    model = make_stylegan2()
    bound = bind(model)
    with pytest.raises(ValueError, match=r"inputs .*'ws'.* not 'w'"):
        run(bound, {"w": rows_of(model, 1)})
    with pytest.raises(ValueError, match="must have the shape"):
        run(bound, {"ws": rows_of(model, 2)})


def test_closing_twice_is_allowed_and_running_afterwards_is_not() -> None:
    model = make_stylegan2()
    executor: Executor = CpuExecutor(model.weights, threads=1)
    bound = executor.bind(build_synthesis_plan(model.spec, "id"))
    bound.close()
    executor.close()
    executor.close()
    with pytest.raises(RuntimeError, match="closed"):
        run(bound, {"ws": rows_of(model, 1)})


def test_pictures_of_any_number_of_threads_are_the_same_but_for_rounding(executors: list[CpuExecutor]) -> None:
    model = make_stylegan2(resolution=128, channels=dict.fromkeys((4, 8, 16, 32, 64, 128), 64))
    ws, pictures = rows_of(model, 1), []
    for threads in (1, 2, 3, 4, 8):
        executors.append(CpuExecutor(model.weights, threads=threads))
        bound = executors[-1].bind(build_synthesis_plan(model.spec, "id"))
        outputs = run(bound, {"ws": ws})
        np.testing.assert_array_equal(run(bound, {"ws": ws})["image"], outputs["image"])
        pictures.append(outputs)
    for outputs in pictures[1:]:
        assert_near(outputs["image"], pictures[0]["image"])
        steps = np.abs(outputs["pixels"].astype(int) - pictures[0]["pixels"])
        assert steps.max() <= 1
        assert np.mean(steps > 0) < 1e-3


def test_several_threads_leave_torch_s_own_number_and_end_with_the_executor() -> None:
    model, before, alive = make_stylegan2(), torch.get_num_threads(), set(threading.enumerate())
    executor = CpuExecutor(model.weights, threads=3)
    assert set(threading.enumerate()) == alive
    bound = executor.bind(build_synthesis_plan(model.spec, "id"))
    run(bound, {"ws": rows_of(model, 1)})
    assert len(set(threading.enumerate()) - alive) == 3
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert found == [before]
    assert torch.get_num_threads() == before
    executor.close()
    executor.close()
    assert set(threading.enumerate()) == alive


def test_closed_plans_are_forgotten() -> None:
    model = make_stylegan2()
    executor = CpuExecutor(model.weights, threads=1)
    plan = build_synthesis_plan(model.spec, "id")
    first = weakref.ref(executor.bind(plan))
    bound = first()
    assert bound is not None
    bound.close()
    del bound
    executor.bind(plan)
    gc.collect()
    assert first() is None


def test_the_executor_names_itself() -> None:
    executor: Executor = CpuExecutor(make_stylegan2().weights, threads=1)
    assert (executor.device_name, executor.precision) == ("CPU", "fp32")
