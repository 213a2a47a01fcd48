"""A network's gradient on a GPU: its driver, kernels and memory, opened at the first use and checked against torch."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch

from gpu_backend.cuda.driver.interface import Driver, Event, LoadedKernel
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.errors import DeviceError, RequestError
from gpu_backend.gradients.gpu.kernels import kernels_of_step
from gpu_backend.gradients.gpu.loading import close_all, load_kernels
from gpu_backend.gradients.gpu.memory import DeviceArrays
from gpu_backend.gradients.gpu.network import GpuNetwork
from gpu_backend.gradients.gpu.packed_network import PackedNetwork, pack_network
from gpu_backend.model.spec import StyleGAN2Spec
from gpu_backend.ops.kernels.recipe import KernelRecipe

if TYPE_CHECKING:
    from gpu_backend.gradients.network import DifferentiableNetwork

_CHECKED_BLOCKS = {32: 1.0 / 16, 128: 1.0}
"""Blocks whose gradients are compared with torch, the second for the kernels of large layers, and their units."""
LEAST_COSINE = 0.99
"""Of a row's gradient with that of torch, below which a device's gradients are not used."""
_LEAST_SIZE = 1e-3
"""Of a row's gradient, relative to the largest row's: in smaller ones rounding is as large as what is left of numbers
that cancel out, as of the two channels of a layer that demodulation makes independent of their scale."""


class GpuGradients:
    """A StyleGAN2 on one GPU. It serves one drag or search at a time: a new one ends the one before.

    Parameters
    ----------
    driver
        Closed with this object.
    samples, few_side, more_samples
        As in `GpuNetwork`.

    Raises
    ------
    DeviceError
        If the device refuses; nothing is left then.
    """

    def __init__(
        self,
        packed: PackedNetwork,
        driver: Driver,
        kernels: Mapping[KernelRecipe, LoadedKernel],
        gpu: Gpu,
        *,
        samples: int = 1,
        few_side: int = 0,
        more_samples: int = 0,
    ) -> None:
        self._lock = threading.RLock()
        self._owner: object = None
        self.driver = driver
        driver.enter()
        self.network = GpuNetwork(
            driver,
            kernels,
            packed,
            gpu.multiprocessors,
            samples=samples,
            few_side=few_side,
            more_samples=more_samples,
        )
        self.done: Event = driver.make_event()
        weakref.finalize(self, close_all, driver, self.network, tuple(kernels.values()))

    @contextlib.contextmanager
    def work(self, owner: object, *, begins: bool = False) -> Iterator[Driver]:
        """Give the device to a drag.

        Raises
        ------
        RequestError
            If a newer drag has begun.
        """
        with self._lock:
            if begins:
                self._owner = weakref.ref(owner)
            elif not isinstance(self._owner, weakref.ref) or self._owner() is not owner:
                raise RequestError("This drag has ended: another one of the same network has begun.")
            self.driver.enter()
            yield self.driver

    def check(self, network: DifferentiableNetwork, *, of_picture: bool = False) -> str:
        """Compare with torch; return in a phrase what differs, empty if nothing does.

        The gradients of a sum, with random weights, of the features of blocks 32 and 128, or of the last one before;
        or of the pictures there, where the network has them.
        """
        units = {min(block, self.network.side): unit for block, unit in reversed(_CHECKED_BLOCKS.items())}
        problems = (self._check_block(network, *block, of_picture=of_picture) for block in units.items())
        return next(filter(None, problems), "")

    def _check_block(self, network: DifferentiableNetwork, block: int, unit: float, *, of_picture: bool) -> str:
        spec, device = self.network.spec, self.network
        generator = torch.Generator().manual_seed(3)
        wanted_device = network.device
        ws = network.mean_w.float().cpu().expand(spec.num_ws, -1)
        ws = ws + 0.1 * torch.randn(ws.shape, generator=generator) * ws.std().clamp(min=0.1)
        free = ws[None].to(device=wanted_device, dtype=network.dtype).requires_grad_()
        of_picture = of_picture and block in network.picture_resolutions
        result = network.picture(free, block) if of_picture else network.features(free, block)
        factor = torch.randn(result.shape, generator=generator)
        (wanted,) = torch.autograd.grad((result * factor.to(result)).sum(), free)
        _, used, channels = device.features(block)
        if of_picture:
            whole = factor[0].contiguous().numpy()
        else:
            whole = np.zeros((block, block, channels), np.float16)
            whole[..., :used] = factor[0].permute(1, 2, 0).numpy() / unit
        found = np.empty((spec.num_ws, spec.w_dim), np.float32)
        with self._lock:
            self.driver.enter()
            arrays = DeviceArrays(self.driver)
            try:
                self.driver.upload(device.ws, np.ascontiguousarray(ws.numpy()))
                device.forward(block)
                if of_picture:
                    device.picture(block)
                device.backward(block, arrays.upload(whole), of_picture=of_picture, unit=unit)
                self.driver.download(found, device.ws_gradient)
            finally:
                arrays.close()
        rows = wanted[0].float().cpu().numpy()
        sizes = np.linalg.norm(rows, axis=1)
        for row, (mine, theirs, size) in enumerate(zip(found, rows, sizes.tolist(), strict=True)):
            cosine = float(mine @ theirs) / max(1e-30, size * float(np.linalg.norm(mine)))
            if size > _LEAST_SIZE * float(sizes.max()) and not cosine >= LEAST_COSINE:
                return f"the gradient of row {row} has a cosine of {cosine:.4f} with torch's"
        return ""


def packed_network(network: DifferentiableNetwork, side: int) -> PackedNetwork:
    """Return the weights and the noise of a StyleGAN2 up to a side as its kernels take them."""
    assert isinstance(network.spec, StyleGAN2Spec)
    weights = {name: tensor.float().cpu().numpy() for name, tensor in network.weights.items()}
    noise = {name: picture[0].float().cpu().numpy() for name, picture in network.noise.items()}
    return pack_network(network.spec, weights, noise, side)


def open_gpu_gradients(
    network: DifferentiableNetwork,
    gpu: Gpu,
    packed: PackedNetwork,
    *,
    samples: int = 1,
    few_side: int = 0,
    more_samples: int = 0,
    of_picture: bool = False,
    is_checked: bool = False,
) -> GpuGradients:
    """Compile, load, place and check; takes seconds where kernels are not in the cache.

    Parameters
    ----------
    packed
        Of the network, up to the resolution of the last layers.
    samples, few_side, more_samples
        As in `GpuNetwork`.
    of_picture
        Pictures are differentiated, not features alone.
    is_checked
        The same kernels passed their check before.

    Raises
    ------
    DeviceError
        If the device, a kernel or the check fails.
    """
    taps, has_skips = len(packed.spec.resample_filter), packed.spec.architecture == "resnet"
    driver, kernels = load_kernels(kernels_of_step(taps, gpu.compile_architecture, with_skips=has_skips), gpu)
    try:
        opened = GpuGradients(
            packed, driver, kernels, gpu, samples=samples, few_side=few_side, more_samples=more_samples
        )
    except BaseException:
        driver.close()
        raise
    problem = "" if is_checked else opened.check(network, of_picture=of_picture)
    if problem:
        raise DeviceError(f"{gpu.name} computes other gradients than torch: {problem}.")
    return opened
