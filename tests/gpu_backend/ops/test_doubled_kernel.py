"""A skip that is shown: doubled by its filter, times the block's gain."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.doubled import doubled
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.schedule import Region
from gpu_backend.ops.skip_conv import SkipConv
from gpu_backend.plan.plan import Step
from gpu_backend.reference.upfirdn import double
from tests.helpers.conv_cases import error_of, filter_taps, run_built
from tests.helpers.kernel_checks import assert_arguments_fit


def step_of(channels: int, side: int, taps: int) -> Step:
    settings = SkipConv(16, channels, side, 0.5**0.5, filter_taps(taps))
    return Step("synthesis.b.skip", "skip_conv", settings, ("before",), ("y",), {"weight": "w"})


@pytest.mark.gpu
@pytest.mark.parametrize("half", [False, True], ids=["fp32", "fp16"])
@pytest.mark.parametrize(("channels", "side", "batch"), [(3, 8, 1), (8, 16, 3), (37, 32, 2)])
@pytest.mark.parametrize("taps", [1, 2, 3, 4, 8])
def test_it_is_the_doubled_picture_times_the_gain(
    channels: int, side: int, batch: int, taps: int, half: bool, gpu: Gpu
) -> None:
    dtype = np.float16 if half else np.float32
    x = np.random.default_rng(taps).standard_normal((batch, side // 2, side // 2, pad8(channels))).astype(dtype)
    found = run_built(doubled(step_of(channels, side, taps), "x", "y", batch, half=half), {"x": x})["y"]
    wide = torch.from_numpy(x.astype(np.float64)).permute(0, 3, 1, 2)
    expected = double(wide, filter_taps(taps)).permute(0, 2, 3, 1).numpy() * 0.5**0.5
    assert error_of(found.astype(np.float64), expected) < (1e-3 if half else 1e-6)


def test_arguments_fit() -> None:
    built = doubled(step_of(37, 32, 4), "x", "y", 2, half=True)
    (launch,) = built.launches
    assert_arguments_fit(launch, (*built.regions, Region("x", (2, 16, 16, 40), "float16", "scratch")), built.constants)
    assert launch.grid == (-(-32 * 32 * 10 // 256), 2, 1)
