"""CUDA graph capture and replay of repeated work, after a few eager warm-up runs.

Captured work reads and writes the same memory at every replay. It must take its inputs from persistent tensors, change
state in place, and never synchronise with the host. Its results are copied before other work runs, because all graphs
share one memory pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import torch
from torch import Tensor

Noted = dict[str, Tensor]
"""Metrics by name, each a tensor of one number."""

WARM_UP = 3
"""Eager warm-up runs before capture, in which cuDNN benchmarks convolutions and optimisers allocate state."""


class Recorder(Protocol):
    """Captures work."""

    def beside(self) -> AbstractContextManager[None]:
        """Return the context in which the work runs, captured or eager."""
        ...

    def record(self, work: Callable[[], Noted]) -> tuple[Callable[[], None], Noted]:
        """Capture work without executing it; return the replay function and the output tensors of its metrics."""
        ...


class CudaRecorder:
    """CUDA graphs on a stream of their own, with one pool of memory."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)
        self._pool = torch.cuda.graph_pool_handle()

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Switch to the stream and back, ordered with the caller's stream."""
        caller = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(caller)
        with torch.cuda.stream(self._stream):
            yield
        caller.wait_stream(self._stream)

    def record(self, work: Callable[[], Noted]) -> tuple[Callable[[], None], Noted]:
        """Capture work; other threads may use the GPU meanwhile."""
        graph = torch.cuda.CUDAGraph()
        # The stream of the warm-up runs, because cuDNN, cuBLAS and autograd keep state per stream.
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
            noted = work()
        return graph.replay, noted


class Replayed:
    """Work that is captured after warm-up and then replayed.

    Parameters
    ----------
    recorder
        None runs the work eagerly at all times.
    """

    def __init__(self, work: Callable[[], Noted], recorder: Recorder | None) -> None:
        self._work, self._recorder = work, recorder
        self._times = 0
        self._replay: Callable[[], None] | None = None
        self._noted: Noted = {}

    @property
    def is_settled(self) -> bool:
        """Whether the work is captured, or never will be."""
        return self._recorder is None or self._replay is not None

    def __call__(self) -> Noted:
        """Run the work once; return copies of its metrics."""
        if self._recorder is None:
            return self._work()
        if self._replay is None:
            if self._times < WARM_UP:
                self._times += 1
                return self._work()
            self._replay, self._noted = self._recorder.record(self._work)
        self._replay()
        return {name: value.clone() for name, value in self._noted.items()}

    def forget(self) -> None:
        """Discard the capture, because the work's tensors were replaced."""
        self._times = 0
        self._replay = None
        self._noted = {}
