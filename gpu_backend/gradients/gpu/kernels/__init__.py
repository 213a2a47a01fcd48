"""CUDA kernels of the steps of drags and of searches for a picture, and their recipes.

They include parts here and of `gpu_backend.ops.kernels`.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_backend.gradients.quasi_newton import HISTORY
from gpu_backend.ops.kernels.recipe import KernelRecipe

CONV_COLUMNS = (128, 64, 32)
"""Output channels of a convolution's tile."""
CONV_ROWS = 128
"""Pixels of it."""
PATCH_COLUMNS = (128, 64)
"""The same of gradient_patch_conv."""
UP_COLUMNS = 64
"""The same of gradient_up_conv."""
NARROW_CHANNELS, NARROW_DEPTH = 32, 64
"""Output channels of a block of gradient_narrow_up_conv, and input channels of a group. Its adjoint reads so many
channels, and writes up to so many."""
NARROW_GROUPS = (1, 2)
"""Groups of input channels of gradient_narrow_up_conv, and tiles of its output channels."""
SKIP_COLUMNS = (128, 64, 32)
"""Output channels of a block of discriminator_skip."""
UP_CLUSTERS = (1, 2, 3, 4, 8)
"""Blocks of it that may share K."""
_PATCH_STAGES = {128: 3, 64: 4, 32: 6}
"""Stages of three taps of gradient_patch_conv, by the channels of its tile: as many as find room."""
_UP_ADJOINT_STAGES, _UP_STAGES = 7, 4
"""Stages of a tap of gradient_up_adjoint, and of three taps of gradient_up_conv."""
TILE_ENDS = ((128, 2), (128, 1), (64, 8), (64, 4), (32, 2))
"""Output channels of a tile and slices of split-K of convolutions on Hopper that end a layer or go back through one."""
UP_TILE_ENDS = TILE_ENDS[:-1]
"""The same of the adjoint of a transposed convolution, of which narrower tiles gain nothing."""
PICTURE_LANES = (4, 32)
"""Threads of a pixel of gradient_picture: few read more together, many fill the device where a picture is small."""
ROW_CLUSTER = 8
"""Blocks of gradient_rows that do a row of w together on Hopper."""
STREAMED_CHANNELS = (32, 64)
"""The most input and output channels of gradient_streaming_conv."""
_STREAMS = {32: (4, 5), 64: (2, 4)}
"""Warpgroups of a block of it and stages of each, by these: as many as have registers and shared memory."""
_LOOKAHEAD = {32: 2, 64: 4}
"""Groups of channels whose share of the rest of a gradient is under way."""


@dataclass(frozen=True, slots=True)
class GradientKernel(KernelRecipe):
    """A kernel of a step."""

    @property
    def package(self) -> str:
        """The package that holds the source."""
        return __name__


@dataclass(frozen=True, slots=True)
class ConvStages:
    """Stages of gradient_conv's pipeline.

    Attributes
    ----------
    count
        Stages.
    depth
        Input channels of one.
    """

    count: int
    depth: int

    def nbytes(self, columns: int) -> int:
        """Return the shared memory of a block whose tile has so many channels."""
        return self.count * (CONV_ROWS + columns) * self.depth * 2


CONV_STAGES = ConvStages(3, 64)
TURING_CONV_STAGES = ConvStages(2, 32)
"""For a multiprocessor with 64 KiB of shared memory, which holds two blocks. Its copies are not asynchronous."""


def kernels_of_step(taps: int, architecture: str, *, with_skips: bool) -> tuple[KernelRecipe, ...]:
    """Return the kernels of a network whose resampling filter has so many taps, the heaviest first.

    Parameters
    ----------
    architecture
        That kernels are compiled for. gradient_patch_conv is for Hopper.
    with_skips
        With the kernels of a resnet.
    """
    stages = TURING_CONV_STAGES if architecture == "sm_75" else CONV_STAGES
    return (
        *(_kernels_of_hopper(taps) if architecture == "sm_90a" else ()),
        *(conv_kernel(columns, stages) for columns in CONV_COLUMNS),
        layer_kernel(taps),
        filter_kernel(taps),
        layer_kernel(0),
        *_activation_kernels(architecture, with_skip=False),
        *(_kernels_of_skips(taps, architecture) if with_skips else ()),
        *(picture_kernel(taps, lanes) for lanes in PICTURE_LANES),
        picture_adjoint_kernel(taps),
        rows_kernel(ROW_CLUSTER if architecture == "sm_90a" else 1),
        *(GradientKernel(f"gradient_{stem}") for stem in _PLAIN),
        *LBFGS_KERNELS,
    )


def conv_kernel(columns: int, stages: ConvStages) -> GradientKernel:
    """Return the convolution with tiles of so many channels, one of `CONV_COLUMNS`."""
    return GradientKernel.of("gradient_conv", COLUMNS=columns, STAGES=stages.count, DEPTH=stages.depth)


def patch_conv_kernel(columns: int) -> GradientKernel:
    """Return the convolution with stride 1 for Hopper, with tiles of so many channels, one of `PATCH_COLUMNS`."""
    return _tile_kernel("gradient_patch_conv", columns=columns)


def streamed_layer_kernel(channels: int) -> GradientKernel:
    """Return the convolution of a wide picture with the end of its layer, for one of `STREAMED_CHANNELS`."""
    return _streaming_kernel(channels, LAYER_END=1)


def streamed_way_back_kernel(channels: int) -> GradientKernel:
    """Return its adjoint, which goes back through the layer before."""
    return _streaming_kernel(channels, WAY_BACK=1)


def streamed_adjoint_kernel(channels: int) -> GradientKernel:
    """Return its adjoint, which leaves fp16 gradients."""
    return _streaming_kernel(channels)


def streamed_join_kernel(channels: int, taps: int) -> GradientKernel:
    """Return the same for a discriminator, which adds the rest of the gradient; its filter has so many taps."""
    return _streaming_kernel(channels, TAPS=taps, LOOKAHEAD=_LOOKAHEAD[channels])


def _streaming_kernel(channels: int, **end: int) -> GradientKernel:
    warpgroups, stages = _STREAMS[channels]
    macros = {"CHANNELS": channels, "DEPTH": channels, "WARPGROUPS": warpgroups, "STAGES": stages}
    return GradientKernel.of("gradient_streaming_conv", **macros, **end)


def layer_conv_kernel(columns: int, slices: int) -> GradientKernel:
    """Return the same with the end of its layer, for one of `TILE_ENDS`."""
    return _tile_kernel("gradient_patch_conv", columns=columns, layer_end=True, cluster=slices)


def way_back_kernel(columns: int, slices: int, *, is_up: bool) -> GradientKernel:
    """Return the adjoint of a convolution on Hopper that goes back through the layer before, for one of `TILE_ENDS`."""
    stem = "gradient_up_adjoint" if is_up else "gradient_patch_conv"
    return _tile_kernel(stem, columns=columns, way_back=True, cluster=slices)


def up_adjoint_kernel() -> GradientKernel:
    """Return the adjoint of a transposed convolution for Hopper."""
    return _tile_kernel("gradient_up_adjoint")


def narrow_up_conv_kernel(groups: int) -> GradientKernel:
    """Return the transposed convolution for Hopper with few channels, one of `NARROW_GROUPS`."""
    return GradientKernel.of("gradient_narrow_up_conv", GROUPS=groups)


def narrow_up_adjoint_kernel(*, with_skip: bool) -> GradientKernel:
    """Return the adjoint of that with one group, with fp16 results; with a skip it ends a discriminator's block."""
    return GradientKernel.of("gradient_narrow_up_adjoint", SKIP=with_skip)


def up_conv_kernel(cluster: int) -> GradientKernel:
    """Return the transposed convolution for Hopper, of which so many blocks share K, one of `UP_CLUSTERS`."""
    return GradientKernel.of("gradient_up_conv", COLUMNS=UP_COLUMNS, STAGES=_UP_STAGES, CLUSTER=cluster)


def skip_conv_kernel(columns: int) -> GradientKernel:
    """Return the convolution of a discriminator's skip for Hopper, one of `SKIP_COLUMNS` of a block."""
    return GradientKernel.of("discriminator_skip", COLUMNS=columns)


def ended_tile_kernel(taps: int, *, is_up: bool) -> GradientKernel:
    """Return a convolution of a discriminator for Hopper, or an adjoint, with its end; taps as of discriminator_end."""
    stem = "gradient_up_adjoint" if is_up else "gradient_patch_conv"
    plain = _tile_kernel(stem)
    own = {"DISCRIMINATOR": 1} | ({} if is_up else {"TAPS": taps})
    return GradientKernel.of(stem, **{name: int(value) for name, value in plain.defines}, **own)


def _tile_kernel(
    stem: str, *, columns: int = PATCH_COLUMNS[0], layer_end: bool = False, way_back: bool = False, cluster: int = 0
) -> GradientKernel:
    stages = _UP_ADJOINT_STAGES if stem == "gradient_up_adjoint" else _PATCH_STAGES[columns]
    return GradientKernel.of(
        stem, COLUMNS=columns, STAGES=stages, LAYER_END=layer_end, WAY_BACK=way_back, CLUSTER=cluster
    )


def _kernels_of_hopper(taps: int) -> tuple[GradientKernel, ...]:
    return (
        *(way_back_kernel(*end, is_up=False) for end in TILE_ENDS[::-1]),
        *(way_back_kernel(*end, is_up=True) for end in UP_TILE_ENDS[::-1]),
        *(layer_conv_kernel(*end) for end in TILE_ENDS[::-1]),
        *(patch_conv_kernel(columns) for columns in PATCH_COLUMNS),
        *(streamed_layer_kernel(channels) for channels in STREAMED_CHANNELS),
        *(streamed_way_back_kernel(channels) for channels in STREAMED_CHANNELS),
        *(streamed_adjoint_kernel(channels) for channels in STREAMED_CHANNELS),
        up_adjoint_kernel(),
        *(up_conv_kernel(cluster) for cluster in UP_CLUSTERS[::-1]),
        *(narrow_up_conv_kernel(groups) for groups in NARROW_GROUPS[::-1]),
        narrow_up_adjoint_kernel(with_skip=False),
        layer_kernel(taps, reads_half=True),
    )


def layer_kernel(taps: int, *, reads_half: bool = False) -> GradientKernel:
    """Return the end of a layer, after a filter of so many taps, or without one.

    With `reads_half` it filters what gradient_up_conv leaves.
    """
    return GradientKernel.of("gradient_layer", TAPS=taps, HALF_T=reads_half)


def filter_kernel(taps: int) -> GradientKernel:
    """Return the adjoint of the filter."""
    return GradientKernel.of("gradient_filter", TAPS=taps)


def activation_kernel(*, with_rgb: bool, with_skip: bool, from_half: bool) -> GradientKernel:
    """Return the way back through the end of a layer.

    Parameters
    ----------
    with_rgb
        With toRGB's part.
    with_skip
        Of a resnet's block.
    from_half
        From an fp16 gradient of the layer's output.
    """
    return GradientKernel.of("gradient_activation", RGB=with_rgb, SKIP=with_skip, HALF_G=from_half)


def _activation_kernels(architecture: str, *, with_skip: bool) -> tuple[GradientKernel, ...]:
    """Return those of a network.

    A gradient of features, which is fp16, has no part of toRGB. Adjoints of convolutions leave fp16 on Hopper alone, of
    a resnet only such as toRGB does not join.
    """
    kinds = (True, False), (False, False), (False, True)
    joined = ((True, True),) if architecture == "sm_90a" and not with_skip else ()
    return tuple(
        activation_kernel(with_rgb=rgb, with_skip=with_skip, from_half=half) for rgb, half in (*kinds, *joined)
    )


def picture_kernel(taps: int, lanes: int) -> GradientKernel:
    """Return the picture of a block with a filter of so many taps, for one of `PICTURE_LANES`."""
    return GradientKernel.of("gradient_picture", TAPS=taps, LANES=lanes)


def picture_adjoint_kernel(taps: int) -> GradientKernel:
    """Return the adjoint of doubling a picture."""
    return GradientKernel.of("gradient_picture_adjoint", TAPS=taps)


def rows_kernel(cluster: int) -> GradientKernel:
    """Return what turns the sums of a way back into gradients of rows of w; so many blocks do a row."""
    return GradientKernel.of("gradient_rows", CLUSTER=cluster)


def skip_kernel(taps: int) -> GradientKernel:
    """Return the end of a resnet's block."""
    return GradientKernel.of("gradient_skip", TAPS=taps)


def skip_adjoint_kernel(taps: int) -> GradientKernel:
    """Return the adjoint of doubling a block's skip."""
    return GradientKernel.of("gradient_skip_adjoint", TAPS=taps)


def _kernels_of_skips(taps: int, architecture: str) -> tuple[GradientKernel, ...]:
    return (
        *_activation_kernels(architecture, with_skip=True),
        skip_kernel(taps),
        skip_adjoint_kernel(taps),
    )


_PLAIN = (
    *("reduce", "styles", "demod"),
    *("pixels", "map", "loss", "handles", "largest", "scaled"),
)
LBFGS_KERNELS = tuple(
    GradientKernel.of(f"lbfgs_{stem}", PAIRS=HISTORY) for stem in ("products", "solve", "direction", "move")
)
"""Of a step of L-BFGS, in order."""
