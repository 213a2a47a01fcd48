"""From a plan to launches: which steps become one kernel, what lies where.

On a GPU the steps of a plan melt together. The learned constant is made with the styles; a convolution's epilogue takes
the style of the convolution that reads it, resnet's sum and its share of toRGB, whose sum makes the bytes. A
StyleGAN3's filtered activation takes the next style, or brings a share of the picture. A StyleGAN1's normalisation
follows its convolution, which sums for it. A layer that is shown takes nobody's style. Plans for fp32, and kernels that
failed on this GPU, run the plain kernels instead, which share the layout of every region.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.adain import AdainSite, adain, adain_input, adain_recipe, plain_adain
from gpu_backend.cuda.launches.built import Built
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork, RgbPart, SkipPicture
from gpu_backend.cuda.launches.doubled import doubled
from gpu_backend.cuda.launches.filtered_lrelu import (
    FilterSite,
    filter_geometry,
    fused_filter,
    fused_filter_recipe,
    plain_filter,
)
from gpu_backend.cuda.launches.fourier_features import mixing, sines
from gpu_backend.cuda.launches.fused_convs import conv_geometry, fused_conv, fused_recipe
from gpu_backend.cuda.launches.mapping import mapping_launches
from gpu_backend.cuda.launches.plain_convs import plain_modulated_conv, plain_modulated_up_conv
from gpu_backend.cuda.launches.styles import styles_launch
from gpu_backend.cuda.launches.tap_display import tap_display
from gpu_backend.cuda.launches.to_rgb import plain_to_rgb, to_rgb
from gpu_backend.cuda.launches.weight_exponent import weight_exponent
from gpu_backend.cuda.schedule import Address, Constant, Launch, Region, Schedule
from gpu_backend.cuda.style_layout import StyleLayout
from gpu_backend.cuda.target import Target
from gpu_backend.model.model import Weights
from gpu_backend.ops.skip_conv import SkipConv
from gpu_backend.ops.styles import Styles, StyleSlot
from gpu_backend.ops.to_display import MIDDLE
from gpu_backend.ops.to_rgb import UNSTYLED, ToRgb
from gpu_backend.plan.arena import ALIGNMENT, place
from gpu_backend.plan.plan import Buffer, Plan, Step

_CONVOLUTIONS = ("modulated_conv", "modulated_up_conv")
_ADAIN = ("adain_input", "adain_conv", "adain_up_conv")


def lower(
    plan: Plan,
    weights: Weights,
    target: Target,
    *,
    plain: Mapping[str, str] | None = None,
    everything_plain: bool = False,
) -> Schedule:
    """Return the launches of a plan on a GPU.

    Parameters
    ----------
    plain
        Digests of kernel recipes that shall not run, and why: plain kernels take their place.
    everything_plain
        No fused kernel at all; plans for fp32 are always so.
    """
    if plan.key.part == "mapping":
        return _placed(plan, mapping_launches(plan, weights))
    synthesis = _Synthesis(plan, weights, target, plain or {}, everything_plain)
    return _placed(plan, synthesis.build(), synthesis.starts)


class _Synthesis:
    """Lowers a synthesis plan step by step."""

    def __init__(
        self, plan: Plan, weights: Weights, target: Target, plain: Mapping[str, str], everything_plain: bool
    ) -> None:
        self.plan = plan
        self.weights = weights
        self.target = target
        self.plain = plain
        self.half = plan.key.precision == "fp16"
        self.is_plain = everything_plain or not self.half
        self.readers = _readers(plan)
        self.styles = next((step for step in plan.steps if step.op == "styles"), None)
        styles = Styles(0, (), 0, 0) if self.styles is None else self.styles.attributes
        self.layout = StyleLayout(styles)
        self.slots: dict[str, StyleSlot] = {slot.layer: slot for slot in styles.slots}
        self.skips: dict[str, SkipPicture] = {}
        """Doubled picture's buffer in the plan -> the small one that is added instead."""
        self.part_counts: dict[str, int] = {}
        """Region of toRGB's parts -> how many there are."""
        self.starts: dict[str, NDArray[Any]] = {}
        """Input -> what it holds at the beginning."""

    def build(self) -> Built:
        """Build every step; the constant, resnet's sum and the display ride along with others."""
        batch = self.plan.key.batch
        parts = [Built((), (), (*self._inputs(), Region("flags", (batch,), "uint32", "output")))]
        if self.styles is not None:
            parts.append(self._styles(self.styles))
        for step in self.plan.steps:
            if step.op == "fourier_features":
                parts.append(self._features(step))
            elif step.op == "filtered_lrelu":
                parts.append(self._filtered(step))
            elif step.op in _CONVOLUTIONS:
                parts.append(self._conv(step))
            elif step.op in _ADAIN:
                parts.append(self._adain(step))
            elif step.op == "skip_conv":
                parts.append(self._skip(step))
            elif step.op == "to_rgb":
                parts.append(self._to_rgb(step))
            elif step.op == "tap_display":
                shown = next(item for part in parts for item in part.regions if item.name == step.inputs[0])
                parts.append(tap_display(step, shown, batch, self.target.multiprocessors))
        return Built.joined(parts)

    def _inputs(self) -> tuple[Region, ...]:
        return tuple(
            Region(item.name, item.shape, item.dtype, "input") for item in self.plan.buffers if item.role == "input"
        )

    def _styles(self, step: Step) -> Built:
        constant = next((item for item in self.plan.steps if item.op == "constant"), None)
        if constant is not None and self._next_conv(constant.outputs[0]) is None:
            constant = None  # no style touches a StyleGAN1's before its first layer
        return styles_launch(
            step,
            self.weights,
            batch=self.plan.key.batch,
            num_ws=self._num_ws(),
            half=self.half,
            const=None if constant is None else constant.weights["const"],
            x0="" if constant is None else constant.outputs[0],
        )

    def _num_ws(self) -> int:
        return next(item.shape[1] for item in self.plan.buffers if item.name == "ws")

    def _features(self, step: Step) -> Built:
        self.starts["transform"] = self.weights[step.weights["transform"]]
        out = step.outputs[0]
        waves = f"{out}/sines"
        batch = self.plan.key.batch
        made = sines(step, self.weights, batch=batch, num_ws=self._num_ws(), half=self.half, y=waves)
        return Built.joined((made, self._either(mixing(step), self._site(waves, out))))

    def _filtered(self, step: Step) -> Built:
        out = step.outputs[0]
        readers = self.readers.get(out, [])
        next_conv = self._next_conv(out)
        # What toRGB reads has no style of another layer.
        rgb_step = next((reader for reader in readers if reader.op == "to_rgb" and next_conv is None), None)
        site = FilterSite(
            batch=self.plan.key.batch,
            half=self.half,
            x=step.inputs[0],
            y=out,
            next_style_offset=None if next_conv is None else self.layout.style_offset(_layer_name(next_conv)),
            style_stride=self.layout.style_width,
            rgb=None if rgb_step is None else self._rgb_part(rgb_step, out),
            is_stored=any(reader is not rgb_step for reader in readers),
        )
        reason = ""
        if not self.is_plain:
            try:
                geometry = filter_geometry(step, site, self.weights, self.target)
            except ValueError as error:
                reason = str(error)
            else:
                reason = self.plain.get(fused_filter_recipe(geometry).digest, "")
                if not reason:
                    if site.rgb is not None:
                        self.part_counts[site.rgb.region] = geometry.picture_parts
                    return fused_filter(step, site, self.weights, geometry)
        if site.rgb is not None:
            self.part_counts[site.rgb.region] = 1
        return plain_filter(step, site, self.weights, self.target, reason=reason)

    def _next_conv(self, out: str) -> Step | None:
        return next((reader for reader in self.readers.get(out, []) if reader.op in _CONVOLUTIONS), None)

    def _conv(self, step: Step) -> Built:
        slot = self.slots[_layer_name(step)]
        out, skip = step.outputs[0], None
        for reader in self.readers[out]:
            if reader.op == "add":  # resnet's block ends here
                skip = next(self.skips[name] for name in reader.inputs if name in self.skips)
                out = reader.outputs[0]
        exponent = weight_exponent(self.weights[step.weights["weight"]]) if self.half else 0
        site = replace(
            self._site(step.inputs[0], out),
            demod_offset=self.layout.demod_offset(slot.layer),
            weight_exponent=exponent,
            skip=skip,
        )
        return self._either(ConvWork.of_step(step), site)

    def _adain(self, step: Step) -> Built:
        out, readers = step.outputs[0], self.readers.get(step.outputs[0], [])
        site = AdainSite(
            batch=self.plan.key.batch,
            half=self.half,
            x=f"{out}/activated",
            moments=f"{out}/moments",
            y=out,
            style_offset=self.layout.style_offset(_layer_name(step)),
            style_stride=self.layout.style_width,
        )
        if step.op == "adain_input":
            constant = next(item for item in self.plan.steps if item.op == "constant")
            return adain_input(step, site, self.weights, constant.weights["const"])
        rgb = self._rgb_part(readers[0], out) if [reader.op for reader in readers] == ["to_rgb"] else None
        return self._normalised_conv(step, replace(site, rgb=rgb))

    def _normalised_conv(self, step: Step, site: AdainSite) -> Built:
        """Build a convolution and its normalisation: both fused, since one asks the other, or both plain."""
        work = ConvWork.of_step(step)
        exponent = weight_exponent(self.weights[work.weight] * np.float32(work.weight_scale)) if self.half else 0
        conv = replace(self._site(step.inputs[0], ""), y=site.x, weight_exponent=exponent)
        reason = ""
        if not self.is_plain:
            asked = replace(conv, moments=site.moments)
            try:
                geometry = conv_geometry(work, asked, self.target)
            except ValueError as error:
                reason = str(error)
            else:
                recipes = fused_recipe(work, asked, geometry), adain_recipe(step, site, self.target)
                reason = next((self.plain[one.digest] for one in recipes if one.digest in self.plain), "")
                if not reason:
                    normal = adain(step, site, self.weights, self.target, geometry)
                    if site.rgb is not None:
                        self.part_counts[site.rgb.region] = normal.regions[0].shape[0]
                    return Built.joined((fused_conv(work, asked, self.weights, geometry), normal))
        if site.rgb is not None:
            self.part_counts[site.rgb.region] = 1
        build = plain_modulated_up_conv if work.is_up else plain_modulated_conv
        before = build(work, conv, self.weights, self.target, reason=reason)
        return Built.joined((before, plain_adain(step, site, self.weights, reason=reason)))

    def _skip(self, step: Step) -> Built:
        attributes: SkipConv = step.attributes
        small = f"{step.outputs[0]}/small"
        self.skips[step.outputs[0]] = SkipPicture(small, attributes.gain, attributes.taps)
        made = self._either(ConvWork.of_step(step), replace(self._site(_raw(step.inputs[0]), ""), y=small))
        if not self._is_shown(step.outputs[0]):
            return made
        return Built.joined((made, doubled(step, small, step.outputs[0], self.plan.key.batch, half=self.half)))

    def _is_shown(self, out: str) -> bool:
        return any(reader.op == "tap_display" for reader in self.readers.get(out, []))

    def _site(self, x: str, out: str) -> ConvSite:
        """Return where a convolution stands whose output is the plan's buffer `out`."""
        readers = self.readers.get(out, [])
        next_conv = self._next_conv(out)
        is_filtered = any(reader.op == "filtered_lrelu" for reader in readers)
        rgb_step = next((reader for reader in readers if reader.op == "to_rgb" and reader.inputs[0] == out), None)
        return ConvSite(
            batch=self.plan.key.batch,
            half=self.half,
            x=x,
            demod_offset=None,
            demod_stride=self.layout.demod_width,
            style_stride=self.layout.style_width,
            y=out if is_filtered or next_conv is not None or self._is_shown(out) else None,
            next_style_offset=None if next_conv is None else self.layout.style_offset(_layer_name(next_conv)),
            y_raw=_raw(out) if any(reader.op == "skip_conv" for reader in readers) else None,
            rgb=None if rgb_step is None else self._rgb_part(rgb_step, out),
        )

    def _rgb_part(self, step: Step, x: str) -> RgbPart:
        settings: ToRgb = step.attributes
        is_styled = settings.style_offset != UNSTYLED
        offset = self.layout.style_offset(_layer_name(step)) if is_styled else UNSTYLED
        return RgbPart(step.layer, step.weights["weight"], settings.out_channels, offset, f"{x}/rgb")

    def _either(self, work: ConvWork, site: ConvSite) -> Built:
        """Build a convolution fused, or plain where it has to be."""
        reason = ""
        if not self.is_plain:
            try:
                geometry = conv_geometry(work, site, self.target)
            except ValueError as error:
                reason = str(error)
            else:
                reason = self.plain.get(fused_recipe(work, site, geometry).digest, "")
                if not reason:
                    if site.rgb is not None:
                        self.part_counts[site.rgb.region] = geometry.channel_blocks
                    return fused_conv(work, site, self.weights, geometry)
        if site.rgb is not None:
            self.part_counts[site.rgb.region] = 1
        build = plain_modulated_up_conv if work.is_up else plain_modulated_conv
        return build(work, site, self.weights, self.target, reason=reason)

    def _to_rgb(self, step: Step) -> Built:
        x, image = step.inputs[0], step.outputs[0]
        parts = f"{x}/rgb"
        alone = Built(())
        if parts not in self.part_counts:
            settings: ToRgb = step.attributes
            alone = plain_to_rgb(
                self._rgb_part(step, x),
                x,
                self.weights,
                self.plan.key.batch,
                settings.resolution,
                settings.in_channels,
                self.layout.style_width,
                half=self.half,
                is_fused=True,
            )
            self.part_counts[parts] = 1
        display = next((reader for reader in self.readers.get(image, []) if reader.op == "to_display"), None)
        total = to_rgb(
            step,
            self.weights,
            self.plan.key.batch,
            parts=parts,
            part_count=self.part_counts[parts],
            image=image,
            previous=step.inputs[2] if len(step.inputs) > 2 else None,
            pixels=None if display is None else display.outputs[0],
            middle=MIDDLE if display is None else display.attributes.middle,
            is_last=display is not None,
        )
        return Built.joined((alone, total))


def _layer_name(step: Step) -> str:
    """Return a step's layer as style slots name it."""
    return step.layer.removeprefix("synthesis.")


def _raw(buffer: str) -> str:
    """Return the region that holds a buffer before the style of the convolution that reads it."""
    return f"{buffer}/raw"


def _readers(plan: Plan) -> dict[str, list[Step]]:
    """Return the steps that read each buffer, in order."""
    readers: dict[str, list[Step]] = {}
    for step in plan.steps:
        for name in step.inputs:
            readers.setdefault(name, []).append(step)
    return readers


def _placed(plan: Plan, built: Built, starts: Mapping[str, NDArray[Any]] | None = None) -> Schedule:
    """Put every region into one allocation: what stays first, inputs together, then scratch by lifetime."""
    regions = _merged(built.regions)
    end = 0
    placed: list[Region] = []
    for role in ("input", "zeroed", "output"):
        for region in regions:
            if region.role == role:
                placed.append(replace(region, offset=end))
                end += _aligned(_nbytes(region))
    scratch = [Buffer(item.name, item.shape, item.dtype, "intermediate") for item in regions if item.role == "scratch"]
    buffers, arena_nbytes = place(scratch, [_step_of(launch) for launch in built.launches])
    placed += [Region(item.name, item.shape, item.dtype, "scratch", end + item.offset) for item in buffers]
    nbytes = end + arena_nbytes
    return Schedule(plan, tuple(placed), _unique(built.constants), built.launches, nbytes, starts or {})


def _merged(regions: tuple[Region, ...]) -> tuple[Region, ...]:
    """Each region once; of those that several launches share, the largest."""
    merged: dict[str, Region] = {}
    for region in regions:
        held = merged.get(region.name)
        if held is None or _nbytes(held) < _nbytes(region):
            merged[region.name] = region
    return tuple(merged.values())


def _unique(constants: tuple[Constant, ...]) -> tuple[Constant, ...]:
    return tuple({constant.key: constant for constant in constants}.values())


def _step_of(launch: Launch) -> Step:
    """A launch as the arena sees it: the regions that it names."""
    names = dict.fromkeys(item.name for item in launch.arguments if isinstance(item, Address) and item.kind == "region")
    return Step(launch.layer, launch.label, None, tuple(names), ())


def _nbytes(region: Region) -> int:
    return math.prod(region.shape) * np.dtype(region.dtype).itemsize


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
