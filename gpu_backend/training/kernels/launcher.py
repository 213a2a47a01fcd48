"""Launches kernels on torch's current stream, or gives the reason why they are not available."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gpu_backend.cuda.driver.arguments import Value
from gpu_backend.cuda.driver.probe import probe
from gpu_backend.errors import LoomError
from gpu_backend.training.kernels.recipe import THREADS, TrainingKernel, usual_kernels, vector_of

if TYPE_CHECKING:
    from gpu_backend.cuda.running.external_stream_kernels import ExternalStreamKernels

_BLOCKS_A_MULTIPROCESSOR = 8


@functools.cache
def kernels_problem(index: int, dtype: torch.dtype) -> str:
    """Load the usual kernels for a GPU; return why they cannot be used, or an empty string."""
    found = probe()
    if index >= len(found.gpus):
        return found.problem or f"the driver shows no GPU {index}"
    try:
        _kernels(index).load_all(tuple(usual_kernels(dtype)))
    except LoomError as error:
        return error.sentence
    return ""


def can_launch(x: Tensor) -> bool:
    """Return whether the kernels accept this tensor."""
    if not x.is_cuda or torch.compiler.is_compiling() or not vector_of(x.dtype, x.shape[1]):
        return False
    return not kernels_problem(x.device.index, x.dtype)


def launch(
    kernel: TrainingKernel, grid: tuple[int, int, int], arguments: Mapping[str, Tensor | int | float | None]
) -> None:
    """Launch a kernel on the GPU of its tensors. Arguments go by the names of parameters; tensors as pointers."""
    device = next(one.device for one in arguments.values() if isinstance(one, Tensor))
    with torch.cuda.device(device):
        kernels = _kernels(device.index)
        stream = torch.cuda.current_stream(device).cuda_stream
        values = {name: _value(one) for name, one in arguments.items()}
        kernels.launch(kernel, grid, THREADS, values, stream)


def lanes_of(channels: int, vector: int) -> int:
    """Return the pixels that a thread block processes at once."""
    return THREADS // (channels // vector)


def strips_of(x: Tensor, vector: int) -> tuple[int, int]:
    """Return the number of strips of a picture, one thread block each, and the pixels of a strip."""
    batch, channels, height, width = x.shape
    lanes = lanes_of(channels, vector)
    wanted = torch.cuda.get_device_properties(x.device).multi_processor_count * _BLOCKS_A_MULTIPROCESSOR / batch
    turns = max(4, math.ceil(height * width / (lanes * max(1.0, wanted))))
    strip = lanes * turns
    return -(-height * width // strip), strip


@functools.cache
def _kernels(index: int) -> ExternalStreamKernels:
    # Imported here, because machines without a GPU may lack the CUDA bindings.
    from gpu_backend.cuda.running.external_stream_kernels import ExternalStreamKernels

    return ExternalStreamKernels(probe().gpus[index])


def _value(argument: Tensor | int | float | None) -> Value:
    return np.uint64(argument.data_ptr()) if isinstance(argument, Tensor) else argument
