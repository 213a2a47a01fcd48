"""Kernels of StyleGAN1's layers against the reference, and how their launches are cut."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any, Literal

import pytest

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches import streaming_up_conv
from gpu_backend.cuda.launches.fused_convs import has_whole_picture
from gpu_backend.cuda.tiles.table import TileTable
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.kernels.adain_tile import THREADS, AdainTile
from gpu_backend.ops.kernels.conv_tile import ConvGeometry, ConvKind, ConvShape, ConvTile
from tests.helpers.adain_cases import TOLERANCE, AdainCase, check_adain_case
from tests.helpers.gpu import target_of

CASES = (
    *(AdainCase(channels, side, kind="input") for side in (1, 4, 5, 8, 37) for channels in (5, 24)),
    AdainCase(20, 4, batch=3, kind="input", noise="random"),
    AdainCase(513, 4, kind="input", noise="none"),
    AdainCase(20, 4, kind="input", noise="off", act=BiasAct("swish", 1.5, 0.7)),
    *(AdainCase(channels, side) for side in (4, 8, 11, 16, 37, 64, 65) for channels in (5, 24)),
    *(AdainCase(channels, side, kind="up_conv") for side in (8, 16, 32, 64, 128) for channels in (5, 24)),
    AdainCase(512, 8, cin=512),
    AdainCase(513, 8, cin=40, batch=3),
    AdainCase(512, 8, cin=512, kind="up_conv"),
    AdainCase(64, 128, cin=32, noise="random"),
    AdainCase(136, 66, noise="none"),
    AdainCase(12, 33, batch=2, noise="off"),
    AdainCase(12, 32, cin=3, kind="up_conv", batch=2, noise="off"),
    AdainCase(12, 32, kind="up_conv", blurs_bias=True, noise="random"),
    AdainCase(40, 128, kind="up_conv", batch=2, blurs_bias=True),
    AdainCase(40, 64, kind="up_conv", batch=2, noise="none"),
    AdainCase(16, 256, rgb=3),
    AdainCase(72, 66, batch=3, rgb=1),
    AdainCase(24, 80, rgb=4, noise="random"),
    AdainCase(24, 16, rgb=3),
    AdainCase(520, 8, rgb=3, batch=2),
    AdainCase(9, 20, act=BiasAct("relu")),
    AdainCase(9, 70, act=BiasAct("swish", 1.5, 0.7)),
    AdainCase(9, 64, kind="up_conv", act=BiasAct("swish", 1.5, 0.7)),
)
LARGE = (AdainCase(16, 1024, half=True, rgb=3), AdainCase(16, 1024, kind="up_conv", half=True))
SIDES: tuple[tuple[Literal["conv", "up_conv"], int], ...] = (("conv", 16), ("conv", 70), ("up_conv", 64))
NARROW = tuple(
    AdainCase(8, side, kind=kind, noise="none", act=BiasAct(), offset=1000.0, deviation=deviation)
    for kind, side in SIDES
    for deviation in (2.0,)
)
"""Channels that hardly vary: sums of squares in fp32 would lose them."""


def each() -> list[Any]:
    """Flavours and cases; what fp16 cannot hold is asked for in fp32 alone."""
    listed = [(flavour, replace(case, half=half)) for flavour, by in TOLERANCE.items() for half in by for case in CASES]
    return [pytest.param(flavour, case, id=f"{flavour}-{case}") for flavour, case in listed]


@pytest.mark.gpu
@pytest.mark.parametrize(("flavour", "case"), each())
def test_a_layer_equals_the_reference(flavour: str, case: AdainCase, gpu: Gpu) -> None:
    check_adain_case(flavour, case, target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize("case", LARGE, ids=str)
def test_the_last_layers_equal_the_reference(case: AdainCase, gpu: Gpu) -> None:
    check_adain_case("fused", case, target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize("case", NARROW, ids=str)
def test_a_channel_that_hardly_varies_keeps_its_digits(case: AdainCase, gpu: Gpu) -> None:
    # float32 itself has 6e-5 of 1000, which is 3e-5 of the deviation.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TOLERANCE["plain"], False, 2e-3)
        check_adain_case("plain", case, target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize("case", NARROW, ids=str)
def test_fused_moments_of_a_channel_far_from_zero_keep_their_digits(case: AdainCase, gpu: Gpu) -> None:
    # Steps of fp16 at 1000 are 0.5: the deviation is a few of them, and their mean's square a million times as large.
    check_adain_case("fused", replace(case, half=True), target_of(gpu))


WHOLE: tuple[tuple[int, ConvKind, ConvTile], ...] = (
    (4, "conv", ConvTile(4, 4, 32, 16, 3, 1, 2, split_k=2)),
    (8, "conv", ConvTile(8, 8, 16, 16, 3, 4, 1)),
    (7, "conv", ConvTile(8, 8, 32, 16, 3, 2, 2)),
    (16, "conv", ConvTile(16, 16, 16, 16, 2, 4, 1)),
    (8, "up_conv", ConvTile(6, 4, 16, 16, 2, 3, 1, split_k=2)),
    (16, "up_conv", ConvTile(10, 8, 16, 16, 2, 8, 1, mma="wgmma", split_k=2)),
    (14, "up_conv", ConvTile(10, 7, 32, 16, 2, 4, 1)),
    (16, "up_conv", ConvTile(10, 8, 64, 16, 2, 4, 2)),
)
"""Tiles whose blocks have whole pictures, and normalise them."""


@pytest.mark.gpu
@pytest.mark.parametrize(("side", "kind", "tile"), WHOLE, ids=str)
def test_a_convolution_that_has_whole_pictures_normalises_them(
    side: int, kind: ConvKind, tile: ConvTile, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = target_of(gpu)
    geometry = cut_layer(side, kind, tile)
    if not geometry.fits(target.architecture, target.shared_nbytes_per_block):
        pytest.skip("this GPU has no room for the tile, or not its instructions")
    assert has_whole_picture(geometry)
    monkeypatch.setattr(TileTable, "choose", lambda *_, **settings: tile)
    case = AdainCase(20, side, 2, "up_conv" if kind == "up_conv" else "conv", 24, half=True)
    check_adain_case("fused", case, target)
    check_adain_case("fused", replace(case, noise="random", act=BiasAct("swish", 1.5, 0.7)), target)


STREAMED = (
    AdainCase(16, 256, cin=32, kind="up_conv"),
    AdainCase(12, 128, cin=20, kind="up_conv", batch=2, noise="random"),
    AdainCase(40, 180, cin=64, kind="up_conv", blurs_bias=True),
    AdainCase(24, 132, cin=40, kind="up_conv", batch=3, noise="none"),
    AdainCase(8, 260, cin=8, kind="up_conv", noise="off", blurs_bias=True, act=BiasAct("swish", 1.5, 0.7)),
    AdainCase(33, 136, cin=3, kind="up_conv", act=BiasAct("relu")),
    AdainCase(8, 128, kind="up_conv", noise="none", act=BiasAct(), offset=1000.0, deviation=2.0),
)


@pytest.mark.gpu
@pytest.mark.parametrize("case", STREAMED, ids=str)
def test_a_layer_of_a_streaming_up_convolution_equals_the_reference(
    case: AdainCase, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = target_of(gpu)
    if target.architecture != "sm_90a":
        pytest.skip("the streaming kernel is for Hopper")
    monkeypatch.setattr(streaming_up_conv, "_LEAST_POSITIONS", 0)
    check_adain_case("fused", replace(case, half=True), target)


TILES: tuple[tuple[ConvKind, ConvTile], ...] = (
    ("up_conv", ConvTile(4, 14, 16, 16, 2, 4, 1, row_tiles=3)),
    ("up_conv", ConvTile(4, 14, 32, 16, 3, 2, 2, row_tiles=4, weights_in_smem=True)),
    ("up_conv", ConvTile(6, 4, 16, 16, 2, 3, 1, split_k=2)),
    ("up_conv", ConvTile(4, 14, 64, 16, 2, 4, 1)),
    ("up_conv", ConvTile(3, 16, 32, 16, 2, 1, 1, row_tiles=2)),
    ("up_conv", ConvTile(4, 14, 32, 16, 3, 4, 1, mma="wgmma", row_tiles=4, weights_in_smem=True)),
    ("conv", ConvTile(4, 16, 16, 16, 2, 4, 1, row_tiles=3)),
    ("conv", ConvTile(8, 8, 32, 16, 3, 2, 2, row_tiles=4, weights_in_smem=True)),
    ("conv", ConvTile(8, 16, 64, 16, 2, 2, 2, split_k=2)),
    ("conv", ConvTile(4, 4, 128, 16, 2, 1, 4)),
    ("conv", ConvTile(8, 16, 32, 16, 3, 4, 1, mma="wgmma", row_tiles=4, weights_in_smem=True)),
)


def cut_layer(side: int, kind: ConvKind, tile: ConvTile) -> ConvGeometry:
    return ConvGeometry(ConvShape(kind, side, 24, 24, 2), tile, has_moments=True)


CUT_LAYERS = [
    (side, kind, tile)
    for kind, tile in TILES
    for side in (32, 44)
    if cut_layer(side, kind, tile).fits("sm_90a", 227 << 10)  # on other GPUs fewer do
]


@pytest.mark.gpu
@pytest.mark.parametrize(("side", "kind", "tile"), CUT_LAYERS, ids=str)
def test_a_layer_is_right_however_its_convolution_is_cut(
    side: int, kind: ConvKind, tile: ConvTile, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = target_of(gpu)
    if not cut_layer(side, kind, tile).fits(target.architecture, target.shared_nbytes_per_block):
        pytest.skip("this GPU has no room for the tile, or not its instructions")
    monkeypatch.setattr(TileTable, "choose", lambda *_, **settings: tile)
    case = AdainCase(20, side, 2, "up_conv" if kind == "up_conv" else "conv", 24, half=True)
    check_adain_case("fused", case, target)


FOLDED = (
    *(AdainCase(channels, side, cin=cin) for side in (8, 37) for channels, cin in ((5, 3), (24, 40), (136, 72))),
    *(AdainCase(16, 64, cin=32, about=about) for about in (3.0, 40.0)),
    AdainCase(128, 128, cin=128, rgb=3),
    AdainCase(16, 256, cin=16, rgb=3),
    AdainCase(12, 4, cin=24),
)


@pytest.mark.gpu
@pytest.mark.parametrize("case", FOLDED, ids=str)
def test_a_convolution_whose_weights_normalise_its_input_equals_the_reference(case: AdainCase, gpu: Gpu) -> None:
    check_adain_case("fused", replace(case, half=True, folded=True), target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize(("side", "kind", "tile"), [cut for cut in CUT_LAYERS if cut[1] == "conv"], ids=str)
def test_weights_that_normalise_are_right_however_the_convolution_is_cut(
    side: int, kind: ConvKind, tile: ConvTile, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = target_of(gpu)
    if not cut_layer(side, kind, tile).fits(target.architecture, target.shared_nbytes_per_block):
        pytest.skip("this GPU has no room for the tile, or not its instructions")
    monkeypatch.setattr(TileTable, "choose", lambda *_, **settings: tile)
    case = AdainCase(20, side, cin=40, half=True, folded=True)
    check_adain_case("fused", case, target)


@pytest.mark.parametrize("side", [1, 4, 7, 33, 64, 65, 128, 1024, 2048])
def test_blocks_cover_all_pixels_of_all_channels(side: int) -> None:
    for calls in itertools.product((8, 16, 24, 64, 72, 512), (1, 8), (16, 132), (1, 256)):
        cout, batch, multiprocessors, parts = calls
        tile = AdainTile.of(side, cout, batch, multiprocessors, parts)
        chunks, channel_blocks, pictures = tile.grid
        assert chunks * tile.chunk >= side * side > (chunks - 1) * tile.chunk, calls
        assert channel_blocks * tile.groups * 8 >= cout > (channel_blocks - 1) * tile.groups * 8, calls
        assert pictures == batch, calls
        assert tile.groups & (tile.groups - 1) == 0, calls
        assert tile.chunk % (THREADS // tile.groups) == 0, calls


def test_a_large_picture_busies_the_gpu_in_one_go() -> None:
    chunks, channel_blocks, _ = AdainTile.of(1024, 16, 1, 132, parts=512).grid
    assert 132 < chunks * channel_blocks <= 264


def test_blocks_that_would_read_more_moments_than_pixels_have_fewer_channels() -> None:
    assert [AdainTile.of(128, 128, 1, 132, parts).groups for parts in (16, 100, 256)] == [8, 4, 2]
