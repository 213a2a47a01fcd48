"""How a convolution as a flat matrix product is divided among thread blocks.

The sizes are those of ``flat_conv.cu``.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from gpu_backend.ops.kernels.conv_tile import ALIGNMENT, FP32_OPERANDS, ConvShape, aligned
from gpu_backend.quick_dataclass import dataclass

LARGEST_BOX = 256
"""Pixels that TMA copies at once."""

_WARPGROUP_PIXELS, _WARP_PIXELS = 64, 16
"""Of a product of a warpgroup, and of one of its warps."""

_PRODUCT_NBYTES = 32
"""Input channels of a product."""

_COPYING_THREADS = 128

_REGISTERS = 65536
"""Of a multiprocessor."""

_COPYING_REGISTERS, _OTHER_REGISTERS = 24, 26
"""Of a thread that copies; of one that multiplies, besides its sums."""

_MOST_REGISTERS = 255

_FEW_CHANNELS = 64
"""Of the input. With a step per tile, products do not hide the epilogue: smaller blocks of another kernel do better."""

_MOST_CHANNELS = 256
_MOST_STAGES = 8
_MOST_ROUNDS = 4
"""Of blocks, one after another on a multiprocessor."""

_FLOPS_A_CYCLE, _NBYTES_A_CYCLE, _OUTPUTS_A_CYCLE = 3510, 46, 7
"""Of a multiprocessor of an H200: products, copies from the second-level cache, numbers of an epilogue."""

_WINDOW_NBYTES_A_CYCLE = 30
"""The same of copies at a tap, with rows of 128 bytes; with rows of 64 bytes about half."""

_WINDOW_ROW_NBYTES, _LEAST_WINDOW_CHANNELS = 128, 112
"""Of 3 x 3 convolutions: every tap copies its pixels anew, so that fewer channels of a block wait for copies."""

_LEAST_WINDOW_EFFICIENCY = 0.8
"""Share of the time of a 3 x 3 convolution that its products alone take: with less, measured ones are no faster than
kernels that copy pixels once for all taps."""

_MEMORY_NBYTES_A_CYCLE = 1990
"""Of the GPU."""

_DOUBT = 1.07
"""Ratio of estimates up to which the division of a single picture is kept for a batch."""

_CYCLES_A_BLOCK, _CYCLES_A_TILE = 2450, 680
"""Before a block's first step; in an epilogue, besides its numbers."""


class _Division(NamedTuple):
    """The choices of a `FlatGeometry` for operands of any size."""

    pixels: int
    channels: int
    row_nbytes: int
    stages: int
    warpgroups: int = 2
    weights_in_smem: bool = False
    stores: int = 1


_FORMS = ((192, 128, 3), (256, 128, 2), (256, 64, 2), (128, 128, 2), (128, 64, 2), (64, 128, 1))
"""Pixels, bytes of a row, warpgroups. Where memory takes longest and all are as good, three warpgroups are best."""

_MEASURED = {
    (1, 36, 1024, 1024): _Division(64, 176, 128, 6, warpgroups=1),
    (1, 52, 1024, 1024): _Division(128, 176, 64, 8),
    (1, 84, 1024, 1024): _Division(256, 120, 128, 4),
    (1, 148, 1024, 1024): _Division(256, 176, 128, 3),
    (1, 148, 1024, 648): _Division(128, 216, 64, 7),
    (1, 276, 656, 408): _Division(128, 208, 128, 4),
    (1, 276, 416, 256): _Division(128, 256, 64, 6),
    (1, 532, 256, 168): _Division(128, 168, 128, 6, warpgroups=1, weights_in_smem=True, stores=2),
    (1, 1044, 176, 104): _Division(128, 104, 128, 8, weights_in_smem=True),
    (1, 1044, 112, 64): _Division(192, 64, 128, 7, warpgroups=3, weights_in_smem=True),
    (3, 54, 512, 512): _Division(128, 104, 128, 6),
    (3, 54, 1024, 1024): _Division(128, 208, 128, 4),
    (3, 86, 1024, 1024): _Division(128, 256, 128, 3),
    (3, 150, 512, 328): _Division(256, 112, 128, 4),
    (3, 150, 512, 512): _Division(256, 176, 128, 3),
    (3, 150, 1024, 864): _Division(256, 144, 128, 3),
    (3, 150, 864, 728): _Division(128, 248, 128, 3),
    (3, 150, 736, 616): _Division(256, 208, 64, 5),
    (3, 150, 624, 512): _Division(256, 176, 128, 3),
    (3, 278, 512, 432): _Division(256, 144, 128, 3),
    (3, 278, 432, 368): _Division(256, 184, 128, 3),
    (3, 534, 256, 216): _Division(128, 216, 128, 3),
    (3, 534, 224, 184): _Division(256, 184, 128, 3),
    (3, 534, 192, 152): _Division(256, 152, 128, 3),
    (3, 1046, 128, 112): _Division(256, 112, 128, 4),
}
"""Of one picture of a StyleGAN3-R, -T or -XL of 1024 x 1024, by kernel, side, channels in (whole 16s) and out: the
fastest on an H200 or 1 % off, and faster than other kernels."""

_MEASURED_CHANNELS = 16


@dataclass(frozen=True, slots=True)
class FlatGeometry:
    """A division of a shape.

    Attributes
    ----------
    shape
        Of a 1 x 1 or 3 x 3 convolution.
    pixels, channels
        Of a tile; a block goes from tile to tile of its output channels.
    depth
        Input channels of a step, which has one tap.
    stages
        Steps in shared memory.
    warpgroups
        Of a block, without the one that copies.
    tiles_per_block
        Tiles that a block computes, at most.
    weights_in_smem
        The weights of all steps are copied once, and stay in shared memory.
    stores
        Products of a warpgroup whose outputs a block has in shared memory on their way to memory.
    """

    shape: ConvShape
    pixels: int
    channels: int
    depth: int
    stages: int
    warpgroups: int = 2
    tiles_per_block: int = 1
    weights_in_smem: bool = False
    stores: int = 1

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 128 * self.warpgroups + _COPYING_THREADS

    @property
    def tiles(self) -> int:
        """Tiles of a picture's pixels."""
        return -(-(self.shape.side**2) // self.pixels)

    @property
    def chunks(self) -> int:
        """Groups of input channels of a step; each has a step for every tap."""
        return -(-self.shape.cin // self.depth)

    @property
    def steps(self) -> int:
        """Steps through the input channels and taps."""
        return self.chunks * self.shape.kernel**2

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks: along the pixels, output channels, pictures."""
        return -(-self.tiles // self.tiles_per_block), -(-self.shape.cout // self.channels), self.shape.batch

    @property
    def box(self) -> tuple[int, int, int]:
        """Channels, columns and rows of a copy."""
        return self.depth, 1, self.pixels

    @property
    def row_nbytes(self) -> int:
        """Bytes of a pixel in a step."""
        return self.depth * self.shape.itemsize

    @property
    def last_products(self) -> int:
        """Products of a step of the last input channels, which may be fewer."""
        rest = (self.shape.cin - (self.chunks - 1) * self.depth) * self.shape.itemsize
        return -(-rest // _PRODUCT_NBYTES)

    @property
    def loop_nbytes(self) -> int:
        """Shared memory without weights that stay: stages, store and alignment."""
        stage = self.pixels * self.row_nbytes + (0 if self.weights_in_smem else self._weight_nbytes)
        pitch = 2 * self.channels + (16 if self.channels % 16 == 0 else 0)
        store = 4 * self.warpgroups * self.stores * _WARP_PIXELS * pitch
        return self.stages * stage + store + ALIGNMENT

    @property
    def dynamic_nbytes(self) -> int:
        """Shared memory that a launch asks for."""
        return self.loop_nbytes + (self.steps * self._weight_nbytes if self.weights_in_smem else 0)

    @property
    def _weight_nbytes(self) -> int:
        """Bytes that the weights of a step take."""
        return aligned(self.channels * self.row_nbytes)

    @property
    def static_nbytes(self) -> int:
        """Shared memory that the kernel itself declares, at most."""
        return 10 * self.channels + 8 * (2 * self.stages + 1) + 64

    @property
    def macros(self) -> dict[str, int]:
        """Macros of the kernel for these choices."""
        return {
            "PIXELS": self.pixels,
            "CHANNELS": self.channels,
            "DEPTH": self.depth,
            "STAGES": self.stages,
            "WARPGROUPS": self.warpgroups,
            "WEIGHTS_IN_SMEM": int(self.weights_in_smem),
            "STORES": self.stores,
            "LAST_PRODUCTS": self.last_products,
            "KERNEL": self.shape.kernel,
            "LOOP_NBYTES": self.loop_nbytes,
        }

    def fits(self, shared_nbytes_per_block: int) -> bool:
        """Whether the kernel can be compiled and launched so."""
        products = self.pixels // (_WARPGROUP_PIXELS * self.warpgroups)
        # At the launch all threads have as many registers; those of one instruction must be among them.
        even = _REGISTERS // self.threads // 8 * 8
        most = min(even + (even - _COPYING_REGISTERS) // self.warpgroups // 8 * 8, _MOST_REGISTERS)
        return (
            0 < self.pixels == _WARPGROUP_PIXELS * self.warpgroups * products <= LARGEST_BOX
            and self.stores >= 1
            and products % self.stores == 0
            and self.stages >= min(self.steps, 2)
            and self.channels % 8 == 0
            and 16 <= self.channels <= min(_MOST_CHANNELS, 2 * (even - _OTHER_REGISTERS))
            and products * self.channels // 2 + _OTHER_REGISTERS + 6 <= most
            and self.dynamic_nbytes + self.static_nbytes <= shared_nbytes_per_block
        )


@functools.lru_cache(maxsize=256)  # layers of one shape come in several plans
def flat_geometry(shape: ConvShape, multiprocessors: int, shared_nbytes_per_block: int) -> FlatGeometry | None:
    """Return how to divide a convolution; None for shapes that another kernel computes faster."""
    if shape.kind == "up_conv" or shape.operands in FP32_OPERANDS or shape.cin <= _FEW_CHANNELS:
        return None
    cin = -(-shape.cin // _MEASURED_CHANNELS) * _MEASURED_CHANNELS
    measured = _MEASURED.get((shape.kernel, shape.side, cin, shape.cout))
    known = None if measured is None else _divided(shape, measured, multiprocessors)
    if known is not None and not known.fits(shared_nbytes_per_block):
        known = None
    if known is not None and shape.batch == 1:
        return known
    found = (_divided(shape, division, multiprocessors) for division in _divisions(shape, shared_nbytes_per_block))
    best = min(found, key=lambda geometry: _cycles(geometry, multiprocessors), default=None)
    if best is None or 2 * math.prod(best.grid) < multiprocessors:
        return None
    if known is not None:
        return known if _cycles(known, multiprocessors) < _DOUBT * _cycles(best, multiprocessors) else best
    is_doubtful = shape.kernel > 1 and _efficiency(best, multiprocessors) < _LEAST_WINDOW_EFFICIENCY
    return None if is_doubtful else best


def _divisions(shape: ConvShape, shared_nbytes_per_block: int) -> Iterator[_Division]:
    """Yield divisions that fit, with as many stages as do, whose blocks of output channels are next to full."""
    fewest = -(-shape.cout // _MOST_CHANNELS)
    widths = dict.fromkeys(max(16, -(-shape.cout // (8 * blocks)) * 8) for blocks in range(fewest, 4 * fewest + 2))
    forms = _FORMS if shape.kernel == 1 else [form for form in _FORMS if form[1] == _WINDOW_ROW_NBYTES]
    least = 0 if shape.kernel == 1 else _LEAST_WINDOW_CHANNELS
    for channels, (pixels, row_nbytes, warpgroups), lasts in itertools.product(widths, forms, (True, False)):
        if channels < least:
            continue
        for stages in range(_MOST_STAGES, 2, -1):
            division = _Division(pixels, channels, row_nbytes, stages, warpgroups, lasts)
            if _geometry(shape, division).fits(shared_nbytes_per_block):
                yield division
                break


def _geometry(shape: ConvShape, division: _Division) -> FlatGeometry:
    pixels, channels, row_nbytes, stages, warpgroups, lasts, stores = division
    return FlatGeometry(shape, pixels, channels, row_nbytes // shape.itemsize, stages, warpgroups, 1, lasts, stores)


def _divided(shape: ConvShape, division: _Division, multiprocessors: int) -> FlatGeometry:
    """Return a division with the number of tiles a block that takes the shortest time."""
    least = _geometry(shape, division)
    _, blocks, pictures = least.grid
    across = (rounds * multiprocessors // (blocks * pictures) for rounds in range(1, _MOST_ROUNDS + 1))
    counts = dict.fromkeys((*(-(-least.tiles // count) for count in across if count > 0), 1))
    choices = (replace(least, tiles_per_block=count) for count in counts)
    return min(choices, key=lambda geometry: _cycles(geometry, multiprocessors))


def _efficiency(geometry: FlatGeometry, multiprocessors: int) -> float:
    """Return the share of the time that the products take, divided evenly among all multiprocessors."""
    shape = geometry.shape
    products = shape.kernel**2 * shape.cin * shape.itemsize / _PRODUCT_NBYTES
    flops = 2 * products * (_PRODUCT_NBYTES // 2) * shape.batch * shape.side**2 * shape.cout
    return flops / (_FLOPS_A_CYCLE * multiprocessors * _cycles(geometry, multiprocessors))


def _cycles(geometry: FlatGeometry, multiprocessors: int) -> float:
    """Return about how long a launch takes: 7 % off on average, of 420 divisions of 26 shapes on an H200."""
    shape, outputs = geometry.shape, geometry.pixels * geometry.channels
    weight_nbytes = geometry.steps * geometry.channels * geometry.row_nbytes
    copied_nbytes = geometry.steps * geometry.pixels * geometry.row_nbytes
    products = (geometry.chunks - 1) * (geometry.row_nbytes // _PRODUCT_NBYTES) + geometry.last_products
    products *= shape.kernel**2
    # A product of e4m3 has twice the operations of one of fp16 in the same time.
    multiplying = 2 * products * (_PRODUCT_NBYTES // 2) * outputs / _FLOPS_A_CYCLE
    copying = (copied_nbytes + (0 if geometry.weights_in_smem else weight_nbytes)) / _NBYTES_A_CYCLE
    if shape.kernel > 1:
        copying = max(copying, copied_nbytes / _WINDOW_NBYTES_A_CYCLE)
    first = weight_nbytes / _NBYTES_A_CYCLE if geometry.weights_in_smem else 0.0
    tile = max(multiplying, copying) + outputs / _OUTPUTS_A_CYCLE + _CYCLES_A_TILE
    rounds = -(-math.prod(geometry.grid) // multiprocessors)
    memory_nbytes = shape.batch * shape.side**2 * (shape.cin * shape.itemsize + 2 * shape.cout)
    busy = rounds * (_CYCLES_A_BLOCK + first + geometry.tiles_per_block * tile)
    return max(busy, memory_nbytes / _MEMORY_NBYTES_A_CYCLE)
