"""Several processes, one GPU each, as torchrun starts them.

Gradients are averaged by one all-reduce per update. torch's DistributedDataParallel cannot be used: its hooks expect a
single backward pass, and the regularisers differentiate gradients within theirs.

Control messages use a host-side (gloo) group and do not wait for GPUs. Unlike NCCL, gloo fails at once if a process has
ended, so that the others end too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed

from gpu_backend.errors import DeviceError, LoomError
from gpu_backend.training.stop import ending_at_once

_SEED_STRIDE = 1_000_003
_LETTING_GO_S = 0.2
"""After a failed exchange gloo's thread still frees tensors, which needs the interpreter. If the interpreter has shut
down by then, the process ends with a signal."""


class PeerError(LoomError):
    """Another process of the training has ended, or cannot be reached."""


@dataclass(frozen=True, slots=True)
class Processes:
    """Rank of this process, number of processes, and its device."""

    rank: int
    count: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and reports progress."""
        return self.rank == 0

    def own_seed(self, seed: int) -> int:
        """Return a distinct random seed for this process; the first process uses `seed` itself."""
        return seed + self.rank * _SEED_STRIDE

    def sum(self, values: Tensor) -> Tensor:
        """Replace values by their sum over all processes, and return them.

        Raises
        ------
        PeerError
            If another process has ended. All collective operations raise it.
        """
        if self.count > 1:
            with _exchange():
                distributed.all_reduce(values)
        return values

    def average(self, values: Tensor) -> None:
        """Replace values by their mean over all processes."""
        self.sum(values).div_(self.count)

    def any(self, is_so: bool) -> bool:
        """Return the logical or over all processes. Hosts wait for each other, but not for their GPUs."""
        return bool(self.sum(torch.tensor(float(is_so))) > 0)

    def meet(self) -> None:
        """Wait until all processes have reached this call."""
        self.any(False)

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all processes in order."""
        if self.count == 1:
            return [value]
        values: list[Any] = [None] * self.count
        with _exchange():
            distributed.all_gather_object(values, value)
        return values


@contextmanager
def joined(device: str = "auto") -> Iterator[Processes]:
    """Join the other processes if torchrun started this one, and choose the device.

    With several processes, Ctrl-C ends the process at once, unless a handler is installed later.

    Raises
    ------
    DeviceError
        If torch sees no such GPU.
    """
    count, local = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_RANK", "0"))
    chosen = _device(device, local)
    if count == 1:
        yield Processes(0, 1, chosen)
        return
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    with ending_at_once():
        distributed.init_process_group("cpu:gloo,cuda:nccl" if chosen.type == "cuda" else "gloo")
        yield Processes(distributed.get_rank(), count, chosen)
        distributed.destroy_process_group()  # not after an error, where it would wait for ended processes


@contextmanager
def _exchange() -> Iterator[None]:
    """Convert errors of a collective operation to PeerError."""
    try:
        yield
    except RuntimeError as error:
        time.sleep(_LETTING_GO_S)
        raise PeerError(
            "A training needs all of its processes, but another one ended or cannot be reached; see its output.",
            str(error),
        ) from error


def _device(name: str, local: int) -> torch.device:
    seen = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "cpu" or (name == "auto" and not seen):
        return torch.device("cpu")
    index = int(name.partition(":")[2]) if ":" in name else local
    if index >= seen:
        raise DeviceError(
            f"Training on {name} needs a GPU that this torch can use, but it sees {seen}; "
            "install torch with CUDA, or train with --device cpu."
        )
    return torch.device("cuda", index)
