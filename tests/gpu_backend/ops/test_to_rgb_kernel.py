"""toRGB: its convolution by itself, the sum of parts, the doubled picture before, bytes and flags."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.conv_work import KeptSecond, RgbPart
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.launches.to_rgb import plain_to_rgb, to_rgb
from gpu_backend.cuda.schedule import Built
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.to_display import MIDDLE, MIDDLE_XL, ToDisplay
from gpu_backend.ops.to_rgb import ToRgb
from gpu_backend.plan.plan import Step
from gpu_backend.reference.blend_samples import enlarged
from gpu_backend.reference.to_display import to_display
from gpu_backend.reference.to_rgb import add_doubled, to_rgb as reference_to_rgb
from tests.helpers.conv_cases import Weights, error_of, filter_taps, run_built
from tests.helpers.kept_kernels import statistics_of
from tests.helpers.kernel_checks import ARCHITECTURES, assert_compiles, one_each

CHANNELS = [1, 2, 3, 4, 5]
"""Of the picture."""


def step_of(channels: int, side: int, *, clamp: float | None = None, taps: int = 4, adds: bool = False) -> Step:
    settings = ToRgb(24, channels, side, 0, clamp, filter_taps(taps), adds)
    return Step(f"synthesis.b{side}.torgb", "to_rgb", settings, (), (), {"weight": "w", "bias": "b"})


def bias_of(channels: int) -> Weights:
    return {"b": np.random.default_rng(channels).standard_normal(channels).astype(np.float32)}


def real(array: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, np.float64)).permute(0, 3, 1, 2)


@pytest.mark.gpu
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("side", [4, 8, 32, 256])
@pytest.mark.parametrize(("taps", "batch"), [(1, 1), (2, 2), (3, 5), (4, 1), (6, 2), (8, 5)])
def test_parts_bias_clamp_and_the_picture_before_add_up(
    channels: int, side: int, taps: int, batch: int, gpu: Gpu
) -> None:
    random = np.random.default_rng(side)
    clamp = 0.5 if taps == 4 else None
    step = step_of(channels, side, clamp=clamp, taps=taps, adds=True)
    inputs = {
        "parts": random.standard_normal((batch, batch, side, side, channels)).astype(np.float32),
        "before": random.standard_normal((batch, side // 2, side // 2, channels)).astype(np.float32),
    }
    built = to_rgb(step, bias_of(channels), batch, parts="parts", part_count=batch, image="image", previous="before")
    found = run_built(built, inputs)["image"]
    own = inputs["parts"].sum(axis=0, dtype=np.float64) + bias_of(channels)["b"]
    own = own if clamp is None else np.clip(own, -clamp, clamp)
    expected = add_doubled(real(inputs["before"]), real(own), filter_taps(taps)).permute(0, 2, 3, 1).numpy()
    error = error_of(found, expected)
    assert error < 1e-6, f"off by {error}"


@pytest.mark.gpu
@pytest.mark.parametrize("adds", [False, True], ids=["first", "later"])
def test_the_gain_comes_after_the_clamp_and_before_the_picture_that_is_added(adds: bool, gpu: Gpu) -> None:
    random = np.random.default_rng(0)
    step = step_of(3, 16, clamp=0.5, adds=adds)
    step = replace(step, attributes=replace(step.attributes, gain=0.25))
    inputs = {"parts": random.standard_normal((2, 2, 16, 16, 3)).astype(np.float32)}
    if adds:
        inputs["before"] = random.standard_normal((2, 8, 8, 3)).astype(np.float32)
    built = to_rgb(step, bias_of(3), 2, parts="parts", part_count=2, image="image", previous="before" if adds else None)
    found = run_built(built, inputs)["image"]
    own = 0.25 * np.clip(inputs["parts"].sum(axis=0, dtype=np.float64) + bias_of(3)["b"], -0.5, 0.5)
    expected = add_doubled(real(inputs["before"]), real(own), filter_taps(4)) if adds else real(own)
    error = error_of(found, expected.permute(0, 2, 3, 1).numpy())
    assert error < 1e-6, f"off by {error}"


@pytest.mark.gpu
@pytest.mark.parametrize(("side", "mask_side"), [(4, 4), (256, 128)])
def test_the_picture_of_a_kept_second_latent_takes_its_share(side: int, mask_side: int, gpu: Gpu) -> None:
    random = np.random.default_rng(side)
    mask = random.uniform(0.0, 1.0, (mask_side, mask_side)).astype(np.float32)
    mask[: mask_side // 2] = np.round(mask[: mask_side // 2])
    inputs = {
        "parts": random.standard_normal((1, 2, side, side, 3)).astype(np.float32),
        "before": random.standard_normal((2, side // 2, side // 2, 3)).astype(np.float32),
        "second": random.standard_normal((3, side, side, 3)).astype(np.float32),
        "mask": mask,
    }
    step, bias, blend = step_of(3, side, adds=True), bias_of(3), KeptSecond("second", 2, "mask", mask_side)

    def image_of(blend: KeptSecond | None) -> NDArray[Any]:
        built = to_rgb(step, bias, 2, parts="parts", part_count=1, image="image", previous="before", blend=blend)
        return run_built(built, inputs)["image"]

    shares = enlarged(torch.from_numpy(mask), side)[..., None].numpy()
    alone, second = image_of(None), inputs["second"][2]
    error = error_of(image_of(blend), alone.astype(np.float64) * (1.0 - shares) + shares * second.astype(np.float64))
    assert error < 1e-6, f"off by {error}"


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_another_middle_is_another_kernel_that_compiles_everywhere(architecture: str) -> None:
    def recipe_of(**middle: Any) -> KernelRecipe:
        built = to_rgb(step_of(3, 8), bias_of(3), 1, parts="p", part_count=1, image="i", pixels="x", **middle)
        return built.launches[0].recipe

    assert recipe_of() == recipe_of(middle=MIDDLE)
    moved = recipe_of(middle=MIDDLE_XL)
    assert moved.defines == (*recipe_of().defines, ("MIDDLE_TWICE", "255"))
    assert_compiles(moved, architecture, 256)


@pytest.mark.gpu
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("adds", [False, True], ids=["first", "later"])
@pytest.mark.parametrize("middle", [MIDDLE, MIDDLE_XL])
def test_bytes_are_those_of_the_rule_for_the_picture_that_was_made(
    channels: int, adds: bool, middle: float, gpu: Gpu
) -> None:
    batch, side = 2, 64
    random = np.random.default_rng(channels)
    step = step_of(channels, side, adds=adds)
    inputs: dict[str, NDArray[Any]] = {
        "parts": random.uniform(-1.3, 1.3, (1, batch, side, side, channels)).astype(np.float32),
        "flags": np.zeros(batch, np.uint32),
    }
    inputs["parts"][0, 0, 0, :, 0] = np.linspace(-1.01, 1.01, side)
    if adds:
        inputs["before"] = random.standard_normal((batch, side // 2, side // 2, channels)).astype(np.float32) * 0.1
    built = to_rgb(
        step, {"b": np.zeros(channels, np.float32)}, batch, parts="parts", part_count=1, image="image",
        previous="before" if adds else None, pixels="pixels", middle=middle, is_last=True,
    )  # fmt: skip
    found = run_built(built, inputs)
    image = torch.from_numpy(found["image"]).permute(0, 3, 1, 2)
    expected = to_display(image, ToDisplay(channels, side, middle)).numpy()
    assert np.array_equal(found["pixels"], expected), f"{np.sum(found['pixels'] != expected)} bytes differ"
    assert not found["flags"].any()


@pytest.mark.gpu
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_sample_with_a_number_that_is_not_finite_is_flagged_and_no_other(wrong: float, gpu: Gpu) -> None:
    parts = np.zeros((1, 3, 8, 8, 3), np.float32)
    parts[0, 1, 5, 6, 2] = wrong
    built = to_rgb(step_of(3, 8), bias_of(3), 3, parts="parts", part_count=1, image="image", pixels="pixels")
    found = run_built(built, {"parts": parts, "flags": np.zeros(3, np.uint32)})
    assert found["flags"].tolist() == [0, 1, 0]
    assert found["pixels"][1, 5, 6, 0] == (255 if wrong == np.inf else 0)
    assert (found["pixels"][..., 3] == 255).all()


@pytest.mark.gpu
@pytest.mark.parametrize("half", [False, True], ids=["fp32", "fp16"])
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize(("cin", "side", "batch"), [(3, 4, 1), (12, 8, 2), (24, 16, 5), (40, 64, 1), (513, 8, 2)])
def test_the_convolution_by_itself_and_the_sum_are_the_reference(
    cin: int, side: int, batch: int, channels: int, half: bool, gpu: Gpu
) -> None:
    random = np.random.default_rng(cin)
    weights = bias_of(channels) | {"w": random.standard_normal((channels, cin, 1, 1)).astype(np.float32)}
    raw = np.zeros((batch, side, side, pad8(cin)), np.float16 if half else np.float32)
    raw[..., :cin] = random.standard_normal((*raw.shape[:3], cin))
    styles = np.zeros((batch, 8 + pad8(cin)), np.float32)
    styles[:, :8] = np.nan
    styles[:, 8 : 8 + cin] = random.standard_normal((batch, cin)) / np.sqrt(cin)
    part = RgbPart("synthesis.b.torgb", "w", channels, 8, "parts")
    step = step_of(channels, side, clamp=1.5)
    built = Built.joined(
        (
            plain_to_rgb(part, "raw", weights, batch, side, cin, styles.shape[1], half=half),
            to_rgb(step, weights, batch, parts="parts", part_count=1, image="image"),
        )
    )
    found = run_built(built, {"raw": raw, "styles": styles})["image"]
    expected = reference_to_rgb(
        real(raw[..., :cin]),
        torch.from_numpy(weights["w"].astype(np.float64)),
        torch.from_numpy(weights["b"].astype(np.float64)),
        torch.from_numpy(styles[:, 8 : 8 + cin].astype(np.float64)),
        1.5,
    )
    error = error_of(found, expected.permute(0, 2, 3, 1).numpy())
    assert error < 2e-6, f"off by {error}"


def forms() -> list[KernelRecipe]:
    part = RgbPart("synthesis.b.torgb", "w", 3, 0, "parts")
    launches = (
        *plain_to_rgb(part, "raw", {}, 1, 8, 24, 24, half=True).launches,
        *plain_to_rgb(part, "raw", {}, 1, 8, 24, 24, half=False).launches,
        *(
            to_rgb(step_of(channels, 8, adds=True), {}, 1, parts="p", part_count=1, image="i", previous="q").launches[0]
            for channels in (1, 3, 4)
        ),
    )
    return [launch.recipe for launch in launches]


@pytest.mark.parametrize(("recipe", "architecture"), one_each(forms()))
def test_pictures_of_any_channels_compile_and_spill_nothing(recipe: KernelRecipe, architecture: str) -> None:
    kernel = statistics_of(recipe, architecture)
    assert kernel.spill_nbytes == 0, recipe.title
    assert 0 < kernel.registers <= 128


def test_a_picture_to_add_must_be_named() -> None:
    with pytest.raises(ValueError, match="adds the picture"):
        to_rgb(step_of(3, 8, adds=True), bias_of(3), 1, parts="parts", part_count=1, image="image")


def test_the_last_picture_and_its_bytes_are_outputs() -> None:
    built = to_rgb(
        step_of(3, 8), bias_of(3), 2, parts="parts", part_count=4, image="image", pixels="pixels", is_last=True
    )
    assert [(region.name, region.shape, region.role) for region in built.regions] == [
        ("image", (2, 8, 8, 3), "output"),
        ("pixels", (2, 8, 8, 4), "output"),
    ]
    (launch,) = built.launches
    assert launch.is_fused
    assert launch.nbytes == 4 * 2 * 64 * (3 * 4 + 1)
    assert launch.grid == (1, 2, 1)
