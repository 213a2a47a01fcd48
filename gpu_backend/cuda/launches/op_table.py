"""Table of GPU operations by name."""

from __future__ import annotations

from gpu_backend.cuda.launches.adain import AdainConvOp, AdainInputOp
from gpu_backend.cuda.launches.bend_channels import BendChannelsOp
from gpu_backend.cuda.launches.blend_samples import BlendSamplesOp
from gpu_backend.cuda.launches.conv_op import FourierFeaturesOp, ModulatedConvOp, SkipConvOp
from gpu_backend.cuda.launches.filtered_lrelu import FilteredLreluOp
from gpu_backend.cuda.launches.first_layers import FirstLayersOp
from gpu_backend.cuda.launches.gpu_op import GpuOp
from gpu_backend.cuda.launches.mapping import (
    MappingOp,
    concat_launch,
    embedding_launch,
    fully_connected_launch,
    normalize_launch,
)
from gpu_backend.cuda.launches.tap_display import TapDisplayOp
from gpu_backend.cuda.launches.to_rgb import ToRgbOp

GPU_OPS: dict[str, GpuOp] = {
    "adain_conv": AdainConvOp(),
    "adain_input": AdainInputOp(),
    "adain_up_conv": AdainConvOp(),
    "bend_channels": BendChannelsOp(),
    "blend_samples": BlendSamplesOp(),
    "concat": MappingOp(concat_launch),
    "embedding": MappingOp(embedding_launch),
    "filtered_lrelu": FilteredLreluOp(),
    "fourier_features": FourierFeaturesOp(),
    "fully_connected": MappingOp(fully_connected_launch),
    "modulated_conv": ModulatedConvOp(),
    "modulated_up_conv": ModulatedConvOp(),
    "normalize_2nd_moment": MappingOp(normalize_launch),
    "skip_conv": SkipConvOp(),
    "styles": FirstLayersOp(),
    "tap_display": TapDisplayOp(),
    "to_rgb": ToRgbOp(),
}
"""Operation of `gpu_backend.plan.fusion.FusedStep.main` -> how it becomes launches."""
