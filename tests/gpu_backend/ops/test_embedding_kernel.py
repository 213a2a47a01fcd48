"""The `embedding` kernel: it compiles everywhere, and on a GPU it does what the reference does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.mapping import embedding_launch
from gpu_backend.cuda.schedule import Region
from gpu_backend.ops.embedding import Embedding
from gpu_backend.plan.plan import Step
from gpu_backend.reference.embedding import embedding
from tests.helpers.gpu import run_launches


def test_the_table_is_one_constant_as_it_is_stored() -> None:
    table = np.ones((7, 3), np.float32)
    step = Step("mapping.embed", "embedding", Embedding(5, 3), ("c",), ("y",), {"table": "mapping.embed.weight"})
    built = embedding_launch(step, {"mapping.embed.weight": table}, 2)
    (constant,), (launch,) = built.constants, built.launches
    assert constant.make() is table
    assert launch.grid == (1, 2, 1)


@pytest.mark.gpu
@pytest.mark.parametrize("batch", [1, 2, 33])
@pytest.mark.parametrize(("rows", "c_dim", "width"), [(1, 1, 1), (7, 5, 3), (1000, 1000, 320), (10, 4, 129)])
def test_labels_pick_rows(gpu: Gpu, rows: int, c_dim: int, width: int, batch: int) -> None:
    random = np.random.default_rng(batch)
    table = random.standard_normal((rows, width), np.float32)
    table[c_dim:] = np.nan  # rows that no class has
    labels = np.eye(c_dim, dtype=np.float32)[random.integers(c_dim, size=batch)]
    labels[-1] = random.standard_normal(c_dim) * (random.random(c_dim) < 0.3)
    step = Step("mapping.embed", "embedding", Embedding(c_dim, width), ("c",), ("y",), {"table": "table"})
    built = embedding_launch(step, {"table": table}, batch)
    regions = (Region("c", labels.shape, "float32", "input"), Region("y", (batch, width), "float32", "output"))
    found = run_launches(built.launches, regions, built.constants, {"c": labels}, runs=2)["y"]
    expected = embedding(torch.from_numpy(labels).double(), torch.from_numpy(table).double()).numpy()
    assert found == pytest.approx(expected, abs=1e-4)
    assert np.array_equal(found[:-1], table[labels[:-1].argmax(axis=1)]), "one class's row is not touched"
