"""Passes of own kernels that torch differentiates: a search has its loss in torch and its network here.

They run on torch's stream, so a CUDA graph of torch holds them too. Activations stay on the device from a pass forward
to its way back; torch sees the rows of w, features, pictures and their gradients.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from gpu_backend.cuda.driver.interface import Driver
from gpu_backend.gradients.gpu.open_network import GpuGradients
from gpu_backend.gradients.gpu.pictures import SCALE_BLOCKS
from gpu_backend.gradients.gpu.placed import COLOURS
from gpu_backend.gradients.gpu.quasi_newton import GpuQuasiNewton
from gpu_backend.gradients.gpu.tensors import DeviceTensors
from gpu_backend.gradients.gpu.terms import GpuTerms

_LARGEST = 64.0
"""Largest number of a picture's gradient while it is fp16; coarse layers have up to a hundred times as much."""
_LEAST = 1e-30


class GpuPasses:
    """Implements `gpu_backend.gradients.network.NetworkPasses` by own kernels.

    Only the newest pass can be differentiated: its activations are those of the device.

    Parameters
    ----------
    gpu
        The network on its device, for this object alone.
    device
        Of torch's tensors; the same GPU.
    """

    def __init__(self, gpu: GpuGradients, device: torch.device) -> None:
        self._gpu, self._device = gpu, device
        self._runs = 0
        self._memory = DeviceTensors(device)
        with gpu.work(self, begins=True) as driver:
            # Memory was cleared on the driver's own stream.
            driver.record(gpu.done)
            driver.wait(gpu.done)

    @property
    def terms(self) -> GpuTerms:
        """What compares pictures."""
        return GpuTerms(self._gpu.network, self._launching)  # kept, it would hold the memory until the next collection

    def minimiser(self, start: Tensor) -> GpuQuasiNewton:
        """Return a search for minima from `start`, (samples, ...)."""
        return GpuQuasiNewton(start, self._gpu.network, self._launching)

    def features(self, ws: Tensor, block: int) -> Tensor:
        """Return the output of a block, (batch, channels, side, side), channels last in memory, fp32."""
        features: Tensor = _Pass.apply(ws, self, block, False)  # type: ignore[no-untyped-call]
        return features.permute(0, 3, 1, 2)

    def picture(self, ws: Tensor, resolution: int | None = None) -> Tensor:
        """Return the picture, (batch, 3, resolution, resolution), fp32, in memory that the next pass writes."""
        side = self._gpu.network.spec.resolution if resolution is None else resolution
        picture: Tensor = _Pass.apply(ws, self, side, True)  # type: ignore[no-untyped-call]
        return picture

    def forward(self, ws: Tensor, side: int, *, of_picture: bool) -> tuple[Tensor, int]:
        """Enqueue a pass; return pictures, or features (batch, side, side, channels), and the number of the pass."""
        network, samples = self._gpu.network, len(ws)
        self._memory.view(network.ws, tuple(ws.shape)).copy_(ws)
        with self._launching():
            network.forward(side, samples)
            address, used, channels = network.features(side)
            if of_picture:
                address = network.picture(side, samples)
        self._runs += 1
        if of_picture:
            return self._memory.view(address, (samples, COLOURS, side, side)).detach(), self._runs
        found = self._memory.view(address, (samples, side, side, channels), np.float16)
        return found[..., :used].float().contiguous(), self._runs

    def backward(self, gradient: Tensor, side: int, run: int, *, of_picture: bool) -> Tensor:
        """Enqueue the way back of a pass from the gradient of its result; return that of the rows of w."""
        if run != self._runs:
            raise RuntimeError("the activations of this pass are gone: another one came after it")
        network, samples = self._gpu.network, len(gradient)
        if not of_picture:
            _, used, channels = network.features(side)
            gradient = functional.pad(gradient, (0, channels - used)) if channels > used else gradient
        # Each sample's gradient is scaled so that fp16 holds it, whatever the loss.
        if of_picture:
            gradient, largest = gradient.contiguous(), gradient.new_empty(samples, 1, 1)
            parts = gradient.new_empty(samples, SCALE_BLOCKS)
            pointers = gradient.data_ptr(), largest.data_ptr(), _LEAST, parts.data_ptr()
            with self._launching():
                address = network.take_picture_gradient(side, *pointers, samples)
                network.backward(side, address, samples, of_picture=True, unit=1.0 / _LARGEST)
        else:
            largest = torch.linalg.vector_norm(gradient, math.inf, dim=(1, 2, 3), keepdim=True).clamp(min=_LEAST)
            scaled = torch.empty_like(gradient, dtype=torch.float16, memory_format=torch.contiguous_format)
            torch.mul(gradient, _LARGEST / largest, out=scaled)
            largest = largest[:, :, 0]
            with self._launching():
                network.backward(side, scaled.data_ptr(), samples, unit=1.0 / _LARGEST)
        found = self._memory.view(network.ws_gradient, (samples, network.spec.num_ws, network.spec.w_dim))
        rows: Tensor = found * largest
        return rows

    @contextlib.contextmanager
    def _launching(self) -> Iterator[Driver]:
        """Give the device to work on torch's current stream."""
        is_cuda = self._device.type == "cuda"
        stream = torch.cuda.current_stream(self._device).cuda_stream if is_cuda else 0
        with self._gpu.work(self) as driver, driver.on_stream(stream):
            self._gpu.network.break_sequence()
            yield driver


class _Pass(Function):
    @staticmethod
    def forward(ctx: Any, ws: Tensor, passes: GpuPasses, side: int, of_picture: bool) -> Tensor:
        found, run = passes.forward(ws.detach(), side, of_picture=of_picture)
        ctx.pass_ = passes, side, run, of_picture
        return found

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        passes, side, run, of_picture = ctx.pass_
        return passes.backward(gradients[0], side, run, of_picture=of_picture), None, None, None
