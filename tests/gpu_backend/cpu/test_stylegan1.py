"""StyleGAN1 on the CPU executor, against the composition of the reference functions."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import gpu_backend.cpu.convolution as convolution
import gpu_backend.cpu.modulated_conv as choice
from gpu_backend import CancelledError
from gpu_backend.cpu.adain import Moments, put_together
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.cpu.modulated_conv import suits_winograd
from gpu_backend.ops.noise import noise_picture
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey
from gpu_backend.plan.stylegan1 import build_synthesis_plan
from gpu_backend.reference.stylegan1 import run_stylegan1
from tests.helpers.networks import make_stylegan2, rows_of
from tests.helpers.selection import in_turn
from tests.helpers.stylegan1 import StyleGAN1Model, make_stylegan1

NETWORKS: dict[str, dict[str, Any]] = {
    "small": {},
    "smallest": {"resolution": 4},
    "grey": {"img_channels": 1},
    "rgba, odd channels": {"img_channels": 4, "channels": {4: 7, 8: 5, 16: 3}},
    "relu": {"activation": "relu"},
    "no noise": {"use_noise": False},
    "blurred bias, epsilon": {"blurs_bias": True, "epsilon": 1e-2, "resolution": 64, "channel_base": 256},
    "large": {"resolution": 64, "channel_base": 256},
    "wide enough for Winograd": {"resolution": 64, "channel_base": 4160, "channel_max": 65},
}


def tensors(model: StyleGAN1Model) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in model.weights.items()}


def assert_near(found: np.ndarray, expected: np.ndarray, tolerance: float = 3e-5) -> None:
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= tolerance * max(1.0, float(np.abs(expected).max()))


def reference(model: StyleGAN1Model, ws: np.ndarray, noise: dict[str, torch.Tensor] | None = None) -> np.ndarray:
    """In double precision, which normalisation of few pixels wants."""
    weights = {name: value.double() for name, value in tensors(model).items()}
    wide = None if noise is None else {name: value.double() for name, value in noise.items()}
    return run_stylegan1(model.spec, weights, torch.from_numpy(ws).double(), wide).numpy()


@pytest.fixture
def executors() -> Iterator[list[CpuExecutor]]:
    """Executors to close after the test."""
    opened: list[CpuExecutor] = []
    yield opened
    for executor in opened:
        executor.close()


def picture(executor: CpuExecutor, model: StyleGAN1Model, inputs: dict[str, np.ndarray], **options: Any) -> np.ndarray:
    plan = build_synthesis_plan(model.spec, "id", batch=inputs["ws"].shape[0], **options)
    return executor.bind(plan).run(inputs, outputs=("image",))["image"].transpose(0, 3, 1, 2).copy()


@pytest.mark.parametrize(("name", "way"), in_turn(NETWORKS, [(1, 1), (3, 1), (2, 2), (1, 3), (2, 5)], each=2))
def test_the_picture_equals_the_reference(name: str, way: tuple[int, int], executors: list[CpuExecutor]) -> None:
    batch, threads = way
    model = make_stylegan1(**NETWORKS[name])
    ws = rows_of(model, batch)
    executors.append(CpuExecutor(model.weights, threads=threads))
    assert_near(picture(executors[0], model, {"ws": ws}), reference(model, ws))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_winograd_on_every_side_equals_the_reference(
    threads: int, executors: list[CpuExecutor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "MIN_WINOGRAD_SIDE", 4)
    monkeypatch.setattr(choice, "MIN_WINOGRAD_CHANNELS", 1)
    model = make_stylegan1(resolution=128, channel_base=1024, channel_max=12)
    ws = rows_of(model, 2)
    executors.append(CpuExecutor(model.weights, threads=threads))
    assert_near(picture(executors[0], model, {"ws": ws}), reference(model, ws), 1e-4)


def test_plain_convolutions_of_torch_give_the_same(
    executors: list[CpuExecutor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution, "has_packed_convolutions", lambda: False)
    model = make_stylegan1(resolution=64, channel_base=256)
    ws = rows_of(model, 2)
    executors.append(CpuExecutor(model.weights, threads=2))
    assert_near(picture(executors[0], model, {"ws": ws}), reference(model, ws))


def test_the_list_of_networks_has_one_that_uses_winograd() -> None:
    def uses(name: str) -> bool:
        plan = build_synthesis_plan(make_stylegan1(**NETWORKS[name]).spec, "id")
        return any(suits_winograd(step.attributes) for step in plan.steps if step.op == "adain_conv")

    assert uses("wide enough for Winograd")
    assert not uses("small")


@pytest.mark.parametrize("make", [make_stylegan1, make_stylegan2])
def test_the_picture_is_the_same_where_strips_do_not_divide_a_lane_s_rows(
    make: Any, executors: list[CpuExecutor]
) -> None:
    model = make(resolution=128, channels=dict.fromkeys((64, 128), 64))
    ws = rows_of(model, 1)
    images = []
    for threads in (1, 3, 5):
        executors.append(CpuExecutor(model.weights, threads=threads))
        bound = executors[-1].bind(build_plan(model.spec, PlanKey("id", "synthesis", 1, 128)))
        images.append(bound.run({"ws": ws}, outputs=("image",))["image"].copy())
    assert_near(images[1], images[0], 1e-4)
    assert_near(images[2], images[0], 1e-4)


@pytest.mark.parametrize("resolution", [4, 8, 16, 32])
def test_a_draft_leaves_by_the_picture_of_its_resolution(resolution: int, executors: list[CpuExecutor]) -> None:
    model = make_stylegan1(resolution=64, channel_base=256)
    assert resolution in model.spec.draft_resolutions
    ws = rows_of(model, 1)
    observed: dict[str, torch.Tensor] = {}
    run_stylegan1(model.spec, tensors(model), torch.from_numpy(ws), observed=observed)
    executors.append(CpuExecutor(model.weights, threads=1))
    found = picture(executors[0], model, {"ws": ws}, resolution=resolution)
    assert_near(found, observed[f"synthesis.b{resolution}.torgb"].numpy())


def test_noise_of_a_seed_has_its_strength_a_channel_and_its_gain_a_layer(executors: list[CpuExecutor]) -> None:
    model = make_stylegan1()
    ws, layers = rows_of(model, 1), model.spec.noise_layers
    gains = np.linspace(-1, 2, len(layers)).astype(np.float32)
    inputs = {"ws": ws, "noise_source": np.array([1, 7, 3, 0], np.uint32), "noise_gain": gains}
    noise = {
        name: torch.from_numpy(noise_picture(7 | 3 << 32, place, int(name.partition(".")[0][1:]))) * float(gains[place])
        for place, name in enumerate(layers)
    }
    executors.append(CpuExecutor(model.weights, threads=2))
    assert_near(picture(executors[0], model, inputs), reference(model, ws, noise))
    silent = {**inputs, "noise_gain": np.zeros_like(gains)}
    assert_near(picture(executors[0], model, silent), reference(model, ws, {}))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_leaves_nothing_behind_for_the_next(threads: int, executors: list[CpuExecutor]) -> None:
    model = make_stylegan1(resolution=64, channel_base=256)
    first, second = rows_of(model, 2)[:1], rows_of(model, 2)[1:]
    executors.append(CpuExecutor(model.weights, threads=threads))
    bound = executors[0].bind(build_synthesis_plan(model.spec, "id"))
    before = bound.run({"ws": first}, outputs=("image",))["image"].copy()
    bound.run({"ws": second}, outputs=("image",))
    np.testing.assert_array_equal(bound.run({"ws": first}, outputs=("image",))["image"], before)


def test_every_layer_is_observed_as_the_reference_gives_it(executors: list[CpuExecutor]) -> None:
    model = make_stylegan1(resolution=64, channel_base=256, pictures=())
    ws = rows_of(model, 1)
    expected: dict[str, torch.Tensor] = {}
    run_stylegan1(model.spec, tensors(model), torch.from_numpy(ws), observed=expected)
    executors.append(CpuExecutor(model.weights, threads=2))
    found = executors[0].bind(build_synthesis_plan(model.spec, "id")).observe({"ws": ws})
    assert list(found) == list(expected)
    for name, values in found.items():
        assert_near(values, expected[name].numpy(), 1e-4)


def test_the_plain_way_gives_the_same_picture(executors: list[CpuExecutor]) -> None:
    model = make_stylegan1(blurs_bias=True)
    ws = rows_of(model, 2)
    executors.append(CpuExecutor(model.weights, threads=1))
    plan = build_synthesis_plan(model.spec, "id", batch=2)
    plain = executors[0].bind(plan, use_fused=False).run({"ws": ws}, outputs=("image",))["image"]
    assert_near(picture(executors[0], model, {"ws": ws}), plain.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("tap", ["b4.input", "b8.conv0", "b16.conv1", "b8.torgb", "b16.torgb"])
def test_a_tap_shows_what_its_layer_gave(tap: str, executors: list[CpuExecutor]) -> None:
    model = make_stylegan1()
    ws = rows_of(model, 1)
    observed: dict[str, torch.Tensor] = {}
    run_stylegan1(model.spec, tensors(model), torch.from_numpy(ws), observed=observed)
    executors.append(CpuExecutor(model.weights, threads=1))
    bound = executors[0].bind(build_synthesis_plan(model.spec, "id", tap=tap))
    pixels = bound.run({"ws": ws, "tap": np.array([2, 0, 1, 0.25, 0], np.float32)}, outputs=("pixels",))["pixels"]
    chosen = observed[f"synthesis.{tap}"][0, [2, 0, 1]].numpy().transpose(1, 2, 0)
    expected = np.clip(chosen * 0.25 * 127.5 + 128, 0, 255)
    assert np.abs(pixels[0, :, :, 2::-1].astype(float) - np.floor(expected)).max() <= 1


def test_a_cancelled_run_ends_between_two_layers(executors: list[CpuExecutor]) -> None:
    model = make_stylegan1()
    executors.append(CpuExecutor(model.weights, threads=2))
    bound = executors[0].bind(build_synthesis_plan(model.spec, "id"))
    calls: list[int] = []

    def should_cancel() -> bool:
        calls.append(1)
        return len(calls) > 4

    with pytest.raises(CancelledError):
        bound.run({"ws": rows_of(model, 1)}, should_cancel=should_cancel)
    assert len(calls) == 5
    assert np.isfinite(bound.run({"ws": rows_of(model, 1)}, outputs=("image",))["image"]).all()


def test_moments_keep_their_digits_where_a_channel_hardly_varies() -> None:
    values = 1000.0 + 1e-3 * torch.randn(4, 500, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    narrow = values.float()
    parts = [Moments(), Moments()]
    for index, strip in enumerate(narrow):
        mean = strip.mean(0)
        part = parts[index % 2]
        part.counts.append(500)
        part.means.append(mean)
        part.squares.append((strip - mean).square().sum(0))
    mean, variance = put_together(parts)
    wide = narrow.double().reshape(-1, 2)
    torch.testing.assert_close(mean, wide.mean(0), rtol=1e-7, atol=0)
    torch.testing.assert_close(variance, wide.var(0, correction=0), rtol=1e-2, atol=0)
