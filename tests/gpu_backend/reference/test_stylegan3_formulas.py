"""StyleGAN3's reference functions against their formulas, written out in NumPy float64 with explicit indices."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.filtered_lrelu import FilteredLrelu
from gpu_backend.ops.fourier_features import FourierFeatures
from gpu_backend.ops.styles import Styles, StyleSlot
from gpu_backend.recipe import Transform
from gpu_backend.reference.filtered_lrelu import filtered_lrelu
from gpu_backend.reference.fourier_features import fourier_features
from gpu_backend.reference.modulated_conv import modulated_conv
from gpu_backend.reference.stylegan3 import run_stylegan3
from gpu_backend.reference.styles import styles
from gpu_backend.reference.tap_display import tap_display
from tests.helpers.stylegan3 import R, make_stylegan3


def array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape)


def tensor(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values, np.float64))


def along(x: np.ndarray, taps: np.ndarray, up: int, low: int, count: int) -> np.ndarray:
    """u[t] = up sum_a taps[t + n - 1 - low - up a] x[a] along the last axis."""
    u = np.zeros((*x.shape[:-1], count))
    for t in range(count):
        for a in range(x.shape[-1]):
            k = t + len(taps) - 1 - low - up * a
            if 0 <= k < len(taps):
                u[..., t] += up * taps[k] * x[..., a]
    return u


CASES: dict[str, dict[str, Any]] = {
    "doubled and halved": {"up": 2, "down": 2, "pads": (9, 8), "taps": (12, 12)},
    "four times and halved, cropped": {"up": 4, "down": 2, "pads": (-6, -9), "taps": (24, 12)},
    "cropped hard": {"up": 2, "down": 2, "pads": (-5, -6), "taps": (6, 6)},
    "padded beyond the filter": {"up": 2, "down": 2, "pads": (15, 14), "taps": (12, 12)},
    "odd taps": {"up": 2, "down": 1, "pads": (4, 3), "taps": (7, 5)},
    "up alone": {"up": 3, "down": 1, "pads": (4, 3), "taps": (9, 1)},
    "down alone": {"up": 1, "down": 2, "pads": (2, 3), "taps": (1, 6)},
    "radial": {"up": 2, "down": 2, "pads": (11, 10), "taps": (12, 12), "is_radial": True},
}


def settings(case: dict[str, Any], side: int, channels: int, clamp: float | None = 1.5) -> FilteredLrelu:
    up, down, (low, high), (before, after) = case["up"], case["down"], case["pads"], case["taps"]
    samples = side * up + low + high - before + 1
    return FilteredLrelu(
        channels=channels,
        in_size=side,
        out_size=(samples - after) // down + 1,
        up=up,
        down=down,
        pads=(low, high),
        up_taps=before,
        down_taps=after,
        is_radial=case.get("is_radial", False),
        act=BiasAct.of_layer("lrelu", clamp=clamp),
    )


def filters(attributes: FilteredLrelu, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Lopsided ones, so that a reversed filter shows; one of one tap is 1."""
    after = (attributes.down_taps,) * (2 if attributes.is_radial else 1)
    made = array(attributes.up_taps, seed=seed), array(*after, seed=seed)
    return tuple(taps if taps.size > 1 else np.ones(1) for taps in made)  # type: ignore[return-value]


@pytest.mark.parametrize("name", CASES)
def test_filtered_lrelu(name: str) -> None:
    attributes = settings(CASES[name], 13, 3)
    before, after = filters(attributes)
    x = array(2, 3, 13, 13)
    u = along(x, before, attributes.up, attributes.pads[0], attributes.size)
    u = along(u.swapaxes(2, 3), before, attributes.up, attributes.pads[0], attributes.size).swapaxes(2, 3)
    v = np.clip(np.maximum(u, 0.2 * u) * math.sqrt(2), -1.5, 1.5)
    both = after if attributes.is_radial else np.outer(after, after)
    taps, out = attributes.down_taps, attributes.out_size
    expected = np.zeros((2, 3, out, out))
    for row in range(out):
        for column in range(out):
            top, left = attributes.down * row, attributes.down * column
            expected[..., row, column] = (v[..., top : top + taps, left : left + taps] * both[::-1, ::-1]).sum((2, 3))
    found = filtered_lrelu(tensor(x), tensor(before), tensor(after), attributes)
    assert tuple(found.shape) == expected.shape
    assert np.abs(found.numpy() - expected).max() < 1e-10


def test_filtered_lrelu_without_filters_is_the_activation() -> None:
    attributes = settings({"up": 1, "down": 1, "pads": (0, 0), "taps": (1, 1)}, 5, 2, None)
    x = array(1, 2, 5, 5)
    found = filtered_lrelu(tensor(x), None, None, attributes).numpy()
    assert found == pytest.approx(np.maximum(x, 0.2 * x) * math.sqrt(2))


@pytest.mark.parametrize("transform", [Transform(), Transform(0.1, -0.2, 30.0, 1.3), Transform(scale=0.05)])
def test_fourier_features(transform: Transform) -> None:
    attributes = FourierFeatures(w_dim=5, w_index=1, channels=6, size=7, sampling_rate=4.0, bandwidth=1.0)
    weights = {
        "affine.weight": array(4, 5),
        "affine.bias": np.array([1.0, 0.3, 0.1, -0.2]),
        "freqs": array(6, 2),
        "phases": array(6),
        "weight": array(6, 6),
    }
    ws = array(2, 3, 5)
    user = np.reshape(transform.matrix, (3, 3))
    expected = np.zeros((2, 6, 7, 7))
    for sample in range(2):
        t = weights["affine.weight"] @ ws[sample, 1] / math.sqrt(5) + weights["affine.bias"]
        t = t / math.hypot(t[0], t[1])
        turn = np.array([[t[0], -t[1], 0], [t[1], t[0], 0], [0, 0, 1]])
        move = np.array([[1, 0, -t[2]], [0, 1, -t[3]], [0, 0, 1]])
        matrix = turn @ move @ user
        waves = np.zeros((6, 7, 7))
        for c in range(6):
            phase = weights["phases"][c] + weights["freqs"][c] @ matrix[:2, 2]
            fx, fy = weights["freqs"][c] @ matrix[:2, :2]
            amplitude = np.clip(1 - (math.hypot(fx, fy) - 1.0) / (2.0 - 1.0), 0, 1)
            for row in range(7):
                for column in range(7):
                    x, y = (column + 0.5 - 3.5) / 4.0, (row + 0.5 - 3.5) / 4.0
                    waves[c, row, column] = amplitude * math.sin(2 * math.pi * (fx * x + fy * y + phase))
        expected[sample] = np.einsum("oc,cyx->oyx", weights["weight"] / math.sqrt(6), waves)
    tensors = {name: tensor(values) for name, values in weights.items()}
    found = fourier_features(tensor(ws), tensor(user), tensors, attributes).numpy()
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 1e-12
    if transform.scale < 0.1:
        assert np.abs(found).max() == 0.0, "frequencies that the samples cannot hold are gone"


def test_styles_of_unit_size() -> None:
    slots = (
        StyleSlot("a", 1, 3, 4, 0, 0, is_normalized=True),
        StyleSlot("b", 0, 4, 2, 3, -1, 0.5, is_normalized=True),
    )
    weights = {
        "a.affine.weight": array(3, 5),
        "a.affine.bias": array(3),
        "a.weight": array(4, 3, 3, 3),
        "a.magnitude_ema": np.array(2.5),
        "b.affine.weight": array(4, 5),
        "b.affine.bias": array(4),
        "b.magnitude_ema": np.array(0.3),
    }
    ws = array(2, 2, 5)
    s = ws[:, 1] @ weights["a.affine.weight"].T / math.sqrt(5) + weights["a.affine.bias"]
    s = s / np.sqrt((s**2).mean(1, keepdims=True))
    unit = weights["a.weight"] / np.sqrt((weights["a.weight"] ** 2).mean((1, 2, 3), keepdims=True))
    modulated = unit[None] * s[:, None, :, None, None]
    whole = modulated / np.sqrt((modulated**2).sum((2, 3, 4), keepdims=True) + 1e-8) / math.sqrt(2.5)
    rgb = (ws[:, 0] @ weights["b.affine.weight"].T / math.sqrt(5) + weights["b.affine.bias"]) * 0.5 / math.sqrt(0.3)
    found, demod = styles(tensor(ws), {name: tensor(v) for name, v in weights.items()}, Styles(5, slots, 7, 4))
    assert found.numpy() == pytest.approx(np.concatenate([s, rgb], axis=1))
    assert demod.shape == (2, 4)

    x = array(2, 3, 6, 6)
    y = modulated_conv(
        tensor(x), tensor(weights["a.weight"]), torch.zeros(4).double(), found[:, :3], demod, None, BiasAct(), 2
    )
    padded = np.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2)))
    expected = np.zeros((2, 4, 8, 8))
    for row in range(8):
        for column in range(8):
            patch = padded[:, :, row : row + 3, column : column + 3]
            expected[:, :, row, column] = np.einsum("noikl,nikl->no", whole, patch)
    assert y.numpy() == pytest.approx(expected), "styles, coefficients and stored weights make the normalised layer"


def test_a_tap_shows_channels_by_their_own_range_and_with_a_gain() -> None:
    x = np.zeros((1, 3, 2, 2))
    x[0, 0], x[0, 1], x[0, 2] = 0.5, [[-4, 2], [0, 1]], 1e-12
    plain = tap_display(tensor(x), torch.tensor([0, 1, 2, 1.0, 0.0])).numpy()
    assert plain[0, 0, 0].tolist() == [128, 0, 191, 255], "B, G, R, X"
    assert plain[0, 0, 1].tolist() == [128, 255, 191, 255]
    shown = tap_display(tensor(x), torch.tensor([1, 1, 1, 0.5, 1.0])).numpy()
    assert shown[0, ..., 0].tolist() == [[int(128 - 63.75), int(128 + 31.875)], [128, int(128 + 15.9375)]]
    assert (shown[..., 0] == shown[..., 2]).all()
    silent = tap_display(tensor(x), torch.tensor([2, 2, 2, 1.0, 1.0])).numpy()
    assert (silent[..., :3] == 128).all(), "what is nearly nothing is not blown up"


@pytest.mark.parametrize("config", [{}, R])
def test_moving_the_picture_by_whole_samples_moves_the_input(config: dict[str, Any]) -> None:
    """The meaning of a transform: with the pose at rest, x widths to the right and y down."""
    model = make_stylegan3(**config)
    weights = {name: torch.from_numpy(array).double() for name, array in model.weights.items()}
    weights["synthesis.input.affine.weight"] = torch.zeros(4, 8).double()
    weights["synthesis.input.affine.bias"] = torch.tensor([1.0, 0, 0, 0]).double()
    weights["synthesis.input.freqs"] /= weights["synthesis.input.freqs"].norm(dim=1).max()  # none is near the limit
    ws = tensor(array(1, 16, 8))

    def features(transform: Transform) -> np.ndarray:
        observed: dict[str, torch.Tensor] = {}
        run_stylegan3(model.spec, weights, ws, tensor(np.reshape(transform.matrix, (3, 3))), observed=observed)
        return observed["synthesis.input"].numpy()

    rest = features(Transform())
    moved = features(Transform(x=3 / 16, y=-2 / 16))
    assert moved[..., :-2, 3:] == pytest.approx(rest[..., 2:, :-3])
    turned = features(Transform(degrees=90.0))
    assert turned == pytest.approx(np.rot90(rest, axes=(2, 3))), "counterclockwise"
    larger = features(Transform(scale=3.0))
    assert larger[..., 1::3, 1::3] == pytest.approx(rest[..., 12:24, 12:24]), "three times as large, around the middle"
