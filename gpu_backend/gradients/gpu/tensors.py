"""Memory of a device as tensors of torch."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import torch
from torch import Tensor


class DeviceTensors:
    """Makes tensors over memory, which must outlive them; a second one of the same memory and shape is the first.

    Parameters
    ----------
    device
        A GPU, or the processor where memory of the host stands for that of a device.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._views: dict[tuple[int, tuple[int, ...]], Tensor] = {}

    def view(self, address: int, shape: tuple[int, ...], dtype: type = np.float32) -> Tensor:
        """Return a tensor over memory of the device, made before a graph is captured."""
        key = address, shape
        if key not in self._views:
            if self._device.type == "cuda":
                made = torch.as_tensor(_DeviceArray(address, shape, np.dtype(dtype)), device=self._device)
            else:
                nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
                memory = (ctypes.c_char * nbytes).from_address(address)
                made = torch.from_numpy(np.frombuffer(memoryview(memory), dtype).reshape(shape))
            self._views[key] = made
        return self._views[key]


class _DeviceArray:
    """Memory of the device as libraries exchange it."""

    def __init__(self, address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (address, False),
            "version": 3,
        }
