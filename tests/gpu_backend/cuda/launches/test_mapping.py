"""The launches of a mapping plan: as data, and run on a GPU against the reference network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.launches.row_pass import rows_of_a_pass
from gpu_backend.cuda.tiles.table import TileTable
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.errors import DeviceError
from gpu_backend.plan.mapping import build_mapping_plan
from gpu_backend.reference.mapping import run_mapping
from tests.helpers.gpu import run_launches
from tests.helpers.kernel_checks import assert_arguments_fit
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan_xl import make_stylegan_xl

TARGET = Target("sm_80", 108, 166912, TileTable("sm_80", 108, shared_nbytes_per_block=166912))
NETWORKS: dict[str, dict[str, Any]] = {
    "unconditional": {"z_dim": 12, "w_dim": 5, "mapping_layers": 3},
    "conditional": {"z_dim": 9, "w_dim": 8, "c_dim": 3, "embed_dim": 7},
    "wide": {"z_dim": 512, "w_dim": 512, "c_dim": 10, "mapping_layers": 8},
    "softplus": {"z_dim": 20, "mapping_widths": (33, 12), "activation": "softplus", "lr_multiplier": 0.5},
}


@pytest.mark.parametrize("batch", [1, 5, 32])
@pytest.mark.parametrize("name", list(NETWORKS))
def test_every_step_is_one_launch_and_every_buffer_a_region(name: str, batch: int) -> None:
    model = make_stylegan2(**NETWORKS[name])
    plan = build_mapping_plan(model.spec, model.facts.model_id, batch=batch)
    built = lower(plan, model.weights, TARGET)
    assert [(launch.layer, launch.label) for launch in built.launches] == [(s.layer, s.op) for s in plan.steps]
    assert {item.name: item.shape for item in built.regions} == {item.name: item.shape for item in plan.buffers}
    roles = {item.name: item.role for item in built.regions}
    assert [name for name, role in roles.items() if role == "input"] == (
        ["z", "c"] if model.spec.mapping.c_dim else ["z"]
    )
    assert [name for name, role in roles.items() if role == "output"] == ["w"]
    for launch in built.launches:
        assert_arguments_fit(launch, built.regions, built.constants)
        assert launch.nbytes > 0
        assert launch.shared_nbytes <= 48 * 1024


@pytest.mark.parametrize("batch", [1, 5])
def test_a_table_of_classes_is_a_launch_too(batch: int) -> None:
    model = make_stylegan_xl()
    plan = build_mapping_plan(model.spec, model.facts.model_id, batch=batch)
    built = lower(plan, model.weights, TARGET)
    assert [(launch.layer, launch.label) for launch in built.launches] == [(s.layer, s.op) for s in plan.steps]
    for launch in built.launches:
        assert_arguments_fit(launch, built.regions, built.constants)


def test_a_layer_is_packed_in_whole_groups_with_its_learning_rate_in() -> None:
    model = make_stylegan2(**NETWORKS["unconditional"])
    plan = build_mapping_plan(model.spec, model.facts.model_id, batch=7)
    built = lower(plan, model.weights, TARGET)
    launch = built.launches[1]
    assert launch.grid == (2, 1, 1), "five features, four a block; seven rows in one pass of eight"
    assert launch.recipe.defines == (("ACTIVATION", "2"), ("BATCH", "8"))
    table, bias = (constant.make() for constant in built.constants[:2])
    assert table.shape == (5, 16)
    assert np.allclose(table[:, :12], model.weights["mapping.fc0.weight"] * 0.01 / np.sqrt(12), rtol=1e-6)
    assert not table[:, 12:].any()
    assert np.allclose(bias, model.weights["mapping.fc0.bias"] * 0.01, rtol=1e-6)


@pytest.mark.parametrize(
    ("columns", "batch", "rows"),
    [(512, 1, 1), (512, 2, 2), (512, 3, 4), (512, 4, 4), (512, 5, 8), (512, 33, 8), (3000, 8, 4), (12000, 32, 1)],
)
def test_a_pass_takes_what_shared_memory_holds(columns: int, batch: int, rows: int) -> None:
    assert rows_of_a_pass(columns, batch) == rows


def test_rows_that_no_block_can_hold_are_refused() -> None:
    with pytest.raises(DeviceError, match="up to 12032 features a layer, but this network has 12033; render on the"):
        rows_of_a_pass(12033, 1)


@pytest.mark.gpu
@pytest.mark.parametrize("batch", [1, 2, 7, 33])
@pytest.mark.parametrize("name", list(NETWORKS))
def test_w_is_that_of_the_reference_network(gpu: Gpu, name: str, batch: int) -> None:
    model = make_stylegan2(seed=2, **NETWORKS[name])
    spec = model.spec.mapping
    random = np.random.default_rng(batch)
    inputs = {"z": random.standard_normal((batch, spec.z_dim), np.float32)}
    if spec.c_dim:
        inputs["c"] = np.eye(spec.c_dim, dtype=np.float32)[random.integers(spec.c_dim, size=batch)]
    plan = build_mapping_plan(model.spec, model.facts.model_id, batch=batch)
    built = lower(plan, model.weights, TARGET)
    found = run_launches(built.launches, built.regions, built.constants, inputs, runs=2)["w"]
    weights = {key: torch.from_numpy(array) for key, array in model.weights.items()}
    tensors = {key: torch.from_numpy(array) for key, array in inputs.items()}
    expected = run_mapping(model.spec, weights, **tensors).numpy()
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert error <= 2e-5, f"largest error {error:.2e} of the largest value"
