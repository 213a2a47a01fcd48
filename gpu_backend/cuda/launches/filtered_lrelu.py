"""Launches of the activation between two filters: fused on tensor cores, plain in fp32."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.bands import band_words, rank_of
from gpu_backend.cuda.launches.conv_arguments import ACTIVATION_NUMBERS, Weights, constant, region, rgb_arguments
from gpu_backend.cuda.launches.conv_work import RgbPart
from gpu_backend.cuda.launches.gpu_op import (
    OBSERVED,
    Fused,
    GpuOp,
    LoweringContext,
    Observation,
    Refused,
    channels_first,
    channels_first_of_e4m3,
    region_of,
)
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.launches.to_rgb import with_plain_picture
from gpu_backend.cuda.schedule import Argument, Built, Constant, Launch, Region
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.errors import DeviceError
from gpu_backend.ops.filtered_lrelu import FilteredLrelu
from gpu_backend.ops.kernels import e4m3
from gpu_backend.ops.kernels.conv_tile import NoTileError
from gpu_backend.ops.kernels.filter_tile import TAPS, FilterGeometry, FilterShape, choose_filter_tile
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.plan.fusion import FusedStep
from gpu_backend.plan.plan import Step
from gpu_backend.quick_dataclass import dataclass

_THREADS = 256
_PLAIN_TILES = (8, 4, 2, 1)
_MOST_PICTURE_CHANNELS = 8
_MOST_NUMBERS = 2**31 - 1
_LARGEST_HALF = 65504.0
_ASYMMETRY = 1e-5
"""Of a radial filter's largest tap: up to here both halves are the same."""


class FilteredLreluOp(GpuOp):
    """The activation between the two filters of a StyleGAN3's layer."""

    def fused(self, step: FusedStep, context: LoweringContext) -> Fused | Refused:
        if not context.half:
            return Refused("the filters of a StyleGAN3 are products in fp16 alone")
        site = _site(step, context)
        geometry = filter_geometry(step.main, site, context.weights, context.target)
        if isinstance(geometry, Refused):
            return geometry
        recipe = fused_filter_recipe(geometry)
        return Fused((recipe,), partial(fused_filter, step.main, site, context.weights, geometry))

    def plain(self, step: FusedStep, context: LoweringContext, reason: str) -> Built:
        return plain_filter(step.main, _site(step, context), context.weights, context.target, reason=reason)

    def observe(self, step: Step, launch: Launch, regions: Mapping[str, Region]) -> Observation | None:
        if not launch.observed:
            return None
        x = region_of(launch.arguments["x"], regions)
        batch, side, _, channels = step.attributes.output_shape(x.shape[0])
        changes = {"y": OBSERVED, "next_style": None}
        stored = region_of(launch.arguments["y"], regions) if launch.arguments["y"] is not None else x
        if stored.dtype == e4m3.E4M3:
            return Observation(stored.shape, stored.dtype, partial(channels_first_of_e4m3, channels=channels), changes)
        finish = partial(channels_first, channels=channels)
        return Observation((batch, side, side, pad8(channels)), x.dtype, finish, changes)


def _site(step: FusedStep, context: LoweringContext) -> FilterSite:
    return FilterSite(
        batch=context.batch,
        half=context.half,
        x=step.x,
        y=step.main.outputs[0],
        next_style_offset=None if step.next_style is None else context.style_offset(step.next_style),
        style_stride=context.layout.style_width,
        rgb=None if step.to_rgb is None else context.rgb_part(step.to_rgb),
        is_stored=step.y is not None,
        stores_fp8=step.stores_fp8,
    )


@dataclass(frozen=True, slots=True)
class FilterSite:
    """Regions that a filtered activation reads and writes, and the style of the layer that reads its output.

    Attributes
    ----------
    next_style_offset
        In floats in a sample's row of ``styles``; None: the result is stored unchanged.
    rgb
        The toRGB that reads the result, if one does.
    is_stored
        Whether anything else reads the result; plain kernels store it always.
    stores_fp8
        The result is e4m3.
    """

    batch: int
    half: bool
    x: str
    y: str
    next_style_offset: int | None
    style_stride: int
    rgb: RgbPart | None = None
    is_stored: bool = True
    stores_fp8: bool = False

    @property
    def dtype(self) -> str:
        """Of `x`."""
        return "float16" if self.half else "float32"


def filter_geometry(step: Step, site: FilterSite, weights: Weights, target: Target) -> FilterGeometry | Refused:
    """Return the tile of the fused kernel on its shape; or why the step has no fused kernel."""
    settings: FilteredLrelu = step.attributes
    counts = settings.up, settings.up_taps, settings.down, settings.down_taps
    if settings.up not in (2, 4) or counts[1:] != (TAPS * settings.up, 2, 2 * TAPS):
        return Refused("fused filters have 6 taps for each phase of 2 or 4 before the activation, and 12 after it")
    if settings.act.activation != "lrelu" or settings.act.gain <= 0:
        return Refused(f"fused filters have a leaky activation, this layer's is {settings.act.activation}")
    channels = pad8(settings.channels)
    if max(settings.in_size, settings.out_size) ** 2 * channels > _MOST_NUMBERS:
        return Refused(
            f"its activations of {settings.out_size} x {settings.out_size} are more than fused kernels count"
        )
    if settings.is_radial and not _is_symmetric(weights[step.weights["down_filter"]]):
        return Refused("fused filters are the same in all directions, this layer's is not")
    if site.rgb is not None and site.rgb.channels > _MOST_PICTURE_CHANNELS:
        return Refused(f"fused filters bring pictures of up to {_MOST_PICTURE_CHANNELS} channels")
    if site.stores_fp8 and not e4m3.multiplies_e4m3(target.architecture):
        return Refused(e4m3.NEEDS)
    _, phase = _start(settings)
    picture_channels = 0 if site.rgb is None else site.rgb.channels
    rank = 1
    if settings.is_radial:  # beside the sums of two products there are no registers for a picture
        rank = 0 if picture_channels else rank_of(weights[step.weights["down_filter"]])
    sizes = settings.out_size, channels, site.batch, settings.up, phase, rank, picture_channels
    shape = FilterShape(*sizes, site.stores_fp8)
    try:
        return choose_filter_tile(shape, target.multiprocessors, target.shared_nbytes_per_block)
    except NoTileError as error:
        return Refused(str(error))


def fused_filter_recipe(geometry: FilterGeometry) -> KernelRecipe:
    """Return the kernel of a filtered activation."""
    shape, tile = geometry.shape, geometry.tile
    return KernelRecipe.of(
        "filtered_lrelu",
        UP=shape.up,
        PHASE=shape.phase,
        RANK=shape.rank,
        TILES=tile.tiles,
        STAGES=geometry.stages,
        MIN_BLOCKS=tile.min_blocks,
        IMG_CHANNELS=shape.picture_channels,
        FP8_Y=_fp8_macro(shape.stores_fp8),
        SHARED_NBYTES=geometry.shared_nbytes,
    )


def fused_filter(step: Step, site: FilterSite, weights: Weights, geometry: FilterGeometry) -> Built:
    """Build the fused kernel.

    Reads ``site.x`` and ``styles``; writes and declares ``site.y``, if it is stored, and the region of ``site.rgb``.
    """
    settings: FilteredLrelu = step.attributes
    first, phase = _start(settings)
    # Half of the activation's gain goes along each axis.
    gain = np.float32(settings.up * math.sqrt(settings.act.gain))

    def bands() -> NDArray[np.uint32]:
        after = _taps(step, weights, "down_filter")
        before = _taps(step, weights, "up_filter") * gain
        return band_words(before, after, settings.up, phase, geometry.shape.rank)

    constants = [Constant(f"{step.layer}/bands/{geometry.shape.rank}", bands)]
    written = [_y_region(step, site)] if site.is_stored else []
    picture: dict[str, Argument] = {"rgb_weight": None, "rgb_style": None, "rgb_parts": None}
    flops, nbytes = _work(settings, site)
    rgb, side = site.rgb, settings.out_size
    if rgb is not None:
        picture = rgb_arguments(rgb, weights, constants)
        shape = (geometry.picture_parts, site.batch, side, side, rgb.channels)
        written.append(Region(rgb.region, shape, "float32", "scratch"))
        flops += 2 * site.batch * side**2 * settings.channels * rgb.channels
        nbytes += 4 * math.prod(shape)
        if not site.is_stored:
            nbytes -= 2 * site.batch * side**2 * settings.channels
    arguments: dict[str, Argument] = {
        "x": region(site.x),
        "y": region(site.y) if site.is_stored else None,
        "next_style": _style(site),
        "bands": constant(constants[0].key),
        **picture,
        **_sizes(settings, site),
        "first_x": np.int32(first),
        "first_y": np.int32(first),
        "segment": np.int32(geometry.tile.segment),
        "bound": _word(min(_clamp(settings), _LARGEST_HALF)),
    }
    recipe = fused_filter_recipe(geometry)
    launch = Launch(
        layer=step.layer,
        label=recipe.stem,
        stands_for="plain_filtered_lrelu",
        observed="y",
        recipe=recipe,
        grid=geometry.grid,
        block=(geometry.tile.threads, 1, 1),
        shared_nbytes=geometry.shared_nbytes,
        arguments=arguments,
        flops=flops,
        nbytes=nbytes,
    )
    return Built((launch,), tuple(constants), tuple(written))


def plain_filter(step: Step, site: FilterSite, weights: Weights, target: Target, *, reason: str = "") -> Built:
    """Build the plain kernel, for any filters, and toRGB's after it; regions as those of `fused_filter`.

    Raises
    ------
    DeviceError
        If the filters are too long for a block's shared memory.
    """
    settings: FilteredLrelu = step.attributes
    tile = next((n for n in _PLAIN_TILES if _shared_nbytes(settings, n) <= target.shared_nbytes_per_block), None)
    if tile is None:
        raise DeviceError(
            f"The GPU takes filters of some dozens of taps, but {step.layer} has {settings.up_taps} and "
            f"{settings.down_taps}; render on the CPU."
        )
    filters = {
        "up": (f"{step.layer}/up_taps", lambda: _taps(step, weights, "up_filter") * np.float32(settings.up)),
        "down": (f"{step.layer}/down_taps", lambda: _taps(step, weights, "down_filter")),
    }
    constants = tuple(Constant(key, make) for key, make in filters.values())
    up_taps, down_taps = (constant(item.key) for item in constants)
    arguments: dict[str, Argument] = {
        "x": region(site.x),
        "y": region(site.y),
        "next_style": _style(site),
        "up_taps": up_taps,
        "down_taps": down_taps,
        **_sizes(settings, site),
        "up": np.int32(settings.up),
        "down": np.int32(settings.down),
        "up_count": np.int32(settings.up_taps),
        "down_count": np.int32(settings.down_taps),
        "low": np.int32(settings.pads[0]),
        "patch": np.int32(_patch(settings, tile)),
        "gain": np.float32(settings.act.gain),
        "clamp": np.float32(_clamp(settings)),
    }
    recipe = KernelRecipe.of(
        "plain_filtered_lrelu",
        HALF=site.half,
        FP8_Y=_fp8_macro(site.stores_fp8),
        ACTIVATION=ACTIVATION_NUMBERS[settings.act.activation],
        TILE=tile,
        RADIAL=settings.is_radial,
    )
    grid = ((-(-settings.out_size // tile)) ** 2, pad8(settings.channels) // 4, site.batch)
    flops, nbytes = _work(settings, site)
    launch = Launch(
        layer=step.layer,
        label=recipe.stem,
        observed="y",
        recipe=recipe,
        grid=grid,
        block=(_THREADS, 1, 1),
        shared_nbytes=_shared_nbytes(settings, tile),
        arguments=arguments,
        flops=flops,
        nbytes=nbytes,
        is_fused=False,
        reason=reason,
    )
    layer = Built((launch,), constants, (_y_region(step, site),))
    return with_plain_picture(layer, site, site.y, weights, settings.out_size, settings.channels, reason)


def _work(settings: FilteredLrelu, site: FilterSite) -> tuple[int, int]:
    """Return operations, and bytes of what is read and written, each once."""
    nbytes = settings.nbytes(site.batch) // (2 if site.half else 1)
    if site.stores_fp8:
        nbytes -= site.batch * settings.channels * settings.out_size**2
    return settings.flops(site.batch), nbytes


def _fp8_macro(stores_fp8: bool) -> int:
    """Return FP8_Y of ``parts/e4m3.cuh``."""
    return e4m3.ACTIVATION_SCALE if stores_fp8 else 0


def _y_region(step: Step, site: FilterSite) -> Region:
    settings: FilteredLrelu = step.attributes
    side = settings.out_size
    if site.stores_fp8:
        return Region(site.y, (site.batch, side, side, e4m3.padded_channels(settings.channels)), e4m3.E4M3, "scratch")
    return Region(site.y, (site.batch, side, side, pad8(settings.channels)), site.dtype, "scratch")


def _style(site: FilterSite) -> Argument:
    return None if site.next_style_offset is None else region("styles", site.next_style_offset)


def _sizes(settings: FilteredLrelu, site: FilterSite) -> dict[str, Argument]:
    return {
        "in_size": np.int32(settings.in_size),
        "out_size": np.int32(settings.out_size),
        "channels": np.int32(pad8(settings.channels)),
        "style_stride": np.int32(site.style_stride),
    }


def _start(settings: FilteredLrelu) -> tuple[int, int]:
    """Return the sample at the first activated one, and the latter's place among the `up` that belong to it."""
    return divmod(settings.up_taps - 1 - settings.pads[0], settings.up)


def _clamp(settings: FilteredLrelu) -> float:
    return math.inf if settings.act.clamp is None else settings.act.clamp


def _taps(step: Step, weights: Weights, role: str) -> NDArray[np.float32]:
    """Return the taps of a filter; one tap of 1 without a filter."""
    if role not in step.weights:
        return np.ones(1, np.float32)
    return np.ascontiguousarray(weights[step.weights[role]], np.float32)


def _word(number: float) -> np.uint32:
    """Return a number twice, as fp16."""
    return np.uint32(int(np.array(number, np.float16).view(np.uint16)) * 0x10001)


def _is_symmetric(taps: NDArray[np.float32]) -> bool:
    largest = float(np.abs(taps).max())
    return all(float(np.abs(taps - other).max()) <= _ASYMMETRY * largest for other in (taps[::-1], taps[:, ::-1]))


def _patch(settings: FilteredLrelu, tile: int) -> int:
    """Return how many samples on an axis a tile of the plain kernel needs."""
    return (_middle(settings, tile) + settings.up_taps - 2) // settings.up + 1


def _middle(settings: FilteredLrelu, tile: int) -> int:
    return (tile - 1) * settings.down + settings.down_taps


def _shared_nbytes(settings: FilteredLrelu, tile: int) -> int:
    patch, middle = _patch(settings, tile), _middle(settings, tile)
    return 16 * (max(patch, middle) ** 2 + middle * max(patch, tile))
