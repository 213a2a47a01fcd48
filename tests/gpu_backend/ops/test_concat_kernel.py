"""The `concat` kernel: it compiles everywhere, and on a GPU it does what the reference does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.mapping import concat_launch
from gpu_backend.cuda.schedule import Region
from gpu_backend.ops.concat import Concat
from gpu_backend.plan.plan import Step
from gpu_backend.reference.concat import concat
from tests.helpers.gpu import run_launches


@pytest.mark.gpu
@pytest.mark.parametrize("batch", [1, 2, 7, 33])
@pytest.mark.parametrize("widths", [(1, 1), (8, 3), (255, 1), (512, 512), (300, 5)])
def test_rows_lie_side_by_side(gpu: Gpu, widths: tuple[int, int], batch: int) -> None:
    random = np.random.default_rng(batch)
    a, b = (random.standard_normal((batch, width), np.float32) for width in widths)
    built = concat_launch(Step("mapping.concat", "concat", Concat(widths), ("a", "b"), ("y",)), {}, batch)
    regions = (
        Region("a", a.shape, "float32", "input"),
        Region("b", b.shape, "float32", "input"),
        Region("y", (batch, sum(widths)), "float32", "output"),
    )
    found = run_launches(built.launches, regions, built.constants, {"a": a, "b": b}, runs=2)["y"]
    assert np.array_equal(found, concat(torch.from_numpy(a), torch.from_numpy(b)).numpy())
