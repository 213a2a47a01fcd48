"""Repeated calls of a function of tensors as a CUDA graph: a step of a search is hundreds of small kernels."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from gpu_backend.garbage import without_collections

_WARM_UP_MEASURED = 3
"""Calls before the capture where cuDNN measures its algorithms."""
_MOST_CAPTURES = 2
"""Libraries may have to allocate workspaces in a call that is not captured."""

_log = logging.getLogger(__name__)


class StepGraph:
    """Calls a function; it may be captured once and then replayed.

    Parameters
    ----------
    function
        Reads and writes the same tensors at every call, in place, and returns the same one.
    captured
        The tensors are on a GPU, and the function reads no number back and copies nothing from the host.
    measured
        cuDNN times its algorithms in the first call, which takes seconds for a large network; otherwise it guesses.
    """

    def __init__(self, function: Callable[[], Tensor], *, captured: bool, measured: bool = True) -> None:
        self._function = function
        self._captured, self._measured = captured, measured
        self._calls = self._captures = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._result: Tensor | None = None

    def __call__(self) -> Tensor:
        """Do the work of one call, and return the function's result."""
        if not self._captured:
            return self._function()
        with torch.backends.cudnn.flags(enabled=True, benchmark=self._measured):
            is_warm = self._calls >= (_WARM_UP_MEASURED if self._measured else 0)
            if self._graph is None and is_warm and self._captures < _MOST_CAPTURES:
                self._capture()
            self._calls += 1
            if self._graph is not None:
                self._graph.replay()
                assert self._result is not None
                return self._result
            return self._function()

    def results(self, calls: int, *, ahead: bool) -> Iterator[list[float]]:
        """Yield the numbers that each of so many calls returns.

        Parameters
        ----------
        ahead
            The next call is enqueued before the host waits for the numbers of the one before, so that a GPU does not
            wait for the host.
        """
        if not ahead:
            for _ in range(calls):
                yield self().tolist()
            return
        result, is_there = self(), torch.cuda.Event()
        numbers = torch.empty(result.shape, dtype=result.dtype, pin_memory=True)
        for call in range(calls):
            numbers.copy_(result, non_blocking=True)
            is_there.record()
            if call + 1 < calls:
                self()
            is_there.synchronize()
            yield numbers.tolist()

    def _capture(self) -> None:
        """Capture the function; after the last failure the calls go on one kernel at a time."""
        self._captures += 1
        graph = torch.cuda.CUDAGraph()
        try:
            # Other threads use the driver meanwhile, so that only this one's calls count. A former search that garbage
            # collection freed on this thread would break the capture.
            with without_collections(), torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._result = self._function()
        except RuntimeError as error:
            if self._captures == _MOST_CAPTURES:
                _log.warning("A step of a search is not captured as a CUDA graph, so it takes longer: %s", error)
            self._result = None
        else:
            self._graph = graph
