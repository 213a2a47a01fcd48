"""CUDA kernels of the steps of drags and of searches for a picture, and their recipes.

They include parts here and of `gpu_backend.ops.kernels`.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_backend.ops.kernels.recipe import KernelRecipe

CONV_COLUMNS = (128, 64, 32)
"""Output channels of a convolution's tile."""


@dataclass(frozen=True, slots=True)
class GradientKernel(KernelRecipe):
    """A kernel of a step."""

    @property
    def package(self) -> str:
        """The package that holds the source."""
        return __name__


def kernels_of_step(taps: int) -> tuple[KernelRecipe, ...]:
    """Return the kernels of a network whose resampling filter has so many taps, the heaviest first."""
    return (
        *(conv_kernel(columns) for columns in CONV_COLUMNS),
        *(GradientKernel("gradient_layer", (("TAPS", str(count)),)) for count in (taps, 0)),
        GradientKernel("gradient_filter", (("TAPS", str(taps)),)),
        *(activation_kernel(with_rgb=rgb) for rgb in (True, False)),
        *(GradientKernel(f"gradient_{stem}") for stem in _PLAIN),
    )


def conv_kernel(columns: int) -> GradientKernel:
    """Return the convolution with tiles of so many channels, one of `CONV_COLUMNS`."""
    return GradientKernel("gradient_conv", (("COLUMNS", str(columns)),))


def activation_kernel(*, with_rgb: bool) -> GradientKernel:
    """Return the way back through the end of a layer, with toRGB's part or without."""
    return GradientKernel("gradient_activation", (("RGB", str(int(with_rgb))),))


_PLAIN = (
    *("reduce", "styles", "demod", "sums", "demod_adjoint", "affine_adjoint"),
    *("picture", "picture_adjoint", "windows", "pixels", "map", "loss", "handles", "motion", "adam"),
)
