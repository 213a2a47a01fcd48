"""Shapes, operations and bytes that the operations state."""

import importlib
import pkgutil
from pathlib import Path

import numpy as np
import pytest

import gpu_backend.ops
import gpu_backend.reference
from gpu_backend.cpu.kernel_table import KERNELS
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.concat import Concat
from gpu_backend.ops.embedding import Embedding
from gpu_backend.ops.fully_connected import FullyConnected
from gpu_backend.ops.modulated_conv import ModulatedConv
from gpu_backend.ops.modulated_up_conv import ModulatedUpConv
from gpu_backend.ops.tap_display import TapDisplay
from gpu_backend.ops.to_display import ToDisplay
from gpu_backend.ops.to_rgb import ToRgb
from gpu_backend.ops.upfirdn import doubling_phases, resampling_matrix, up_conv_left_pad


def stems(package: object) -> set[str]:
    return {module.name for module in pkgutil.iter_modules(package.__path__) if not module.ispkg}  # type: ignore[attr-defined]


def test_every_operation_has_a_reference_of_the_same_stem() -> None:
    assert stems(gpu_backend.ops) <= stems(gpu_backend.reference)
    assert set(KERNELS) <= stems(gpu_backend.ops)


def test_operations_import_no_torch() -> None:
    for name in stems(gpu_backend.ops):
        source = importlib.import_module(f"gpu_backend.ops.{name}").__file__
        assert source is not None
        assert "import torch" not in Path(source).read_text()


def test_a_convolution_counts_two_a_product_and_each_value_once() -> None:
    conv = ModulatedConv(5, 7, 3, 16, 0, 0, 0, BiasAct())
    assert conv.output_shape(2) == (2, 16, 16, 7)
    assert conv.flops(2) == 2 * 2 * 256 * 9 * 35
    assert conv.nbytes(2) == 4 * (2 * (256 * 12 + 256) + 9 * 35)


def test_an_up_convolution_counts_the_low_resolution_and_its_filter() -> None:
    up = ModulatedUpConv(5, 7, 3, 16, 0, 0, -1, BiasAct(), (0.125, 0.375, 0.375, 0.125))
    assert up.transposed_size == 17
    assert up.output_shape(1) == (1, 16, 16, 7)
    assert up.flops(1) == 2 * 7 * (64 * 9 * 5 + 8 * 256)
    assert up.nbytes(1) == 4 * (64 * 5 + 256 * 7 + 9 * 35)


def test_small_operations() -> None:
    assert Concat((3, 4)).output_shape(2) == (2, 7)
    assert Embedding(1000, 320).output_shape(2) == (2, 320)
    assert Embedding(1000, 320).flops(2) == 2 * 2 * 320
    assert FullyConnected(3, 4, 1.0, BiasAct()).flops(2) == 48
    assert ToRgb(8, 3, 4, 0, None, (1.0,), adds_image=False).flops(1) == 2 * 16 * 3 * 8
    assert ToDisplay(3, 4).output_shape(2) == (2, 4, 4, 4)
    shown = TapDisplay(5, 4)
    assert (shown.output_shape(2), shown.values_shape(2)) == ((2, 4, 4, 4), (2, 4, 4))
    assert shown.statistics_shape(2) == (2, 4, 4)
    assert (shown.flops(2), shown.nbytes(2)) == (2 * 16 * (6 * 5 + 9), 4 * 2 * 16 * (5 + 3 + 2))


@pytest.mark.parametrize("count", range(1, 13))
def test_phases_and_matrix_tell_the_same_doubling(count: int) -> None:
    taps = tuple(np.random.default_rng(count).random(count))
    matrix = resampling_matrix(9, 18, taps, up=2, left=(count + 1) // 2, gain=2.0)
    x = np.random.default_rng(1).standard_normal(9)
    expected = np.zeros(18)
    for r, phase in enumerate(doubling_phases(taps)):
        for shift, weight in phase:
            for i in range(9):
                if 0 <= i + shift < 9:
                    expected[2 * i + r] += weight * x[i + shift]
    assert np.allclose(matrix @ x, expected)


def test_the_filter_after_the_transposed_convolution_starts_one_pixel_out_for_1331() -> None:
    assert up_conv_left_pad(4) == 1
    assert resampling_matrix(9, 8, (1, 2, 3, 4), up=1, left=1, gain=1.0)[0].tolist() == [3, 2, 1, 0, 0, 0, 0, 0, 0]
