"""Launches of the plain convolutions: fp32 arithmetic without tensor cores, weights kept in fp32.

They implement the fp32 mode, the fallback of the fused kernels, and the reference in the self-check on the GPU. All
kinds of convolution go through one inner loop, `parts/direct_conv.cuh`; the up-convolution comes as four convolutions
of its low-resolution input (`gpu_backend.cuda.launches.polyphase`), because that needs no memory between transposed
convolution and filter, and no second launch.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.conv_arguments import (
    ACTIVATION_NUMBERS,
    Weights,
    conv_arguments,
    fp8_macros,
    padded,
    skip_arguments,
    strengths_argument,
    weight_of,
)
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork
from gpu_backend.cuda.launches.polyphase import compose
from gpu_backend.cuda.launches.to_rgb import with_plain_picture
from gpu_backend.cuda.schedule import Built, Constant, Launch
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.ops.kernels.e4m3 import rounded
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PlainTile:
    """Macros of `parts/direct_conv.cuh`: tile of a block, sums of a thread, groups of threads with the same sums."""

    tile_pixels: int
    tile_channels: int
    tile_depth: int
    pixels: int
    channels: int
    groups: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.tile_pixels // self.pixels * (self.tile_channels // self.channels) * self.groups

    @property
    def macros(self) -> dict[str, int]:
        """The macros."""
        return {
            "TILE_PIXELS": self.tile_pixels,
            "TILE_CHANNELS": self.tile_channels,
            "TILE_DEPTH": self.tile_depth,
            "PIXELS": self.pixels,
            "CHANNELS": self.channels,
            "GROUPS": self.groups,
        }

    def blocks(self, pixels: int, cout: int) -> int:
        """Number of blocks that cover these pixels and channels."""
        return -(-pixels // self.tile_pixels) * -(-cout // self.tile_channels)


PLAIN_TILES = (
    PlainTile(128, 64, 8, 8, 8, 1),
    PlainTile(128, 32, 16, 8, 4, 1),
    PlainTile(64, 64, 16, 8, 4, 1),
    PlainTile(32, 32, 32, 4, 4, 4),
    PlainTile(16, 32, 32, 4, 4, 8),
)
"""Largest first: a larger tile reads less for each product, a smaller one leaves fewer multiprocessors idle."""


def plain_tile(pixels: int, cout: int, parities: int, multiprocessors: int) -> PlainTile:
    """Return the largest tile that busies three quarters of the multiprocessors, else the smallest.

    Tiles whose second half of channels would be empty are skipped.
    """
    for tile in PLAIN_TILES:
        is_too_wide = tile.tile_channels > 32 and 2 * cout <= tile.tile_channels
        if not is_too_wide and 4 * parities * tile.blocks(pixels, cout) >= 3 * multiprocessors:
            return tile
    return PLAIN_TILES[-1]


def pack_plain(weight: NDArray[np.float32], scale: float) -> NDArray[np.float32]:
    """(out, in, k, k) to (k * k, padded in, padded out), times a factor."""
    taps = weight.transpose(2, 3, 1, 0).reshape(-1, weight.shape[1], weight.shape[0])
    return padded(taps * np.float32(scale), (1, 2))


def pack_plain_up(
    weight: NDArray[np.float32], taps: tuple[float, ...], scale: float, *, odd_border: bool = False
) -> NDArray[np.float32]:
    """(out, in, k, k) and FIR taps to (4 * a * a, padded in, padded out), parity by parity; a as in `compose`."""
    composed = compose(weight, taps, odd_border=odd_border) * scale
    return padded(composed.reshape(-1, *composed.shape[-2:]).astype(np.float32), (1, 2))


def plain_modulated_conv(
    work: ConvWork, site: ConvSite, weights: Weights, target: Target, *, reason: str = ""
) -> Built:
    """Build a convolution, also the resnet's skip convolution, and toRGB's part if one reads it.

    Reads ``site.x``, ``styles``, ``demod``, ``noise_gain``, ``noise_source`` and the skip's region; writes ``site.y``,
    ``site.y_raw`` and the part's region (one part), which it also declares. With an `rgb` and no `y_raw` it declares
    ``raw/<layer>`` for that one's input.

    Parameters
    ----------
    reason
        Why it stands in for a fused kernel; "" in plans that are plain throughout.
    """
    scale = work.weight_scale * 2.0**-site.weight_exponent
    form = "/fp8" if site.reads_fp8 else ""

    def make() -> NDArray[np.float32]:
        whole = weight_of(work, weights)
        if site.reads_fp8:
            packed = pack_plain(rounded(whole * np.float32(scale)), 1.0)
            return np.pad(packed, ((0, 0), (0, site.cin(work) - work.cin), (0, 0)))
        return pack_plain(whole, scale)

    weight = Constant(f"plain/{work.weight}/{site.weight_exponent}{form}", make)
    return _build(work, site, weights, weight, target, reason)


def plain_modulated_up_conv(
    work: ConvWork, site: ConvSite, weights: Weights, target: Target, *, reason: str = ""
) -> Built:
    """Build an up-convolution; as `plain_modulated_conv`."""
    scale = work.weight_scale * 2.0**-site.weight_exponent
    form = "/fp8" if site.reads_fp8 else ""

    def make() -> NDArray[np.float32]:
        if not site.reads_fp8:
            return pack_plain_up(weights[work.weight], work.taps, scale, odd_border=work.has_odd_border)
        whole = rounded(weights[work.weight] * np.float32(scale))
        packed = pack_plain_up(whole, work.taps, 1.0, odd_border=work.has_odd_border)
        return np.pad(packed, ((0, 0), (0, site.cin(work) - work.cin), (0, 0)))

    weight = Constant(f"plain_up/{work.weight}/{site.weight_exponent}{form}", make)
    return _build(work, site, weights, weight, target, reason)


def plain_conv(work: ConvWork, site: ConvSite, weights: Weights, target: Target, *, reason: str = "") -> Built:
    """Build a convolution or an up-convolution."""
    build = plain_modulated_up_conv if work.is_up else plain_modulated_conv
    return build(work, site, weights, target, reason=reason)


def _build(work: ConvWork, site: ConvSite, weights: Weights, weight: Constant, target: Target, reason: str) -> Built:
    if site.rgb is not None and site.y_raw is None:
        site = replace(site, y_raw=f"raw/{work.layer}")
    arguments, constants, regions = conv_arguments(work, site, weights, weight)
    arguments["strengths"] = strengths_argument(work, weights, constants)
    if site.skip is not None:
        arguments |= skip_arguments(site.skip, constants)
    parities = 4 if work.is_up else 1
    pixels = site.batch * work.side**2 // parities
    tile = plain_tile(pixels, work.cout, parities, target.multiprocessors)
    taps = work.taps or (() if site.skip is None else site.skip.taps)
    recipe = KernelRecipe.of(
        work.plain_stem,
        HALF=site.half,
        **fp8_macros(site),
        ACTIVATION=ACTIVATION_NUMBERS[work.act.activation],
        KERNEL=work.kernel,
        PADDING=work.padding,
        TAPS=max(len(taps), 1),
        HAS_SKIP=site.skip is not None,
        ODD_BORDER=work.has_odd_border,
        BLURS_BIAS=work.blurs_bias,
        **tile.macros,
    )
    launch = Launch(
        layer=work.layer,
        label=work.plain_stem,
        recipe=recipe,
        grid=(-(-pixels // tile.tile_pixels), -(-work.cout // tile.tile_channels), parities),
        block=(tile.threads, 1, 1),
        shared_nbytes=0,
        arguments=arguments,
        flops=site.batch * work.flops,
        nbytes=site.nbytes(work),
        is_fused=False,
        reason=reason,
        observed="" if work.is_normalised else "y_raw",
    )
    convolution = Built((launch,), tuple(constants), regions)
    if site.y_raw is None:
        return convolution
    return with_plain_picture(convolution, site, site.y_raw, weights, work.side, work.out_channels, reason)
