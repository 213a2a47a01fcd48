"""What one would pick instead: the plain network in PyTorch, run in six ways.

eager            as written, NCHW
channels-last    the same with NHWC tensors, which tensor cores want
traced           channels-last, `torch.jit.trace` and `freeze`
graph            channels-last, captured once and replayed as a CUDA graph
compiled         channels-last, `torch.compile(mode="reduce-overhead")`: fused by Inductor, replayed as a CUDA graph
autotuned        channels-last, `torch.compile(mode="max-autotune")`: the same, and kernels chosen by timing templates
"""

from __future__ import annotations

import contextlib
import gc
import io
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from gpu_backend.bench.contender import ROTATION, CannotRunError, Case
from gpu_backend.bench.plain_stylegan2 import PlainPicture, plain_problem
from gpu_backend.bench.torch_side import DTYPES, arithmetic, events_ms, precision_problem
from gpu_backend.model.spec import StyleGAN2Spec

_COMPILED = {"compiled": "reduce-overhead", "autotuned": "max-autotune"}
"""Modes of `torch.compile`."""

_WARM_UP = 3
"""Runs before a graph is captured: cuDNN searches for its convolutions, and the allocator finds its size."""


class Peer:
    """A contender: the plain network at a precision and a batch on torch's device."""

    def __init__(self, case: Case, spec: StyleGAN2Spec, device: torch.device) -> None:
        self._case = case
        self._spec = spec
        self._device = device
        self._is_cuda = device.type == "cuda"
        self._run: Callable[[Tensor], Tensor] | None = None
        self._rows: tuple[Tensor, ...] = ()
        self._turn = 0
        self._held_before = 0
        self._nbytes: int | None = None

    @property
    def case(self) -> Case:
        """Title in tables."""
        return self._case

    @property
    def nbytes(self) -> int | None:
        """Peak GPU memory of torch's tensors in a run or its capture, with weights; not measured on the processor."""
        return self._nbytes

    def prepare(self) -> None:
        """Build, trace or compile, and run once.

        Raises
        ------
        CannotRunError
            If this network, precision or device has no such peer.
        """
        problem = plain_problem(self._spec) or precision_problem(self._case.precision, self._device)
        if self._case.who == "graph" and not self._is_cuda:
            problem = "only GPUs replay CUDA graphs"
        if problem:
            raise CannotRunError(problem)
        if self._is_cuda:
            torch._C._cuda_clearCublasWorkspaces()  # each peer has its own
            torch.cuda.empty_cache()
            # Of tensors, not of what the allocator has reserved: it keeps memory of peers before, which this one uses.
            self._held_before = torch.cuda.memory_allocated(self._device)
        dtype = DTYPES[self._case.precision]
        shape = (ROTATION, self._case.batch, self._spec.num_ws, self._spec.w_dim)
        torch.manual_seed(1)
        self._rows = tuple(torch.randn(shape).to(self._device, dtype))
        net = PlainPicture(self._spec).to(self._device, dtype)
        if self._case.who != "eager":
            net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        # Compilers warn about themselves, and autotuning prints every trial; what they give is what is measured.
        with self._settings(), warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            self._run = self._made(net.eval())
            if self._case.who != "graph":  # what a captured run holds is allocated by its capture
                self._run(self._rows[0])
                self._reset_peak()
            self._run(self._rows[0])
            self._synchronize()

    def settle(self) -> None:
        """Give back what searching and compiling took."""
        if self._is_cuda:
            torch.cuda.empty_cache()

    def times_ms(self, runs: int) -> list[float]:
        """Queue all runs, each between two events; on the CPU, in sequence, by wall time."""
        with self._settings(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not self._is_cuda:
                return [self._clocked_ms() for _ in range(runs)]
            times = events_ms(runs, self._next, self._device)
            self._nbytes = torch.cuda.max_memory_allocated(self._device) - self._held_before
            return times

    def close(self) -> None:
        """Let go of the network and of all that was compiled for it."""
        self._run = None
        self._rows = ()
        if self._case.who in _COMPILED:
            torch.compiler.reset()
        gc.collect()
        if self._is_cuda:
            torch.cuda.empty_cache()

    def _made(self, net: PlainPicture) -> Callable[[Tensor], Tensor]:
        if self._case.who == "traced":
            return _traced(net, self._rows[0])
        if self._case.who == "graph":
            return _captured(net, self._rows[0], self._reset_peak)
        if self._case.who in _COMPILED:
            return torch.compile(net, mode=_COMPILED[self._case.who], fullgraph=True, dynamic=False)
        return net

    @contextmanager
    def _settings(self) -> Iterator[None]:
        """Run without gradients in the requested precision; compiled code sees plain tensors."""
        quiet = torch.no_grad() if self._case.who in ("traced", *_COMPILED) else torch.inference_mode()
        here = torch.cuda.device(self._device) if self._is_cuda else nullcontext()
        with arithmetic(self._case.precision), quiet, here:
            yield

    def _next(self) -> Tensor:
        if self._run is None:
            raise RuntimeError("this contender was not prepared")
        self._turn += 1
        return self._run(self._rows[self._turn % ROTATION])

    def _clocked_ms(self) -> float:
        start = time.perf_counter()
        self._next()
        return (time.perf_counter() - start) * 1e3

    def _reset_peak(self) -> None:
        """Forget what searching, compiling and warming up took."""
        if self._is_cuda:
            torch.cuda.reset_peak_memory_stats(self._device)

    def _synchronize(self) -> None:
        if self._is_cuda:
            torch.cuda.synchronize(self._device)


def _traced(net: PlainPicture, rows: Tensor) -> Callable[[Tensor], Tensor]:
    jit: Any = torch.jit
    frozen: Callable[[Tensor], Tensor] = jit.freeze(jit.trace(net, (rows,), check_trace=False))
    return frozen


class _Captured:
    """A captured run: a call copies its rows in and replays. The next call fills the same picture again.

    It keeps the network, because the graph reads its weights where they lay.
    """

    def __init__(self, net: PlainPicture, graph: torch.cuda.CUDAGraph, static: Tensor, picture: Tensor) -> None:
        self._net, self._graph, self._static, self._picture = net, graph, static, picture

    def __call__(self, rows: Tensor) -> Tensor:
        self._static.copy_(rows)
        self._graph.replay()
        return self._picture


def _captured(net: PlainPicture, rows: Tensor, warmed_up: Callable[[], None]) -> _Captured:
    static = rows.clone()
    stream = torch.cuda.Stream(rows.device)
    stream.wait_stream(torch.cuda.current_stream(rows.device))
    with torch.cuda.stream(stream):
        for _ in range(_WARM_UP):
            net(static)
    torch.cuda.current_stream(rows.device).wait_stream(stream)
    warmed_up()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        picture: Tensor = net(static)
    return _Captured(net, graph, static, picture)
