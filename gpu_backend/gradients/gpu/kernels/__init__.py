"""CUDA kernels of a drag's step, and their recipes. They include parts here and of `gpu_backend.ops.kernels`."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_backend.ops.kernels.recipe import KernelRecipe


@dataclass(frozen=True, slots=True)
class GradientKernel(KernelRecipe):
    """A kernel of a drag's step."""

    @property
    def package(self) -> str:
        """The package that holds the source."""
        return __name__


def kernels_of_step(taps: int) -> tuple[KernelRecipe, ...]:
    """Return the kernels of a network whose resampling filter has so many taps, the heaviest first."""
    return (
        *(GradientKernel("gradient_conv", (("BFLOAT", bfloat),)) for bfloat in ("1", "0")),
        *(GradientKernel("gradient_layer", (("TAPS", str(count)),)) for count in (taps, 0)),
        GradientKernel("gradient_filter", (("TAPS", str(taps)),)),
        *(GradientKernel(f"gradient_{stem}") for stem in _PLAIN),
    )


_PLAIN = (
    *("reduce", "activation", "styles", "demod", "sums", "demod_adjoint", "affine_adjoint"),
    *("picture", "loss", "handles", "motion", "adam"),
)
