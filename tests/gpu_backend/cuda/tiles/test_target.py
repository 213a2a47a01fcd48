from dataclasses import replace
from pathlib import Path

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.tiles.table import TileTable, Tuned, save_entries, tuned_path
from gpu_backend.cuda.tiles.target import Target, target_of
from gpu_backend.ops.kernels.conv_tile import ConvShape, ConvTile

GPU = Gpu(0, "NVIDIA H200", "sm_90", "sm_90a", 150 << 30, 132, 232448, 50 << 20, "GPU-1")
SHAPE = ConvShape("conv", 64, 512, 512, 1)
TILE = ConvTile(8, 16, 64, 32, 3, 2, 2)


def test_a_target_answers_with_a_tile_for_any_shape() -> None:
    target = Target("sm_86", 28, 101376, TileTable.load("sm_86", 28, 101376))
    for shape in (ConvShape("conv", 4, 16, 16, 1), ConvShape("up_conv", 1024, 64, 32, 8)):
        assert target.tiles.choose(shape) == target.tiles.choose(shape)


def test_a_gpu_is_described_as_lowering_sees_it(tmp_path: Path) -> None:
    save_entries(tuned_path(tmp_path, GPU.name, "sm_90a"), {SHAPE: Tuned(TILE, 1.0)}, {})
    target = target_of(GPU, tmp_path)
    assert (target.architecture, target.multiprocessors, target.shared_nbytes_per_block) == ("sm_90a", 132, 232448)
    assert target.tiles.explain(SHAPE) == (TILE, "tuned")
    assert target_of(replace(GPU, name="NVIDIA H100"), tmp_path).tiles.tuned == {}
    assert target_of(GPU, None).tiles.tuned == {}
