"""Scale, noise, bias and activation in one: the formula, and gradients of any order."""

import pytest
import torch
from torch import Tensor

from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.training.networks.convolution import no_weight_gradients
from gpu_backend.training.networks.scaled_act import LINEAR, scaled_act

ACT = BiasAct.of_layer("lrelu", 0.7, 1.2)


def made(*shape: int) -> Tensor:
    drawn = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=drawn, dtype=torch.float64).requires_grad_()


def test_it_is_the_formula() -> None:
    x, scale, noise, strength, bias = made(2, 3, 4, 5), made(2, 3), made(2, 1, 4, 5), made(), made(3)
    total = x * scale[:, :, None, None] + noise * strength + bias[:, None, None]
    expected = (torch.where(total > 0, total, 0.2 * total) * ACT.gain).clamp(-1.2 * 0.7, 1.2 * 0.7)
    came = scaled_act(x, ACT, scale=scale, noise=noise, strength=strength, bias=bias)
    torch.testing.assert_close(came, expected)
    assert (came.abs() == 1.2 * 0.7).any()
    torch.testing.assert_close(scaled_act(x, scale=scale), x * scale[:, :, None, None])


@pytest.mark.parametrize("act", [ACT, LINEAR, BiasAct(clamp=1.0)], ids=str)
def test_gradients_of_any_order_are_right(act: BiasAct) -> None:
    noise = made(2, 1, 2, 3).detach()

    def whole(x: Tensor, scale: Tensor, strength: Tensor, bias: Tensor) -> Tensor:
        return scaled_act(x, act, scale=scale, noise=noise, strength=strength, bias=bias)

    inputs = (made(2, 3, 2, 3), made(2, 3), made(), made(3))
    assert torch.autograd.gradcheck(whole, inputs)
    assert torch.autograd.gradgradcheck(whole, inputs)
    x, scale, _, bias = inputs
    for some in (lambda x: scaled_act(x, act, bias=bias), lambda x: scaled_act(x, act, scale=scale)):
        assert torch.autograd.gradcheck(some, x)
        assert torch.autograd.gradgradcheck(some, x)


def test_an_inner_gradient_has_no_part_for_weights() -> None:
    x, bias = made(2, 3, 4, 4), made(3)
    with no_weight_gradients():
        dx, db = torch.autograd.grad(scaled_act(x, ACT, bias=bias).sum(), (x, bias), allow_unused=True)
    assert dx is not None
    assert db is None


def test_low_precision_is_rounded_once() -> None:
    x = made(2, 3, 4, 4).detach().to(torch.bfloat16)
    scale = made(2, 3).detach().float()
    expected = scaled_act(x.float(), ACT, scale=scale).to(torch.bfloat16)
    assert torch.equal(scaled_act(x, ACT, scale=scale), expected)


def test_unsupported_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="leaky ReLU or nothing"):
        scaled_act(made(1, 1, 2, 2), BiasAct.of_layer("tanh"))
    with pytest.raises(ValueError, match="a strength with noise"):
        scaled_act(made(1, 1, 2, 2), noise=made(1, 1, 2, 2))
