"""Which kernel computes a convolution of a step or its adjoint, and how it is launched."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

import numpy as np

from gpu_backend.cuda.driver.arguments import EncodeMap, Value
from gpu_backend.cuda.schedule import Address, TensorMap
from gpu_backend.gradients.gpu.kernels import (
    CONV_COLUMNS,
    CONV_ROWS,
    CONV_STAGES,
    NARROW_CHANNELS,
    NARROW_DEPTH,
    PATCH_COLUMNS,
    SKIP_COLUMNS,
    STREAMED_CHANNELS,
    TILE_ENDS,
    TURING_CONV_STAGES,
    UP_CLUSTERS,
    UP_COLUMNS,
    UP_TILE_ENDS,
    ConvStages,
    GradientKernel,
    conv_kernel,
    ended_tile_kernel,
    layer_conv_kernel,
    narrow_up_adjoint_kernel,
    narrow_up_conv_kernel,
    patch_conv_kernel,
    skip_conv_kernel,
    streamed_adjoint_kernel,
    streamed_join_kernel,
    streamed_layer_kernel,
    streamed_way_back_kernel,
    up_adjoint_kernel,
    up_conv_kernel,
    way_back_kernel,
)
from gpu_backend.gradients.gpu.placed import PlacedConv
from gpu_backend.gradients.gpu.sequence import KernelSequence
from gpu_backend.gradients.gpu.weights import sum_rows
from gpu_backend.ops.kernels.recipe import KernelRecipe

_DEPTH = 64
_ROW_NBYTES = 2 * _DEPTH
_THREADS, _HOPPER_THREADS, _WARPGROUP = 128, 256, 128
_MOST_SLICES = 32
_TILE_SIDE = 16
_ALIGNMENT = 1024
"""Of boxes that TMA swizzles."""
_PATCH_SIDE, _PLANE_SIDE = _TILE_SIDE + 2, _TILE_SIDE + 1
"""Of the pixels that a tile of gradient_patch_conv and one of gradient_up_adjoint need."""
_PATCHES, _PLANES = 2, 3
"""In shared memory at once."""
_UP_POSITIONS = 128
_MOST_RUN, _RUN_ALIGNMENT = 256, 8
"""Positions that TMA copies at once."""
_UP_PARITIES = 4
_UP_SUM_PITCH = UP_COLUMNS + 8
_MOST_UP_SIDE = 256
"""Of a larger source, a block's positions do not fit in shared memory."""
_NARROW_TILE = 9, 14
"""Rows and columns of positions of a tile of gradient_narrow_up_conv."""
_NARROW_BLOCKS, _NARROW_TAPS = 2, 9
"""Of it on a multiprocessor."""
_ADJOINT_TILE, _ADJOINT_GROUPS = (4, 16), 4
"""Rows and columns of pixels of a tile of gradient_narrow_up_adjoint, and warpgroups of a block, which do one each."""
_PAIR = 2 * NARROW_CHANNELS
"""Numbers of two neighbouring pixels, which TMA copies together."""
PAIR_MARGIN = 2 * NARROW_CHANNELS
"""Bytes that gradient_narrow_up_adjoint may read after the end of what it reads."""
_SKIP_PIXELS, _SKIP_GROUPS, _SKIP_STAGES = 64, 4, 4
"""Of a tile of discriminator_skip, which each warpgroup of a block does for itself, and tiles that it holds."""
_MOST_SKIP_WEIGHTS = 1 << 15
_CLUSTER_ROOM = {1: 1.0, 2: 1.0, 3: 0.875, 4: 0.875, 8: 0.75}
"""By blocks of a cluster: what part of the multiprocessors surely holds clusters, one block each. A cluster lies in one
GPC, of at most 18 multiprocessors."""
_LEAST_SIDE = 32
"""Smaller layers are one tile, which blocks of a cluster share."""
_MOST_PAIRED = 3
"""Slices that two blocks take, so that they end the tile; where more would fit, two blocks end narrower ones."""
_NARROW_COLUMNS = 32
_STRIP_COLUMNS = 64
"""Of a warpgroup of gradient_streaming_conv."""
_LEAST_STREAMED = 512**2
"""Pixels of all samples. Strips of fewer are short, and the rows that they only begin or end with cost too much."""
_STREAMED_TAPS = 15
"""In shared memory: five rows of taps for each column, of which three begin any turn."""
_NO_END: Mapping[str, Value] = {
    **dict.fromkeys(("style", "demod", "noise", "bias", "z", "to", "style_sums", "demod_sums")),
    **dict.fromkeys(("style_count", "demod_count", "sum_count"), 0),
    **dict.fromkeys(("unit", "gain"), 1.0),
    "clamp": np.inf,
}
"""What a convolution on Hopper takes where it goes on with its sums, for none of it."""


_REDUCE_THREADS = 128


@dataclass(frozen=True, slots=True, eq=False)
class ConvLaunch:
    """A launch of a convolution without its arrays.

    Attributes
    ----------
    slices
        Parts of K whose sums are not added up.
    arguments
        All but x, weight, sums, and what becomes of the sums elsewhere.
    maps
        Parameter -> what TMA copies of the array that the map's address names, as `enqueue` does.
    encode
        Makes these; `Driver.tensor_map`.
    rows
        Of style_sums and demod_sums that it leaves, if it does.
    """

    kernel: KernelRecipe
    grid: tuple[int, int, int]
    threads: int
    slices: int
    arguments: Mapping[str, Value]
    shared_nbytes: int
    encode: EncodeMap
    maps: Mapping[str, TensorMap] = field(default_factory=dict)
    rows: int = 0

    def enqueue(
        self,
        sequence: KernelSequence,
        x: int,
        weight: int,
        to: int,
        end: Mapping[str, Value] | None = None,
        *,
        halved: int = 0,
    ) -> None:
        """Enqueue it with the addresses of its arrays, and with what becomes of its sums elsewhere.

        `to` is that of its sums, or of fp16 results.
        """
        arrays = {"x": x, "weight": weight, "sums": to, "t": to, "out": to, "halved": halved}
        maps = {key: np.void(self.encode(arrays[made.address.name], made)) for key, made in self.maps.items()}
        taken = self.kernel.parameters.names or ()
        places = {name: np.uint64(address) for name, address in arrays.items() if name in taken}
        arguments: dict[str, Value] = {**maps, **places, **self.arguments, **(end or {})}
        sequence.launch(self.kernel, self.grid, (self.threads, 1, 1), arguments, shared_nbytes=self.shared_nbytes)


def add_slices(sequence: KernelSequence, sums: int, numbers: int, slices: int) -> None:
    """Enqueue the sum of slices of so many numbers, a multiple of four, into the first."""
    quads = numbers // 4
    sequence.launch(
        GradientKernel("gradient_reduce"),
        (-(-quads // _REDUCE_THREADS), 1, 1),
        (_REDUCE_THREADS, 1, 1),
        {"sums": np.uint64(sums), "quads": quads, "slices": slices},
    )


@dataclass(frozen=True, slots=True, eq=False)
class ConvChoice:
    """Chooses for one device.

    Attributes
    ----------
    kernels
        Those of `kernels_of_step`.
    multiprocessors
        Of the device.
    encode
        `Driver.tensor_map`.
    """

    kernels: Container[KernelRecipe]
    multiprocessors: int
    encode: EncodeMap

    def to_sums(self, layer: PlacedConv, samples: int, *, is_backward: bool) -> ConvLaunch:
        """Return the launch of a convolution, or of its adjoint, that leaves slices of sums."""
        inputs, outputs = _channels(layer, is_backward=is_backward)
        slices = self._slices(layer, samples, is_backward=is_backward)
        if self._is_tiled(layer, is_backward=is_backward):
            kernel = up_adjoint_kernel() if layer.is_up else patch_conv_kernel(_columns_of(outputs, PATCH_COLUMNS))
            return self._tile_launch(kernel, layer, samples, slices, is_backward=is_backward)
        geometry, columns = layer.backward if is_backward else layer.forward, _columns_of(outputs)
        rows = -(-samples * max(geometry.pixels) // CONV_ROWS)
        return ConvLaunch(
            conv_kernel(columns, self._stages),
            (rows, -(-outputs // columns), len(geometry.parities) * slices),
            _THREADS,
            slices,
            {
                "parities": np.uint64(layer.backward_parities if is_backward else layer.forward_parities),
                "in_side": geometry.in_side,
                "cin": inputs,
                "cout": outputs,
                "in_stride": geometry.in_stride,
                "out_stride": geometry.out_stride,
                "out_side": geometry.out_side,
                "slices": slices,
                "samples": samples,
            },
            self._stages.nbytes(columns),
            self.encode,
        )

    def to_layer_end(self, layer: PlacedConv, samples: int) -> ConvLaunch | None:
        """Return the launch of a convolution that ends its layer, if there is one."""
        if self._is_streamed(layer, samples):
            return self._streaming_launch(streamed_layer_kernel(_streamed_channels(layer)), layer, samples)
        end = self._tile_end(layer, samples, is_backward=False)
        return end and self._tile_launch(layer_conv_kernel(*end), layer, samples, end[1], is_backward=False)

    def to_filter(self, layer: PlacedConv, samples: int) -> ConvLaunch | None:
        """Return the launch of a transposed convolution that leaves demodulated fp16 results, if there is one."""
        if not (self._is_on_hopper and layer.is_up):
            return None
        if layer.outputs == NARROW_CHANNELS and layer.inputs <= NARROW_DEPTH:
            return self._narrow_up_launch(layer, samples)
        is_wide = layer.outputs > CONV_COLUMNS[-1] and layer.source <= _MOST_UP_SIDE
        return self._up_launch(layer, samples) if is_wide else None

    def to_block_end(self, layer: PlacedConv, samples: int) -> ConvLaunch | None:
        """Return the launch of an adjoint that ends a discriminator's block, with the skip, if there is one."""
        return self._narrow_adjoint_launch(layer, samples, with_skip=True)

    def to_skip(self, layer: PlacedConv, samples: int, *, is_backward: bool) -> ConvLaunch | None:
        """Return the launch of a discriminator's skip, or of its adjoint, with fp16 results, if there is one."""
        inputs, outputs = _channels(layer, is_backward=is_backward)
        groups = -(-inputs // _DEPTH)
        fitting = tuple(columns for columns in SKIP_COLUMNS if groups * _DEPTH * columns <= _MOST_SKIP_WEIGHTS)
        if not (layer.is_skip and fitting and skip_conv_kernel(fitting[0]) in self.kernels):
            return None
        columns, pixels = _columns_of(outputs, fitting), samples * layer.source**2
        across = -(-outputs // columns)
        blocks = min(-(-pixels // (_SKIP_PIXELS * _SKIP_GROUPS)), max(1, self.multiprocessors // across))
        extents = inputs, pixels, 1, 1
        return ConvLaunch(
            skip_conv_kernel(columns),
            (blocks, across, 1),
            _WARPGROUP * _SKIP_GROUPS,
            1,
            {"pixels": pixels, "cin": inputs, "cout": outputs},
            _ALIGNMENT + (groups * columns + _SKIP_GROUPS * _SKIP_STAGES * _SKIP_PIXELS) * _ROW_NBYTES,
            self.encode,
            {"x_map": TensorMap(Address("x", "region"), extents, (_DEPTH, _SKIP_PIXELS, 1))},
        )

    def to_end(self, layer: PlacedConv, samples: int, *, is_backward: bool, taps: int = 0) -> ConvLaunch | None:
        """Return the launch of a convolution, or of its adjoint, with the end of a discriminator's, if there is one.

        Parameters
        ----------
        taps
            Macro of parts/discriminator_end.cuh.
        """
        kernel = ended_tile_kernel(taps, is_up=layer.is_up)
        is_there = kernel in self.kernels and self._is_tiled(layer, is_backward=is_backward)
        _, outputs = _channels(layer, is_backward=is_backward)
        if not is_there or outputs <= PATCH_COLUMNS[-1] or self._slices(layer, samples, is_backward=is_backward) > 1:
            return None
        return self._tile_launch(kernel, layer, samples, 1, is_backward=is_backward)

    def to_gradient(self, layer: PlacedConv, samples: int) -> ConvLaunch | None:
        """Return the launch of an adjoint that leaves fp16 gradients of its input, if there is one."""
        if not self._is_streamed(layer, samples):
            return self._narrow_adjoint_launch(layer, samples, with_skip=False)
        kernel = streamed_adjoint_kernel(_streamed_channels(layer))
        return self._streaming_launch(kernel, layer, samples, is_backward=True)

    def to_join(self, layer: PlacedConv, samples: int, taps: int) -> ConvLaunch | None:
        """Return that of a discriminator's adjoint which adds the rest of the gradient; its filter has so many taps."""
        if not self._is_streamed(layer, samples):
            return None
        kernel = streamed_join_kernel(_streamed_channels(layer), taps)
        return self._streaming_launch(kernel, layer, samples, is_backward=True)

    def through_layer(self, layer: PlacedConv, samples: int) -> ConvLaunch | None:
        """Return the launch of an adjoint that goes back through the layer before, if there is one.

        For several samples it has as many blocks a sample for any number of them.
        """
        if self._is_streamed(layer, 1):
            kernel = streamed_way_back_kernel(_streamed_channels(layer))
            return self._streaming_launch(kernel, layer, samples, is_backward=True)
        end = self._tile_end(layer, samples, is_backward=True)
        if end is None:
            return None
        kernel = way_back_kernel(*end, is_up=layer.is_up)
        return self._tile_launch(kernel, layer, samples, end[1], is_backward=True)

    def most_sums(self, layer: PlacedConv, samples: int) -> int:
        """Return the most numbers that `to_sums` leaves of a convolution or its adjoint, for up to so many samples."""
        return max(
            self._sums(layer, count, is_backward=is_backward)
            for is_backward in (False, True)
            for count in range(1, samples + 1)
        )

    def _sums(self, layer: PlacedConv, samples: int, *, is_backward: bool) -> int:
        """Return how many numbers `to_sums` leaves, if it is what computes them."""
        is_narrow = self._is_narrow_adjoint(layer) if is_backward else self.to_filter(layer, samples) is not None
        if is_narrow or self._is_streamed(layer, samples):
            return 0
        geometry = layer.backward if is_backward else layer.forward
        slices = self._slices(layer, samples, is_backward=is_backward)
        return slices * samples * geometry.out_side**2 * _channels(layer, is_backward=is_backward)[1]

    def _slices(self, layer: PlacedConv, samples: int, *, is_backward: bool) -> int:
        """Return into how many parts K is cut so that the device is full."""
        inputs, outputs = _channels(layer, is_backward=is_backward)
        groups = -(-inputs // _DEPTH)
        if self._is_tiled(layer, is_backward=is_backward):
            columns = _columns_of(outputs, PATCH_COLUMNS)
            return self._most_slices(samples * tiles_of(layer.source), outputs, columns, groups)
        geometry, columns = layer.backward if is_backward else layer.forward, _columns_of(outputs)
        tiles = [-(-samples * pixels // CONV_ROWS) * -(-outputs // columns) for pixels in geometry.pixels]
        taps = [int(count) for count in geometry.parities[:, 0]]
        # Parities differ in their taps: as many tiles as would do the same work with the most taps.
        even = sum(count * tap for count, tap in zip(tiles, taps, strict=True)) / max(taps)
        return max(1, min(int(2 * self.multiprocessors / even), max(taps) * groups // 2, _MOST_SLICES))

    def _tile_end(self, layer: PlacedConv, samples: int, *, is_backward: bool) -> tuple[int, int] | None:
        """Return the one of `TILE_ENDS` that a convolution or an adjoint takes to go on with its sums, if it does."""
        inputs, outputs = _channels(layer, is_backward=is_backward)
        if outputs <= PATCH_COLUMNS[-1] or not self._is_on_hopper or (layer.is_up and not is_backward):
            return None
        ends = UP_TILE_ENDS if layer.is_up else TILE_ENDS
        tiles, groups = tiles_of(layer.source), -(-inputs // _DEPTH)
        if layer.source < _LEAST_SIDE:
            # Several samples would need more blocks than find room at once.
            columns, most = PATCH_COLUMNS[-1], groups if samples == 1 else 0
        else:
            # A block fills a multiprocessor, and clusters of more than two do not fill the device.
            columns = PATCH_COLUMNS[0]
            most = self._most_slices(tiles, outputs, columns, groups)
            if most > _MOST_PAIRED and samples == 1 and not layer.is_up:
                columns = _NARROW_COLUMNS
                most = min(_MOST_PAIRED, self._most_slices(tiles, outputs, columns, groups))
            if most > _MOST_PAIRED or tiles * most > sum_rows(layer.source**2):
                return None
        return next(((width, slices) for width, slices in ends if width == columns and slices <= most), None)

    def _most_slices(self, tiles: int, outputs: int, columns: int, groups: int) -> int:
        """Return into how many parts K may be cut so that each block finds a multiprocessor."""
        return max(1, min(self.multiprocessors // (tiles * -(-outputs // columns)), groups))

    def _is_tiled(self, layer: PlacedConv, *, is_backward: bool) -> bool:
        """Whether gradient_patch_conv or gradient_up_adjoint computes the sums."""
        _, outputs = _channels(layer, is_backward=is_backward)
        is_wide = outputs > (PATCH_COLUMNS if layer.is_up else CONV_COLUMNS)[-1] and layer.source >= _LEAST_SIDE
        return self._is_on_hopper and is_wide and (is_backward or not layer.is_up) and not layer.is_skip

    def _is_streamed(self, layer: PlacedConv, samples: int) -> bool:
        """Whether gradient_streaming_conv computes a convolution and its adjoint."""
        is_wide = samples * layer.source**2 >= _LEAST_STREAMED
        is_plain = not layer.is_up and not layer.is_skip
        return self._is_on_hopper and is_plain and is_wide and max(layer.inputs, layer.outputs) <= STREAMED_CHANNELS[-1]

    def _is_narrow_adjoint(self, layer: PlacedConv) -> bool:
        """Whether gradient_narrow_up_adjoint computes the adjoint."""
        is_narrow = layer.outputs == NARROW_CHANNELS and layer.inputs <= NARROW_DEPTH
        return self._is_on_hopper and is_narrow and layer.is_up

    def _up_cluster(self, layer: PlacedConv, samples: int) -> int:
        """Return how many blocks of gradient_up_conv share K: the fewest of those that have least to do each."""
        groups = -(-layer.inputs // _DEPTH)
        blocks = samples * _up_tiles(layer.source) * -(-layer.outputs // UP_COLUMNS)
        found = [
            size
            for size in UP_CLUSTERS
            if size == 1 or (size <= groups and size * blocks <= _CLUSTER_ROOM[size] * self.multiprocessors)
        ]
        return min(found, key=lambda size: (-(-groups // size), size))

    def _tile_launch(
        self, kernel: KernelRecipe, layer: PlacedConv, samples: int, slices: int, *, is_backward: bool
    ) -> ConvLaunch:
        inputs, outputs = _channels(layer, is_backward=is_backward)
        columns, stages = _columns_and_stages(kernel)
        own: dict[str, Value] = {} if layer.is_up else {"is_adjoint": int(is_backward)}
        side = 2 * layer.source + 1 if layer.is_up else layer.source
        box, step = (_PLANE_SIDE, 2) if layer.is_up else (_PATCH_SIDE, 1)
        pixels = TensorMap(Address("x", "region"), (inputs, side, side, samples), (_DEPTH, box, box), step=step)
        weights = _weight_map(layer, inputs, outputs, columns)
        boxes, taps = (_PLANES, stages) if layer.is_up else (_PATCHES, 3 * stages)
        space = -(-(box**2) * _ROW_NBYTES // _ALIGNMENT) * _ALIGNMENT
        return ConvLaunch(
            kernel,
            (samples * tiles_of(layer.source), -(-outputs // columns), slices),
            _HOPPER_THREADS,
            slices,
            {
                **_no_end(kernel),
                "side": layer.source,
                "cin": inputs,
                "cout": outputs,
                "slices": slices,
                **own,
            },
            _ALIGNMENT + taps * columns * _ROW_NBYTES + (boxes - 1) * space + box**2 * _ROW_NBYTES,
            self.encode,
            {"x_map": pixels, "weight_map": weights},
            tiles_of(layer.source) * slices,
        )

    def _streaming_launch(
        self, kernel: KernelRecipe, layer: PlacedConv, samples: int, *, is_backward: bool = False
    ) -> ConvLaunch:
        inputs, outputs = _channels(layer, is_backward=is_backward)
        macros, names, side = dict(kernel.defines), kernel.parameters.names or (), layer.source
        channels, warpgroups, stages = (int(macros[name]) for name in ("CHANNELS", "WARPGROUPS", "STAGES"))
        strips, is_way_back = -(-side // _STRIP_COLUMNS), "style_sums" in names
        # Several samples leave as many rows of sums each for any number of them.
        beside = min(samples, 2) if is_way_back else samples
        rows = -(-side // max(1, warpgroups * self.multiprocessors // (strips * beside)))
        blocks = -(-strips * -(-side // rows) // warpgroups)
        box = (channels, _STRIP_COLUMNS + 2, 1)
        row_nbytes = -(-2 * channels * box[1] // _ALIGNMENT) * _ALIGNMENT
        return ConvLaunch(
            kernel,
            (blocks, 1, samples),
            128 * warpgroups,
            1,
            {
                **_no_end(kernel),
                "side": side,
                "cin": inputs,
                "cout": outputs,
                "strip_rows": rows,
                "is_adjoint": int(is_backward),
            },
            _ALIGNMENT + _STREAMED_TAPS * channels * 2 * channels + warpgroups * stages * row_nbytes,
            self.encode,
            {"x_map": TensorMap(Address("x", "region"), (inputs, side, side, samples), box)},
            blocks if is_way_back else 0,
        )

    def _up_launch(self, layer: PlacedConv, samples: int) -> ConvLaunch:
        side, pitch, tiles = layer.source, layer.source + 1, _up_tiles(layer.source)
        cluster = self._up_cluster(layer, samples)
        kernel = up_conv_kernel(cluster)
        columns, stages = _columns_and_stages(kernel)
        needed = _UP_POSITIONS + side + 2
        runs = -(-needed // _MOST_RUN)
        run = -(-needed // (runs * _RUN_ALIGNMENT)) * _RUN_ALIGNMENT
        # Rows from two above the picture on, so many that the last tile's runs stay within them.
        rows = -(-((tiles - 1) * _UP_POSITIONS + pitch - 1 + runs * run) // pitch)
        pixels = TensorMap(
            Address("x", "region"),
            (layer.inputs, side, side, samples),
            (_DEPTH, 1, run),
            bounds=((0, -2), (1, rows - 2 - side)),
        )
        copies = 3 * stages * columns * _ROW_NBYTES + 2 * runs * run * _ROW_NBYTES
        sums = 4 * (_UP_PARITIES * _UP_POSITIONS * _UP_SUM_PITCH + UP_COLUMNS) if cluster > 1 else 0
        return ConvLaunch(
            kernel,
            (samples * tiles, -(-layer.outputs // columns), cluster),
            _HOPPER_THREADS,
            1,
            {
                "side": side,
                "cin": layer.inputs,
                "cout": layer.outputs,
                "tiles": tiles,
                "run": run,
                "runs": runs,
            },
            _ALIGNMENT + max(copies, sums),
            self.encode,
            {"x_map": pixels, "weight_map": _weight_map(layer, layer.inputs, layer.outputs, columns)},
        )

    def _narrow_up_launch(self, layer: PlacedConv, samples: int) -> ConvLaunch:
        side, whole = layer.source, 2 * layer.source + 1
        rows, columns = _NARROW_TILE
        across = -(-(side + 1) // columns)
        tiles = across * -(-(side + 1) // rows)
        pixels = TensorMap(Address("x", "region"), (layer.inputs, side, side, samples), (_DEPTH, columns + 1, rows + 1))
        results = TensorMap(
            Address("t", "region"),
            (_PAIR, side, whole, samples),
            (_PAIR, columns, 2 * rows),
            row=whole * NARROW_CHANNELS,
        )
        space = -(-(rows + 1) * (columns + 1) * _ROW_NBYTES // _ALIGNMENT) * _ALIGNMENT
        return ConvLaunch(
            narrow_up_conv_kernel(),
            (min(samples * tiles, _NARROW_BLOCKS * self.multiprocessors), 1, 1),
            _HOPPER_THREADS,
            1,
            {"side": side, "across": across, "tiles": tiles, "all_tiles": samples * tiles},
            _ALIGNMENT + _NARROW_TAPS * NARROW_CHANNELS * _ROW_NBYTES + 2 * space + 4 * rows * columns * _PAIR,
            self.encode,
            {
                "x_map": pixels,
                "weight_map": _weight_map(layer, layer.inputs, layer.outputs, NARROW_CHANNELS),
                "t_map": results,
            },
        )

    def _narrow_adjoint_launch(self, layer: PlacedConv, samples: int, *, with_skip: bool) -> ConvLaunch | None:
        kernel = narrow_up_adjoint_kernel(with_skip=with_skip)
        if kernel not in self.kernels or not self._is_narrow_adjoint(layer):
            return None
        side, whole = layer.source, 2 * layer.source + 1
        rows, columns = _ADJOINT_TILE
        across = -(-side // columns)
        tiles = across * -(-side // rows)
        pixels = TensorMap(
            Address("x", "region"),
            (_PAIR, side + 1, whole, samples),
            (_PAIR, columns + 1, 2 * rows + 1),
            row=whole * NARROW_CHANNELS,
        )
        space = 2 * -(-(2 * rows + 1) * (columns + 1) * 2 * _PAIR // _ALIGNMENT) * _ALIGNMENT
        maps, taps = {"x_map": pixels}, _NARROW_TAPS
        if with_skip:
            extents = NARROW_CHANNELS, side, side, samples
            maps["halved_map"] = TensorMap(Address("halved", "region"), extents, (NARROW_CHANNELS, columns, rows))
            space, taps = space + rows * columns * _PAIR, taps + 1
        return ConvLaunch(
            kernel,
            (min(-(-samples * tiles // _ADJOINT_GROUPS), self.multiprocessors), 1, 1),
            _WARPGROUP * _ADJOINT_GROUPS,
            1,
            {"side": side, "cout": layer.inputs, "across": across, "tiles": tiles, "all_tiles": samples * tiles},
            _ALIGNMENT + taps * NARROW_DEPTH * _PAIR + _ADJOINT_GROUPS * space,
            self.encode,
            maps,
        )

    @property
    def _stages(self) -> ConvStages:
        """The stages of the gradient_conv that this device has."""
        is_there = conv_kernel(CONV_COLUMNS[0], CONV_STAGES) in self.kernels
        return CONV_STAGES if is_there else TURING_CONV_STAGES

    @property
    def _is_on_hopper(self) -> bool:
        return up_conv_kernel(1) in self.kernels


def tiles_of(side: int) -> int:
    """Return the tiles of gradient_patch_conv and gradient_up_adjoint along the pixels."""
    return (-(-side // _TILE_SIDE)) ** 2


def _columns_and_stages(kernel: KernelRecipe) -> tuple[int, int]:
    """Return the channels of a kernel's tile, and how many stages of weights it holds in shared memory."""
    macros = dict(kernel.defines)
    return int(macros["COLUMNS"]), int(macros["STAGES"])


def _no_end(kernel: KernelRecipe) -> dict[str, Value]:
    """Return what a kernel takes for the end of its sums, for none."""
    return {name: _NO_END[name] for name in kernel.parameters.names or () if name in _NO_END}


def _streamed_channels(layer: PlacedConv) -> int:
    """Return the one of `STREAMED_CHANNELS` for a layer."""
    return next(channels for channels in STREAMED_CHANNELS if channels >= max(layer.inputs, layer.outputs))


def _weight_map(layer: PlacedConv, inputs: int, outputs: int, columns: int) -> TensorMap:
    """Return how TMA copies the weights of one tap of a tile of so many channels."""
    return TensorMap(Address("weight", "region"), (inputs, outputs, len(layer.packed.forward), 1), (_DEPTH, columns, 1))


def _channels(layer: PlacedConv, *, is_backward: bool) -> tuple[int, int]:
    """Return the channels that a convolution, or its adjoint, reads and writes."""
    return (layer.outputs, layer.inputs) if is_backward else (layer.inputs, layer.outputs)


def _up_tiles(side: int) -> int:
    """Return the blocks of gradient_up_conv along (side + 1)^2 positions, of which the last one may do one more."""
    return -(-side * (side + 2) // _UP_POSITIONS)


def _columns_of(outputs: int, tiles: tuple[int, ...] = CONV_COLUMNS) -> int:
    """Return the channels of the narrowest tile that holds all of them, or of the widest tile."""
    return min((columns for columns in tiles if columns >= outputs), default=max(tiles))
