"""StyleGAN1's reference functions against their formulas, written out in NumPy float64 with explicit indices."""

import math

import numpy as np
import pytest
import torch

from gpu_backend.ops.adain_conv import AdainConv
from gpu_backend.ops.adain_input import AdainInput
from gpu_backend.ops.adain_up_conv import AdainUpConv, blurred_ones, blurred_sum_matrix
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.upfirdn import resampling_matrix
from gpu_backend.reference.adain_conv import adain_conv
from gpu_backend.reference.adain_input import adain_input
from gpu_backend.reference.adain_up_conv import adain_up_conv
from gpu_backend.reference.stylegan1 import run_stylegan1
from gpu_backend.reference.to_rgb import to_rgb
from tests.helpers.stylegan1 import make_stylegan1

LRELU = BiasAct("lrelu")
EPSILON = 1e-8


def array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape)


def tensor(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values, np.float64))


def naive_end(x: np.ndarray, bias: np.ndarray, noise: np.ndarray, style: np.ndarray, epsilon: float) -> np.ndarray:
    """One picture (channels, side, side), in the order of the paper."""
    channels = x.shape[0]
    out = np.empty_like(x)
    for c in range(channels):
        y = x[c] + noise[c] + bias[c]
        y = np.where(y > 0, y, 0.2 * y)
        y = y - y.mean()
        y = y / np.sqrt((y**2).mean() + epsilon)
        out[c] = y * style[c] + style[channels + c]
    return out


def naive_doubled_conv(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Each pixel four times, then a 3 x 3 correlation with zeros around the picture."""
    doubled = x.repeat(2, axis=1).repeat(2, axis=2)
    side = doubled.shape[1]
    padded = np.pad(doubled, ((0, 0), (1, 1), (1, 1)))
    out = np.zeros((weight.shape[0], side, side))
    for ky in range(3):
        for kx in range(3):
            out += np.einsum("oi,ihw->ohw", weight[:, :, ky, kx], padded[:, ky : ky + side, kx : kx + side])
    return out


def scattered(x: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """A transposed convolution of stride 2 and padding 1 with a 4 x 4 kernel, pixel by pixel."""
    half = x.shape[1]
    wide = np.zeros((kernel.shape[0], 2 * half + 2, 2 * half + 2))
    for i in range(half):
        for j in range(half):
            for a in range(4):
                for b in range(4):
                    wide[:, 2 * i + a, 2 * j + b] += kernel[:, :, a, b] @ x[:, i, j]
    return wide[:, 1:-1, 1:-1]


def blurred(x: np.ndarray) -> np.ndarray:
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    side = x.shape[1]
    taps = np.array([1, 2, 1]) / 4
    return sum(taps[a] * taps[b] * padded[:, a : a + side, b : b + side] for a in range(3) for b in range(3))


def test_the_first_layer_normalises_the_constant() -> None:
    const, bias, noise, style = array(5, 4, 4), array(5), array(1, 5, 4, 4), array(2, 10)
    found = adain_input(
        tensor(const).expand(2, -1, -1, -1),
        tensor(bias),
        tensor(noise),
        tensor(style),
        AdainInput(5, 4, 0, 0, LRELU, EPSILON),
    )
    expected = np.stack([naive_end(const, bias, noise[0], style[n], EPSILON) for n in range(2)])
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


def test_the_convolution_is_scaled_by_its_inputs_and_then_normalised() -> None:
    x, weight, bias, noise, style = array(2, 3, 6, 6), array(4, 3, 3, 3), array(4), array(1, 4, 6, 6), array(2, 8)
    attributes = AdainConv(3, 4, 6, 0, 0, LRELU, 1e-5)
    found = adain_conv(tensor(x), tensor(weight), tensor(bias), tensor(noise), tensor(style), attributes)
    scaled = weight * math.sqrt(2 / 27)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    for n in range(2):
        y = np.zeros((4, 6, 6))
        for ky in range(3):
            for kx in range(3):
                y += np.einsum("oi,ihw->ohw", scaled[:, :, ky, kx], padded[n, :, ky : ky + 6, kx : kx + 6])
        np.testing.assert_allclose(found[n].numpy(), naive_end(y, bias, noise[0], style[n], 1e-5), atol=1e-12)


@pytest.mark.parametrize("half", [2, 5])
def test_the_up_convolution_is_both_of_the_published_ways_to_double(half: int) -> None:
    """Nearest pixels and a correlation with W turned round; and a 4 x 4 kernel that is the sum of W shifted."""
    x, weight, bias, noise, style = array(1, 3, half, half), array(4, 3, 3, 3), array(4), array(4, 1, 1), array(1, 8)
    kernel = np.zeros((4, 3, 4, 4))
    for a in range(2):
        for b in range(2):
            kernel[:, :, a : a + 3, b : b + 3] += weight
    one, other = naive_doubled_conv(x[0], weight[:, :, ::-1, ::-1]), scattered(x[0], kernel)
    np.testing.assert_allclose(one, other, atol=1e-12)
    y = blurred(one * math.sqrt(2 / 27))
    attributes = AdainUpConv(3, 4, 2 * half, 0, 0, LRELU, EPSILON)
    found = adain_up_conv(tensor(x), tensor(weight), tensor(bias), tensor(noise)[None], tensor(style), attributes)
    np.testing.assert_allclose(found[0].numpy(), naive_end(y, bias, noise, style[0], EPSILON), atol=1e-12)


def test_the_phases_of_the_up_convolution_are_the_published_ones() -> None:
    """z[2i] = (w0 + w1) x[i] + w2 x[i - 1] and z[2i + 1] = w0 x[i + 1] + (w1 + w2) x[i], along one axis."""
    x, w = array(6), array(3)
    before, after = np.concatenate([[0], x[:-1]]), np.concatenate([x[1:], [0]])
    even, odd = (w[0] + w[1]) * x + w[2] * before, w[0] * after + (w[1] + w[2]) * x
    t = np.zeros(13)
    for i in range(6):
        t[2 * i : 2 * i + 3] += w * x[i]
    np.testing.assert_allclose(t[:-1] + t[1:], np.stack([even, odd], 1).ravel(), atol=1e-12)


def test_blur_and_sum_are_one_filter_but_for_a_quarter_of_the_edge() -> None:
    whole = resampling_matrix(9, 8, (0.125, 0.375, 0.375, 0.125), up=1, left=1, gain=2.0)
    difference = whole - blurred_sum_matrix(8)
    expected = np.zeros((8, 9))
    expected[0, 0] = expected[-1, -1] = 0.25
    np.testing.assert_allclose(difference, expected, atol=1e-12)


def test_a_bias_that_is_blurred_is_smaller_at_the_border() -> None:
    x, weight, bias, style = array(1, 3, 4, 4), array(4, 3, 3, 3), array(4), array(1, 8)
    y = naive_doubled_conv(x[0], weight[:, :, ::-1, ::-1]) * math.sqrt(2 / 27) + bias[:, None, None]
    attributes = AdainUpConv(3, 4, 8, 0, -1, LRELU, EPSILON, blurs_bias=True)
    found = adain_up_conv(tensor(x), tensor(weight), tensor(bias), None, tensor(style), attributes)
    zeros = np.zeros(4)
    expected = naive_end(blurred(y), zeros, zeros[:, None, None], style[0], EPSILON)
    np.testing.assert_allclose(found[0].numpy(), expected, atol=1e-12)
    ones = np.outer(blurred_ones(8), blurred_ones(8))
    np.testing.assert_allclose(blurred(np.ones((1, 8, 8)))[0], ones, atol=1e-12)


def test_a_picture_without_style_is_scaled_by_its_inputs() -> None:
    x, weight, bias = array(2, 5, 4, 4), array(3, 5, 1, 1), array(3)
    found = to_rgb(tensor(x), tensor(weight), tensor(bias), None, None)
    expected = np.einsum("oi,nihw->nohw", weight[..., 0, 0] / math.sqrt(5), x) + bias[:, None, None]
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


def test_a_channel_that_does_not_vary_becomes_its_shift() -> None:
    style = array(1, 4)
    attributes = AdainInput(2, 4, 0, -1, LRELU, EPSILON)
    found = adain_input(torch.ones(1, 2, 4, 4).double(), tensor(array(2)), None, tensor(style), attributes)
    np.testing.assert_allclose(found[0].numpy(), np.broadcast_to(style[0, 2:, None, None], (2, 4, 4)), atol=1e-9)


def test_every_layer_changes_the_picture_and_is_seen() -> None:
    made = make_stylegan1()
    weights = {name: torch.from_numpy(value).double() for name, value in made.weights.items()}
    ws = tensor(array(1, made.spec.num_ws, 8))
    observed: dict[str, torch.Tensor] = {}
    picture = run_stylegan1(made.spec, weights, ws, observed=observed)
    assert list(observed) == [f"synthesis.{layer.name}" for layer in made.spec.layers]
    assert {name: value.shape[2] for name, value in observed.items()} == {
        f"synthesis.{layer.name}": layer.resolution for layer in made.spec.layers
    }
    torch.testing.assert_close(observed["synthesis.b16.torgb"], picture)
    for row in range(made.spec.num_ws):
        moved = ws.clone()
        moved[:, row] += 1.0
        assert (run_stylegan1(made.spec, weights, moved) - picture).abs().max() > 1e-3, row
    for name in made.spec.noise_layers:
        pictures = {key: weights[f"synthesis.{key}.noise_const"][None] for key in made.spec.noise_layers if key != name}
        assert (run_stylegan1(made.spec, weights, ws, pictures) - picture).abs().max() > 1e-3, name


def test_the_references_can_be_differentiated() -> None:
    made = make_stylegan1()
    weights = {name: torch.from_numpy(value) for name, value in made.weights.items()}
    ws = torch.randn(1, made.spec.num_ws, 8, requires_grad=True)
    run_stylegan1(made.spec, weights, ws).square().sum().backward()
    assert ws.grad is not None
    assert (ws.grad.abs().sum(2) > 0).all()
