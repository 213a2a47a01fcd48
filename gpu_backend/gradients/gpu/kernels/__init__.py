"""CUDA kernels of the steps of drags and of searches for a picture, and their recipes.

They include parts here and of `gpu_backend.ops.kernels`.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_backend.ops.kernels.recipe import KernelRecipe

CONV_COLUMNS = (128, 64, 32)
"""Output channels of a convolution's tile."""
PATCH_COLUMNS = (128, 64)
"""The same of gradient_patch_conv."""
STRIP_ROWS = (4, 1)
"""Rows that a thread filters: four read less, one fills the device where a layer is small."""


@dataclass(frozen=True, slots=True)
class GradientKernel(KernelRecipe):
    """A kernel of a step."""

    @property
    def package(self) -> str:
        """The package that holds the source."""
        return __name__


def kernels_of_step(taps: int, architecture: str) -> tuple[KernelRecipe, ...]:
    """Return the kernels of a network whose resampling filter has so many taps, the heaviest first.

    Parameters
    ----------
    architecture
        That kernels are compiled for. gradient_patch_conv is for Hopper.
    """
    return (
        *(patch_conv_kernel(columns) for columns in PATCH_COLUMNS if architecture == "sm_90a"),
        *(conv_kernel(columns) for columns in CONV_COLUMNS),
        *(layer_kernel(taps, rows=rows) for rows in STRIP_ROWS),
        *(filter_kernel(taps, rows=rows) for rows in STRIP_ROWS),
        layer_kernel(0, rows=1),
        *(activation_kernel(with_rgb=rgb) for rgb in (True, False)),
        *(GradientKernel(f"gradient_{stem}") for stem in _PLAIN),
    )


def conv_kernel(columns: int) -> GradientKernel:
    """Return the convolution with tiles of so many channels, one of `CONV_COLUMNS`."""
    return GradientKernel("gradient_conv", (("COLUMNS", str(columns)),))


def patch_conv_kernel(columns: int) -> GradientKernel:
    """Return the convolution with stride 1 for Hopper, with tiles of so many channels, one of `PATCH_COLUMNS`."""
    return GradientKernel.of("gradient_patch_conv", COLUMNS=columns)


def layer_kernel(taps: int, *, rows: int) -> GradientKernel:
    """Return the end of a layer, after a filter of so many taps, where a thread does so many rows, or without one."""
    return GradientKernel.of("gradient_layer", TAPS=taps, STRIP_ROWS=rows)


def filter_kernel(taps: int, *, rows: int) -> GradientKernel:
    """Return the adjoint of the filter; a thread does so many rows."""
    return GradientKernel.of("gradient_filter", TAPS=taps, STRIP_ROWS=rows)


def activation_kernel(*, with_rgb: bool) -> GradientKernel:
    """Return the way back through the end of a layer, with toRGB's part or without."""
    return GradientKernel("gradient_activation", (("RGB", str(int(with_rgb))),))


_PLAIN = (
    *("reduce", "styles", "demod", "sums", "demod_adjoint", "affine_adjoint"),
    *("picture", "picture_adjoint", "windows", "pixels", "map", "loss", "handles", "motion", "adam"),
)
