"""How a streaming convolution is divided among warpgroups and blocks; the sizes are those of ``streaming_conv.cu``.

A warpgroup goes down a strip of 64 columns, `rows` rows of outputs; a block has `warpgroups` warpgroups.
"""

from __future__ import annotations

import functools

from gpu_backend.ops.kernels.conv_tile import ALIGNMENT, FP32_OPERANDS, ROW_NBYTES, ConvShape, aligned
from gpu_backend.quick_dataclass import dataclass

STRIP_COLUMNS = 64
"""Columns of a warpgroup: sixteen a warp."""

_WARPGROUPS = {16: (4, 6), 32: (4, 5), 56: (2, 3), 64: (2, 3, 4)}
_WARPGROUPS_IN_FP8 = {**_WARPGROUPS, 64: (2, 3)}
"""Of a block, by its output channels: as many as have registers, of which converting to e4m3 takes some. Fewer have
longer strips, whose ends take less."""

MOST_WARPGROUPS = max(max(counts) for counts in _WARPGROUPS.values())

_SEVERAL_BOXES, _MOST_IN_BOXES = 64, 96
"""Bytes of a box's input channels where one box does not have all, and the most channels that were measured."""

_TAPS = 15
"""Packed for each input and output channel: five rows of taps for each column, of which three begin any turn."""
_LEAST_SIDE = 512
"""As measured. The strips of one picture of 256 x 256 are too few for all multiprocessors of a large GPU."""

_LEAST_ROWS, _MOST_ROWS = 8, 256
"""Of a strip. Where it would have fewer, the rows that it only begins and ends with cost too much."""

_LEAST_STAGES, _MOST_STAGES = 2, 5
_HALO_ROWS = 2
_PROLOGUE_ROWS = 4
"""Start-up cost of a block (weights, first rows), in rows of a warpgroup."""

_SLOWNESS_OF_TWO = 1.05
"""Of two warpgroups: with more, one's products hide the epilogues of the others."""


@dataclass(frozen=True, slots=True)
class StreamingConvGeometry:
    """A division of a shape.

    Attributes
    ----------
    shape
        Of a 3 x 3 convolution.
    channels
        Output channels of a block: all.
    depth
        Input channels of a box of activations: 32, 64 or 128 bytes.
    rows
        Rows of outputs of a warpgroup.
    stages
        Rows of activations in shared memory for each warpgroup.
    """

    shape: ConvShape
    channels: int
    depth: int
    rows: int
    warpgroups: int
    stages: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 128 * self.warpgroups

    @property
    def steps(self) -> int:
        """Boxes of input channels."""
        return -(-self.shape.cin // self.depth)

    @property
    def box(self) -> tuple[int, int, int]:
        """Channels, columns and rows of a copy."""
        return self.depth, STRIP_COLUMNS + 2, 1

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks: strips times rows, one, pictures."""
        strips, down = -(-self.shape.side // STRIP_COLUMNS), -(-self.shape.side // self.rows)
        return -(-strips * down // self.warpgroups), 1, self.shape.batch

    @property
    def dynamic_nbytes(self) -> int:
        """Shared memory that a launch asks for."""
        row_nbytes = self.depth * self.shape.itemsize
        weights = self.steps * aligned(_TAPS * self.channels * row_nbytes)
        row = self.steps * aligned((STRIP_COLUMNS + 2) * row_nbytes)
        return weights + self.warpgroups * self.stages * row + ALIGNMENT

    @property
    def static_nbytes(self) -> int:
        """Shared memory that the kernel itself declares, at most."""
        return 10 * self.channels + 16 * (self.channels + 8) + 8 * (2 * self.warpgroups * self.stages + 1) + 64

    @property
    def macros(self) -> dict[str, int]:
        """Macros of the kernel for these choices."""
        return {
            "CHANNELS": self.channels,
            "DEPTH": self.depth,
            "STEPS": self.steps,
            "ROWS": self.rows,
            "WARPGROUPS": self.warpgroups,
            "STAGES": self.stages,
            "SHARED_NBYTES": self.dynamic_nbytes,
        }


def streaming_conv_geometry(
    shape: ConvShape,
    multiprocessors: int,
    shared_nbytes_per_block: int,
    *,
    most_warpgroups: int = MOST_WARPGROUPS,
    most_stages: int = _MOST_STAGES,
) -> StreamingConvGeometry | None:
    """Return how to divide a convolution; None for shapes that another kernel computes faster."""
    if shape.kind != "conv" or shape.operands in FP32_OPERANDS or shape.side < _LEAST_SIDE:
        return None
    return _fastest(shape, multiprocessors, shared_nbytes_per_block, most_warpgroups, most_stages)


@functools.lru_cache(maxsize=256)  # layers of one shape come in several plans
def _fastest(
    shape: ConvShape, multiprocessors: int, shared_nbytes_per_block: int, most_warpgroups: int, most_stages: int
) -> StreamingConvGeometry | None:
    choices = _WARPGROUPS_IN_FP8 if shape.operands == "fp8" else _WARPGROUPS
    channels = next((channels for channels in choices if channels >= shape.cout), None)
    depth = next((depth for depth in (nbytes // shape.itemsize for nbytes in ROW_NBYTES) if depth >= shape.cin), None)
    if depth is None and shape.cin <= _MOST_IN_BOXES:
        depth = _SEVERAL_BOXES // shape.itemsize
    if channels is None or depth is None:
        return None
    fitting = [
        StreamingConvGeometry(shape, channels, depth, rows, warpgroups, stages)
        for warpgroups in choices[channels]
        if warpgroups <= most_warpgroups
        if (stages := _stages(shape, channels, depth, warpgroups, shared_nbytes_per_block, most_stages)) is not None
        for rows in range(_LEAST_ROWS, min(shape.side, _MOST_ROWS) + 1)
    ]
    return min(fitting, key=lambda geometry: (_cost(geometry, multiprocessors), -geometry.warpgroups), default=None)


def _stages(
    shape: ConvShape, channels: int, depth: int, warpgroups: int, shared_nbytes_per_block: int, most: int
) -> int | None:
    """Return as many stages as fit; None if too few do."""
    for stages in range(most, _LEAST_STAGES - 1, -1):
        geometry = StreamingConvGeometry(shape, channels, depth, 1, warpgroups, stages)
        if geometry.dynamic_nbytes + geometry.static_nbytes <= shared_nbytes_per_block:
            return stages
    return None


def _cost(geometry: StreamingConvGeometry, multiprocessors: int) -> float:
    """Return about how long a launch takes, in rows of a warpgroup: those of a block share a multiprocessor."""
    across, _, pictures = geometry.grid
    rounds = -(-across * pictures // multiprocessors)
    slowness = _SLOWNESS_OF_TWO if geometry.warpgroups == 2 else 1.0
    return rounds * (slowness * geometry.warpgroups * (geometry.rows + _HALO_ROWS) + _PROLOGUE_ROWS)
