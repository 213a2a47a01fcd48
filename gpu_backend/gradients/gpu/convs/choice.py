"""Which kernel computes a convolution of a step or its adjoint."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from gpu_backend.cuda.driver.arguments import EncodeMap
from gpu_backend.gradients.gpu.convs.launch import DEPTH, ConvLaunch, channels_of, columns_of, geometry_arguments
from gpu_backend.gradients.gpu.convs.skip_conv import skip_launch
from gpu_backend.gradients.gpu.convs.streams import streamed_channels, streaming_launch
from gpu_backend.gradients.gpu.convs.tiles import tile_launch, tiles_of
from gpu_backend.gradients.gpu.convs.up_convs import (
    MOST_UP_SIDE,
    is_narrow,
    narrow_adjoint_launch,
    narrow_up_launch,
    up_launch,
)
from gpu_backend.gradients.gpu.kernels import (
    CONV_COLUMNS,
    CONV_ROWS,
    CONV_STAGES,
    PATCH_COLUMNS,
    SKIP_COLUMNS,
    STREAMED_CHANNELS,
    TILE_ENDS,
    TURING_CONV_STAGES,
    UP_TILE_ENDS,
    ConvStages,
    conv_kernel,
    ended_tile_kernel,
    layer_conv_kernel,
    narrow_up_adjoint_kernel,
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
from gpu_backend.gradients.gpu.weights import sum_rows
from gpu_backend.ops.kernels.recipe import KernelRecipe

_THREADS = 128
_MOST_SLICES = 32
_LEAST_SIDE = 32
"""Smaller layers are one tile, which blocks of a cluster share."""
_MOST_PAIRED = 3
"""Slices that two blocks take, so that they end the tile; where more would fit, two blocks end narrower ones."""
_NARROW_COLUMNS = 32
_LEAST_STREAMED = 256**2
"""Pixels of all samples. Strips of fewer are short, and the rows that they only begin or end with cost too much."""


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
        _, outputs = channels_of(layer, is_backward=is_backward)
        slices = self._slices(layer, samples, is_backward=is_backward)
        if self._is_tiled(layer, is_backward=is_backward):
            kernel = up_adjoint_kernel() if layer.is_up else patch_conv_kernel(columns_of(outputs, PATCH_COLUMNS))
            return tile_launch(kernel, layer, samples, slices, self.encode, is_backward=is_backward)
        geometry, columns = layer.backward if is_backward else layer.forward, columns_of(outputs)
        rows = -(-samples * max(geometry.pixels) // CONV_ROWS)
        return ConvLaunch(
            conv_kernel(columns, self._stages),
            (rows, -(-outputs // columns), len(geometry.parities) * slices),
            _THREADS,
            slices,
            {
                **geometry_arguments(layer, is_backward=is_backward),
                "slices": slices,
                "samples": samples,
            },
            self._stages.nbytes(columns),
            self.encode,
        )

    def to_layer_end(self, layer: PlacedConv, samples: int) -> ConvLaunch | None:
        """Return the launch of a convolution that ends its layer, if there is one."""
        if self._is_streamed(layer, samples):
            return self._streaming(streamed_layer_kernel(streamed_channels(layer)), layer, samples)
        end = self._tile_end(layer, samples, is_backward=False)
        return end and tile_launch(layer_conv_kernel(*end), layer, samples, end[1], self.encode, is_backward=False)

    def to_filter(self, layer: PlacedConv, samples: int) -> ConvLaunch | None:
        """Return the launch of a transposed convolution that leaves demodulated fp16 results, if there is one."""
        if not (self._is_on_hopper and layer.is_up):
            return None
        narrow = narrow_up_launch(layer, samples, self.multiprocessors, self.encode)
        if narrow:
            return narrow
        is_wide = layer.outputs > CONV_COLUMNS[-1] and layer.source <= MOST_UP_SIDE
        return up_launch(layer, samples, self.multiprocessors, self.encode) if is_wide else None

    def to_block_end(self, layer: PlacedConv, samples: int) -> ConvLaunch | None:
        """Return the launch of an adjoint that ends a discriminator's block, with the skip, if there is one."""
        return self._narrow_adjoint(layer, samples, with_skip=True)

    def to_skip(self, layer: PlacedConv, samples: int, *, is_backward: bool) -> ConvLaunch | None:
        """Return the launch of a discriminator's skip, or of its adjoint, with fp16 results, if there is one."""
        if not (layer.is_skip and skip_conv_kernel(SKIP_COLUMNS[0]) in self.kernels):
            return None
        return skip_launch(layer, samples, self.multiprocessors, self.encode, is_backward=is_backward)

    def to_end(self, layer: PlacedConv, samples: int, *, is_backward: bool, taps: int = 0) -> ConvLaunch | None:
        """Return the launch of a convolution, or of its adjoint, with the end of a discriminator's, if there is one.

        Parameters
        ----------
        taps
            Macro of parts/discriminator_end.cuh.
        """
        kernel = ended_tile_kernel(taps, is_up=layer.is_up)
        is_there = kernel in self.kernels and self._is_tiled(layer, is_backward=is_backward)
        _, outputs = channels_of(layer, is_backward=is_backward)
        if not is_there or outputs <= PATCH_COLUMNS[-1] or self._slices(layer, samples, is_backward=is_backward) > 1:
            return None
        return tile_launch(kernel, layer, samples, 1, self.encode, is_backward=is_backward)

    def to_gradient(self, layer: PlacedConv, samples: int) -> ConvLaunch | None:
        """Return the launch of an adjoint that leaves fp16 gradients of its input, if there is one."""
        if not self._is_streamed(layer, samples):
            return self._narrow_adjoint(layer, samples, with_skip=False)
        kernel = streamed_adjoint_kernel(streamed_channels(layer))
        return self._streaming(kernel, layer, samples, is_backward=True)

    def to_join(self, layer: PlacedConv, samples: int, taps: int) -> ConvLaunch | None:
        """Return that of a discriminator's adjoint which adds the rest of the gradient; its filter has so many taps."""
        if not self._is_streamed(layer, samples):
            return None
        kernel = streamed_join_kernel(streamed_channels(layer), taps)
        return self._streaming(kernel, layer, samples, is_backward=True)

    def through_layer(self, layer: PlacedConv, samples: int) -> ConvLaunch | None:
        """Return the launch of an adjoint that goes back through the layer before, if there is one.

        For several samples it has as many blocks a sample for any number of them.
        """
        if self._is_streamed(layer, 1):
            kernel = streamed_way_back_kernel(streamed_channels(layer))
            return self._streaming(kernel, layer, samples, is_backward=True)
        end = self._tile_end(layer, samples, is_backward=True)
        if end is None:
            return None
        kernel = way_back_kernel(*end, is_up=layer.is_up)
        return tile_launch(kernel, layer, samples, end[1], self.encode, is_backward=True)

    def most_sums(self, layer: PlacedConv, samples: int) -> int:
        """Return the most numbers that `to_sums` leaves of a convolution or its adjoint, for up to so many samples."""
        return max(
            self._sums(layer, count, is_backward=is_backward)
            for is_backward in (False, True)
            for count in range(1, samples + 1)
        )

    def _sums(self, layer: PlacedConv, samples: int, *, is_backward: bool) -> int:
        """Return how many numbers `to_sums` leaves, if it is what computes them."""
        is_half = self.to_gradient(layer, samples) if is_backward else self.to_filter(layer, samples)
        if is_half or self._is_streamed(layer, samples):
            return 0
        geometry = layer.backward if is_backward else layer.forward
        slices = self._slices(layer, samples, is_backward=is_backward)
        return slices * samples * geometry.out_side**2 * channels_of(layer, is_backward=is_backward)[1]

    def _slices(self, layer: PlacedConv, samples: int, *, is_backward: bool) -> int:
        """Return into how many parts K is cut so that the device is full."""
        inputs, outputs = channels_of(layer, is_backward=is_backward)
        groups = -(-inputs // DEPTH)
        if self._is_tiled(layer, is_backward=is_backward):
            columns = columns_of(outputs, PATCH_COLUMNS)
            return self._most_slices(samples * tiles_of(layer.source), outputs, columns, groups)
        geometry, columns = layer.backward if is_backward else layer.forward, columns_of(outputs)
        tiles = [-(-samples * pixels // CONV_ROWS) * -(-outputs // columns) for pixels in geometry.pixels]
        taps = [int(count) for count in geometry.parities[:, 0]]
        # Parities differ in their taps: as many tiles as would do the same work with the most taps.
        even = sum(count * tap for count, tap in zip(tiles, taps, strict=True)) / max(taps)
        return max(1, min(int(2 * self.multiprocessors / even), max(taps) * groups // 2, _MOST_SLICES))

    def _tile_end(self, layer: PlacedConv, samples: int, *, is_backward: bool) -> tuple[int, int] | None:
        """Return the one of `TILE_ENDS` that a convolution or an adjoint takes to go on with its sums, if it does."""
        inputs, outputs = channels_of(layer, is_backward=is_backward)
        if outputs <= PATCH_COLUMNS[-1] or not self._is_on_hopper or (layer.is_up and not is_backward):
            return None
        ends = UP_TILE_ENDS if layer.is_up else TILE_ENDS
        tiles, groups = tiles_of(layer.source), -(-inputs // DEPTH)
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
        _, outputs = channels_of(layer, is_backward=is_backward)
        is_wide = outputs > (PATCH_COLUMNS if layer.is_up else CONV_COLUMNS)[-1] and layer.source >= _LEAST_SIDE
        return self._is_on_hopper and is_wide and (is_backward or not layer.is_up) and not layer.is_skip

    def _is_streamed(self, layer: PlacedConv, samples: int) -> bool:
        """Whether gradient_streaming_conv computes a convolution and its adjoint."""
        is_wide = samples * layer.source**2 >= _LEAST_STREAMED
        is_plain = not layer.is_up and not layer.is_skip
        return self._is_on_hopper and is_plain and is_wide and max(layer.inputs, layer.outputs) <= STREAMED_CHANNELS[-1]

    def _streaming(
        self, kernel: KernelRecipe, layer: PlacedConv, samples: int, *, is_backward: bool = False
    ) -> ConvLaunch:
        return streaming_launch(kernel, layer, samples, self.multiprocessors, self.encode, is_backward=is_backward)

    def _narrow_adjoint(self, layer: PlacedConv, samples: int, *, with_skip: bool) -> ConvLaunch | None:
        if not is_narrow(layer) or narrow_up_adjoint_kernel(with_skip=with_skip) not in self.kernels:
            return None
        return narrow_adjoint_launch(layer, samples, self.multiprocessors, self.encode, with_skip=with_skip)

    @property
    def _stages(self) -> ConvStages:
        """The stages of the gradient_conv that this device has."""
        is_there = conv_kernel(CONV_COLUMNS[0], CONV_STAGES) in self.kernels
        return CONV_STAGES if is_there else TURING_CONV_STAGES

    @property
    def _is_on_hopper(self) -> bool:
        return up_conv_kernel(1) in self.kernels
