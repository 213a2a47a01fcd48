"""L-BFGS on a GPU in four launches a step, where torch needs 95 small ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np
import torch
from torch import Tensor

from gpu_backend.cuda.driver.arguments import Value
from gpu_backend.cuda.driver.interface import Driver
from gpu_backend.gradients.gpu.kernels import LBFGS_KERNELS
from gpu_backend.gradients.gpu.network import GpuNetwork
from gpu_backend.gradients.quasi_newton import DECREASE, FIRST, HISTORY, LONGEST, MOST_HALVINGS

_THREADS, _SOLVE_THREADS = 256, 512
_PARTS = 4
"""Blocks of lbfgs_products that share the pairs."""
_COLUMNS, _COUNTERS = 4 * HISTORY + 8, 5
"""Of a block's products, and of a sample: parts/lbfgs.cuh."""


class GpuQuasiNewton:
    """Implements `gpu_backend.gradients.quasi_newton.Minimiser` by own kernels.

    Pairs stay where they are, in a ring, and the products of all pairs are kept in fp64, so that a new pair is
    multiplied with all others once.

    Parameters
    ----------
    start
        (samples, ...), fp32.
    network
        Launches the kernels.
    launching
        Gives the device to work on torch's current stream.
    """

    def __init__(
        self, start: Tensor, network: GpuNetwork, launching: Callable[[], AbstractContextManager[Driver]]
    ) -> None:
        self._network, self._launching = network, launching
        self.point = start.clone(memory_format=torch.contiguous_format)
        samples, variables = self.point.flatten(1).shape
        self._blocks = -(-variables // _THREADS)
        zeros = self.point.new_zeros
        self._tensors = {
            "point": self.point,
            "base": self.point.clone(),
            "gradient": zeros(samples, variables),
            "direction": zeros(samples, variables),
            "steps": zeros(samples, HISTORY, variables),
            "changes": zeros(samples, HISTORY, variables),
            "products": zeros(samples, self._blocks, _COLUMNS),
            "squares": zeros(samples, self._blocks),
            "matrices": zeros(samples, 2, HISTORY, HISTORY, dtype=torch.float64),
            "numbers": zeros(samples, 2),
            "counters": zeros(samples, _COUNTERS, dtype=torch.int32),
            "coefficients": zeros(samples, 1 + 2 * HISTORY),
        }
        self._tensors["numbers"][:, 0] = torch.inf

    def take(self, values: Tensor, gradients: Tensor) -> None:
        """Take the values (samples,) and the gradients at `point`, and move `point`."""
        given = {"values": values.contiguous(), "fresh": gradients.contiguous()}
        samples, variables = self.point.flatten(1).shape
        numbers: dict[str, Value] = {
            "variables": variables,
            "blocks": self._blocks,
            "most_halvings": MOST_HALVINGS,
            "decrease": DECREASE,
            "first_length": FIRST,
            "longest": LONGEST,
        }
        pointers = {name: np.uint64(tensor.data_ptr()) for name, tensor in (self._tensors | given).items()}
        with self._launching():
            for kernel in LBFGS_KERNELS:
                is_solve = kernel.stem == "lbfgs_solve"
                parts = _PARTS if kernel.stem == "lbfgs_products" else 1
                self._network.launch(
                    kernel,
                    (samples, 1, 1) if is_solve else (self._blocks, samples, parts),
                    (_SOLVE_THREADS if is_solve else _THREADS, 1, 1),
                    {name: (numbers | pointers)[name] for name in kernel.parameters.names or ()},
                )
