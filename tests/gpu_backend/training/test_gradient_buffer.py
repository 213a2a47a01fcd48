"""Gradients lie in one buffer, each in its own layout."""

import torch
from torch import nn

from gpu_backend.training.gradient_buffer import GradientBuffer


def test_gradients_lie_in_one_piece_and_missing_ones_take_no_place() -> None:
    first, missing, strength = (nn.Parameter(torch.zeros(shape)) for shape in ((2, 3), (5,), ()))
    kernel = nn.Parameter(torch.zeros(2, 3, 3, 3).contiguous(memory_format=torch.channels_last))
    parameters = [first, missing, strength, kernel]
    buffer = GradientBuffer(parameters)
    given = {id(one): torch.randn_like(one) for one in (first, strength, kernel)}
    for parameter in (first, strength, kernel):
        parameter.grad = given[id(parameter)].clone()
    values = buffer.pack()
    assert len(values) == 8 + 4 + 56
    values *= 2
    for parameter in (first, strength, kernel):
        assert parameter.grad is not None
        assert parameter.grad.stride() == parameter.stride()
        torch.testing.assert_close(parameter.grad, given[id(parameter)] * 2)
    assert missing.grad is None


def test_the_memory_stays_where_it_is() -> None:
    parameter = nn.Parameter(torch.zeros(3))
    buffer = GradientBuffer([parameter])
    places = []
    for _ in range(2):
        parameter.grad = torch.ones(3)
        places.append(buffer.pack().data_ptr())
    assert places[0] == places[1]
