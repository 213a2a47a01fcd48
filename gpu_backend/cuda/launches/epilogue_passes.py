"""A convolution whose epilogue is not fused: products alone, then noise, activation, style and toRGB as passes.

The ladder of optimisations measures what fused epilogues gain (`Target.fuses_epilogues`). The demodulation stays in the
convolution: it undoes the scale of the weights, without which fp16 could not hold the sums.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gpu_backend.cuda.launches.conv_arguments import (
    ACTIVATION_NUMBERS,
    Weights,
    bias_constant,
    constant,
    noise_constant,
    region,
    skip_arguments,
)
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork
from gpu_backend.cuda.launches.to_rgb import plain_to_rgb
from gpu_backend.cuda.schedule import Argument, Built, Constant, Launch, Region
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.kernels.recipe import KernelRecipe

_WIDE = 8
"""Channels of a thread of ``epilogue_pass``."""

_THREADS = 256
_NO_ACTIVATION = BiasAct()


def without_epilogue(work: ConvWork, site: ConvSite) -> tuple[ConvWork, ConvSite]:
    """Return a convolution that demodulates and nothing else, into the region that `epilogue_passes` reads."""
    return (
        replace(work, act=_NO_ACTIVATION, bias="", noise_index=-1, noise_strength="", noise_const=""),
        replace(site, y=_sums(work), y_raw=None, next_style_offset=None, skip=None, rgb=None, stores_fp8=False),
    )


def epilogue_passes(work: ConvWork, site: ConvSite, weights: Weights) -> Built:
    """Build the passes behind the convolution of `without_epilogue`.

    Write and declare ``site.y``, ``site.y_raw``, the region of toRGB's parts (one part), and what lies between them.
    """
    constants: list[Constant] = []
    launches: list[Launch] = []
    sums, noisy, finished = _sums(work), f"{work.layer}/noisy", site.y_raw or f"raw/{work.layer}"
    regions = [finished]
    if work.noise_const:
        constants.append(noise_constant(work, weights))
        noise: dict[str, Argument] = {
            "noise": constant(constants[-1].key),
            "noise_gain": region("noise_gain", work.noise_index),
            "noise_source": region("noise_source"),
            "noise_strength": np.float32(float(np.asarray(weights[work.noise_strength]).reshape(-1)[0])),
            "noise_layer": np.int32(work.noise_index),
        }
        launches.append(_pass("noise_pass", work, site, sums, noisy, noise))
        regions.append(noisy)
        sums = noisy
    added: dict[str, Argument] = {}
    if work.bias:
        constants.append(bias_constant(work, weights))
        added["bias"] = constant(constants[-1].key)
    taps = 0
    if site.skip is not None:
        added |= skip_arguments(site.skip, constants)
        taps = len(site.skip.taps)
    launches.append(_pass("activation_pass", work, site, sums, finished, added, act=work.act, taps=taps))
    if site.y is not None:
        style = None if site.next_style_offset is None else region("styles", site.next_style_offset)
        launches.append(_pass("style_pass", work, site, finished, site.y, {"style": style}))
        regions.append(site.y)
    shape = (site.batch, work.side, work.side, work.cout)
    declared = tuple(Region(name, shape, site.dtype, "scratch") for name in regions)
    passes = Built(tuple(launches), tuple(constants), declared)
    if site.rgb is None:
        return passes
    channels, stride = work.out_channels, site.style_stride
    picture = plain_to_rgb(
        site.rgb, finished, weights, site.batch, work.side, channels, stride, half=site.half, is_fused=True
    )
    return Built.joined((passes, picture))


def _sums(work: ConvWork) -> str:
    """Return the region of a convolution's demodulated sums."""
    return f"{work.layer}/sums"


def _pass(
    label: str,
    work: ConvWork,
    site: ConvSite,
    x: str,
    y: str,
    arguments: Mapping[str, Argument],
    *,
    act: BiasAct = _NO_ACTIVATION,
    taps: int = 0,
) -> Launch:
    numbers = site.batch * work.side**2 * work.out_channels
    return Launch(
        layer=work.layer,
        label=label,
        recipe=KernelRecipe.of(
            "epilogue_pass",
            HALF=site.half,
            ACTIVATION=ACTIVATION_NUMBERS[act.activation],
            HAS_SKIP=taps > 0,
            TAPS=max(taps, 1),
        ),
        grid=(-(-(work.side**2) * (work.cout // _WIDE) // _THREADS), site.batch, 1),
        block=(_THREADS, 1, 1),
        shared_nbytes=0,
        arguments={
            "x": region(x),
            "y": region(y),
            "noise": None,
            "noise_gain": None,
            "noise_source": None,
            "bias": None,
            "style": None,
            "noise_strength": np.float32(0),
            "noise_layer": np.int32(0),
            "side": np.int32(work.side),
            "channels": np.int32(work.cout),
            "style_stride": np.int32(site.style_stride),
            "gain": np.float32(act.gain),
            "clamp": np.float32(math.inf if act.clamp is None else act.clamp),
            **arguments,
        },
        flops=numbers,
        nbytes=2 * (2 if site.half else 4) * numbers,
    )
