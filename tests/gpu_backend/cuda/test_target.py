from gpu_backend.cuda.target import Target
from gpu_backend.cuda.tiles import TileTable
from gpu_backend.ops.conv_tile import ConvShape


def test_a_target_answers_with_a_tile_for_any_shape() -> None:
    target = Target("sm_86", 28, 101376, TileTable.load("sm_86", 28))
    for shape in (ConvShape("conv", 4, 8, 8, 1), ConvShape("up_conv", 1024, 64, 32, 8)):
        assert target.tiles.choose(shape) == target.tiles.choose(shape)
