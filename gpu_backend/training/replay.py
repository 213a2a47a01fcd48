"""Work that is done the same way every time: a few times as it is written, then captured once and replayed.

A captured piece of work reads and writes the same memory at every replay. So it takes its inputs from tensors that
stay, changes state in place, never waits for the host, and what it returns is copied before anything else runs: all
graphs share one pool of memory, where the next one may write.
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
"""Times that work runs before it is captured: until then, convolutions are tried, memory and optimisers are made."""


class Recorder(Protocol):
    """What captures work."""

    def beside(self) -> AbstractContextManager[None]:
        """Return the context in which all of that work runs, whether captured or not."""
        ...

    def record(self, work: Callable[[], Noted]) -> tuple[Callable[[], None], Noted]:
        """Capture work without doing it; return what does it, and where its metrics will be."""
        ...


class CudaRecorder:
    """CUDA graphs on a stream of their own, with one pool of memory."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._pool = torch.cuda.graph_pool_handle()

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Go over to the stream and come back; work before and after on the caller's stream keeps its order."""
        caller = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(caller)
        with torch.cuda.stream(self._stream):
            yield
        caller.wait_stream(self._stream)

    def record(self, work: Callable[[], Noted]) -> tuple[Callable[[], None], Noted]:
        """Capture work; other threads may go on using the GPU meanwhile."""
        graph = torch.cuda.CUDAGraph()
        # The stream that warmed up: convolutions, cuBLAS and autograd keep things by stream.
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
            noted = work()
        return graph.replay, noted


class Replayed:
    """A piece of work.

    Parameters
    ----------
    recorder
        None to do it as it is written, always.
    """

    def __init__(self, work: Callable[[], Noted], recorder: Recorder | None) -> None:
        self._work, self._recorder = work, recorder
        self._times = 0
        self._replay: Callable[[], None] | None = None
        self._noted: Noted = {}

    @property
    def is_settled(self) -> bool:
        """It will not change any more how it is done."""
        return self._recorder is None or self._replay is not None

    def __call__(self) -> Noted:
        """Do it once; return its metrics, which are the caller's to keep."""
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
        """Begin anew: the tensors that it works on are others now."""
        self._times = 0
        self._replay = None
        self._noted = {}
