"""The activation between filters, in tiles and on several threads, against its reference."""

import numpy as np
import pytest
import torch

import gpu_backend.cpu.filtered_lrelu as kernel
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.ops.filtered_lrelu import FilteredLrelu
from gpu_backend.plan.builder import PlanBuilder
from gpu_backend.plan.plan import Plan, PlanKey
from gpu_backend.reference.filtered_lrelu import filtered_lrelu
from tests.gpu_backend.reference.test_stylegan3_formulas import CASES, filters, settings


def plan_of(attributes: FilteredLrelu, batch: int) -> Plan:
    plan = PlanBuilder(PlanKey("id", "synthesis", batch))
    shape = (batch, attributes.in_size, attributes.in_size, attributes.channels)
    x = plan.buffer("x", shape, "input")
    y = plan.buffer("y", attributes.output_shape(batch), "output")
    roles = {"up_filter": attributes.up_taps, "down_filter": attributes.down_taps}
    weights = {role: role for role, count in roles.items() if count > 1}
    plan.step("layer", "filtered_lrelu", attributes, (x,), (y,), weights)
    return plan.freeze()


def largest_error(attributes: FilteredLrelu, batch: int, threads: int) -> float:
    weights = dict(zip(("up_filter", "down_filter"), (f.astype(np.float32) for f in filters(attributes)), strict=True))
    shape = (batch, attributes.in_size, attributes.in_size, attributes.channels)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    executor = CpuExecutor(weights, threads=threads)
    found = np.array(executor.bind(plan_of(attributes, batch)).run({"x": x}, outputs=("y",))["y"])
    executor.close()
    before, after = (
        torch.from_numpy(weights[role]).double() if weights[role].size > 1 else None
        for role in ("up_filter", "down_filter")
    )
    expected = filtered_lrelu(torch.from_numpy(x).permute(0, 3, 1, 2).double(), before, after, attributes)
    return float(np.abs(found - expected.permute(0, 2, 3, 1).numpy()).max() / expected.abs().max())


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("channels", "batch", "threads"), [(5, 1, 1), (17, 2, 2), (130, 1, 3)])
def test_it_equals_the_reference(name: str, channels: int, batch: int, threads: int) -> None:
    assert largest_error(settings(CASES[name], 13, channels), batch, threads) < 1e-5


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("floats", [60, 400])
def test_tiles_meet_without_a_seam(name: str, floats: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_TILE_FLOATS", floats)
    attributes = settings(CASES[name], 21, 3)
    assert len(kernel._sides(attributes, 3)) > 1
    assert largest_error(attributes, 1, 2) < 1e-5


def test_the_input_of_a_tile_reaches_no_further_than_its_filters() -> None:
    """An output depends on the inputs that its reach names, and on the first and the last of them."""
    attributes = settings(CASES["four times and halved, cropped"], 20, 1, None)
    weights = dict(zip(("up_filter", "down_filter"), (np.ones_like(f) for f in filters(attributes)), strict=True))
    executor = CpuExecutor({name: taps.astype(np.float32) for name, taps in weights.items()}, threads=1)
    bound = executor.bind(plan_of(attributes, 1))
    reach = kernel.reach_of(attributes, 4, 6)
    inside = np.arange(20)[max(reach.first, 0) : reach.end]
    touched = []
    for place in range(20):
        x = np.zeros((1, 20, 20, 1), np.float32)
        x[0, place, 10] = 1.0
        touched.append(bool(np.abs(bound.run({"x": x}, outputs=("y",))["y"][0, 4:6]).max() > 0))
    executor.close()
    assert np.flatnonzero(touched).tolist() == inside.tolist()


def test_channels_are_cut_into_groups_of_whole_vectors() -> None:
    for channels in (1, 16, 64, 65, 81, 323, 512):
        groups = kernel._channel_groups(channels)
        assert [first for first, _ in groups[1:]] == [end for _, end in groups[:-1]]
        assert (groups[0][0], groups[-1][1]) == (0, channels)
        assert all(first % 16 == 0 and end - first <= 64 for first, end in groups)


def test_without_packed_weights_the_result_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_backend.cpu.convolution.has_packed_convolutions", lambda: False)
    for name in ("doubled and halved", "four times and halved, cropped", "radial"):
        assert largest_error(settings(CASES[name], 13, 5), 1, 1) < 1e-5
