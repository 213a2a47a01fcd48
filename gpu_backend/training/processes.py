"""Several processes, one GPU each, as torchrun starts them.

Gradients are averaged by one all-reduce an update. torch's DistributedDataParallel cannot be used: it hangs on
hooks of a single backward pass, and the regularisers differentiate gradients inside of theirs.

What the hosts tell each other goes from host to host and does not wait for GPUs. Unlike an exchange between GPUs, it
fails at once where a process has ended, so that the others end, too.
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
"""After a failed exchange gloo's thread still lets go of tensors, for which it needs Python; if Python ended meanwhile,
the thread would take the process down with a signal."""


class PeerError(LoomError):
    """Another process of the training has ended, or cannot be reached."""


@dataclass(frozen=True, slots=True)
class Processes:
    """Which process of how many this is, and on what it computes."""

    rank: int
    count: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """The one that writes files and says how far it is."""
        return self.rank == 0

    def own_seed(self, seed: int) -> int:
        """Return a seed for random numbers that no other process draws; the first one has the seed itself."""
        return seed + self.rank * _SEED_STRIDE

    def sum(self, values: Tensor) -> Tensor:
        """Replace values by their sum over all processes, and return them.

        Raises
        ------
        PeerError
            If another process has ended; so does everything else that several processes do.
        """
        if self.count > 1:
            with _exchange():
                distributed.all_reduce(values)
        return values

    def average(self, values: Tensor) -> None:
        """Replace values by their mean over all processes."""
        self.sum(values).div_(self.count)

    def any(self, is_so: bool) -> bool:
        """Tell whether it is so in any process. Hosts wait for each other, but not for their GPUs."""
        return bool(self.sum(torch.tensor(float(is_so))) > 0)

    def meet(self) -> None:
        """Wait until all processes have come this far."""
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

    Among several, Ctrl-C ends the process at once, unless somebody handles it otherwise.

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
        distributed.destroy_process_group()  # not after an error: it would wait for processes that have ended


@contextmanager
def _exchange() -> Iterator[None]:
    """Say in a sentence that an exchange with the others failed."""
    try:
        yield
    except RuntimeError as error:
        time.sleep(_LETTING_GO_S)
        raise PeerError(
            "A training needs all of its processes, but another one ended or cannot be reached; look what it said.",
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
