"""Launches of StyleGAN1's normalisation: what becomes of what a convolution or the learned constant gave.

Small pictures take one kernel, which holds a channel's pixels while it finds their mean and variance; large ones two,
of which the first leaves mean, factor and shift of every channel in a region that the plain kernels share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.built import Built
from gpu_backend.cuda.launches.conv_arguments import (
    ACTIVATION_NUMBERS,
    Weights,
    constant,
    padded,
    region,
    rgb_weight_constant,
)
from gpu_backend.cuda.launches.conv_work import RgbPart
from gpu_backend.cuda.launches.to_rgb import plain_to_rgb
from gpu_backend.cuda.schedule import Address, Argument, Constant, Launch, Region
from gpu_backend.cuda.style_layout import pad8
from gpu_backend.cuda.target import Target
from gpu_backend.ops.adain import NORMAL_FLOPS
from gpu_backend.ops.adain_conv import AdainConv
from gpu_backend.ops.adain_input import AdainInput
from gpu_backend.ops.adain_up_conv import AdainUpConv
from gpu_backend.ops.kernels.adain_tile import AdainTile
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.plan.plan import Step

_PLAIN_QUADS = 256
_PLAIN_THREADS = 512
_COUNTERS = "adain/counters"
_MOST_NUMBERS = 2**31 - 1
_SUMMING = NORMAL_FLOPS - 2
"""Operations a value up to mean and variance."""


@dataclass(frozen=True, slots=True)
class AdainSite:
    """Where a normalisation stands.

    Attributes
    ----------
    x
        (batch, side, side, padded channels) as the convolution gave them; one picture with `is_shared`.
    y
        Region that gets the layer.
    style_offset, style_stride
        The layer's scales in a sample's row of ``styles``, and the row's length, in floats. Shifts follow scales.
    rgb
        The toRGB that reads the layer, if nobody else does: where it can ride along, the layer is not stored.
    """

    batch: int
    half: bool
    x: Address
    is_shared: bool
    y: str
    style_offset: int
    style_stride: int
    rgb: RgbPart | None = None

    @property
    def dtype(self) -> str:
        """Of activations."""
        return "float16" if self.half else "float32"


def constant_input(name: str, weights: Weights, *, half: bool) -> Constant:
    """Return the learned constant, (channels, side, side) in the model, as activations lie: (side, side, channels)."""

    def make() -> NDArray[Any]:
        return padded(weights[name].transpose(1, 2, 0), (2,)).astype(np.float16 if half else np.float32)

    return Constant(f"pixels/{name}/{'fp16' if half else 'fp32'}", make)


def adain_launches(
    step: Step, site: AdainSite, weights: Weights, target: Target, failed: Mapping[str, str], *, is_plain: bool
) -> Built:
    """Build one layer's normalisation.

    Reads ``site.x``, ``styles``, ``noise_gain`` and ``noise_source``; writes and declares ``site.y`` or, where a
    picture rides along, the region of its parts, one a block of channels.

    Parameters
    ----------
    failed
        Digests of kernels that shall not run, and why: plain ones take their place.
    is_plain
        No fused kernel at all.
    """
    made = _Adain(step, site, weights, target)
    if is_plain:
        return Built.joined((made.plain_moments(), made.plain_normal()))
    try:
        reasons = [failed.get(recipe.digest, "") for recipe in made.fused_recipes]
    except ValueError as error:
        reasons = [str(error)] * 2
    if made.tile.held and not reasons[-1]:
        return made.normal()
    return Built.joined(
        (
            made.plain_moments(reasons[0]) if reasons[0] else made.moments(),
            made.plain_normal(reasons[-1]) if reasons[-1] else made.normal(),
        )
    )


class _Adain:
    """The kernels of one layer's normalisation."""

    def __init__(self, step: Step, site: AdainSite, weights: Weights, target: Target) -> None:
        settings: AdainInput | AdainConv | AdainUpConv = step.attributes
        self._step, self._settings, self._site, self._weights = step, settings, site, weights
        self._area, self._channels = settings.resolution**2, settings.out_channels
        self._cout = pad8(settings.out_channels)
        self.tile = AdainTile.of(
            settings.resolution, self._cout, site.batch, target.multiprocessors, has_picture=site.rgb is not None
        )
        self._affine = f"{step.outputs[0]}/affine"
        self._partials = f"{step.outputs[0]}/moments"

    @property
    def rides(self) -> bool:
        """Whether a picture rides along with the fused kernel: not with that which holds a whole channel."""
        return self._site.rgb is not None and not self.tile.held

    @property
    def fused_recipes(self) -> tuple[KernelRecipe, ...]:
        """Kernels of `moments` and `normal`; only the latter's for a small picture.

        Raises
        ------
        ValueError
            If there are no fused kernels for the layer; the sentence says why, for people.
        """
        if self._area * self._cout > _MOST_NUMBERS:
            side = self._settings.resolution
            raise ValueError(f"its activations of {side} x {side} have more numbers than fused kernels count")
        tile = self.tile
        normal = {"GROUPS": tile.groups, "THREADS": tile.threads, "HELD": tile.held, "IMG_CHANNELS": self._rgb_channels}
        recipes = (self._recipe("adain_moments", {"GROUPS": tile.groups}), self._recipe("adain", normal))
        return recipes[1:] if tile.held else recipes

    def moments(self) -> Built:
        """Build what finds mean, factor and shift of every channel of a large picture."""
        site, tile = self._site, self.tile
        partials = Region(self._partials, (site.batch, tile.chunks, self._cout, 2), "float32", "scratch")
        counters = Region(_COUNTERS, (site.batch * tile.channel_blocks,), "uint32", "zeroed")
        constants, channel, noise, numbers = self._shared()
        arguments = (
            site.x,
            region(self._affine),
            region("styles", site.style_offset),
            *channel,
            *noise,
            region(self._partials),
            region(_COUNTERS),
            *numbers,
            np.int32(self._channels),
            np.int32(site.style_stride),
            np.int32(tile.chunk),
            *self._act,
            np.float32(self._settings.epsilon),
        )
        recipe = self.fused_recipes[0]
        regions = (self._affine_region, partials, counters)
        cut = (tile.grid, tile.threads, 4 * tile.chunk)
        return self._built(recipe, *cut, arguments, constants, regions, flops=_SUMMING, written=0)

    def normal(self) -> Built:
        """Build what writes the layer or the picture's parts, by what `moments` found or, where it holds all, alone."""
        site, tile, rgb = self._site, self.tile, self._site.rgb if self.rides else None
        constants, channel, noise, numbers = self._shared()
        regions = [] if rgb is not None else [self._y_region]
        rgb_weight: Argument = None
        if rgb is not None:
            constants.append(rgb_weight_constant(rgb.weight, self._weights))
            rgb_weight = constant(constants[-1].key)
            side = self._settings.resolution
            shape = (tile.channel_blocks, site.batch, side, side, rgb.channels)
            regions.append(Region(rgb.region, shape, "float32", "scratch"))
        arguments = (
            site.x,
            region(site.y) if rgb is None else None,
            None if tile.held else region(self._affine),
            region("styles", site.style_offset) if tile.held else None,
            *channel,
            *noise,
            rgb_weight,
            None if rgb is None else region(rgb.region),
            *numbers,
            np.int32(self._channels),
            np.int32(site.style_stride),
            np.int32(tile.chunk),
            *self._act,
            np.float32(self._settings.epsilon),
            np.float32(1.0 / math.sqrt(self._channels)),
        )
        recipe = self.fused_recipes[-1]
        cut = (tile.grid, tile.threads, 4 * tile.chunk)
        flops = NORMAL_FLOPS if tile.held else NORMAL_FLOPS - _SUMMING
        return self._built(recipe, *cut, arguments, constants, tuple(regions), flops=flops)

    def plain_moments(self, reason: str = "") -> Built:
        """Build the plain kernel in the place of `moments`."""
        site = self._site
        constants, channel, noise, numbers = self._shared()
        arguments = (
            site.x,
            region(self._affine),
            region("styles", site.style_offset),
            *channel,
            *noise,
            *numbers,
            np.int32(self._channels),
            np.int32(site.style_stride),
            *self._act,
            np.float32(self._settings.epsilon),
        )
        return self._built(
            self._recipe("plain_adain_moments", {}),
            (self._cout // 4, site.batch, 1),
            _PLAIN_THREADS,
            0,
            arguments,
            constants,
            (self._affine_region,),
            flops=_SUMMING,
            written=0,
            is_fused=False,
            reason=reason,
        )

    def plain_normal(self, reason: str = "") -> Built:
        """Build the plain kernels in the place of `normal`, toRGB's where it would ride along."""
        site, rgb = self._site, self._site.rgb if self.rides else None
        constants, channel, noise, numbers = self._shared()
        arguments = (site.x, region(site.y), region(self._affine), *channel, *noise, *numbers, *self._act)
        side = self._settings.resolution
        layer = self._built(
            self._recipe("plain_adain", {}),
            (-(-self._area * self._cout // 4 // _PLAIN_QUADS), site.batch, 1),
            _PLAIN_QUADS,
            0,
            arguments,
            constants,
            (self._y_region,),
            flops=NORMAL_FLOPS - _SUMMING,
            is_fused=False,
            reason=reason,
        )
        if rgb is None:
            return layer
        picture = plain_to_rgb(
            rgb,
            site.y,
            self._weights,
            site.batch,
            side,
            self._channels,
            site.style_stride,
            half=site.half,
            reason=reason,
        )
        return Built.joined((layer, picture))

    @property
    def _rgb_channels(self) -> int:
        return self._site.rgb.channels if self.rides and self._site.rgb is not None else 0

    @property
    def _affine_region(self) -> Region:
        return Region(self._affine, (self._site.batch, 3, self._cout), "float32", "scratch")

    @property
    def _y_region(self) -> Region:
        site, side = self._site, self._settings.resolution
        return Region(site.y, (site.batch, side, side, self._cout), site.dtype, "scratch")

    @property
    def _act(self) -> tuple[np.float32, np.float32]:
        act = self._settings.act
        return np.float32(act.gain), np.float32(math.inf if act.clamp is None else act.clamp)

    def _recipe(self, stem: str, choices: dict[str, int]) -> KernelRecipe:
        settings = self._settings
        defines = {
            "HALF": int(self._site.half),
            "ACTIVATION": ACTIVATION_NUMBERS[settings.act.activation],
            "BLURS_BIAS": int(isinstance(settings, AdainUpConv) and settings.blurs_bias),
            **choices,
        }
        return KernelRecipe(stem, tuple((name, str(value)) for name, value in defines.items()))

    def _shared(self) -> tuple[list[Constant], tuple[Argument, ...], tuple[Argument, ...], tuple[Argument, ...]]:
        """Return what all kernels take: constants; bias and strength; noise; and numbers from the noise's layer on."""
        weights, names, index = self._weights, self._step.weights, self._settings.noise_index
        constants: list[Constant] = []

        def held(role: str) -> Address:
            name = names[role]
            constants.append(Constant(f"padded/{name}", lambda: padded(weights[name], (0,))))
            return constant(constants[-1].key)

        bias, strength = held("bias"), None
        noise: tuple[Argument, ...] = (None, None, None)
        if index >= 0:
            strength, picture = held("noise_strength"), names["noise_const"]
            key = f"flat/{picture}"
            constants.append(Constant(key, lambda: np.ascontiguousarray(weights[picture], np.float32)))
            noise = (constant(key), region("noise_gain", index), region("noise_source"))
        sizes = max(index, 0), int(self._site.is_shared), self._settings.resolution, self._cout
        return constants, (bias, strength), noise, tuple(np.int32(size) for size in sizes)

    def _built(
        self,
        recipe: KernelRecipe,
        grid: tuple[int, int, int],
        threads: int,
        shared_nbytes: int,
        arguments: tuple[Argument, ...],
        constants: list[Constant],
        regions: tuple[Region, ...],
        *,
        flops: int,
        written: int = 1,
        is_fused: bool = True,
        reason: str = "",
    ) -> Built:
        site, settings = self._site, self._settings
        size, numbers = (2 if site.half else 4), site.batch * self._area * self._channels
        launch = Launch(
            layer=self._step.layer,
            label=recipe.stem,
            recipe=recipe,
            grid=grid,
            block=(threads, 1, 1),
            shared_nbytes=shared_nbytes,
            arguments=arguments,
            flops=numbers * flops,
            nbytes=size * numbers * (1 + written) + (4 * self._area if settings.noise_index >= 0 else 0),
            is_fused=is_fused,
            reason=reason,
        )
        return Built((launch,), tuple(constants), regions)
