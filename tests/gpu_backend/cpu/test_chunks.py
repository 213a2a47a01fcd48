"""Layers made a few rows at a time are the same layers."""

from typing import Any

import numpy as np
import pytest

import gpu_backend.cpu.chunks as chunks
import gpu_backend.cpu.modulated_conv as choice
from gpu_backend import Model
from gpu_backend.cpu.chunks import Chunk, chunks_of
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1


def test_a_small_tensor_is_one_chunk() -> None:
    assert chunks_of(3, (4, 60), 1000) == [Chunk((0, 3), (4, 60))]


@pytest.mark.parametrize("rows", [(0, 64), (20, 60), (8, 9)])
@pytest.mark.parametrize("row_nbytes", [1 << 19, 1 << 23, 1 << 26])
def test_chunks_cover_every_row_of_every_sample_once_and_in_order(rows: tuple[int, int], row_nbytes: int) -> None:
    found = chunks_of(2, rows, row_nbytes)
    covered = [(sample, row) for chunk in found for sample in range(*chunk.samples) for row in range(*chunk.rows)]
    if len(found) > 1:
        assert covered == [(sample, row) for sample in range(2) for row in range(*rows)]
        assert all((chunk.rows[0] - rows[0]) % 8 == 0 for chunk in found)


def picture(model: Model, batch: int, threads: int) -> np.ndarray:
    spec = model.spec
    executor = CpuExecutor(model.weights, threads=threads)
    bound = executor.bind(build_plan(spec, PlanKey("id", "synthesis", batch, spec.resolution)))
    ws = np.random.default_rng(0).standard_normal((batch, spec.num_ws, spec.w_dim)).astype(np.float32)
    image = bound.run({"ws": ws}, outputs=("image",))["image"].copy()
    executor.close()
    return image


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("taps", [(1, 3, 3, 1), (1, 2, 3, 4, 5, 6)])
@pytest.mark.parametrize("make", [make_stylegan1, make_stylegan2])
def test_a_network_in_chunks_gives_the_same_picture(
    make: Any, taps: tuple[float, ...], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "MIN_WINOGRAD_SIDE", 1 << 20)
    model = make(resolution=128, channel_base=512, **({"fir": taps} if make is make_stylegan2 else {}))
    whole = picture(model, 2, threads)
    monkeypatch.setattr(chunks, "CHUNK_NBYTES", 1 << 14)
    assert np.abs(picture(model, 2, threads) - whole).max() <= 3e-5 * np.abs(whole).max()
