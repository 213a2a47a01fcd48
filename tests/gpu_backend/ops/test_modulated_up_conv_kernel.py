"""Up-convolution kernels of every flavour against the reference; the composed weights of the plain one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches import plain_convs
from gpu_backend.cuda.launches.conv_work import ConvWork
from gpu_backend.cuda.launches.plain_convs import PLAIN_TILES, PlainTile, pack_plain_up, plain_modulated_up_conv
from gpu_backend.cuda.launches.polyphase import axis_taps, compose, first_shift
from gpu_backend.ops.adain_up_conv import blurred_sum_matrix
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.modulated_up_conv import BINOMIAL_TAPS
from gpu_backend.reference.modulated_up_conv import modulated_up_conv
from tests.helpers.conv_cases import (
    H200,
    ConvCase,
    Flavour,
    check_case,
    each,
    filter_taps,
    site_of,
    step_of,
    weights_of,
)
from tests.helpers.gpu import target_of
from tests.helpers.kept_kernels import statistics_of
from tests.helpers.kernel_checks import one_each

FOUR = filter_taps(4)
SIZES = (
    ConvCase(3, 5, 8, fir=FOUR),
    ConvCase(5, 12, 16, batch=2, fir=FOUR, noise="random"),
    ConvCase(12, 24, 32, batch=5, fir=FOUR),
    ConvCase(24, 40, 64, fir=FOUR, noise="none"),
    ConvCase(40, 513, 8, batch=2, fir=FOUR, noise="off"),
    ConvCase(513, 40, 16, fir=FOUR),
    ConvCase(512, 512, 8, fir=FOUR, noise="random"),
    ConvCase(64, 32, 128, fir=FOUR),
    ConvCase(16, 16, 16, fir=FOUR, is_styled=False),
    ConvCase(24, 16, 8, kernel=1, fir=FOUR),
    ConvCase(24, 16, 8, kernel=5, fir=FOUR),
)
USUAL = tuple(replace(case, fir=BINOMIAL_TAPS) for case in SIZES if case.kernel == 3)
"""With the filter that is done in sums alone."""
FILTERS = tuple(
    ConvCase(20, 24, side, batch=2, fir=filter_taps(count)) for count in (1, 2, 3, 4, 5, 6, 8, 12) for side in (8, 32)
)


@pytest.mark.gpu
@pytest.mark.parametrize(("flavour", "case"), each((*SIZES, *USUAL)))
def test_an_up_convolution_equals_the_reference_at_every_size(flavour: Flavour, case: ConvCase, gpu: Gpu) -> None:
    check_case(flavour, case, target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize(("flavour", "case"), each(FILTERS))
def test_an_up_convolution_equals_the_reference_with_every_filter(flavour: Flavour, case: ConvCase, gpu: Gpu) -> None:
    check_case(flavour, case, target_of(gpu))


@pytest.mark.parametrize(("tile", "architecture"), one_each(PLAIN_TILES[:2]))
def test_plain_up_convolutions_compile_and_spill_nothing(
    tile: PlainTile, architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_convs, "PLAIN_TILES", (tile,))
    case = ConvCase(24, 40, 16, fir=FOUR)
    work = ConvWork.of_step(step_of(case))
    (launch,) = plain_modulated_up_conv(work, site_of(case), weights_of(case), H200).launches
    kernel = statistics_of(launch.recipe, architecture)
    assert kernel.spill_nbytes == 0, f"{launch.recipe.title} spills {kernel.spill_nbytes} bytes"
    assert 0 < kernel.registers <= 65536 // 384


@pytest.mark.parametrize("kernel", [1, 3, 5, 7])
@pytest.mark.parametrize("count", range(1, 13))
def test_four_composed_convolutions_are_the_up_convolution(count: int, kernel: int) -> None:
    random = np.random.default_rng(count)
    side, margin = 5, 16
    weight = random.standard_normal((3, 2, kernel, kernel))
    x = random.standard_normal((2, side, side))
    composed = compose(weight.astype(np.float64), filter_taps(count))
    taps = axis_taps(count, kernel)
    assert composed.shape == (2, 2, taps, taps, 2, 3)
    wide = np.pad(x, ((0, 0), (margin, margin), (margin, margin)))
    found = np.zeros((3, 2 * side, 2 * side))
    for r in (0, 1):
        for q in (0, 1):
            for ky in range(taps):
                for kx in range(taps):
                    top = margin + first_shift(r, count, kernel) + ky
                    left = margin + first_shift(q, count, kernel) + kx
                    piece = wide[:, top : top + side, left : left + side]
                    found[:, r::2, q::2] += np.einsum("co,cij->oij", composed[r, q, ky, kx], piece)
    one = torch.ones(1, 3, dtype=torch.float64)
    expected = modulated_up_conv(
        torch.from_numpy(x)[None], torch.from_numpy(weight), 0.0 * one[0], one[:, :2], one, None, BiasAct(),
        filter_taps(count),
    )  # fmt: skip
    assert np.allclose(found, expected[0].numpy(), rtol=1e-12, atol=1e-12)


def test_an_odd_border_is_one_tap_more_of_the_first_and_the_last_pixel() -> None:
    """In one dimension, StyleGAN1's formula: z = B S t, of sum and blur, is what the taps of both parities give."""
    random = np.random.default_rng(0)
    side, kernel = 5, random.standard_normal((3, 3))
    x = random.standard_normal((side, side))
    taps = (0.125, 0.375, 0.375, 0.125)
    composed = compose(kernel[None, None].astype(np.float32), taps, odd_border=True)[..., 0, 0]
    assert composed.shape == (2, 2, 4, 4)
    t = np.zeros((2 * side + 1, 2 * side + 1))
    for ky, kx in np.ndindex(3, 3):
        t[ky : ky + 2 * side : 2, kx : kx + 2 * side : 2] += kernel[ky, kx] * x
    matrix = blurred_sum_matrix(2 * side)
    wide, found = np.pad(x, 1), np.zeros((2 * side, 2 * side))

    def picked(parity: int, tap: int) -> np.ndarray:
        """Rows or columns of the input that a tap meets; those of the border's tap are zero but for one."""
        if tap < 3:
            return np.eye(side + 2)[tap : tap + side]
        edge = np.zeros((side, side + 2))
        edge[-parity, 1 + (side - 1) * parity] = 1.0
        return edge

    for r, q, ky, kx in np.ndindex(2, 2, 4, 4):
        found[r::2, q::2] += composed[r, q, ky, kx] * (picked(r, ky) @ wide @ picked(q, kx).T)
    assert np.allclose(found, matrix @ t @ matrix.T, atol=1e-6)


def test_composed_weights_lie_parity_by_parity_with_padding() -> None:
    weight = np.random.default_rng(0).standard_normal((5, 11, 3, 3)).astype(np.float32)
    packed = pack_plain_up(weight, FOUR, 0.25)
    composed = compose(weight, FOUR)
    assert packed.shape == (4 * 9, 16, 8)
    assert packed[2 * 9 + 3 * 1 + 2, 7, 4] == np.float32(composed[1, 0, 1, 2, 7, 4] * 0.25)
    assert not packed[:, 11:].any()
    assert not packed[:, :, 5:].any()


def test_the_usual_filter_gives_each_parity_nine_taps_about_its_pixel() -> None:
    assert axis_taps(4, 3) == 3
    assert (first_shift(0, 4, 3), first_shift(1, 4, 3)) == (-1, -1)


def test_a_plain_up_convolution_runs_over_its_input_once_a_parity() -> None:
    case = ConvCase(12, 40, 16, batch=3, fir=FOUR)
    work = ConvWork.of_step(step_of(case))
    (launch,) = plain_modulated_up_conv(work, site_of(case), weights_of(case), H200).launches
    pixels = int(dict(launch.recipe.defines)["TILE_PIXELS"])
    assert launch.grid[2] == 4
    assert launch.grid[0] * pixels >= 3 * 64
    assert launch.flops == 3 * work.flops
