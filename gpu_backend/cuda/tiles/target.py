"""What a schedule is made for: the facts about a GPU that shape its launches. Plain data; no driver."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.tiles.table import TileTable
from gpu_backend.ops.kernels.conv_tile import ConvShape, ConvTile
from gpu_backend.ops.kernels.e4m3 import up_convs_multiply_e4m3
from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A GPU as lowering sees it.

    Attributes
    ----------
    architecture
        What kernels are compiled for: ``"sm_90a"``.
    multiprocessors
        Blocks of one wave, for one block a multiprocessor.
    shared_nbytes_per_block
        Largest shared memory of a block.
    tiles
        How its convolutions are cut.
    streams
        Whether convolutions may be kernels without a tile: flat products, streaming ones, or two kernels.
    adds_pictures
        Whether up-convolutions may add up the picture of the toRGB before them.
    folds
        Whether the normalisation of a StyleGAN1's layer may be folded into the weights of the next convolution.
    fuses_first_layers
        Whether styles and the first layers of one picture of a StyleGAN2 may be one kernel.
    fuses_epilogues
        Whether kernels of StyleGAN2's convolutions compute the rest of their layers and toRGB's products. Only
        measurements do without: layers are not observed then.
    batch
        Pictures that kernels are divided for; None for the batch of the plan.
    """

    architecture: str
    multiprocessors: int
    shared_nbytes_per_block: int
    tiles: TileTable
    streams: bool = True
    adds_pictures: bool = True
    folds: bool = True
    fuses_first_layers: bool = True
    fuses_epilogues: bool = True
    batch: int | None = None

    @property
    def up_convs_read_fp8(self) -> bool:
        """Whether wide up-convolutions of fp8 plans read e4m3."""
        return self.streams and up_convs_multiply_e4m3(self.architecture)


def target_of(gpu: Gpu, tiles_folder: Path | None) -> Target:
    """Return what schedules for a GPU are made for, with the table that was tuned for it if the folder has one."""
    architecture, shared_nbytes = gpu.compile_architecture, gpu.shared_nbytes_per_block_optin
    tiles = TileTable.load(architecture, gpu.multiprocessors, shared_nbytes, gpu.name, tiles_folder)
    return Target(architecture, gpu.multiprocessors, shared_nbytes, tiles)


def with_tiles_alone(target: Target) -> Target:
    """Return a target whose fused convolutions all have tiles, to show what kernels without them gain."""
    return replace(target, streams=False, fuses_first_layers=False)


def without_tables(target: Target) -> Target:
    """Return a target `with_tiles_alone` that come from the rule of thumb, to show what tuning gains."""
    table = target.tiles
    tiles = TileTable(table.architecture, table.multiprocessors, shared_nbytes_per_block=table.shared_nbytes_per_block)
    return replace(with_tiles_alone(target), tiles=tiles)


def portable(target: Target) -> Target:
    """Return a target without the instructions of its architecture alone: no wgmma and no TMA; tiles by rule."""
    architecture = target.architecture.removesuffix("a")
    tiles = TileTable(
        architecture, target.multiprocessors, shared_nbytes_per_block=target.tiles.shared_nbytes_per_block
    )
    return replace(target, architecture=architecture, tiles=tiles)


def portable_without_epilogues(target: Target) -> Target:
    """Return a `portable` target that fuses nothing with convolutions, to show what fused epilogues gain."""
    return replace(portable(target), adds_pictures=False, fuses_epilogues=False)


@dataclass(frozen=True, slots=True, eq=False)
class _BatchTiles(TileTable):
    """Answers for any batch as its table would for this one."""

    batch: int = 1

    def choose(
        self, shape: ConvShape, *, taps: int = 4, picture_channels: int = 0, has_moments: bool = False
    ) -> ConvTile:
        """Return the tile for a shape with this target's batch."""
        whole_batch = replace(shape, batch=self.batch)
        # Not super(): @dataclass(slots=True) replaces the class that super() would refer to.
        return TileTable.choose(
            self, whole_batch, taps=taps, picture_channels=picture_channels, has_moments=has_moments
        )


def target_of_batch(target: Target, batch: int) -> Target:
    """Return a target that gives a schedule of one picture the kernels of `batch` pictures, to check them."""
    table = target.tiles
    tiles = _BatchTiles(
        table.architecture,
        table.multiprocessors,
        table.tuned,
        table.shipped,
        table.shared_nbytes_per_block,
        table.shipped_with_moments,
        batch,
    )
    return replace(target, tiles=tiles, batch=batch)
