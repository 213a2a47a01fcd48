import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from gpu_backend.cuda.tiles import table as tiles
from gpu_backend.cuda.tiles.table import (
    TileTable,
    Tuned,
    distance,
    entries_of,
    family_of,
    read_entries,
    save_entries,
    shipped_entries,
    tuned_path,
)
from gpu_backend.ops.kernels.conv_candidates import candidates
from gpu_backend.ops.kernels.conv_rules import (
    default_tile,
    fitting_channels,
    with_fewer_slices,
    with_fitting_row_tiles,
)
from gpu_backend.ops.kernels.conv_tile import ConvGeometry, ConvShape, ConvTile

SHAPE = ConvShape("conv", 64, 512, 512, 1)
TILE = ConvTile(8, 16, 64, 32, 3, 2, 2)
OTHER = replace(TILE, depth=16)
WGMMA = replace(TILE, warps_m=4, warps_n=1, mma="wgmma")
SHARED = 232448
ENTRY = {"shape": asdict(SHAPE), "tile": asdict(TILE), "time_us": 12.5}


def table(architecture: str = "sm_90a", **entries: dict[ConvShape, ConvTile]) -> TileTable:
    timed = {name: {shape: Tuned(tile, 1.0) for shape, tile in found.items()} for name, found in entries.items()}
    return TileTable(architecture, 132, timed.get("tuned", {}), timed.get("shipped", {}), SHARED)


def written(*items: object, version: object = tiles.FORMAT) -> bytes:
    return json.dumps({"format": version, "tiles": items}).encode()


def test_tiles_measured_here_come_before_shipped_ones() -> None:
    assert table(tuned={SHAPE: TILE}, shipped={SHAPE: OTHER}).explain(SHAPE) == (TILE, "tuned")
    assert table(shipped={SHAPE: OTHER}).explain(SHAPE) == (OTHER, "shipped")


def test_a_convolution_that_sums_moments_has_shipped_tiles_of_its_own() -> None:
    found = replace(table(shipped={SHAPE: TILE}), shipped_with_moments={SHAPE: Tuned(OTHER, 1.0)})
    assert found.explain(SHAPE) == (TILE, "shipped")
    assert found.explain(SHAPE, has_moments=True) == (OTHER, "shipped")
    measured = replace(found, tuned={SHAPE: Tuned(WGMMA, 1.0)})
    assert measured.explain(SHAPE, has_moments=True) == (WGMMA, "tuned")


def test_blocks_of_channels_are_not_half_empty() -> None:
    near = replace(SHAPE, side=512, cin=64, cout=64)
    found = table(shipped={near: ConvTile(8, 32, 64, 16, 2, 4, 1, mma="wgmma", min_blocks=2, row_tiles=4)})
    assert found.choose(replace(near, side=534)).channels == 64
    assert found.choose(replace(near, side=534, cout=88)).channels == 88
    assert found.choose(replace(near, cout=88)).channels == 64


def test_a_wide_block_is_for_layers_of_as_many_channels() -> None:
    near = ConvShape("conv1x1", 148, 1024, 648, 1)
    wide = ConvTile(4, 32, 168, 32, 3, 4, 1, mma="wgmma", row_tiles=3)
    found = table(shipped={near: wide})
    assert found.choose(replace(near, batch=2)).channels == 168
    assert found.explain(replace(near, cout=640))[1] == "rule"


@pytest.mark.parametrize("cout", [8, 56, 104, 128, 208, 328, 431, 512, 861, 1024])
def test_some_width_leaves_next_to_nothing_of_the_last_block_empty(cout: int) -> None:
    for width in fitting_channels(cout):
        blocks = -(-cout // width)
        assert width % 8 == 0
        assert 16 <= width <= 128
        assert (blocks - 1) * width < cout
        assert blocks * width - cout < max(8 * blocks, 16)


def test_widths_besides_the_usual_ones_are_for_wgmma_without_a_picture() -> None:
    shape = ConvShape("conv", 278, 328, 208, 1)
    tile = ConvTile(8, 16, 104, 16, 2, 8, 1, mma="wgmma", min_blocks=2, row_tiles=5)
    assert ConvGeometry(shape, tile).fits("sm_90a", SHARED)
    assert ConvGeometry(shape, replace(tile, channels=112), picture_channels=3).fits("sm_90a", SHARED)
    assert not ConvGeometry(shape, tile, picture_channels=3).fits("sm_90a", SHARED)
    assert not ConvGeometry(shape, tile, has_moments=True).fits("sm_90a", SHARED)
    assert not ConvGeometry(shape, replace(tile, mma="mma", warps_m=4)).fits("sm_90a", SHARED)
    wide = replace(tile, channels=208, min_blocks=1)
    assert ConvGeometry(shape, wide).fits("sm_90a", SHARED)
    assert not ConvGeometry(shape, wide, picture_channels=3).fits("sm_90a", SHARED)
    assert not ConvGeometry(replace(shape, cout=264), replace(tile, channels=264, min_blocks=1)).fits("sm_90a", SHARED)
    assert not ConvGeometry(replace(shape, operands="tf32"), replace(wide, depth=8)).fits("sm_90a", SHARED)


@pytest.mark.parametrize(("side", "cin", "cout"), [(1046, 88, 56), (278, 328, 208), (38, 512, 512)])
def test_candidates_for_a_side_that_no_tile_divides_fill_their_rounds(side: int, cin: int, cout: int) -> None:
    shape = ConvShape("conv", side, cin, cout, 1)
    found = candidates(shape, "sm_90a", 132, SHARED, taps=1, picture_channels=0)
    assert {tile.channels for tile in found} >= set(fitting_channels(cout))
    for tile in found[::5]:  # of thousands by one rule, with each width
        if tile.row_tiles > 1:
            rounds = ConvGeometry(shape, tile).blocks / (132 * tile.min_blocks)
            longer = ConvGeometry(shape, replace(tile, row_tiles=tile.row_tiles - 1)).blocks / (132 * tile.min_blocks)
            assert rounds <= 4
            assert longer == rounds or longer > int(rounds), "fewer row tiles need no further round"


@pytest.mark.parametrize(
    "shape",
    [
        ConvShape("conv", 1046, 128, 88, 8),
        ConvShape("conv", 278, 208, 128, 8),
        ConvShape("conv1x1", 532, 408, 256, 1),
    ],
)
def test_a_walk_leaves_no_last_round_that_is_nearly_empty(shape: ConvShape) -> None:
    tile = ConvTile(8, 32, 64, 16, 2, 4, 1, mma="wgmma", min_blocks=2, row_tiles=32)
    fitting = with_fitting_row_tiles(shape, tile, 132)
    assert replace(fitting, row_tiles=32) == tile

    def row_tiles_in_turn(row_tiles: int) -> int:
        """Of the multiprocessor that is done last."""
        blocks = ConvGeometry(shape, replace(tile, row_tiles=row_tiles)).blocks
        return -(-blocks // (132 * tile.min_blocks)) * row_tiles

    least = ConvGeometry(shape, replace(tile, row_tiles=1)).blocks / (132 * tile.min_blocks)
    assert row_tiles_in_turn(fitting.row_tiles) <= 1.25 * least
    assert row_tiles_in_turn(fitting.row_tiles) <= row_tiles_in_turn(32)


def test_a_shape_that_no_table_has_takes_the_tile_of_the_nearest() -> None:
    near, far = replace(SHAPE, cin=256), replace(SHAPE, side=128, cin=256)
    assert table(tuned={far: TILE}, shipped={near: OTHER}).explain(SHAPE) == (OTHER, "near")
    assert table(tuned={near: TILE}, shipped={near: OTHER}).explain(SHAPE) == (TILE, "near")


def test_tf32_takes_a_tile_for_fp16_with_as_many_bytes_a_step_until_it_has_its_own() -> None:
    shape = replace(SHAPE, operands="tf32")
    assert table(shipped={SHAPE: TILE}).explain(shape) == (replace(TILE, depth=TILE.depth // 2), "near")
    assert table(shipped={SHAPE: TILE, shape: OTHER}).explain(shape) == (OTHER, "shipped")
    assert table(shipped={SHAPE: TILE, replace(shape, side=32): OTHER}).explain(shape) == (OTHER, "near")


def test_bf16x3_takes_a_tile_for_tf32_with_sixteen_channels_a_step_at_least() -> None:
    shape = replace(SHAPE, operands="bf16x3")
    deep, flat = replace(TILE, depth=16), replace(TILE, depth=8)
    assert table(shipped={replace(shape, operands="tf32"): deep}).explain(shape) == (deep, "near")
    assert table(shipped={replace(shape, operands="tf32"): flat}).explain(shape) == (replace(flat, depth=16), "near")
    assert table(shipped={shape: flat, SHAPE: TILE}).explain(shape)[1] == "near", "eight channels are no product"


def test_a_tile_for_bf16x3_leaves_registers_for_a_chain_of_products() -> None:
    tile = ConvTile(4, 32, 32, 16, 2, 4, 1, mma="wgmma", min_blocks=4)
    in_tf32, in_bf16x3 = (replace(SHAPE, cin=128, cout=128, operands=operands) for operands in ("tf32", "bf16x3"))
    assert ConvGeometry(in_tf32, tile).fits("sm_90a", SHARED)
    assert not ConvGeometry(in_bf16x3, tile).fits("sm_90a", SHARED)
    assert ConvGeometry(in_bf16x3, replace(tile, min_blocks=3)).fits("sm_90a", SHARED)


def test_fp8_takes_a_tile_for_fp16_with_as_many_bytes_a_step_but_no_more_than_there_are() -> None:
    wide = replace(TILE, mma="wgmma", warps_m=4, warps_n=1, depth=16)
    for cin, depth in ((256, 32), (16, 32)):
        shape = replace(SHAPE, cin=cin, operands="fp8")
        assert table(shipped={replace(shape, operands="fp16"): wide}).explain(shape) == (
            replace(wide, depth=depth),
            "near",
        )
    deep = replace(wide, depth=32)
    shape = replace(SHAPE, cin=32, operands="fp8")
    assert table(shipped={replace(shape, operands="fp16"): deep}).explain(shape) == (replace(deep, depth=32), "near")


def test_a_tile_of_a_larger_shape_is_made_to_fill_the_gpu() -> None:
    shape = ConvShape("conv", 32, 256, 256, 1)
    looping = ConvTile(8, 32, 128, 16, 3, 8, 1, mma="wgmma", row_tiles=8, weights_in_smem=True)
    found = table(shipped={replace(shape, side=64): looping}).choose(shape)
    assert found == replace(looping, row_tiles=1, weights_in_smem=False, split_k=16), (
        "half of the 132 are busy then, or more"
    )
    assert ConvGeometry(shape, found).blocks == 128
    assert table(shipped={replace(shape, side=64): TILE}).choose(replace(shape, side=128)) == TILE
    flat = replace(shape, cin=16)
    small = replace(TILE, rows=4, columns=16, depth=16)
    alike = {
        replace(flat, cin=32, cout=512): small,
        replace(flat, side=64): replace(looping, row_tiles=1, weights_in_smem=False),
    }
    assert table(shipped=alike).choose(flat) == small, "farther off, but with work for more"


def test_another_kind_and_another_size_say_nothing() -> None:
    rule = (default_tile(SHAPE, "sm_90a", 132, shared_nbytes=SHARED), "rule")
    assert table().explain(SHAPE) == rule
    assert table(tuned={replace(SHAPE, kind="up_conv"): OTHER}).explain(SHAPE) == rule
    assert table(tuned={replace(SHAPE, side=8): OTHER}).explain(SHAPE) == rule


@pytest.mark.parametrize("batch", [9, 16, 32])
def test_a_batch_larger_than_all_that_were_measured_takes_the_tiles_of_eight_pictures(batch: int) -> None:
    shipped = TileTable.load("sm_90a", 132, SHARED)
    for eight in (
        ConvShape("conv", 64, 256, 256, 8),
        ConvShape("up_conv", 256, 128, 64, 8),
        ConvShape("conv", 8, 256, 256, 8),
    ):
        tile, origin = shipped.explain(eight)
        assert origin == "near"
        found, origin = shipped.explain(replace(eight, batch=batch))
        assert origin == "near"
        assert replace(found, split_k=1, row_tiles=1) == replace(tile, split_k=1, row_tiles=1)
        assert found.split_k <= tile.split_k
    exact = ConvShape("conv", 64, 512, 512, 8)
    assert shipped.explain(replace(exact, batch=batch))[0] == shipped.explain(exact)[0]


def test_a_large_batch_adds_up_no_more_slices_than_fill_the_gpu() -> None:
    sliced = replace(WGMMA, split_k=8)
    shape = ConvShape("conv", 16, 512, 512, 32)
    assert ConvGeometry(shape, replace(sliced, split_k=1)).blocks >= 132
    assert with_fewer_slices(shape, sliced, 132).split_k == 1
    assert with_fewer_slices(replace(shape, batch=4), sliced, 132).split_k == 4
    assert with_fewer_slices(shape, replace(sliced, stages=1), 132).split_k == 8, "one stage takes one step"


def test_distance_counts_doublings() -> None:
    assert distance(SHAPE, SHAPE) == 0
    assert distance(SHAPE, replace(SHAPE, side=128, cout=256, batch=8)) == pytest.approx(5)


def test_instructions_that_an_architecture_lacks_are_not_chosen() -> None:
    assert table("sm_100", tuned={SHAPE: WGMMA}, shipped={SHAPE: TILE}).explain(SHAPE) == (TILE, "shipped")
    assert table("sm_90", shipped={SHAPE: WGMMA}).explain(SHAPE)[1] == "rule"
    assert table("sm_90a", shipped={SHAPE: WGMMA}).explain(SHAPE) == (WGMMA, "shipped")


def test_a_tile_that_does_not_fit_is_not_chosen() -> None:
    deep = replace(TILE, channels=128, depth=64, stages=4)
    assert table(shipped={SHAPE: deep}).explain(SHAPE)[1] == "rule", "four stages are more than a block may have"
    once = replace(TILE, stages=1, split_k=16)
    assert table(tuned={SHAPE: once}).explain(SHAPE) == (once, "tuned")
    assert table(tuned={SHAPE: replace(once, split_k=8)}).explain(SHAPE)[1] == "rule", "one stage takes one step"
    small = replace(SHAPE, side=4)
    tile, origin = table(tuned={replace(SHAPE, side=8): replace(TILE, columns=8)}).explain(small)
    assert (origin, tile.rows) == ("rule", 4), "a tile of 8 rows is no tile of a picture of 4"
    assert table(tuned={SHAPE: replace(TILE, rows=3)}).explain(SHAPE)[1] == "rule"


def test_a_table_comes_back_as_it_was_written(tmp_path: Path) -> None:
    entries = {
        SHAPE: Tuned(TILE, 12.5),
        replace(SHAPE, side=8): Tuned(replace(TILE, row_tiles=8, weights_in_smem=True), 4.0),
        replace(SHAPE, kind="up_conv", batch=8): Tuned(WGMMA, 3.25),
    }
    path = tuned_path(tmp_path / "new", "NVIDIA H200", "sm_90a")
    save_entries(path, entries, {"gpu": 'NVIDIA "H200"'})
    assert read_entries(path) == entries
    text = path.read_text("utf-8")
    assert json.loads(text)["gpu"] == 'NVIDIA "H200"'
    assert len([line for line in text.splitlines() if '"shape"' in line]) == 3
    loaded = TileTable.load("sm_90a", 132, SHARED, "NVIDIA H200", path.parent)
    assert loaded.explain(SHAPE) == (TILE, "tuned")
    save_entries(path, {}, {})
    assert read_entries(path) == {}


def test_a_tuned_table_is_for_one_gpu_and_one_state_of_the_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tuned_path(tmp_path, "NVIDIA GeForce RTX 4090", "sm_89")
    assert here.name.startswith("nvidia-geforce-rtx-4090-sm_89-")
    assert tuned_path(tmp_path, "../../etc/passwd", "sm_89").parent == tmp_path
    monkeypatch.setattr(tiles, "kernels_digest", lambda: "other")
    assert tuned_path(tmp_path, "NVIDIA GeForce RTX 4090", "sm_89") != here


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'{"format": 1}',
        b'{"format": 1, "tiles": {}}',
        b"[" * 100_000,
        written(ENTRY, version=99),
        written(ENTRY, version="1"),
    ],
    ids=["empty", "bytes", "list", "object", "no tiles", "tiles", "deep", "newer", "text"],
)
def test_a_file_that_is_no_table_is_empty(data: bytes, tmp_path: Path) -> None:
    assert entries_of(data) == {}
    path = tuned_path(tmp_path, "gpu", "sm_90a")
    path.write_bytes(data)
    assert TileTable.load("sm_90a", 132, SHARED, "gpu", tmp_path).tuned == {}


def broken(part: str, **changes: object) -> object:
    return {**ENTRY, part: {**ENTRY[part], **changes}}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "item",
    [
        None,
        [],
        {},
        {**ENTRY, "time_us": 0},
        {**ENTRY, "time_us": True},
        {**ENTRY, "time_us": "1"},
        {**ENTRY, "time_us": float("nan")},
        {**ENTRY, "shape": None},
        {**ENTRY, "tile": {"rows": 8}},
        broken("shape", kind="conv3d"),
        broken("shape", side=0),
        broken("shape", cin=2.5),
        broken("shape", batch=True),
        broken("tile", mma="magic"),
        broken("tile", mma=["mma"]),
        broken("tile", split_k=-1),
        broken("tile", weights_in_smem=1),
        broken("tile", depth=10**9),
    ],
)
def test_a_broken_entry_is_left_out_and_the_others_are_taken(item: object) -> None:
    second = {**ENTRY, "shape": {**asdict(SHAPE), "batch": 8}, "more": "than this version knows"}
    assert entries_of(written(item, second)) == {replace(SHAPE, batch=8): Tuned(TILE, 12.5)}


def test_a_file_that_is_missing_or_too_large_is_empty(tmp_path: Path) -> None:
    assert read_entries(tmp_path / "missing.json") == {}
    assert read_entries(tmp_path) == {}
    large = tmp_path / "large.json"
    large.write_bytes(written(ENTRY) + b" " * (1 << 20))
    assert read_entries(large) == {}


def test_a_table_that_would_be_too_large_to_read_replaces_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tiles.json"
    few = {SHAPE: Tuned(TILE, 12.5)}
    save_entries(path, few, {})
    monkeypatch.setattr(tiles, "_MAX_NBYTES", 2 * path.stat().st_size)
    with pytest.raises(OSError, match="too large"):
        save_entries(path, few | {replace(SHAPE, side=side): Tuned(TILE, 4.0) for side in range(8, 16)}, {})
    assert read_entries(path) == few


SHARED_OF = {"sm_75": 65536, "sm_80": 166912, "sm_86": 101376, "sm_89": 101376, "sm_120": 101376}


def test_every_shipped_table_is_whole_and_its_tiles_fit() -> None:
    folder = Path(tiles.__file__).parent / "shipped"
    for path in folder.glob("*.json"):
        entries = shipped_entries(path.stem)
        assert len(entries) == len(json.loads(path.read_bytes())["tiles"]), path.name
        family, _, kind = path.stem.partition("-")
        assert family_of(family) == family
        assert kind in ("", "moments")
        architecture = "sm_90a" if family == "sm_90" else family
        for shape, entry in entries.items():
            pictures = 3 if shape.kind == "conv" and not shape.may_have_partial_tiles else 0
            geometry = ConvGeometry(shape, entry.tile, picture_channels=pictures)
            if kind == "moments":
                geometry = ConvGeometry(
                    shape, entry.tile, has_moments=True, uses_tma=True, is_folded=shape.kind == "conv"
                )
            assert geometry.fits(architecture, SHARED_OF.get(family, SHARED)), (path.name, shape)
    assert shipped_entries("sm_1") == {}


def test_variants_of_an_architecture_are_one_family() -> None:
    assert [family_of(name) for name in ("sm_90", "sm_90a", "sm_120f")] == ["sm_90", "sm_90", "sm_120"]
