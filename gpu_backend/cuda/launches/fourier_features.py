"""Launches of the input of a StyleGAN3: the sines, then the convolution that mixes them."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.conv_arguments import Weights, constant, region
from gpu_backend.cuda.launches.conv_work import ConvWork
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.schedule import Built, Constant, Launch, Region
from gpu_backend.ops.fourier_features import FourierFeatures
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.plan.plan import Step

_THREADS = 256
_PIXELS = 2
"""Of a block, as in the kernel."""


def sines(step: Step, weights: Weights, *, batch: int, num_ws: int, half: bool, y: str) -> Built:
    """Build the sines. Reads rows of w and ``transform``; writes and declares `y`, (batch, size, size, channels)."""
    settings: FourierFeatures = step.attributes
    size, channels, w_dim = settings.size, pad8(settings.channels), settings.w_dim
    affine, waves = f"{step.layer}/affine", f"{step.layer}/waves"
    itemsize = 2 if half else 4
    launch = Launch(
        step.layer,
        "fourier_features",
        KernelRecipe.of("fourier_features", HALF=half),
        (-(-(size**2) // _PIXELS), batch, 1),
        (_THREADS, 1, 1),
        0,
        {
            "ws": region(step.inputs[0], settings.w_index * w_dim),
            "transform": region("transform"),
            "affine": constant(affine),
            "waves": constant(waves),
            "y": region(y),
            "ws_stride": np.int32(num_ws * w_dim),
            "w_dim": np.int32(w_dim),
            "channels": np.int32(channels),
            "size": np.int32(size),
            "sampling_rate": np.float32(settings.sampling_rate),
            "bandwidth": np.float32(settings.bandwidth),
        },
        flops=6 * batch * size**2 * settings.channels,
        nbytes=batch * size**2 * settings.channels * itemsize + 4 * (4 * w_dim + 3 * settings.channels),
    )
    constants = (
        Constant(affine, partial(_affine, weights, step)),
        Constant(waves, partial(_waves, weights, step)),
    )
    shape = (batch, size, size, channels)
    return Built((launch,), constants, (Region(y, shape, "float16" if half else "float32", "scratch"),))


def mixing(step: Step) -> ConvWork:
    """Return the convolution that mixes the sines."""
    settings: FourierFeatures = step.attributes
    return ConvWork(
        layer=step.layer,
        in_channels=settings.channels,
        out_channels=settings.channels,
        kernel=1,
        side=settings.size,
        weight=step.weights["weight"],
        weight_scale=1.0 / math.sqrt(settings.channels),
        flops=settings.flops(1),
    )


def _affine(weights: Weights, step: Step) -> NDArray[np.float32]:
    """Return (4 w_dim + 4,): the rows of the affine layer, then its biases."""
    settings: FourierFeatures = step.attributes
    matrix = weights[step.weights["affine.weight"]] / np.float32(math.sqrt(settings.w_dim))
    return np.concatenate((matrix.reshape(-1), weights[step.weights["affine.bias"]])).astype(np.float32)


def _waves(weights: Weights, step: Step) -> NDArray[np.float32]:
    """Return (padded channels, 4): frequency along x and y, phase, 0."""
    settings: FourierFeatures = step.attributes
    waves = np.zeros((pad8(settings.channels), 4), np.float32)
    waves[: settings.channels, :2] = weights[step.weights["freqs"]]
    waves[: settings.channels, 2] = weights[step.weights["phases"]]
    return waves
