"""Features of a discriminator by own kernels that torch differentiates, on torch's stream: opened, checked, run."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from gpu_backend.cuda.compiling.compilation import compile_kernels
from gpu_backend.cuda.driver.interface import Driver, LoadedKernel
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.errors import DeviceError
from gpu_backend.gradients.discriminator_layers import TOO_LARGE, fit_in_half
from gpu_backend.gradients.gpu.discriminator import TAPS, GpuDiscriminator, PackedDiscriminator
from gpu_backend.gradients.gpu.discriminator_kernels import kernels_of_discriminator
from gpu_backend.gradients.gpu.tensors import DeviceTensors
from gpu_backend.ops.kernels.recipe import KernelRecipe

_LARGEST = 64.0
"""Largest number of the maps' gradients while they are fp16."""
_LEAST = 1e-30
_MOST_ERROR = 1e-2
"""Of a map, relative to torch's, by norms."""
_LEAST_COSINE = 0.99
"""Of the picture's gradient with that of torch."""

Layers = Callable[[Tensor], Sequence[Tensor]]
"""Pictures (batch, img_channels, side, side) to maps (batch, channels, height, width)."""

_log = logging.getLogger(__name__)


class GpuFeatures:
    """Pictures to the maps of all blocks of a discriminator, fp32 with channels last in memory.

    Only the newest run can be differentiated: its activations are those of the device.

    Parameters
    ----------
    driver
        Closed with this object.
    samples
        Most samples of a run of own kernels.
    device
        Of torch's tensors; the same GPU.
    in_torch
        Computes what own kernels do not: more samples, or features that are too large for fp16.
    """

    def __init__(
        self,
        driver: Driver,
        kernels: Mapping[KernelRecipe, LoadedKernel],
        packed: PackedDiscriminator,
        gpu: Gpu,
        samples: int,
        device: torch.device,
        in_torch: Layers,
    ) -> None:
        self._driver, self._device, self._in_torch = driver, device, in_torch
        self._lock = threading.RLock()
        self._memory = DeviceTensors(device)
        self._runs = 0
        self._is_refused = False
        driver.enter()
        self._gpu = GpuDiscriminator(driver, kernels, packed, gpu.multiprocessors, samples)
        self._levels = torch.tensor([[self._gpu.level(side)] for _, side, *_ in self._gpu.maps], device=device)
        weakref.finalize(self, _close, driver, self._gpu, tuple(kernels.values()))
        # Memory was cleared on the driver's own stream.
        cleared = driver.make_event()
        driver.record(cleared)
        driver.wait(cleared)

    def __call__(self, pictures: Tensor) -> list[Tensor]:
        """Return the maps."""
        if self._is_refused or len(pictures) > self._gpu.samples:
            return list(self._in_torch(pictures))
        return list(_Maps.apply(pictures, self))  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def prepare(self, pictures: Tensor) -> None:
        """Leave everything to torch if features of pictures are too large for fp16. Reads numbers back."""
        if not self._is_refused and not fit_in_half(self(pictures)):
            self._is_refused = True
            _log.info(TOO_LARGE)

    def forward(self, pictures: Tensor) -> tuple[tuple[Tensor, ...], int]:
        """Enqueue a run; return its maps and its number."""
        pictures = pictures.contiguous()
        with self._launching():
            self._gpu.forward(pictures.data_ptr(), len(pictures))
        self._runs += 1
        maps = []
        for address, side, used, channels in self._gpu.maps:
            whole = self._memory.view(address, (len(pictures), side, side, channels), np.float16)
            maps.append(whole[..., :used].float().contiguous().permute(0, 3, 1, 2))
        return tuple(maps), self._runs

    def backward(self, gradients: Sequence[Tensor], run: int) -> Tensor:
        """Enqueue the way back of a run from the gradients of its maps; return that of its pictures."""
        if run != self._runs:
            raise RuntimeError("the activations of this run are gone: another one came after it")
        gradients = [gradient.permute(0, 2, 3, 1).contiguous() for gradient in gradients]
        samples, gpu = len(gradients[0]), self._gpu
        # Each sample's gradient is scaled so that fp16 holds it, whatever the loss.
        norms = torch.stack([torch.linalg.vector_norm(x, math.inf, dim=(1, 2, 3)) for x in gradients])
        scale = _LARGEST / (norms * self._levels).amax(0).clamp(min=_LEAST)
        found = gradients[0].new_empty(samples, gpu.colours, gpu.side, gpu.side)
        with self._launching():
            gpu.backward([x.data_ptr() for x in gradients], scale.data_ptr(), found.data_ptr(), samples)
        return found

    def check(self, in_torch: Layers) -> str:
        """Compare maps and a gradient with torch; return in a phrase what differs, empty if nothing does."""
        generator = torch.Generator().manual_seed(3)
        side, colours = self._gpu.side, self._gpu.colours
        coarse = torch.randn((1, colours, 8, 8), generator=generator)
        picture = functional.interpolate(coarse, (side, side), mode="bilinear") * 0.5
        picture = (picture + 0.1 * torch.randn(picture.shape, generator=generator)).clamp(-1, 1).to(self._device)
        found = []
        for layers in (self, in_torch):
            free = picture.clone().requires_grad_()
            maps = layers(free)
            factors = torch.Generator().manual_seed(5)
            weighted = [(x * torch.randn(x.shape, generator=factors).to(x)).mean() for x in maps]
            (gradient,) = torch.autograd.grad(torch.stack(weighted).sum(), free)
            found.append(([x.detach() for x in maps], gradient))
        for mine, theirs in zip(found[0][0], found[1][0], strict=True):
            error = float((mine - theirs).norm() / theirs.norm().clamp(min=_LEAST))
            if not error <= _MOST_ERROR:
                return f"the features of {mine.shape[-1]} x {mine.shape[-1]} differ from torch's by {error:.2g}"
        cosine = float(functional.cosine_similarity(found[0][1].flatten(), found[1][1].flatten(), 0))
        if not cosine >= _LEAST_COSINE:
            return f"the gradient has a cosine of {cosine:.4f} with torch's"
        return ""

    @contextlib.contextmanager
    def _launching(self) -> Iterator[None]:
        """Give the device to work on torch's current stream."""
        is_cuda = self._device.type == "cuda"
        stream = torch.cuda.current_stream(self._device).cuda_stream if is_cuda else 0
        with self._lock:
            self._driver.enter()
            with self._driver.on_stream(stream):
                yield


class _Maps(Function):
    @staticmethod
    def forward(ctx: Any, pictures: Tensor, features: GpuFeatures) -> tuple[Tensor, ...]:
        maps, run = features.forward(pictures.detach())
        ctx.run = features, run
        return maps

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        features, run = ctx.run
        return features.backward(gradients, run), None


def open_gpu_features(
    packed: PackedDiscriminator,
    gpu: Gpu,
    samples: int,
    device: torch.device,
    in_torch: Layers,
    exact: Layers | None,
) -> GpuFeatures:
    """Compile, load, place and check; takes seconds where kernels are not in the cache.

    Parameters
    ----------
    samples, device, in_torch
        As of `GpuFeatures`.
    exact
        What they are compared with, in fp32; None where the same kernels passed their check before.

    Raises
    ------
    DeviceError
        If the device, a kernel or the check fails.
    """
    from gpu_backend.cuda.driver.gpu_driver import GpuDriver

    if len(packed.taps) != TAPS:
        raise DeviceError(f"The discriminator's filter has {len(packed.taps)} taps; own kernels are for {TAPS}.")
    architecture = gpu.compile_architecture
    compiled = compile_kernels(kernels_of_discriminator(TAPS, len(packed.rgb_weight), architecture), architecture)
    for error in compiled.failures.values():
        raise error
    driver = GpuDriver(gpu.index)
    try:
        driver.enter()
        kernels = {recipe: driver.load(kernel.cubin, recipe) for recipe, kernel in compiled.kernels.items()}
        opened = GpuFeatures(driver, kernels, packed, gpu, samples, device, in_torch)
    except BaseException:
        driver.close()
        raise
    problem = "" if exact is None else opened.check(exact)
    if problem:
        raise DeviceError(f"{gpu.name} computes other features than torch: {problem}.")
    return opened


def _close(driver: Driver, discriminator: GpuDiscriminator, kernels: tuple[LoadedKernel, ...]) -> None:
    discriminator.close()
    for kernel in kernels:
        driver.unload(kernel)
    driver.close()
