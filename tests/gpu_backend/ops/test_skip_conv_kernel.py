"""The resnet's skip: a 1 x 1 convolution of the block's raw input, doubled where the block's output is finished."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork, SkipPicture
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.schedule import Address, Built
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.skip_conv import SkipConv
from gpu_backend.plan.plan import Step
from gpu_backend.reference.skip_conv import skip_conv
from tests.helpers.conv_cases import (
    FLAVOURS,
    H200,
    ConvCase,
    Weights,
    error_of,
    filter_taps,
    problem_of,
    run_built,
    site_of,
    step_of,
)
from tests.helpers.gpu import target_of

GAIN = math.sqrt(0.5)
SIZES = [
    (3, 5, 8, 1, 4),
    (24, 40, 16, 2, 4),
    (513, 12, 8, 5, 1),
    (40, 24, 64, 1, 2),
    (12, 513, 32, 2, 6),
    (5, 3, 8, 5, 3),
]
"""Input and output channels, side of the block's output, batch, taps."""

PRECISIONS = [(name, half) for name, flavour in FLAVOURS.items() for half in flavour.tolerance]


def skip_step(cin: int, cout: int, side: int, taps: int) -> Step:
    settings = SkipConv(cin, cout, side, GAIN, filter_taps(taps))
    return Step(f"synthesis.b{side}.skip", "skip_conv", settings, ("x",), ("y",), {"weight": "skip.weight"})


def build(flavour: str, step: Step, weights: Weights, batch: int, half: bool, target: Target) -> Built:
    """Build the skip convolution and a block's last convolution, of zeros, that adds it."""
    settings: SkipConv = step.attributes
    site = ConvSite(batch, half, "low", None, 0, 0, y="skip")
    skip = FLAVOURS[flavour].conv(ConvWork.of_step(step), site, weights, target)
    case = ConvCase(8, settings.out_channels, settings.resolution, batch, act=BiasAct(), noise="none", half=half)
    adding = replace(site_of(case), skip=SkipPicture("skip", settings.gain, settings.taps))
    return Built.joined((skip, FLAVOURS[flavour].conv(ConvWork.of_step(step_of(case)), adding, weights, target)))


@pytest.mark.gpu
@pytest.mark.parametrize(("cin", "cout", "side", "batch", "taps"), SIZES)
@pytest.mark.parametrize(("flavour", "half"), PRECISIONS)
def test_the_skip_of_a_block_is_the_reference(
    flavour: str, cin: int, cout: int, side: int, batch: int, taps: int, half: bool, gpu: Gpu
) -> None:
    random = np.random.default_rng(cin)
    problem = problem_of(ConvCase(8, cout, side, batch, act=BiasAct(), noise="none", half=half))
    weights = problem.weights | {
        "skip.weight": random.standard_normal((cout, cin, 1, 1), np.float32),
        "b": np.zeros(cout, np.float32),
    }
    step = skip_step(cin, cout, side, taps)
    low = np.zeros((batch, side // 2, side // 2, pad8(cin)), np.float16 if half else np.float32)
    low[..., :cin] = random.standard_normal((*low.shape[:3], cin))
    inputs = problem.inputs | {"x": np.zeros_like(problem.inputs["x"]), "low": low}
    found = run_built(build(flavour, step, weights, batch, half, target_of(gpu)), inputs)
    x = torch.from_numpy(low[..., :cin].astype(np.float64)).permute(0, 3, 1, 2)
    weight = torch.from_numpy(weights["skip.weight"].astype(np.float64))
    expected = skip_conv(x, weight, GAIN, filter_taps(taps)).permute(0, 2, 3, 1).numpy()
    error = error_of(found["y_raw"][..., :cout], expected)
    assert error < FLAVOURS[flavour].tolerance[half] * 2, f"off by {error}"


def test_the_skip_convolution_is_done_before_its_doubling() -> None:
    step = skip_step(12, 24, 32, 4)
    weights = {"skip.weight": np.ones((24, 12, 1, 1), np.float32), "b": np.zeros(24, np.float32)}
    weights["w"] = np.ones((24, 8, 3, 3), np.float32)
    skip, adding = build("plain", step, weights, 2, False, H200).launches
    assert dict(skip.recipe.defines)["KERNEL"] == "1"
    assert skip.arguments["side"] == np.int32(16)
    unused = ("demod", "next_style", "bias", "noise", "noise_gain", "noise_source")
    assert [skip.arguments[name] for name in unused] == [None] * 6
    assert skip.flops == 2 * 2 * 16**2 * 12 * 24
    assert adding.arguments["skip"] == Address("skip", "region")
    built = build("plain", step, weights, 2, False, H200)
    arrays = {constant.key: constant.make() for constant in built.constants}
    assert np.allclose(arrays["plain/skip.weight/0"][0, :12], 1.0 / math.sqrt(12))
    taps = next(array for key, array in arrays.items() if key.startswith("taps/"))
    assert taps.sum() ** 2 == pytest.approx(4.0 * GAIN)
