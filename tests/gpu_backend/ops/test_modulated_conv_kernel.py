"""Convolution kernels of every flavour against the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches import plain_convs
from gpu_backend.cuda.launches.conv_work import ConvWork
from gpu_backend.cuda.launches.plain_convs import PLAIN_TILES, PlainTile, pack_plain, plain_modulated_conv, plain_tile
from gpu_backend.ops.bias_act import BiasAct
from tests.helpers.conv_cases import (
    FLAVOURS,
    H200,
    ConvCase,
    Flavour,
    check_case,
    each,
    filter_taps,
    problem_of,
    run_built,
    site_of,
    step_of,
    weights_of,
)
from tests.helpers.gpu import target_of
from tests.helpers.kept_kernels import statistics_of
from tests.helpers.kernel_checks import one_each

SIZES = (
    ConvCase(3, 5, 4),
    ConvCase(5, 12, 8, batch=2),
    ConvCase(12, 24, 16, batch=5, noise="random"),
    ConvCase(24, 40, 32, noise="none"),
    ConvCase(40, 513, 8, batch=2, noise="off"),
    ConvCase(513, 40, 16),
    ConvCase(512, 512, 4, noise="random"),
    ConvCase(64, 64, 64, batch=2),
    ConvCase(32, 24, 64, batch=5, rgb=3),
    ConvCase(40, 32, 64, rgb=3, is_stored=False, noise="random"),
    ConvCase(24, 3, 32, batch=2, rgb=1),
    ConvCase(12, 513, 4, batch=5, rgb=4),
    ConvCase(16, 16, 16, is_styled=False),
    ConvCase(24, 40, 16, kernel=1),
    ConvCase(5, 12, 8, kernel=5, batch=2),
)
CUT = (
    ConvCase(12, 24, 38, padding=2, noise="none"),
    ConvCase(24, 40, 54, padding=2, noise="none", batch=2),
    ConvCase(40, 513, 38, padding=2, noise="none", batch=2, is_styled=False),
    ConvCase(81, 51, 150, padding=2, noise="none"),
    ConvCase(24, 40, 36, kernel=1, noise="none", batch=3),
    ConvCase(102, 64, 148, kernel=1, noise="none"),
    ConvCase(5, 12, 7, padding=0, batch=2),
    ConvCase(24, 40, 23, padding=1, rgb=3, batch=2),
    ConvCase(512, 512, 38, padding=2, noise="none"),
)
SKIPS = tuple(ConvCase(12, 24, 16, 2, skip=filter_taps(count)) for count in (1, 2, 3, 4, 6, 8))
BLENDED = (
    ConvCase(64, 64, 64, batch=2, blend=64),
    ConvCase(40, 32, 64, rgb=3, is_stored=False, noise="random", blend=16),
    ConvCase(12, 513, 4, batch=5, rgb=4, blend=4),
    ConvCase(12, 24, 16, 2, skip=filter_taps(4), blend=5),
    ConvCase(24, 40, 23, padding=1, rgb=3, batch=2, blend=7),
    ConvCase(16, 16, 16, is_styled=False, blend=16),
)
TILES = pytest.mark.parametrize("tile", PLAIN_TILES, ids=lambda tile: f"{tile.tile_pixels}x{tile.tile_channels}")


@pytest.mark.gpu
@pytest.mark.parametrize(("flavour", "case"), each(SIZES))
def test_a_convolution_equals_the_reference_at_every_size(flavour: Flavour, case: ConvCase, gpu: Gpu) -> None:
    check_case(flavour, case, target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize(("flavour", "case"), each(CUT))
def test_a_convolution_of_any_side_and_padding_equals_the_reference(flavour: Flavour, case: ConvCase, gpu: Gpu) -> None:
    check_case(flavour, case, target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize(("flavour", "case"), each(SKIPS))
def test_a_convolution_adds_the_doubled_skip_after_its_activation(flavour: Flavour, case: ConvCase, gpu: Gpu) -> None:
    check_case(flavour, case, target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize("case", [replace(case, half=True) for case in BLENDED], ids=str)
def test_a_convolution_blends_its_output_with_one_kept_second_latent(case: ConvCase, gpu: Gpu) -> None:
    check_case(FLAVOURS["fused"], case, target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize("half", [False, True], ids=["fp32", "fp16"])
@TILES
def test_every_plain_tile_gives_the_reference(
    tile: PlainTile, half: bool, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_convs, "PLAIN_TILES", (tile,))
    for case in (
        ConvCase(44, 72, 12, 2, skip=filter_taps(4), noise="random", half=half),
        ConvCase(20, 70, 10, 3, fir=filter_taps(4), noise="random", half=half),
        ConvCase(7, 9, 4, half=half),
    ):
        check_case(FLAVOURS["plain"], case, target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize("half", [False, True], ids=["fp32", "fp16"])
def test_values_beyond_half_precision_become_its_largest_number(half: bool, gpu: Gpu) -> None:
    case = ConvCase(8, 8, 4, act=BiasAct("linear", 1e6), half=half)
    problem = problem_of(case)
    site = site_of(case, problem.exponent)
    built = plain_modulated_conv(ConvWork.of_step(step_of(case)), site, problem.weights, target_of(gpu))
    found = run_built(built, problem.inputs)
    limit = 65504.0 if half else np.inf
    assert np.isfinite(found["y"]).all()
    assert np.allclose(found["y_raw"], np.clip(problem.expected["y_raw"], -limit, limit), rtol=2e-3, atol=10.0)


@pytest.mark.parametrize(("tile", "architecture"), one_each(PLAIN_TILES))
def test_plain_convolutions_compile_and_spill_nothing(
    tile: PlainTile, architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_convs, "PLAIN_TILES", (tile,))
    case = ConvCase(24, 40, 16, skip=filter_taps(4), act=BiasAct("softplus"), half=True)
    work = ConvWork.of_step(step_of(case))
    (launch,) = plain_modulated_conv(work, site_of(case), weights_of(case), H200).launches
    kernel = statistics_of(launch.recipe, architecture)
    assert launch.block == (tile.threads, 1, 1)
    assert kernel.spill_nbytes == 0, f"{launch.recipe.title} spills {kernel.spill_nbytes} bytes"
    assert 0 < kernel.registers <= 65536 // 384
    assert kernel.shared_nbytes <= 48 << 10


def test_plain_weights_lie_tap_by_tap_with_padding() -> None:
    weight = np.random.default_rng(0).standard_normal((5, 11, 3, 3)).astype(np.float32)
    packed = pack_plain(weight, 0.5)
    assert packed.shape == (9, 16, 8)
    assert packed.dtype == np.float32
    assert packed[5, 7, 3] == weight[3, 7, 1, 2] * 0.5
    assert not packed[:, 11:].any()
    assert not packed[:, :, 5:].any()


def test_a_small_layer_gets_small_tiles_and_a_narrow_one_narrow_tiles() -> None:
    chosen = {
        side: plain_tile(side * side, channels, 1, 132)
        for side, channels in ((4, 512), (16, 512), (64, 512), (256, 128), (1024, 32))
    }
    assert chosen[4] == PLAIN_TILES[-1]
    assert chosen[64].tile_pixels * chosen[64].tile_channels >= 64 * 64
    assert chosen[256] == PLAIN_TILES[0]
    assert chosen[1024].tile_channels == 32
    assert chosen[4].blocks(16, 512) == 16
    assert plain_tile(4, 512, 4, 132).tile_pixels <= chosen[16].tile_pixels


def test_a_plain_launch_covers_all_pixels_and_says_what_it_is_for() -> None:
    case = ConvCase(12, 40, 16, batch=3, rgb=3)
    work = ConvWork.of_step(step_of(case))
    built = plain_modulated_conv(work, site_of(case), weights_of(case), H200, reason="its self-check failed")
    conv, rgb = built.launches
    pixels, channels = (int(dict(conv.recipe.defines)[name]) for name in ("TILE_PIXELS", "TILE_CHANNELS"))
    assert conv.grid[0] * pixels >= 3 * 256
    assert conv.grid[1] * channels >= 40
    assert [launch.reason for launch in built.launches] == ["its self-check failed"] * 2
    assert not any(launch.is_fused for launch in built.launches)
    assert conv.flops == 3 * work.flops
    assert (rgb.layer, rgb.label) == ("synthesis.b.torgb", "plain_to_rgb")
    assert {region.name: region.shape for region in built.regions} == {
        "y": (3, 16, 16, 40),
        "y_raw": (3, 16, 16, 40),
        "parts": (1, 3, 16, 16, 3),
    }


def test_a_tapped_layer_without_other_readers_needs_only_its_raw_output() -> None:
    case = ConvCase(12, 40, 16, rgb=3, is_stored=False)
    work = ConvWork.of_step(step_of(case))
    built = plain_modulated_conv(work, site_of(case), weights_of(case), H200)
    assert [region.name for region in built.regions] == ["raw/synthesis.b.conv1", "parts"]
