"""Recipes of the CUDA kernels of a discriminator's features, forward and back to the picture."""

from __future__ import annotations

from gpu_backend.gradients.gpu.kernels import (
    CONV_COLUMNS,
    CONV_STAGES,
    SKIP_COLUMNS,
    STREAMED_CHANNELS,
    TURING_CONV_STAGES,
    ConvStages,
    GradientKernel,
    ended_tile_kernel,
    filter_kernel,
    kernels_of_step,
    narrow_up_adjoint_kernel,
    skip_adjoint_kernel,
    skip_conv_kernel,
    streamed_join_kernel,
    streamed_layer_kernel,
)
from gpu_backend.ops.kernels.recipe import KernelRecipe

_NARROW = ConvStages(3, 32)
"""For so few input channels that a deeper stage would be half empty."""
_SHARED = (
    *("gradient_conv", "gradient_patch_conv", "gradient_up_adjoint"),
    *("gradient_up_conv", "gradient_narrow_up_conv"),
)
"""Stems of kernels of a generator's step that `ConvChoice` launches."""


def kernels_of_discriminator(taps: int, colours: int, architecture: str) -> tuple[KernelRecipe, ...]:
    """Return the kernels of a discriminator whose filter has so many taps, and pictures so many colours.

    Parameters
    ----------
    architecture
        That kernels are compiled for.
    """
    return (
        *own_kernels_of_discriminator(taps, colours, architecture),
        filter_kernel(taps),
        skip_adjoint_kernel(taps),
        *(
            recipe
            for recipe in kernels_of_step(taps, architecture, with_skips=False)
            if recipe.stem in _SHARED and dict(recipe.defines).get("WAY_BACK") != "1"
        ),
        *(streamed_layer_kernel(channels) for channels in STREAMED_CHANNELS if architecture == "sm_90a"),
    )


def own_kernels_of_discriminator(taps: int, colours: int, architecture: str) -> tuple[KernelRecipe, ...]:
    """Return those that nothing else uses, the heaviest first."""
    is_turing = architecture == "sm_75"
    return (
        *(
            ended_conv_kernel(columns, stages, taps=joined)
            for joined in (taps, 0)
            for columns in CONV_COLUMNS
            for stages in ((TURING_CONV_STAGES,) if is_turing else (CONV_STAGES, _NARROW))
        ),
        *(ended_kernels_of_hopper(taps) if architecture == "sm_90a" else ()),
        *(streamed_join_kernel(channels, taps) for channels in STREAMED_CHANNELS if architecture == "sm_90a"),
        filter_adjoint_kernel(taps),
        *(end_kernel(joined) for joined in (taps, 0)),
        rgb_kernel(colours),
        rgb_adjoint_kernel(colours),
        GradientKernel("discriminator_distance"),
    )


def ended_kernels_of_hopper(taps: int) -> tuple[GradientKernel, ...]:
    """Return a block's second convolution, the adjoint of its first one and its skip for Hopper, with their ends."""
    return (
        ended_tile_kernel(0, is_up=True),
        ended_tile_kernel(taps, is_up=False),
        narrow_up_adjoint_kernel(with_skip=True),
        *(skip_conv_kernel(columns) for columns in SKIP_COLUMNS),
    )


def stages_of(inputs: int, *, is_turing: bool) -> ConvStages:
    """Return the stages of discriminator_conv for so many input channels."""
    if is_turing:
        return TURING_CONV_STAGES
    return _NARROW if inputs <= _NARROW.depth else CONV_STAGES


def ended_conv_kernel(columns: int, stages: ConvStages, *, taps: int) -> GradientKernel:
    """Return the convolution with its end, with tiles of so many channels, one of `CONV_COLUMNS`; taps as below."""
    macros = {"COLUMNS": columns, "STAGES": stages.count, "DEPTH": stages.depth, "TAPS": taps}
    return GradientKernel.of("discriminator_conv", **macros)


def filter_adjoint_kernel(taps: int) -> GradientKernel:
    """Return the adjoint of the filter before a convolution with stride 2."""
    return GradientKernel.of("discriminator_filter_adjoint", TAPS=taps)


def end_kernel(taps: int) -> GradientKernel:
    """Return the end of a convolution, which adds gradients of a skip and of a map where the filter has taps."""
    return GradientKernel.of("discriminator_end", TAPS=taps)


def rgb_kernel(colours: int) -> GradientKernel:
    """Return the first layer."""
    return GradientKernel.of("discriminator_rgb", COLOURS=colours)


def rgb_adjoint_kernel(colours: int) -> GradientKernel:
    """Return the adjoint of the first layer."""
    return GradientKernel.of("discriminator_rgb_adjoint", COLOURS=colours)
