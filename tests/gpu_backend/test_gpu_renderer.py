"""Whole networks on a GPU, beside the CPU and the published pictures. fp16 is what is used, fp32 what it is checked by.

Largest and mean differences stand in every failure, so that one run tells how far off a picture is.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gpu_backend import Frame, Latent, Model, Noise, Point, Renderer, RenderOptions
from tests.helpers.golden import CASES, Golden, to_bytes
from tests.helpers.networks import make_stylegan2
from tests.helpers.requests import request_for

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

Make = Callable[..., Renderer]

NETWORKS: dict[str, dict[str, Any]] = {
    "skip": {"resolution": 64},
    "resnet": {"architecture": "resnet", "resolution": 32},
    "orig": {"architecture": "orig", "resolution": 32},
    "conditional": {"c_dim": 3, "embed_dim": 5, "mapping_widths": (7, 9, 8), "z_dim": 6},
    "4 x 4": {"resolution": 4, "img_channels": 4},
    "grey": {"img_channels": 1},
    "rgba, odd channels": {"img_channels": 4, "channels": {4: 7, 8: 5, 16: 3}},
    "resnet, odd channels, clamp": {"architecture": "resnet", "channels": {8: 5, 16: 9}, "conv_clamp": 0.8},
    "wide": {"resolution": 64, "channel_base": 8192, "channel_max": 128},
    "wide and odd": {"resolution": 64, "channels": {4: 130, 8: 100, 16: 77, 32: 65, 64: 33}},
    "wide resnet": {"resolution": 64, "channel_base": 8192, "channel_max": 136, "architecture": "resnet"},
    "no noise": {"use_noise": False},
    "one tap": {"fir": (1,), "architecture": "resnet", "conv_clamp": 2.0},
    "three taps": {"fir": (1, 2, 1), "architecture": "resnet"},
    "lopsided taps": {"fir": (1, 2, 3, 4), "architecture": "resnet"},
    "six taps": {"fir": (1, 5, 10, 10, 5, 1), "resolution": 32},
    "twelve taps": {"fir": tuple(range(1, 13)), "resolution": 64},
    "more taps than fused kernels take": {"fir": tuple(range(1, 25)), "resolution": 32},
    "more channels than fused kernels take": {"img_channels": 9},
    "odd w": {"mapping_widths": (7, 9, 11), "w_dim": 11},
    "swish": {"activation": "swish", "conv_clamp": 1.0},
    "softplus": {"activation": "softplus"},
    "tanh": {"activation": "tanh"},
}
"""Small networks with ugly sizes."""


@pytest.fixture
def make() -> Iterator[Make]:
    """Make renderers that are closed after the test."""
    made: list[Renderer] = []

    def make_one(model: Model, device: str = "cuda", **options: Any) -> Renderer:
        made.append(Renderer(model, device, **options))
        return made[-1]

    yield make_one
    for renderer in made:
        renderer.close()


def measured_frame(renderer: Renderer, latent: Latent | None = None, **given: Any) -> Frame:
    """Render with times; once more where CUPTI gave none, since events measure from then on.

    CUPTI has one client a process, and a test before may have used torch's profiler.
    """
    request = request_for(renderer, latent, measure_steps=True, **given)
    frame = renderer.render(request)
    return frame if frame.timings.steps else renderer.render(request)


def assert_near(found: np.ndarray, expected: np.ndarray, largest: float, mean: float, what: str = "") -> None:
    """Differences relative to the largest number of what is expected, or to 1."""
    assert found.shape == expected.shape
    assert np.isfinite(found).all(), what
    difference = np.abs(found.astype(np.float64) - expected) / max(1.0, float(np.abs(expected).max()))
    off = f"{what}: largest {difference.max():.3g} (may be {largest:g}), mean {difference.mean():.3g} (may be {mean:g})"
    assert difference.max() <= largest, off
    assert difference.mean() <= mean, off


def assert_bytes(found: np.ndarray, expected: np.ndarray, largest: int, mean: float, what: str = "") -> None:
    difference = np.abs(found.astype(int) - expected.astype(int))
    off = (
        f"{what}: largest {difference.max()} of 255 (may be {largest}), mean {difference.mean():.4f} (may be {mean:g})"
    )
    assert difference.max() <= largest, off
    assert difference.mean() <= mean, off


TOLERANCE = {"fp32": (2e-4, 2e-5), "tf32": (2e-2, 3e-3), "bf16x3": (5e-4, 5e-5), "fp16": (2e-2, 3e-3)}
PRECISIONS = ("fp32", "bf16x3", "tf32", "fp16")
NEAR_FP32 = ("fp32", "bf16x3")


@pytest.mark.parametrize("name", CASES)
def test_golden_arrays_in_single_precision(name: str, make: Make) -> None:
    golden = Golden(name)
    renderer, arrays = make(golden.model, precision="fp32"), golden.arrays
    assert_near(renderer.map(arrays["z"], golden.c), arrays["w"], 1e-4, 1e-5, "w")
    assert_near(renderer.map(arrays["z"], golden.c, psi=0.7), arrays["w_psi07"], 1e-4, 1e-5, "psi 0.7")
    assert_near(renderer.map(arrays["z"], golden.c, 0.5, 4), arrays["w_psi05_cut4"], 1e-4, 1e-5, "psi 0.5, cutoff 4")
    for image, found in (
        ("img_psi1", renderer.synthesize(arrays["w"][:2])),
        ("img_psi07", renderer.synthesize(arrays["w_psi07"][:2])),
        ("img_noise_none", renderer.synthesize(arrays["w"][:1], noise="none")),
        ("img_mix", renderer.synthesize(golden.mixed_rows)),
    ):
        assert_near(found, arrays[image], 2e-4, 2e-5, image)
        assert_bytes(to_bytes(found), to_bytes(arrays[image]), 1, 0.01, image)


@pytest.mark.parametrize("name", CASES)
def test_the_golden_layers_are_reproduced(name: str, make: Make) -> None:
    golden = Golden(name)
    found = make(golden.model, precision="fp32").layer_statistics(golden.arrays["w"][:1])
    assert list(found) == golden.arrays["layer_names"].tolist()
    for index, (layer, numbers) in enumerate(found.items()):
        assert numbers.shape == tuple(golden.arrays["layer_shape"][index]), layer
        assert numbers.mean == pytest.approx(golden.arrays["layer_mean"][index], abs=1e-3), layer
        assert numbers.std == pytest.approx(golden.arrays["layer_std"][index], abs=1e-3), layer


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", CASES)
def test_golden_pictures_of_64_latents_are_near_those_of_the_cpu(name: str, precision: str, make: Make) -> None:
    model = Golden(name).model
    gpu, cpu = make(model, precision=precision), make(model, "cpu")
    classes = model.spec.mapping.c_dim
    found, expected = [], []
    for seed in range(64):
        latent = Latent(Point(((seed, 1.0),)), ((seed % classes, 1.0),) if classes else ())
        request = request_for(gpu, latent)
        found.append(gpu.render(request).pixels)
        expected.append(cpu.render(request).pixels)
    largest, mean = (1, 0.05) if precision in NEAR_FP32 else (6, 1.0)
    channels = slice(0, 3)
    assert_bytes(
        np.stack(found)[..., channels], np.stack(expected)[..., channels], largest, mean, f"{name}, {precision}"
    )


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", NETWORKS)
def test_every_kind_of_network_for_every_batch(name: str, precision: str, make: Make) -> None:
    model = make_stylegan2(**NETWORKS[name])
    gpu, cpu = make(model, precision=precision), make(model, "cpu")
    generator = np.random.default_rng(5)
    z = generator.standard_normal((7, model.spec.mapping.z_dim))
    c = np.eye(3)[generator.integers(0, 3, 7)] if model.spec.mapping.c_dim else None
    rows = cpu.map(z, c)
    assert_near(gpu.map(z, c), rows, 1e-4, 1e-5, "w")
    expected = cpu.synthesize(rows)
    for count in (1, 3, 7):
        assert_near(gpu.synthesize(rows[:count]), expected[:count], *TOLERANCE[precision], f"{count} pictures")


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", ["skip", "resnet", "orig", "wide and odd", "wide resnet", "rgba, odd channels"])
def test_every_layer_equals_the_golden_one(name: str, precision: str, make: Make) -> None:
    model = make_stylegan2(**NETWORKS[name])
    gpu, cpu = make(model, precision=precision), make(model, "cpu")
    rows = cpu.map(np.random.default_rng(1).standard_normal((1, model.spec.mapping.z_dim)))
    found, expected = gpu.layer_statistics(rows), cpu.layer_statistics(rows)
    assert list(found) == list(expected)
    for layer, numbers in expected.items():
        assert found[layer].shape == numbers.shape
        scale = max(1.0, numbers.std)
        may_be = (1e-4 if precision in NEAR_FP32 else 1e-2) * scale
        assert found[layer].mean == pytest.approx(numbers.mean, abs=may_be), layer
        assert found[layer].std == pytest.approx(numbers.std, abs=may_be), layer


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "noise",
    [
        Noise("none"),
        Noise("const", gain=2.0),
        Noise("const", layer_gains=(0.0, 3.0, -1.0)),
        Noise("random", seed=0),
        Noise("random", seed=2**32 - 1, gain=1.5),
    ],
    ids=lambda noise: f"{noise.mode} {noise.seed} {noise.gain:g} {len(noise.layer_gains)}",
)
def test_noise_is_the_same_as_on_the_cpu(noise: Noise, precision: str, make: Make) -> None:
    model = make_stylegan2(resolution=64, channel_base=2048, channel_max=48)
    gpu, cpu = make(model, precision=precision), make(model, "cpu")
    rows = cpu.map(np.random.default_rng(1).standard_normal((2, 8)))
    silent = cpu.synthesize(rows, "none")
    expected = cpu.synthesize(rows, noise)
    assert noise.mode == "none" or np.abs(expected - silent).max() > 0.05
    assert_near(gpu.synthesize(rows, noise), expected, *TOLERANCE[precision], str(noise))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_drafts_are_those_of_the_cpu(precision: str, make: Make) -> None:
    model = make_stylegan2(resolution=128, channel_base=4096, channel_max=40, conv_clamp=256.0)
    gpu, cpu = make(model, precision=precision), make(model, "cpu")
    for side in (*model.spec.draft_resolutions, 128):
        request = request_for(gpu, resolution=side, noise=Noise("random", seed=3))
        found, expected = gpu.render(request), cpu.render(request)
        assert (found.width, found.is_draft) == (side, side < 128)
        largest, mean = (1, 0.05) if precision in NEAR_FP32 else (16, 1.5)
        assert_bytes(found.pixels, expected.pixels, largest, mean, f"{side} x {side}, {precision}")


@pytest.mark.parametrize("name", ["skip", "resnet", "wide", "wide and odd", "rgba, odd channels", "4 x 4"])
def test_graph_and_single_launches_and_measured_runs_give_the_same_bytes(name: str, make: Make) -> None:
    renderer = make(make_stylegan2(**NETWORKS[name]))
    for seed in range(5):
        latent = Latent(Point(((seed, 1.0),)))
        graph = renderer.render(request_for(renderer, latent, noise=Noise("random", seed)))
        measured = measured_frame(renderer, latent, noise=Noise("random", seed))
        renderer.options = RenderOptions(use_graph=False)
        single = renderer.render(request_for(renderer, latent, noise=Noise("random", seed)))
        renderer.options = RenderOptions()
        assert np.array_equal(graph.pixels, single.pixels), f"graph and no graph differ for seed {seed}"
        assert np.array_equal(graph.pixels, measured.pixels), f"measuring changes the picture of seed {seed}"
        assert measured.timings.steps


@pytest.mark.parametrize("name", ["skip", "wide", "wide and odd", "wide resnet"])
def test_fused_kernels_run_and_the_plain_ones_give_nearly_the_same_picture(name: str, make: Make) -> None:
    renderer = make(make_stylegan2(**NETWORKS[name]))
    steps = measured_frame(renderer).timings.steps
    states = {step.layer: (step.facts.state, step.facts.reason) for step in steps if step.facts is not None}
    assert len(states) > 3
    assert {state for state, _ in states.values()} == {"fused"}, states
    found = renderer.compare(request_for(renderer))
    assert found.largest_difference <= 16, found
    assert found.mean_difference <= 1.5, found
    assert min(found.graph_ms or 0, found.no_graph_ms or 0, found.fused_ms, found.reference_ms) > 0, found


def test_a_picture_that_is_not_finite_is_flagged(make: Make) -> None:
    model = make_stylegan2(resolution=32)
    bias = model.weights["synthesis.b32.torgb.bias"]
    before = bias.copy()
    bias[:] = np.nan
    try:
        broken = make(model)
        assert "not finite" in broken.render(request_for(broken)).warnings[0]
    finally:
        bias[:] = before
    whole = make(make_stylegan2(resolution=32))
    assert whole.render(request_for(whole)).warnings == ()
