"""StyleGAN1's layers as operations on a GPU: a convolution or the learned constant, then instance normalisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from gpu_backend.cuda.launches.adain import AdainSite, adain, adain_input, adain_recipe, plain_adain
from gpu_backend.cuda.launches.conv_op import conv_shape, conv_site
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork
from gpu_backend.cuda.launches.fused_convs import conv_geometry, fused_conv, fused_recipe
from gpu_backend.cuda.launches.gpu_op import (
    OBSERVED,
    Fused,
    GpuOp,
    LoweringContext,
    Observation,
    Refused,
    channels_first,
)
from gpu_backend.cuda.launches.plain_convs import plain_conv
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.launches.weight_exponent import weight_exponent
from gpu_backend.cuda.schedule import Built, Launch, Region
from gpu_backend.ops.kernels.conv_tile import ConvGeometry, ConvShape
from gpu_backend.plan.fusion import FusedStep
from gpu_backend.plan.plan import Step

_LABELS = ("adain_input", "adain", "plain_adain")


class AdainInputOp(GpuOp):
    """The first layer: noise, bias, activation and normalisation of the learned constant, in one kernel."""

    def plain(self, step: FusedStep, context: LoweringContext, reason: str) -> Built:
        (constant,) = step.absorbed
        return adain_input(step.main, _site(step, context), context.weights, constant.weights["const"])

    def observe(self, step: Step, launch: Launch, regions: Mapping[str, Region]) -> Observation | None:
        return _observed(step, launch, regions)


class AdainConvOp(GpuOp):
    """A convolution and its normalisation: both fused, since the convolution accumulates the moments, or both plain."""

    def fused(self, step: FusedStep, context: LoweringContext) -> Fused | Refused:
        site = _site(step, context)
        work, conv = self._conv(step, site, context)
        asked = replace(conv, moments=site.moments)
        geometry = conv_geometry(work, asked, context.target)
        if isinstance(geometry, Refused):
            return geometry
        recipes = fused_recipe(work, asked, geometry), adain_recipe(step.main, site, context.target)
        return Fused(recipes, partial(self._fused, step, site, work, asked, geometry, context))

    def plain(self, step: FusedStep, context: LoweringContext, reason: str) -> Built:
        site = _site(step, context)
        work, conv = self._conv(step, site, context)
        before = plain_conv(work, conv, context.weights, context.target, reason=reason)
        return Built.joined((before, plain_adain(step.main, site, context.weights, reason=reason)))

    def observe(self, step: Step, launch: Launch, regions: Mapping[str, Region]) -> Observation | None:
        return _observed(step, launch, regions)

    def shape_for_tuning(self, step: Step, batch: int) -> ConvShape | None:
        return conv_shape(step, batch)

    def _conv(self, step: FusedStep, site: AdainSite, context: LoweringContext) -> tuple[ConvWork, ConvSite]:
        work = ConvWork.of_step(step.main)
        weight = context.weights[work.weight]
        exponent = weight_exponent(weight * np.float32(work.weight_scale)) if context.half else 0
        stored = replace(step, y=site.x, to_rgb=None)
        return work, replace(conv_site(stored, context), weight_exponent=exponent)

    def _fused(
        self,
        step: FusedStep,
        site: AdainSite,
        work: ConvWork,
        conv: ConvSite,
        geometry: ConvGeometry,
        context: LoweringContext,
    ) -> Built:
        normal = adain(step.main, site, context.weights, context.target, geometry)
        return Built.joined((fused_conv(work, conv, context.weights, geometry), normal))


def _site(step: FusedStep, context: LoweringContext) -> AdainSite:
    out = step.main.outputs[0]
    return AdainSite(
        batch=context.batch,
        half=context.half,
        x=f"{out}/activated",
        moments=f"{out}/moments",
        y=out,
        style_offset=context.style_offset(step.main),
        style_stride=context.layout.style_width,
        rgb=None if step.to_rgb is None else context.rgb_part(step.to_rgb),
    )


def _observed(step: Step, launch: Launch, regions: Mapping[str, Region]) -> Observation | None:
    """Observe a normalisation: its output, which it does not store if it computes toRGB's products."""
    if launch.label not in _LABELS:
        return None
    batch, side, _, channels = step.attributes.output_shape(regions["styles"].shape[0])
    dtype = "float16" if dict(launch.recipe.defines)["HALF"] == "1" else "float32"
    return Observation(
        (batch, side, side, pad8(channels)), dtype, partial(channels_first, channels=channels), {"y": OBSERVED}
    )
