"""Kernels of StyleGAN1's layers against the reference, and how their launches are cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpu_backend.cuda.probe import Gpu
from gpu_backend.cuda.tiles import TileTable
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.kernels import adain_tile
from gpu_backend.ops.kernels.adain_tile import AdainTile
from gpu_backend.ops.kernels.conv_tile import ConvGeometry, ConvShape, ConvTile
from tests.helpers.adain_cases import TOLERANCE, AdainCase, RawCase, check_adain_case, check_raw_case
from tests.helpers.conv_cases import FLAVOURS
from tests.helpers.gpu import target_of

SIDES = (1, 2, 4, 5, 8, 11, 16, 32, 37, 64, 65, 96, 128)
CASES = (
    *(AdainCase(channels, side) for side in SIDES for channels in (5, 24)),
    AdainCase(513, 8, batch=3),
    AdainCase(72, 70, batch=3, noise="random"),
    AdainCase(136, 66, noise="none"),
    AdainCase(12, 33, batch=2, noise="off"),
    AdainCase(12, 70, batch=2, noise="off"),
    AdainCase(12, 32, blurs_bias=True, noise="random"),
    AdainCase(40, 128, batch=2, blurs_bias=True),
    AdainCase(20, 4, batch=3, is_shared=True),
    AdainCase(16, 256, rgb=3),
    AdainCase(72, 66, batch=3, rgb=1),
    AdainCase(24, 80, rgb=4, noise="random"),
    AdainCase(24, 16, rgb=3),
    AdainCase(9, 20, act=BiasAct("relu")),
    AdainCase(9, 70, act=BiasAct("swish", 1.5, 0.7)),
    AdainCase(16, 1024),
)
NARROW = tuple(
    AdainCase(8, side, noise=noise, act=BiasAct(), offset=1000.0, deviation=0.01)
    for side, noise in ((16, "none"), (70, "stored"))
)
"""Channels that hardly vary: sums of squares in fp32 would lose them."""


def each() -> list[Any]:
    """Flavours and cases; what fp16 cannot hold is asked for in fp32 alone."""
    listed = [(flavour, replace(case, half=half)) for flavour, by in TOLERANCE.items() for half in by for case in CASES]
    return [pytest.param(flavour, case, id=f"{flavour}-{case}") for flavour, case in listed]


@pytest.mark.gpu
@pytest.mark.parametrize(("flavour", "case"), each())
def test_a_normalisation_equals_the_reference(flavour: str, case: AdainCase, gpu: Gpu) -> None:
    check_adain_case(flavour, case, target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize("case", NARROW, ids=str)
def test_a_channel_that_hardly_varies_keeps_its_digits(case: AdainCase, gpu: Gpu) -> None:
    # float32 itself has 6e-8 of 1000, which is 6e-3 of the deviation; the variance is right to much more than that.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TOLERANCE["plain"], False, 2e-2)
        check_adain_case("plain", case, target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize("side", [16, 70])
def test_fused_moments_of_a_channel_far_from_zero_keep_their_digits(side: int, gpu: Gpu) -> None:
    # Steps of fp16 at 1000 are 0.5: the deviation is a few of them, and their mean's square a million times as large.
    check_adain_case(
        "fused", AdainCase(8, side, act=BiasAct(), offset=1000.0, deviation=2.0, half=True), target_of(gpu)
    )


@pytest.mark.gpu
@pytest.mark.parametrize("chunk", [256, 1000, 4096])
@pytest.mark.parametrize("channels", [8, 12, 32, 64, 72])
def test_every_way_to_cut_it_gives_the_reference(
    channels: int, chunk: int, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adain_tile, "_MOST_CHUNK", chunk)
    monkeypatch.setattr(adain_tile, "_BLOCKS", 1)
    monkeypatch.setattr(adain_tile, "_PICTURE_BLOCKS", 1)
    for rgb in (0, 3):
        check_adain_case("fused", AdainCase(channels, 67, batch=2, rgb=rgb, half=True), target_of(gpu))


RAW = (
    RawCase(3, 5, 8),
    RawCase(5, 12, 16, batch=2),
    RawCase(24, 40, 32, batch=3),
    RawCase(512, 512, 8),
    RawCase(64, 32, 128),
    RawCase(32, 16, 256),
    RawCase(513, 40, 4, is_up=False),
    RawCase(12, 20, 32, is_up=False, batch=2),
)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("flavour", "case"),
    [
        pytest.param(name, replace(case, half=half), id=f"{name}-{replace(case, half=half)}")
        for name, flavour in FLAVOURS.items()
        for half in flavour.tolerance
        for case in RAW
    ],
)
def test_a_convolution_equals_the_reference_up_to_its_border(flavour: str, case: RawCase, gpu: Gpu) -> None:
    check_raw_case(flavour, case, target_of(gpu))


TILES = (
    ConvTile(4, 14, 16, 16, 2, 4, 1, walk=3),
    ConvTile(4, 14, 32, 16, 3, 2, 2, walk=4, resident=True),
    ConvTile(6, 4, 16, 16, 2, 3, 1, split=2),
    ConvTile(4, 14, 32, 16, 3, 4, 1, mma="wgmma", walk=4, resident=True),
)


@pytest.mark.gpu
@pytest.mark.parametrize("tile", TILES, ids=str)
def test_a_border_is_right_however_an_up_convolution_is_cut(
    tile: ConvTile, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = target_of(gpu)
    geometry = ConvGeometry(ConvShape("up_conv", 32, 24, 24, 2), tile)
    if not geometry.fits(target.architecture, target.shared_nbytes_per_block):
        pytest.skip("this GPU has no room for the tile, or not its instructions")
    monkeypatch.setattr(TileTable, "choose", lambda *_, **settings: tile)
    check_raw_case("fused", RawCase(20, 24, 32, batch=2, half=True), target)


@pytest.mark.parametrize("multiprocessors", [16, 132])
@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("cout", [8, 16, 24, 64, 72, 512])
@pytest.mark.parametrize("side", [1, 4, 7, 33, 64, 65, 128, 1024, 2048])
def test_blocks_cover_all_pixels_of_all_channels(side: int, cout: int, batch: int, multiprocessors: int) -> None:
    tile = AdainTile.of(side, cout, batch, multiprocessors)
    chunks, channel_blocks, pictures = tile.grid
    assert chunks * tile.chunk >= side * side > (chunks - 1) * tile.chunk
    assert channel_blocks * tile.groups * 8 >= cout > (channel_blocks - 1) * tile.groups * 8
    assert pictures == batch
    assert tile.threads % 32 == 0
    assert tile.groups & (tile.groups - 1) == 0
    assert 4 * tile.chunk <= 48 << 10
    if tile.held:
        assert chunks == 1
        assert tile.threads * tile.held >= tile.chunk * tile.groups
    else:
        assert tile.chunk % (tile.threads // tile.groups) == 0


def test_small_pictures_are_held_and_large_ones_busy_the_gpu_in_one_go() -> None:
    assert [AdainTile.of(side, 512, 1, 132).held for side in (4, 16, 32, 64, 128)] == [1, 4, 4, 8, 0]
    for has_picture, most in ((False, 3), (True, 2)):
        chunks, channel_blocks, _ = AdainTile.of(1024, 16, 1, 132, has_picture=has_picture).grid
        assert (most - 1) * 132 < chunks * channel_blocks <= most * 132
