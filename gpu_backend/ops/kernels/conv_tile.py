"""How a fused convolution is divided among thread blocks: the choices that differ from GPU to GPU.

A block computes `row_tiles` row tiles, one below the other in a column tile. A row tile has `rows` x `columns`
positions of one picture and `channels` output channels. The positions of a convolution are its output pixels. Those of
an up-convolution are its input pixels, each of which gives four output pixels; the halo of its filter widens every row
tile by some columns, and costs the whole loop some rows. A row tile takes the input channels `depth` a step, while the
copies for the next steps fill `stages` buffers. With split-K, `split_k` blocks sum slices of the input channels of one
row tile, and the last block to finish adds up the slices. `warps_m` x `warps_n` warps divide positions and channels.

The sizes below are those of the macros of ``modulated_conv.cu`` and ``modulated_up_conv.cu``.
"""

from __future__ import annotations

import math
from typing import Literal

from gpu_backend.ops.kernels.e4m3 import multiplies_e4m3
from gpu_backend.quick_dataclass import dataclass

ConvKind = Literal["conv", "conv1x1", "up_conv"]
"""``conv1x1`` has kernels of 1 x 1, the others of 3 x 3."""

Instruction = Literal["mma", "wgmma"]

Operands = Literal["fp16", "tf32", "bf16x3", "fp8"]
"""Operands of tensor cores: fp16; tf32, fp32 numbers of which tensor cores read 10 bits of fraction; bf16x3, fp32
numbers as sums of two bf16 numbers, multiplied by three products of these; or e4m3."""

FP32_OPERANDS = ("tf32", "bf16x3")
"""Operands that are stored as fp32."""

BLOCK_CHANNELS = (16, 32, 64, 128)
"""Output channels that a block of any convolution may have. One without up-convolution and without
moments may have any multiple of 16 up to the last; with wgmma and without toRGB, of 8, in fp16 up to WIDEST_BLOCK."""

WIDEST_BLOCK = 256
"""Output channels of the widest wgmma: the wider, the less each product reads from shared memory."""

FRAGMENT = 16
"""Positions of one matrix fragment."""

ROW_NBYTES = (32, 64, 128)
"""Bytes that the input channels of a step may take: widths of the swizzles of shared memory."""

ALIGNMENT = 1024
"""Bytes at whose multiples tiles in shared memory begin: the swizzle of 128 bytes repeats there."""

_MOST_FP32_SUMS = 112
"""Sums of a thread whose outputs are fp32; fp16 packs two in a register, so that more of them do not spill."""


class NoTileError(ValueError):
    """No tile of a fused kernel fits the GPU; its one argument is a phrase for users."""


@dataclass(frozen=True, slots=True)
class ConvShape:
    """The work of a convolution: `side` of the output, padded channels, pictures."""

    kind: ConvKind
    side: int
    cin: int
    cout: int
    batch: int
    operands: Operands = "fp16"

    @property
    def title(self) -> str:
        """The work in words: "conv 64 x 64, 512 to 512"."""
        operands = "" if self.operands == "fp16" else f", {self.operands}"
        return f"{self.kind} {self.side} x {self.side}, {self.cin} to {self.cout}{operands}"

    @property
    def itemsize(self) -> int:
        """Bytes of an input activation or weight in memory."""
        return {"fp8": 1, "fp16": 2, "tf32": 4, "bf16x3": 4}[self.operands]

    @property
    def output_itemsize(self) -> int:
        """Bytes of an output in the kernel's shared memory."""
        return max(self.itemsize, 2)

    @property
    def positions_side(self) -> int:
        """Side of the picture that is cut into tiles."""
        return self.side // 2 if self.kind == "up_conv" else self.side

    @property
    def kernel(self) -> int:
        """Side of the kernel."""
        return 1 if self.kind == "conv1x1" else 3

    @property
    def may_have_partial_tiles(self) -> bool:
        """Whether tiles may reach over the right and lower border: no usual tile divides the side."""
        return self.kind != "up_conv" and self.side & (self.side - 1) != 0


@dataclass(frozen=True, slots=True)
class ConvTile:
    """How a convolution is divided among thread blocks.

    Attributes
    ----------
    split_k
        Blocks that each sum a slice of the input channels of the same outputs.
    min_blocks
        Blocks that a multiprocessor is to hold at once, which bounds a thread's registers (``__launch_bounds__``).
    row_tiles
        Row tiles that a block computes, one below the other.
    weights_in_smem
        The weights of all steps are copied once, and stay in shared memory.
    """

    rows: int
    columns: int
    channels: int
    depth: int
    stages: int
    warps_m: int
    warps_n: int
    split_k: int = 1
    mma: Instruction = "mma"
    min_blocks: int = 1
    row_tiles: int = 1
    weights_in_smem: bool = False

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps_m * self.warps_n


@dataclass(frozen=True, slots=True)
class ConvGeometry:
    """A tile on a shape.

    Attributes
    ----------
    taps
        Length of the FIR filter that follows an up-convolution.
    picture_channels
        Channels of the picture if the epilogue computes toRGB; 0 if it does not.
    has_moments
        Its epilogue accumulates per-channel moments for the normalisation that follows.
    uses_tma
        The GPU's tensor memory accelerator (TMA) copies boxes of activations and whole steps of weights; otherwise
        every thread copies its part.
    is_folded
        The normalisation of its input is in its weights, so that sums begin with constants of the taps.
    """

    shape: ConvShape
    tile: ConvTile
    taps: int = 4
    picture_channels: int = 0
    has_moments: bool = False
    uses_tma: bool = False
    is_folded: bool = False

    @property
    def halo(self) -> int:
        """Columns of a row tile, and rows of a block, that an up-convolution's filter needs around its outputs."""
        if self.shape.kind != "up_conv":
            return 0
        left = 1 + (self.taps + 1) // 2 - 2
        return (left + 1) // 2 + (self.taps - left) // 2

    @property
    def positions(self) -> int:
        """Positions of a row tile, an up-convolution's halo of columns included."""
        return self.tile.rows * (self.tile.columns + self.halo)

    @property
    def has_partial_tiles(self) -> bool:
        """Whether a convolution's tiles reach over the border."""
        side = self.shape.side
        return bool(side % self.tile.rows or side % self.tile.columns)

    @property
    def overhang(self) -> float:
        """Pixels that a convolution's tiles cover, as a multiple of the pixels of the output."""
        side = self.shape.side
        return _whole(side, self.tile.rows) * _whole(side, self.tile.columns) / side**2

    @property
    def fragments_per_warp(self) -> int:
        """Fragments of positions that one warp has."""
        fragments = -(-self.positions // FRAGMENT)
        return -(-fragments // self.tile.warps_m)

    @property
    def sums_per_thread(self) -> int:
        """Registers that a thread sums in."""
        phases = 4 if self.shape.kind == "up_conv" else 1
        return phases * self.fragments_per_warp * (self.tile.channels // 8 // self.tile.warps_n) * 4

    @property
    def other_registers(self) -> int:
        """Registers that a thread needs besides those that it sums in."""
        registers = 48 if self.tile.split_k > 1 or (self.has_moments and self.tile.mma == "mma") else 40
        if self.shape.operands != "bf16x3":
            return registers
        # Sums of a chain of products (add_chain in parts/tile_loop.cuh), and low parts of positions.
        is_wgmma, fragments = self.tile.mma == "wgmma", self.fragments_per_warp
        sums = self.sums_per_thread
        if self.shape.kind == "up_conv":
            phase = sums // 4
            carried = 24 if self.tile.row_tiles > 1 else 0
            return registers + carried + (2 * phase // fragments + 16 if is_wgmma else phase + 16 * fragments)
        rows = fragments + 2 if self.shape.kernel == 3 and self.tile.columns >= FRAGMENT else fragments
        return registers + sums + 8 * rows * (2 if is_wgmma else 1)

    @property
    def steps(self) -> int:
        """Steps through the input channels."""
        return -(-self.shape.cin // self.tile.depth)

    @property
    def weight_nbytes(self) -> int:
        """Packed weights of one step and one block."""
        return self.shape.kernel**2 * self.tile.channels * self.tile.depth * self.shape.itemsize

    @property
    def channel_blocks(self) -> int:
        """Blocks along the output channels."""
        return -(-self.shape.cout // self.tile.channels)

    @property
    def segment(self) -> int:
        """Rows of positions whose outputs a block computes: all but an up-convolution's halo."""
        return self.tile.row_tiles * self.tile.rows - self.halo

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks: column tiles times segments, output channels, pictures times split-K slices."""
        side = self.shape.positions_side
        across = -(-side // self.tile.columns) * -(-side // self.segment)
        return across, self.channel_blocks, self.shape.batch * self.tile.split_k

    @property
    def blocks(self) -> int:
        """Blocks of a launch."""
        across, channels, pictures = self.grid
        return across * channels * pictures

    @property
    def part(self) -> tuple[int, int]:
        """Rows and columns of the output that a block makes, unless the picture ends before."""
        scale = 2 if self.shape.kind == "up_conv" else 1
        return scale * self.segment, scale * self.tile.columns

    @property
    def counters(self) -> int:
        """Words that count the finished split-K slices of each tile; 0 without split-K."""
        return self.blocks // self.tile.split_k if self.tile.split_k > 1 else 0

    @property
    def workspace_nbytes(self) -> int:
        """Memory for the sums of the split-K slices of each tile."""
        return self.counters * self.tile.split_k * self.sums_per_thread * self.tile.threads * 4

    @property
    def is_decoupled(self) -> bool:
        """Whether warps go through the steps each at its own pace, which pays where each has many products per step."""
        return self.uses_tma and self._may_decouple

    @property
    def _may_decouple(self) -> bool:
        tile = self.tile
        is_large = tile.mma == "wgmma" and tile.threads >= 256 and tile.channels >= 64
        has_registers = tile.row_tiles == 1 or tile.threads == 256
        return is_large and has_registers and tile.min_blocks == 1 and tile.stages > 1

    @property
    def patch(self) -> tuple[int, int, int]:
        """Channels, columns and rows of input in shared memory for one step of a row tile."""
        tile, around = self.tile, 1 if self.shape.kind == "up_conv" else self.shape.kernel - 1
        columns = tile.columns + self.halo + around
        if self.shape.kind == "up_conv" or tile.columns >= FRAGMENT:
            columns = _whole(columns, 8)
        return tile.depth, columns, tile.rows + around

    @property
    def dynamic_nbytes(self) -> int:
        """Dynamic shared memory of a launch."""
        weights = self.steps * aligned(self.weight_nbytes) if self.tile.weights_in_smem else 0
        return weights + self.loop_nbytes

    @property
    def loop_nbytes(self) -> int:
        """Dynamic shared memory without weights that stay; kernels check their layout against it (LOOP_NBYTES)."""
        tile, itemsize = self.tile, self.shape.output_itemsize
        if self.shape.kind == "up_conv":
            jobs = -(-2 * tile.columns * (tile.channels * itemsize // 16) // tile.threads)
            has_registers = self.taps == 4 and not self.has_moments and jobs == 1 and self.sums_per_thread <= 64
            carried = jobs * self.taps * tile.threads * 16 if tile.row_tiles > 1 and not has_registers else 0
            end = 4 * itemsize * self.positions * tile.channels + carried
        else:
            rgb_nbytes = tile.warps_n * self.picture_channels * 4 if tile.warps_n > 1 else 0
            end = self.positions * max(itemsize * (tile.channels + (8 if tile.channels % 16 == 0 else 0)), rgb_nbytes)
        patches = tile.stages * aligned(math.prod(self.patch) * self.shape.itemsize)
        weights = 0 if tile.weights_in_smem else tile.stages * aligned(self.weight_nbytes)
        # Partial moments reuse the memory of the patches, unless another row tile follows.
        moments = 10 * tile.threads // 32 * tile.channels if self.has_moments and tile.row_tiles > 1 else 0
        return patches + weights + end + moments + ALIGNMENT

    @property
    def static_nbytes(self) -> int:
        """Shared memory that the kernel itself declares."""
        pixels = self.tile.rows * self.tile.columns
        noise = 8 * pixels
        if self.shape.kind == "up_conv":
            noise = 16 * pixels * (1 if self.tile.row_tiles == 1 else 3 if self._may_decouple else 2)
        picture = 8 * self.shape.output_itemsize * (self.tile.channels + 8) if self.picture_channels else 0
        starts = 36 * self.tile.channels if self.is_folded else 0
        return (
            (8 + self.shape.output_itemsize) * self.tile.channels
            + noise
            + picture
            + starts
            + 8 * (2 * self.tile.stages + 1)
            + 64
        )

    def fits(self, architecture: str, shared_nbytes_per_block: int) -> bool:
        """Whether the kernel can be compiled and launched so."""
        tile = self.tile
        numbers = (
            tile.rows,
            tile.columns,
            tile.stages,
            tile.warps_m,
            tile.warps_n,
            tile.split_k,
            tile.min_blocks,
            tile.row_tiles,
        )
        if (
            min(numbers) < 1
            or tile.depth * self.shape.itemsize not in ROW_NBYTES
            or (self.shape.operands == "bf16x3" and tile.depth % FRAGMENT)
            or not self._channels_fit()
            or tile.threads > 1024
        ):
            return False
        if tile.mma == "wgmma" and (architecture != "sm_90a" or tile.warps_m % 4):
            return False
        if self.shape.operands in FP32_OPERANDS and (architecture == "sm_75" or self.has_moments):
            return False
        if self.shape.operands == "fp8" and (
            not multiplies_e4m3(architecture)
            or (architecture == "sm_90a" and tile.mma != "wgmma")  # Hopper multiplies it no faster than fp16 otherwise
            or self.shape.kind == "up_conv"
            or self.has_moments
        ):
            return False
        if tile.split_k > 1 and (tile.row_tiles > 1 or tile.weights_in_smem):
            return False
        if tile.stages == 1 and (tile.row_tiles > 1 or self.steps > tile.split_k):
            return False  # with one stage, only the first step is ever copied
        if self.picture_channels > 8 or not (
            self._up_conv_fits() if self.shape.kind == "up_conv" else self._conv_fits()
        ):
            return False
        if tile.min_blocks * tile.threads > (1024 if architecture == "sm_75" else 1536):
            return False
        if self.shape.operands in FP32_OPERANDS and self.sums_per_thread > _MOST_FP32_SUMS:
            return False
        if self.sums_per_thread + self.other_registers > min(65536 // (tile.threads * tile.min_blocks), 255):
            return False
        return self.dynamic_nbytes + self.static_nbytes <= shared_nbytes_per_block

    def _channels_fit(self) -> bool:
        tile = self.tile
        warp_channels = tile.channels // tile.warps_n
        if warp_channels * tile.warps_n != tile.channels:
            return False
        if tile.channels in BLOCK_CHANNELS:
            return warp_channels % 16 == 0
        if self.shape.kind == "up_conv" or self.has_moments:
            return False
        is_free = tile.mma == "wgmma" and not self.picture_channels
        widest = WIDEST_BLOCK if is_free and self.shape.operands not in FP32_OPERANDS else BLOCK_CHANNELS[-1]
        return tile.channels <= widest and warp_channels % (8 if is_free else 16) == 0

    def _conv_fits(self) -> bool:
        tile, side = self.tile, self.shape.side
        if (self.has_partial_tiles and not self.shape.may_have_partial_tiles) or tile.row_tiles > -(-side // tile.rows):
            return False
        if self.positions % (FRAGMENT * tile.warps_m):
            return False
        if tile.columns < FRAGMENT:
            return True
        return tile.columns % FRAGMENT == 0 and (self.shape.kernel == 1 or tile.rows % self.fragments_per_warp == 0)

    def _up_conv_fits(self) -> bool:
        tile, side = self.tile, self.shape.positions_side
        needed = -(-(side + self.halo) // tile.rows)
        return tile.columns <= side and self.segment >= 1 and tile.row_tiles <= needed


def aligned(nbytes: int) -> int:
    """Return the bytes to the next multiple of `ALIGNMENT`."""
    return _whole(nbytes, ALIGNMENT)


def _whole(count: int, unit: int) -> int:
    return -(-count // unit) * unit
