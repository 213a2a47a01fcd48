"""Products with fixed weights, packed and plain."""

import pytest
import torch

import gpu_backend.cpu.weight_stack as weight_stack
from gpu_backend.cpu.team import Team
from gpu_backend.cpu.weight_stack import WeightStack


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("rows", [1, 16, 50])
def test_products_are_those_of_their_weights(rows: int, is_packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_stack, "MIN_PACKED_SIZE", 1 if is_packed else 1 << 30)
    generator = torch.Generator().manual_seed(rows)
    weights = torch.randn(5, 24, 17, generator=generator)
    x = torch.randn(3, rows, 24, generator=generator)
    stack = WeightStack(weights, 16)
    assert (stack.inputs, stack.outputs) == (24, 17)
    assert stack.nbytes >= weights.nbytes
    out = torch.full((3, rows, 17), float("nan"))
    stack.multiply(1, x, out)
    assert torch.allclose(out, torch.bmm(x, weights[1:4]), atol=1e-4)


def test_the_lanes_of_a_team_pack_every_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_stack, "MIN_PACKED_SIZE", 1)
    generator = torch.Generator().manual_seed(1)
    weights, x = torch.randn(7, 8, 4, generator=generator), torch.randn(7, 16, 8, generator=generator)
    team = Team(3)
    try:
        with torch.inference_mode():
            outputs = torch.zeros(2, 7, 16, 4)
            for out, some in zip(outputs, (team, None), strict=True):
                WeightStack(weights, 16, some).multiply(0, x, out)
            assert torch.equal(outputs[0], outputs[1])
            assert torch.allclose(outputs[0], torch.bmm(x, weights), atol=1e-5)
    finally:
        team.close()


def test_large_weights_are_packed_where_torch_can(monkeypatch: pytest.MonkeyPatch) -> None:
    assert weight_stack.has_packed_products()
    large, small = torch.zeros(1, 256, 256), torch.zeros(1, 256, 255)
    assert WeightStack(large, 64)._packed
    assert not WeightStack(small, 64)._packed
    assert WeightStack(large, 64, Team(1))._packed
    assert not WeightStack(large, 64, Team(1, 2))._packed  # threads meet once in a batched product
    monkeypatch.setattr(weight_stack, "has_packed_products", lambda: False)
    assert not WeightStack(large, 64)._packed
