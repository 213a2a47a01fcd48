"""What binding and running a schedule need from a GPU: `gpu_backend.cuda.driver.gpu_driver`, or one of tests' own.

Addresses are plain numbers. Work is ordered by one stream: copies, kernels, graphs and events run in the order in
which they were handed over, except what `copy_out_beside` copies. Every method but those that say so returns at once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NewType, Protocol

from numpy.typing import NDArray

from gpu_backend.cuda.driver.arguments import PackedArguments
from gpu_backend.cuda.schedule import TensorMap
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.quick_dataclass import dataclass

Event = NewType("Event", object)
"""A moment in the stream's work."""

Graph = NewType("Graph", object)
"""Captured work, ready to be replayed."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadedKernel:
    """A kernel on the device. `function` and `module` are the driver's own.

    Attributes
    ----------
    shared_nbytes
        Static shared memory of a block.
    local_nbytes
        A thread's local memory: what did not fit its registers.
    is_cooperative
        Its blocks wait for each other: the driver starts it only if all are resident at once. Recipes say so by the
        macro COOPERATIVE.
    starts_early
        It waits by itself for the kernel before, and the GPU can start it while that one ends.
    """

    function: Any
    module: Any
    entry: str
    registers: int
    shared_nbytes: int
    local_nbytes: int
    is_cooperative: bool = False
    starts_early: bool = False


class Driver(Protocol):
    """One GPU.

    Raises
    ------
    DeviceMemoryError
        If there is not enough memory.
    DeviceLostError
        If the GPU failed; every later call fails too, and the methods that free do nothing.
    """

    @property
    def context(self) -> int:
        """The driver's handle of the context, as a number."""
        ...

    def enter(self) -> None:
        """Make the GPU current for the calling thread. A thread calls this before the methods below."""
        ...

    def close(self) -> None:
        """Free what belongs to the driver itself. Never raises; may be called twice."""
        ...

    def on_stream(self, stream: int) -> AbstractContextManager[None]:
        """Enqueue meanwhile on a stream of another library; 0 is the default stream."""
        ...

    def reserve(self, nbytes: int) -> int:
        """Memory on the device, its address a multiple of 256."""
        ...

    def release(self, address: int) -> None:
        """Free memory on the device; waits until the device has nothing to do. Never raises."""
        ...

    def reserve_pinned(self, nbytes: int) -> int:
        """Memory of the host that the device copies from and to."""
        ...

    def release_pinned(self, address: int) -> None:
        """Free it, on any thread; waits until the device has nothing to do. Never raises."""
        ...

    def is_idle(self) -> bool:
        """Whether all enqueued work is done. A lost device has none. Never raises."""
        ...

    def copy_in(self, target: int, source: int, nbytes: int) -> None:
        """Copy from pinned memory to the device."""
        ...

    def copy_out(self, target: int, source: int, nbytes: int) -> None:
        """Copy from the device to pinned memory."""
        ...

    def copy_out_beside(self, target: int, source: int, nbytes: int, after: Event, done: Event) -> None:
        """Copy from the device to pinned memory, concurrently with work enqueued later.

        It begins once `after`, recorded before, has happened; `done` happens when the copy is complete.
        """
        ...

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy from place to place on the device."""
        ...

    def upload(self, target: int, array: NDArray[Any]) -> None:
        """Copy an array to the device; returns when that is done."""
        ...

    def download(self, array: NDArray[Any], source: int) -> None:
        """Fill an array from the device, after all work enqueued so far; returns when that is done."""
        ...

    def zero(self, address: int, nbytes: int) -> None:
        """Fill memory of the device with zeros."""
        ...

    def load(self, cubin: bytes, recipe: KernelRecipe) -> LoadedKernel:
        """Put a kernel on the device, with leave for as much dynamic shared memory as the device has.

        Raises
        ------
        KernelError
            If the driver refuses it, or knows other parameters of it than `KernelRecipe.parameters`.
        """
        ...

    def unload(self, kernel: LoadedKernel) -> None:
        """Take it off again. Never raises."""
        ...

    def blocks_per_multiprocessor(self, kernel: LoadedKernel, threads: int, shared_nbytes: int) -> int:
        """Blocks of this size and dynamic shared memory that are resident on a multiprocessor at once."""
        ...

    def tensor_map(self, address: int, described: TensorMap) -> bytes:
        """Return a tensor map of activations, as kernels take it; only GPUs with TMA have them."""
        ...

    def launch(
        self,
        kernel: LoadedKernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_nbytes: int,
        arguments: PackedArguments,
        *,
        follows_kernel: bool = False,
    ) -> None:
        """Start a kernel.

        `follows_kernel`: a kernel was enqueued just before, with nothing between them, so that one that `starts_early`
        may.
        """
        ...

    def capture(self, work: Callable[[], None]) -> Graph:
        """Capture what `work` enqueues instead of running it."""
        ...

    def replay(self, graph: Graph) -> None:
        """Do what was captured."""
        ...

    def release_graph(self, graph: Graph) -> None:
        """Free a graph. Never raises."""
        ...

    def make_event(self) -> Event:
        """An event that can be timed."""
        ...

    def record(self, event: Event) -> None:
        """Record the event after the work enqueued so far; in a capture, at each replay."""
        ...

    def wait(self, event: Event) -> None:
        """Wait for the event's latest record. One that was never recorded has happened."""
        ...

    def elapsed_ms(self, start: Event, end: Event) -> float:
        """Time between two events that have happened."""
        ...

    def release_event(self, event: Event) -> None:
        """Free an event. Never raises."""
        ...
