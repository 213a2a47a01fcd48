"""Every reference function against its formula, written out in NumPy float64 with loops or explicit indices."""

import math

import numpy as np
import pytest
import torch

from gpu_backend.model.spec import ACTIVATION_GAINS, Activation
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.fully_connected import FullyConnected
from gpu_backend.ops.noise import noise_picture, philox4x32
from gpu_backend.ops.styles import Styles, StyleSlot
from gpu_backend.ops.to_display import ToDisplay
from gpu_backend.ops.upfirdn import resampling_matrix
from gpu_backend.reference.bias_act import ACTIVATIONS, bias_act
from gpu_backend.reference.fully_connected import fully_connected
from gpu_backend.reference.mapping import run_mapping
from gpu_backend.reference.modulated_conv import modulated_conv
from gpu_backend.reference.modulated_up_conv import modulated_up_conv
from gpu_backend.reference.noise import noise
from gpu_backend.reference.normalize_2nd_moment import normalize_2nd_moment
from gpu_backend.reference.skip_conv import skip_conv
from gpu_backend.reference.styles import styles
from gpu_backend.reference.to_display import to_display
from gpu_backend.reference.to_rgb import add_doubled, to_rgb
from gpu_backend.reference.upfirdn import double, upfirdn
from tests.helpers.networks import make_stylegan2

TAPS = [(1.0,), (0.5, 0.5), (0.2, 0.5, 0.3), (0.125, 0.375, 0.375, 0.125), (0.1, 0.2, 0.3, 0.05, 0.15, 0.2)]


def array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape)


def tensor(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values, np.float32))


def assert_near(found: torch.Tensor, expected: np.ndarray, tolerance: float = 2e-5) -> None:
    assert tuple(found.shape) == expected.shape
    assert np.abs(found.numpy() - expected).max() <= tolerance * max(1.0, np.abs(expected).max())


def naive_activation(name: Activation, x: np.ndarray) -> np.ndarray:
    sigmoid = 1 / (1 + np.exp(-x))
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    values: dict[str, np.ndarray] = {
        "linear": x,
        "relu": np.maximum(x, 0),
        "lrelu": np.maximum(x, 0.2 * x),
        "tanh": np.tanh(x),
        "sigmoid": sigmoid,
        "elu": np.where(x > 0, x, np.exp(x) - 1),
        "selu": scale * np.where(x > 0, x, alpha * (np.exp(x) - 1)),
        "softplus": np.log1p(np.exp(x)),
        "swish": x * sigmoid,
    }
    return values[name]


def naive_upfirdn(x: np.ndarray, taps: tuple[float, ...], up: int, pads: tuple[int, int], gain: float) -> np.ndarray:
    """One plane: zeros after every sample, pad or crop, true convolution, valid region."""
    side = x.shape[0] * up
    spread = np.zeros((side, side))
    spread[::up, ::up] = x
    size = side + pads[0] + pads[1]
    padded = np.zeros((size, size))
    for i in range(size):
        for j in range(size):
            a, b = i - pads[0], j - pads[0]
            if 0 <= a < side and 0 <= b < side:
                padded[i, j] = spread[a, b]
    count = len(taps)
    out = np.zeros((size - count + 1, size - count + 1))
    for u in range(out.shape[0]):
        for v in range(out.shape[1]):
            for p in range(count):
                for q in range(count):
                    out[u, v] += taps[p] * taps[q] * padded[u + count - 1 - p, v + count - 1 - q]
    return out * gain


def naive_conv(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """(in, h, w) and (out, in, k, k), zero padding, correlation."""
    pad = weight.shape[-1] // 2
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))
    out = np.zeros((weight.shape[0], *x.shape[1:]))
    for ky in range(weight.shape[2]):
        for kx in range(weight.shape[3]):
            window = padded[:, ky : ky + x.shape[1], kx : kx + x.shape[2]]
            out += np.einsum("oi,ihw->ohw", weight[:, :, ky, kx], window)
    return out


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_every_activation_with_bias_gain_and_clamp(name: Activation) -> None:
    x, bias = array(2, 5, 3, 7) * 2, array(5)
    act = BiasAct(name, 1.7, 0.9)
    expected = np.clip(naive_activation(name, x + bias[:, None, None]) * 1.7, -0.9, 0.9)
    assert_near(bias_act(tensor(x), tensor(bias), act), expected)
    assert ACTIVATION_GAINS[name] == pytest.approx(math.sqrt(2) if name in ("relu", "lrelu", "swish") else 1.0)


def test_the_gain_of_a_layer_scales_gain_and_clamp() -> None:
    act = BiasAct.of_layer("lrelu", math.sqrt(0.5), 256.0)
    assert act.gain == pytest.approx(1.0)
    assert act.clamp == pytest.approx(256 * math.sqrt(0.5))


@pytest.mark.parametrize("up", [1, 2])
@pytest.mark.parametrize("taps", TAPS)
def test_upfirdn_is_zero_insertion_padding_and_true_convolution(taps: tuple[float, ...], up: int) -> None:
    x = array(1, 2, 5, 5)
    pads = (3, len(taps) - 2)
    expected = np.stack([[naive_upfirdn(plane, taps, up, pads, 4.0) for plane in x[0]]])
    assert_near(upfirdn(tensor(x), taps, up=up, pads=pads, gain=4.0), expected)


@pytest.mark.parametrize("taps", TAPS)
def test_doubling_keeps_twice_the_side_and_follows_the_banded_matrix(taps: tuple[float, ...]) -> None:
    x = array(1, 3, 5, 5)
    left = (len(taps) + 1) // 2
    matrix = resampling_matrix(5, 10, taps, up=2, left=left, gain=2.0)
    assert_near(double(tensor(x), taps), np.einsum("ua,vb,ncab->ncuv", matrix, matrix, x))


def test_doubling_with_1331_is_bilinear_with_zeros_outside() -> None:
    x = array(1, 1, 4, 4)
    padded = np.pad(x[0, 0], 1)
    rows = np.stack([padded[1:-1] * 0.75 + padded[:-2] * 0.25, padded[1:-1] * 0.75 + padded[2:] * 0.25], 1).reshape(
        8, 6
    )
    even, odd = rows[:, 1:-1] * 0.75 + rows[:, :-2] * 0.25, rows[:, 1:-1] * 0.75 + rows[:, 2:] * 0.25
    expected = np.stack([even, odd], 2).reshape(1, 1, 8, 8)
    assert_near(double(tensor(x), (0.125, 0.375, 0.375, 0.125)), expected)


def test_normalising_the_second_moment() -> None:
    x = array(3, 7)
    assert_near(normalize_2nd_moment(tensor(x)), x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-8))


def test_a_fully_connected_layer_scales_weight_and_bias() -> None:
    x, weight, bias = array(3, 7), array(5, 7) * 100, array(5) * 10
    layer = FullyConnected(7, 5, 0.01, BiasAct.of_layer("lrelu"))
    y = x @ (weight * 0.01 / math.sqrt(7)).T + bias * 0.01
    assert_near(fully_connected(tensor(x), tensor(weight), tensor(bias), layer), np.maximum(y, 0.2 * y) * math.sqrt(2))


@pytest.mark.parametrize("joins_label", [False, True])
def test_a_label_is_normalised_beside_z_or_with_it(joins_label: bool) -> None:
    made = make_stylegan2(z_dim=5, w_dim=4, c_dim=3, joins_label=joins_label, mapping_layers=1)
    weights = {name: torch.from_numpy(array) for name, array in made.weights.items()}
    z, c = torch.randn(2, 5), torch.eye(3)[:2]
    label = (
        c @ weights["mapping.embed.weight"].T / (1.0 if joins_label else math.sqrt(3)) + weights["mapping.embed.bias"]
    )
    pieces = [torch.cat([z, label], 1)] if joins_label else [z, label]
    x = torch.cat([piece / piece.square().mean(1, keepdim=True).sqrt() for piece in pieces], 1)
    x = x @ weights["mapping.fc0.weight"].T * 0.01 / 3 + weights["mapping.fc0.bias"] * 0.01
    expected = torch.where(x > 0, x, 0.2 * x) * math.sqrt(2)
    torch.testing.assert_close(run_mapping(made.spec, weights, z, c), expected, atol=1e-5, rtol=1e-5)


def test_styles_and_demodulation() -> None:
    ws, affine, bias, weight = array(2, 4, 6), array(5, 6), array(5), array(3, 5, 3, 3)
    slots = (StyleSlot("a", 2, 5, 3, 0, 0), StyleSlot("b", 3, 5, 2, 5, -1, 0.5))
    weights = {"a.affine.weight": affine, "a.affine.bias": bias, "a.weight": weight}
    weights |= {"b.affine.weight": affine, "b.affine.bias": bias}
    found, demod = styles(tensor(ws), {k: tensor(v) for k, v in weights.items()}, Styles(6, slots, 10, 3))
    first = ws[:, 2] @ affine.T / math.sqrt(6) + bias
    second = (ws[:, 3] @ affine.T / math.sqrt(6) + bias) * 0.5
    assert_near(found, np.concatenate([first, second], 1))
    expected = np.zeros((2, 3))
    for n in range(2):
        for o in range(3):
            expected[n, o] = 1 / math.sqrt(((weight[o] * first[n][:, None, None]) ** 2).sum() + 1e-8)
    assert_near(demod, expected)


@pytest.mark.parametrize("kernel", [1, 3])
def test_the_modulated_convolution_in_the_paper_s_order(kernel: int) -> None:
    x, weight, bias = array(2, 5, 6, 6), array(3, 5, kernel, kernel), array(3)
    style, demod, picture = array(2, 5), np.abs(array(2, 3)), array(2, 6, 6)
    act = BiasAct("lrelu", 1.3, 2.0)
    expected = np.zeros((2, 3, 6, 6))
    for n in range(2):
        fused = weight * style[n][None, :, None, None] * demod[n][:, None, None, None]
        y = naive_conv(x[n], fused) + picture[n] + bias[:, None, None]
        expected[n] = np.clip(np.maximum(y, 0.2 * y) * 1.3, -2, 2)
    arguments = (tensor(x), tensor(weight), tensor(bias), tensor(style), tensor(demod), tensor(picture))
    assert_near(modulated_conv(*arguments, act), expected)


@pytest.mark.parametrize("taps", TAPS)
def test_the_up_convolution_scatters_its_weight_and_filters(taps: tuple[float, ...]) -> None:
    x, weight, bias = array(1, 4, 5, 5), array(3, 4, 3, 3), array(3)
    style, demod = array(1, 4), np.abs(array(1, 3))
    t = np.zeros((3, 11, 11))
    for i in range(5):
        for j in range(5):
            for ky in range(3):
                for kx in range(3):
                    t[:, 2 * i + ky, 2 * j + kx] += weight[:, :, ky, kx] @ (style[0] * x[0, :, i, j])
    count = len(taps)
    left, right = 1 + (count + 1) // 2 - 2, 1 + (count - 2) // 2 - 1
    filtered = np.stack([naive_upfirdn(plane, taps, 1, (left, right), 4.0) for plane in t])
    expected = (filtered * demod[0][:, None, None] + bias[:, None, None])[None]
    found = modulated_up_conv(
        tensor(x), tensor(weight), tensor(bias), tensor(style), tensor(demod), None, BiasAct(), taps
    )
    assert_near(found, expected)


def test_the_up_convolution_is_its_composed_six_by_six_kernel() -> None:
    """The polyphase identity: z[u, v] = sum x[i, j] G[u + 2 - 2 i, v + 2 - 2 j], exact at the borders too."""
    x, weight = array(1, 2, 4, 4), array(1, 2, 3, 3)
    f = np.array([1, 3, 3, 1]) / 4
    kernel = np.zeros((2, 6, 6))
    for p in range(4):
        for q in range(4):
            kernel[:, p : p + 3, q : q + 3] += f[p] * f[q] * weight[0]
    expected = np.zeros((1, 1, 8, 8))
    for u in range(8):
        for v in range(8):
            for i in range(4):
                for j in range(4):
                    a, b = u + 2 - 2 * i, v + 2 - 2 * j
                    if 0 <= a < 6 and 0 <= b < 6:
                        expected[0, 0, u, v] += (x[0, :, i, j] * kernel[:, a, b]).sum()
    ones = torch.ones(1, 2), torch.ones(1, 1)
    taps = (0.125, 0.375, 0.375, 0.125)
    found = modulated_up_conv(tensor(x), tensor(weight), torch.zeros(1), *ones, None, BiasAct(), taps)
    assert_near(found, expected)


def test_to_rgb_clamps_before_it_is_added_to_the_doubled_picture() -> None:
    x, weight, bias, style = array(2, 5, 4, 4), array(3, 5, 1, 1), array(3), array(2, 5)
    y = np.einsum("oi,nihw->nohw", weight[..., 0, 0], x * style[:, :, None, None]) + bias[:, None, None]
    found = to_rgb(tensor(x), tensor(weight), tensor(bias), tensor(style), 0.7)
    assert_near(found, np.clip(y, -0.7, 0.7))
    image, taps = array(2, 3, 2, 2), (0.125, 0.375, 0.375, 0.125)
    expected = double(tensor(image), taps).numpy() + np.clip(y, -0.7, 0.7)
    assert_near(add_doubled(tensor(image), found, taps), expected)


def test_the_resnet_skip_has_no_bias_and_its_gain() -> None:
    x, weight, taps = array(1, 5, 3, 3), array(2, 5, 1, 1), (0.125, 0.375, 0.375, 0.125)
    low = np.einsum("oi,nihw->nohw", weight[..., 0, 0] / math.sqrt(5), x)
    expected = double(tensor(low), taps).numpy() * math.sqrt(0.5)
    assert_near(skip_conv(tensor(x), tensor(weight), math.sqrt(0.5), taps), expected)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_pixels_are_bgr_in_memory_with_alpha_or_255(channels: int) -> None:
    image = np.stack([np.full((1, 2), value) for value in (-3.0, 0.0, 0.31, 0.996)[:channels]])[None]
    image[0, 0, 0, 1] = np.float32(127 / 127.5)
    found = to_display(tensor(image), ToDisplay(channels, 2)).numpy()
    scaled = np.trunc(np.clip(image.astype(np.float32) * np.float32(127.5) + 128, 0, 255)).astype(np.uint8)[0]
    r, g, b = (scaled[0], scaled[1], scaled[2]) if channels >= 3 else (scaled[0],) * 3
    assert np.array_equal(found[0], np.stack([b, g, r, scaled[3] if channels == 4 else np.full_like(r, 255)], -1))
    assert scaled[0, 0, 0] == 0
    assert scaled[0, 0, 1] == 255


def test_philox_gives_the_published_words() -> None:
    """Known answers of the generator's authors (Random123 kat_vectors, philox4x32 10)."""
    zero = philox4x32(np.zeros((4, 1), np.uint64), (0, 0))[:, 0]
    assert [f"{int(word):08x}" for word in zero] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    ones = philox4x32(np.full((4, 1), 0xFFFFFFFF, np.uint64), (0xFFFFFFFF, 0xFFFFFFFF))[:, 0]
    assert [f"{int(word):08x}" for word in ones] == ["408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"]


def test_noise_in_torch_gives_the_numbers_of_numpy() -> None:
    for seed, layer, side, batch in ((0, 0, 4, 1), (2**32 - 1, 3, 5, 2), (2**40 + 7, 12, 9, 3)):
        expected = noise_picture(seed, layer, side, batch=batch)
        assert expected.dtype == np.float32
        assert np.abs(noise(seed, layer, side, batch=batch).numpy() - expected).max() < 1e-6


def test_noise_is_standard_normal_and_differs_by_seed_layer_and_sample() -> None:
    picture = noise_picture(5, 1, 128, batch=2)
    assert abs(picture.mean()) < 0.02
    assert abs(picture.std() - 1) < 0.02
    assert abs((picture**4).mean() - 3) < 0.15
    others = [picture[0], picture[1], noise_picture(6, 1, 128)[0], noise_picture(5, 2, 128)[0]]
    for i, one in enumerate(others):
        for other in others[:i]:
            assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.05
    assert np.array_equal(noise_picture(5, 1, 128)[0], picture[0])


def test_references_can_be_differentiated() -> None:
    x = torch.randn(1, 3, 4, 4, requires_grad=True)
    weight = torch.randn(2, 3, 3, 3, requires_grad=True)
    ones = torch.ones(1, 3), torch.ones(1, 2)
    act = BiasAct.of_layer("lrelu", 1.0, 5.0)
    taps = (0.125, 0.375, 0.375, 0.125)
    modulated_up_conv(x, weight, torch.zeros(2), *ones, None, act, taps).square().sum().backward()
    for leaf in (x, weight):
        assert leaf.grad is not None
        assert leaf.grad.abs().sum() > 0


def test_another_middle_moves_every_byte() -> None:
    image = np.array([-2.0, -1.0, 0.0, 1 / 255, 1.0, 2.0]).reshape(1, 1, 2, 3)
    rule, moved = (to_display(tensor(image), ToDisplay(1, 2, middle)).numpy()[..., 0] for middle in (128.0, 127.5))
    assert rule.ravel().tolist() == [0, 0, 128, 128, 255, 255]
    assert moved.ravel().tolist() == [0, 0, 127, 128, 255, 255]
