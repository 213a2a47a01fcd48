"""Prefetched batches: loaded by a thread, pinned, and copied to the GPU while it computes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import torch
from torch import Tensor

from gpu_backend.training.data.source import PictureSource

_AHEAD = 3
_POLL_S = 0.1


class Prefetch:
    """An iterator over batches on the device; close it to end its thread.

    Errors of the source are raised by the call that requests the batch.
    """

    def __init__(self, source: PictureSource, size: int, seed: int, start: int, device: torch.device) -> None:
        self._batches = source.batches(size, seed, start)
        self._device = device
        self._ready: queue.Queue[Tensor | BaseException] = queue.Queue(_AHEAD)
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        if not source.is_on_device:
            self._thread = threading.Thread(target=self._load, name="prefetch", daemon=True)
            self._thread.start()

    def __iter__(self) -> Iterator[Tensor]:
        """Return itself."""
        return self

    def __next__(self) -> Tensor:
        """Return the next batch, (size, 3, R, R) uint8."""
        if self._thread is None:
            return next(self._batches)
        item = self._ready.get()
        if isinstance(item, BaseException):
            raise item
        return item.to(self._device, non_blocking=True)

    def close(self) -> None:
        """End the thread; may be called twice."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()

    def _load(self) -> None:
        try:
            for batch in self._batches:
                is_put = self._put(batch.pin_memory() if self._device.type == "cuda" else batch)
                if not is_put:
                    return
        except BaseException as error:
            self._put(error)

    def _put(self, item: Tensor | BaseException) -> bool:
        while not self._closing.is_set():
            try:
                self._ready.put(item, timeout=_POLL_S)
                return True
            except queue.Full:
                continue
        return False
