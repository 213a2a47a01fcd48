"""The `normalize_2nd_moment` kernel: it compiles everywhere, and on a GPU it does what the reference does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.mapping import normalize_launch
from gpu_backend.cuda.schedule import Region
from gpu_backend.ops.normalize_2nd_moment import Normalize2ndMoment
from gpu_backend.plan.plan import Step
from gpu_backend.reference.normalize_2nd_moment import normalize_2nd_moment
from tests.helpers.gpu import run_launches


@pytest.mark.gpu
@pytest.mark.parametrize("batch", [1, 2, 7, 33])
@pytest.mark.parametrize("features", [1, 3, 8, 31, 256, 257, 512, 3000])
def test_rows_of_every_width_are_those_of_the_reference(gpu: Gpu, features: int, batch: int) -> None:
    x = np.random.default_rng(features).standard_normal((batch, features), np.float32)
    x[-1] = 0
    step = Step("mapping.normalize", "normalize_2nd_moment", Normalize2ndMoment(features), ("x",), ("y",))
    built = normalize_launch(step, {}, batch)
    regions = (Region("x", x.shape, "float32", "input"), Region("y", x.shape, "float32", "output"))
    found = run_launches(built.launches, regions, built.constants, {"x": x}, runs=2)["y"]
    error = np.abs(found - normalize_2nd_moment(torch.from_numpy(x)).numpy()).max()
    assert error <= 2e-6, f"largest error {error:.2e}"
