"""Distances by features of a discriminator, by own kernels that torch differentiates, on torch's stream."""

from __future__ import annotations

import contextlib
import logging
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from gpu_backend.cuda.driver.interface import Driver, LoadedKernel
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.errors import DeviceError
from gpu_backend.gradients.discriminator_layers import TOO_LARGE, fit_in_half
from gpu_backend.gradients.gpu.discriminator import TAPS, GpuDiscriminator
from gpu_backend.gradients.gpu.discriminator_kernels import kernels_of_discriminator
from gpu_backend.gradients.gpu.loading import close_all, load_kernels
from gpu_backend.gradients.gpu.packed_discriminator import PackedDiscriminator
from gpu_backend.gradients.gpu.tensors import DeviceTensors
from gpu_backend.gradients.picture_features import LEAST_SQUARE, PictureFeatures
from gpu_backend.gradients.picture_terms import PictureTerms
from gpu_backend.ops.kernels.recipe import KernelRecipe

_LARGEST = 64.0
"""Largest length of a map's gradient at a place while it is fp16."""
_LEAST = 1e-30
_MOST_ERROR = 1e-2
"""Of a map, relative to torch's, by norms, and of the distance."""
_LEAST_COSINE = 0.99
"""Of the picture's gradient with that of torch."""

_log = logging.getLogger(__name__)


class GpuFeatures(PictureFeatures):
    """The features of a discriminator, whose distances and their gradients are computed by own kernels.

    Only the newest distance can be differentiated: its activations are those of the device.

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
        in_torch: PictureFeatures,
    ) -> None:
        super().__init__(in_torch.layers, in_torch.prepare, in_torch.discriminator)
        self._driver, self._device = driver, device
        self._lock = threading.RLock()
        self._memory = DeviceTensors(device)
        self._runs = 0
        self._is_refused = False
        driver.enter()
        self._gpu = GpuDiscriminator(driver, kernels, packed, gpu.multiprocessors, samples)
        weakref.finalize(self, close_all, driver, self._gpu, tuple(kernels.values()))
        # Memory was cleared on the driver's own stream.
        cleared = driver.make_event()
        driver.record(cleared)
        driver.wait(cleared)

    @torch.no_grad()
    def wanted(self, pictures: Tensor) -> Sequence[Tensor]:
        """Return maps (batch, height, width, channels) in fp16 before they get their length, or those of torch.

        Reads numbers back.
        """
        if not self._is_refused and len(pictures) <= self._gpu.samples:
            maps = self.run(pictures)
            if fit_in_half(maps):
                return maps
            self._is_refused = True
            _log.info(TOO_LARGE)
        return super().wanted(pictures)

    def distance(self, found: Tensor, wanted: Sequence[Tensor], terms: PictureTerms | None = None) -> Tensor:
        """Return the mean squared distance of pictures from those `wanted`, (batch,)."""
        if wanted[0].dtype != torch.float16:
            return super().distance(found, wanted, terms)
        distances: Tensor = _Distance.apply(found, self, _for_each(found, wanted))  # type: ignore[no-untyped-call]
        return distances

    def distance_with_gradient(
        self, found: Tensor, wanted: Sequence[Tensor], terms: PictureTerms | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the distances and the gradient of each by its picture, (batch, ...)."""
        if wanted[0].dtype != torch.float16:
            return super().distance_with_gradient(found, wanted, terms)
        wanted = _for_each(found, wanted)
        distances, scale, run = self.forward(found.detach(), wanted)
        return distances, self.backward(wanted, scale, run)

    def run(self, pictures: Tensor) -> list[Tensor]:
        """Return copies of all maps, (batch, height, width, channels) fp16, channels padded."""
        self._forward(pictures)
        shapes = [(address, (len(pictures), side, side, channels)) for address, side, _, channels in self._gpu.maps]
        return [self._memory.view(address, shape, np.float16).clone() for address, shape in shapes]

    def forward(self, pictures: Tensor, wanted: Sequence[Tensor]) -> tuple[Tensor, Tensor, int]:
        """Enqueue a run; return distances, scales of the samples' gradients, and the number of the run."""
        self._forward(pictures)
        parts, most = pictures.new_empty(2, len(pictures), self._gpu.distance_blocks)
        with self._launching():
            addresses = [x.data_ptr() for x in wanted]
            self._gpu.distances(addresses, LEAST_SQUARE, parts.data_ptr(), most.data_ptr(), len(pictures))
        return parts.sum(1), _LARGEST / most.amax(1).clamp(min=_LEAST), self._runs

    def backward(self, wanted: Sequence[Tensor], scale: Tensor, run: int) -> Tensor:
        """Enqueue the way back of a run; return the gradient of its pictures."""
        if run != self._runs:
            raise RuntimeError("the activations of this run are gone: another one came after it")
        samples, gpu = len(scale), self._gpu
        found = scale.new_empty(samples, gpu.colours, gpu.side, gpu.side)
        with self._launching():
            gpu.backward([x.data_ptr() for x in wanted], scale.data_ptr(), found.data_ptr(), samples)
        return found

    def check(self, exact: PictureFeatures) -> str:
        """Compare maps, a distance and its gradient with torch; return in a phrase what differs, empty for nothing."""
        generator = torch.Generator().manual_seed(3)
        side, colours = self._gpu.side, self._gpu.colours
        coarse = torch.randn((2, colours, 8, 8), generator=generator)
        pair = functional.interpolate(coarse, (side, side), mode="bilinear") * 0.5
        pair = (pair + 0.1 * torch.randn(pair.shape, generator=generator)).clamp(-1, 1).to(self._device)
        picture, wanted = pair[:1], pair[1:]
        with torch.no_grad():
            for mine, theirs in zip(self.run(wanted), exact.layers(wanted), strict=True):
                channels = theirs.permute(0, 2, 3, 1)
                error = float((mine[..., : channels.shape[-1]] - channels).norm() / channels.norm().clamp(min=_LEAST))
                if not error <= _MOST_ERROR:
                    return f"the features of {theirs.shape[-1]} x {theirs.shape[-1]} differ from torch's by {error:.2g}"
        found = []
        for features in (self, exact):
            free = picture.clone().requires_grad_()
            distance = features.distance(free, features.wanted(wanted)).sum()
            (gradient,) = torch.autograd.grad(distance, free)
            found.append((float(distance.detach()), gradient.flatten()))
        (own, gradient), (other, expected) = found
        if not abs(own - other) <= _MOST_ERROR * abs(other):
            return f"a distance is {own:.4g} and torch's {other:.4g}"
        cosine = float(functional.cosine_similarity(gradient, expected, 0))
        if not cosine >= _LEAST_COSINE:
            return f"the gradient has a cosine of {cosine:.4f} with torch's"
        return ""

    def _forward(self, pictures: Tensor) -> None:
        pictures = pictures.contiguous()
        with self._launching():
            self._gpu.forward(pictures.data_ptr(), len(pictures))
        self._runs += 1

    @contextlib.contextmanager
    def _launching(self) -> Iterator[None]:
        """Give the device to work on torch's current stream."""
        is_cuda = self._device.type == "cuda"
        stream = torch.cuda.current_stream(self._device).cuda_stream if is_cuda else 0
        with self._lock:
            self._driver.enter()
            with self._driver.on_stream(stream):
                yield


def _for_each(found: Tensor, wanted: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return as many maps as there are pictures, of as many or of one."""
    if len(wanted[0]) == len(found):
        return wanted
    return [x.expand(len(found), -1, -1, -1).contiguous() for x in wanted]


class _Distance(Function):
    @staticmethod
    def forward(ctx: Any, pictures: Tensor, features: GpuFeatures, wanted: Sequence[Tensor]) -> Tensor:
        distances, scale, run = features.forward(pictures.detach(), wanted)
        ctx.run = features, wanted, scale, run
        return distances

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        features, *run = ctx.run
        return features.backward(*run) * gradients[0].view(-1, 1, 1, 1), None, None


def open_gpu_features(
    packed: PackedDiscriminator,
    gpu: Gpu,
    samples: int,
    device: torch.device,
    in_torch: PictureFeatures,
    exact: PictureFeatures | None,
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
    if len(packed.taps) != TAPS:
        raise DeviceError(f"The discriminator's filter has {len(packed.taps)} taps; own kernels are for {TAPS}.")
    recipes = kernels_of_discriminator(TAPS, len(packed.rgb_weight), gpu.compile_architecture)
    driver, kernels = load_kernels(recipes, gpu)
    try:
        opened = GpuFeatures(driver, kernels, packed, gpu, samples, device, in_torch)
    except BaseException:
        driver.close()
        raise
    problem = "" if exact is None else opened.check(exact)
    if problem:
        raise DeviceError(f"{gpu.name} computes other features than torch: {problem}.")
    return opened
