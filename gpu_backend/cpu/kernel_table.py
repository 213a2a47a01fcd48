"""Table of CPU kernels by operation."""

from __future__ import annotations

from collections.abc import Callable

from gpu_backend.cpu.adain import AdainKernel
from gpu_backend.cpu.bend_channels import BendChannelsKernel
from gpu_backend.cpu.blend_samples import BlendSamplesKernel
from gpu_backend.cpu.elementwise import AddKernel, ConstantKernel, ToDisplayKernel
from gpu_backend.cpu.filtered_lrelu import FilteredLreluKernel
from gpu_backend.cpu.fourier_features import FourierFeaturesKernel
from gpu_backend.cpu.kernel import Kernel, Site
from gpu_backend.cpu.modulated_conv import make_convolution_kernel
from gpu_backend.cpu.modulated_up_conv import make_up_conv_kernel
from gpu_backend.cpu.rows import ConcatKernel, EmbeddingKernel, FullyConnectedKernel, Normalize
from gpu_backend.cpu.skip_conv import SkipConvKernel
from gpu_backend.cpu.styles import StylesKernel
from gpu_backend.cpu.tap_display import TapDisplayKernel
from gpu_backend.cpu.to_rgb import ToRgbKernel
from gpu_backend.plan.plan import Step

KERNELS: dict[str, Callable[[Step, Site], Kernel]] = {
    "adain_conv": AdainKernel,
    "adain_input": AdainKernel,
    "adain_up_conv": AdainKernel,
    "add": AddKernel,
    "bend_channels": BendChannelsKernel,
    "blend_samples": BlendSamplesKernel,
    "concat": ConcatKernel,
    "constant": ConstantKernel,
    "embedding": EmbeddingKernel,
    "filtered_lrelu": FilteredLreluKernel,
    "fourier_features": FourierFeaturesKernel,
    "fully_connected": FullyConnectedKernel,
    "modulated_conv": make_convolution_kernel,
    "modulated_up_conv": make_up_conv_kernel,
    "normalize_2nd_moment": Normalize,
    "skip_conv": SkipConvKernel,
    "styles": StylesKernel,
    "tap_display": TapDisplayKernel,
    "to_display": ToDisplayKernel,
    "to_rgb": ToRgbKernel,
}
"""Operation name -> factory that binds a step."""
