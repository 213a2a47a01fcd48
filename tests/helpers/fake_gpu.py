"""A GPU made of Python: keeps `gpu_backend.cuda.driver.interface.Driver`.

Its stream is lazy: work that is handed over waits in a queue until somebody waits for an event or reads memory, so that
whatever is overwritten too early shows. Kernels are functions; each has a time, and a clock runs with the work.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.driver.arguments import PackedArguments
from gpu_backend.cuda.driver.interface import Event, Graph, LoadedKernel
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.errors import KernelError
from gpu_backend.cuda.schedule import TensorMap
from gpu_backend.errors import DeviceLostError, DeviceMemoryError
from gpu_backend.ops.kernels.e4m3 import E4M3, from_e4m3
from gpu_backend.ops.kernels.recipe import KernelRecipe

FAKE_GPU = Gpu(0, "Fake GPU", "sm_80", "sm_80", 1 << 30, 4, 100 << 10, 1 << 20, "GPU-fake")

_EVENT_US = 2.0
_POISON = 0xCD


@dataclass
class FakeKernel:
    """`run` gets the driver, and the arguments by name; pointers are ints, for `FakeDriver.view`."""

    run: Callable[..., None]
    time_us: float = 10.0


@dataclass(eq=False)
class _FakeEvent:
    moment_us: float = 0.0
    waiting: int = 0
    is_captured: bool = False


@dataclass
class _Op:
    run: Callable[[], None]
    time_us: float = 0.0


@dataclass
class FakeDriver:
    """Kernels by entry point. `memory_nbytes` is all that the device has; `refused` entry points do not load.

    `lose_after` counts down with every piece of work that is done; at 0 the device is lost. `full_after` counts down
    with everything that is made; at 0 there is no memory for it. `full_waits` counts the times that memory was freed
    while there was work, which a driver first does all of, whoever's it is. Using what was freed is a failed assertion.
    """

    kernels: Mapping[str, FakeKernel] = field(default_factory=dict)
    memory_nbytes: int = 1 << 30
    refused: tuple[str, ...] = ()
    lose_after: int = -1
    full_after: int = -1
    context: int = 0xC0

    def __post_init__(self) -> None:
        self.clock_us = 0.0
        self.device: dict[int, Any] = {}
        self.pinned: dict[int, Any] = {}
        self.events: list[_FakeEvent] = []
        self.graphs: list[Graph] = []
        self.loaded: list[LoadedKernel] = []
        self.captures = 0
        self.replays = 0
        self.launches = 0
        self.early_starts = 0
        self._after_kernel = False
        self.copies_in: list[int] = []
        self.copies_out: list[int] = []
        self.is_closed = False
        self.full_waits = 0
        self._queue: list[_Op] = []
        self._captured: list[_Op] | None = None
        self._beside: list[tuple[_FakeEvent, Callable[[], None]]] = []
        self.copies_beside = 0
        self._lost: DeviceLostError | None = None

    @property
    def is_empty(self) -> bool:
        """Whether everything that was made was freed."""
        return not (self.device or self.pinned or self.events or self.graphs or self.loaded)

    @property
    def queued(self) -> int:
        """Pieces of work that were handed over and not done."""
        return len(self._queue)

    def view(self, address: int, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
        """An array over memory of the device, or the host; fails outside of what was reserved."""
        count = int(np.prod(shape))
        nbytes = count * np.dtype(dtype).itemsize
        for start, block in (*self.device.items(), *self.pinned.items()):
            if start <= address and address + nbytes <= start + block.nbytes:
                return block[address - start :][:nbytes].view(dtype).reshape(shape)
        raise AssertionError(f"{nbytes} bytes at {address} were not reserved")

    def enter(self) -> None:
        """Fail if the device was lost."""
        if self._lost is not None:
            raise DeviceLostError(self._lost.sentence)

    def close(self) -> None:
        """Take note."""
        self.is_closed = True

    def on_stream(self, stream: int) -> contextlib.AbstractContextManager[None]:
        """Its one stream stands for every other."""
        return contextlib.nullcontext()

    def reserve(self, nbytes: int) -> int:
        """Memory full of garbage."""
        self._need_memory()
        if sum(block.nbytes for block in self.device.values()) + nbytes > self.memory_nbytes:
            raise DeviceMemoryError("There is not enough memory.")
        return self._make(self.device, nbytes)

    def release(self, address: int) -> None:
        """Free, after all work."""
        self._wait_for_all()
        del self.device[address]

    def reserve_pinned(self, nbytes: int) -> int:
        """Memory full of garbage."""
        self._need_memory()
        return self._make(self.pinned, nbytes)

    def release_pinned(self, address: int) -> None:
        """Free, after all work."""
        self._wait_for_all()
        del self.pinned[address]

    def is_idle(self) -> bool:
        """Whether the queues are empty."""
        return not self._queue and not self._beside

    def copy_in(self, target: int, source: int, nbytes: int) -> None:
        """Copy when its time comes."""
        self.copies_in.append(nbytes)
        self._enqueue(lambda: self._copy(target, source, nbytes))

    def copy_out(self, target: int, source: int, nbytes: int) -> None:
        """Copy when its time comes."""
        self.copies_out.append(nbytes)
        self._enqueue(lambda: self._copy(target, source, nbytes))

    def copy_out_beside(self, target: int, source: int, nbytes: int, after: Event, done: Event) -> None:
        """Copy when somebody waits for it, or all work is done: as late as it may come."""
        assert isinstance(after, _FakeEvent)
        assert isinstance(done, _FakeEvent)
        done.waiting += 1

        def copy() -> None:
            self._copy(target, source, nbytes)
            done.moment_us = self.clock_us
            done.waiting -= 1

        self.copies_beside += 1
        self._beside.append((done, copy))

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy when its time comes."""
        self._enqueue(lambda: self._copy(target, source, nbytes))

    def upload(self, target: int, array: NDArray[Any]) -> None:
        """Copy now."""
        self._run_all()
        self.view(target, (array.nbytes,), "uint8")[:] = np.frombuffer(array.tobytes(), np.uint8)

    def download(self, array: NDArray[Any], source: int) -> None:
        """Do everything, then copy."""
        self._run_all()
        array[...] = self.view(source, array.shape, str(array.dtype))

    def zero(self, address: int, nbytes: int) -> None:
        """Fill when its time comes."""
        self._enqueue(lambda: self.view(address, (nbytes,), "uint8").fill(0))

    def load(self, cubin: bytes, recipe: KernelRecipe) -> LoadedKernel:
        """Find the function."""
        entry = recipe.stem
        if entry in self.refused:
            raise KernelError(f"The kernel {entry} is refused.", phrase="the driver refuses it (INVALID)")
        kernel = LoadedKernel(self.kernels[entry], cubin, entry, registers=32, shared_nbytes=16, local_nbytes=0)
        self.loaded.append(kernel)
        return kernel

    def unload(self, kernel: LoadedKernel) -> None:
        """Forget it."""
        self.loaded.remove(kernel)

    def blocks_per_multiprocessor(self, kernel: LoadedKernel, threads: int, shared_nbytes: int) -> int:
        """By threads and shared memory alone."""
        by_shared = FAKE_GPU.shared_nbytes_per_block_optin // max(shared_nbytes + kernel.shared_nbytes, 1)
        return min(FAKE_GPU.threads_per_multiprocessor // threads, by_shared)

    def tensor_map(self, address: int, described: TensorMap) -> bytes:
        """The address, and nothing that kernels made of Python need."""
        return address.to_bytes(128, "little")

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
        """Call the function when its time comes, with the values as they lie in memory now."""
        assert self._after_kernel or not follows_kernel, "there is no kernel just before"
        self.launches += 1
        self.early_starts += follows_kernel and kernel.starts_early
        pointers = (ctypes.c_uint64 * max(len(arguments.values), 1)).from_address(arguments.address)
        values = {
            name: np.frombuffer(ctypes.string_at(pointer, value.itemsize), value.dtype)[0]
            for pointer, (name, value) in zip(pointers, arguments.values.items(), strict=False)
        }
        plain = {name: int(value) if value.dtype == np.uint64 else value for name, value in values.items()}
        self._enqueue(lambda: kernel.function.run(self, **plain), kernel.function.time_us)
        self._after_kernel = True

    def capture(self, work: Callable[[], None]) -> Graph:
        """Collect work."""
        self._need_memory()
        assert self._captured is None
        self._captured = []
        self._after_kernel = False
        try:
            work()
            graph = Graph(self._captured)
        finally:
            self._captured = None
            self._after_kernel = False
        self.captures += 1
        self.graphs.append(graph)
        return graph

    def replay(self, graph: Graph) -> None:
        """Hand the work over."""
        assert any(kept is graph for kept in self.graphs)
        self.replays += 1
        for op in graph:  # type: ignore[attr-defined]
            self._enqueue(op.run, op.time_us)

    def release_graph(self, graph: Graph) -> None:
        """Forget it."""
        assert any(kept is graph for kept in self.graphs)
        assert not {id(op.run) for op in graph} & {id(op.run) for op in self._queue}, "it is at work"  # type: ignore[attr-defined]
        self.graphs = [kept for kept in self.graphs if kept is not graph]

    def make_event(self) -> Event:
        """An event that has happened."""
        self._need_memory()
        event = _FakeEvent()
        self.events.append(event)
        return Event(event)

    def record(self, event: Event) -> None:
        """Let it happen when its time comes."""
        assert isinstance(event, _FakeEvent)
        assert event in self.events

        def happen() -> None:
            event.moment_us = self.clock_us
            event.waiting -= 1

        if self._captured is None:
            event.waiting += 1
            self._enqueue(happen)
            return
        event.is_captured = True
        self._enqueue(lambda: setattr(event, "moment_us", self.clock_us), _EVENT_US)

    def wait(self, event: Event) -> None:
        """Do work until it has happened; events of graphs wait for everything."""
        assert isinstance(event, _FakeEvent)
        assert event in self.events
        self.enter()
        if event.is_captured:
            self._run_all()
        while event.waiting and self._queue:
            self._run_one()
        for place, (done, copy) in enumerate(list(self._beside)):
            if done is event:
                del self._beside[place]
                copy()
                break
        assert not event.waiting

    def elapsed_ms(self, start: Event, end: Event) -> float:
        """By the clock."""
        assert isinstance(start, _FakeEvent)
        assert isinstance(end, _FakeEvent)
        return (end.moment_us - start.moment_us) / 1e3

    def release_event(self, event: Event) -> None:
        """Forget it."""
        assert event in self.events
        self.events = [kept for kept in self.events if kept is not event]

    def _need_memory(self) -> None:
        self.enter()
        if self.full_after == 0:
            raise DeviceMemoryError("There is not enough memory.")
        self.full_after -= 1

    def _enqueue(self, run: Callable[[], None], time_us: float = 0.0) -> None:
        self.enter()
        self._after_kernel = False
        (self._queue if self._captured is None else self._captured).append(_Op(run, time_us))

    def _run_one(self) -> None:
        if self.lose_after == 0:
            self._lost = DeviceLostError("The device was lost.")
            self._queue.clear()
            self._beside.clear()
            raise DeviceLostError(self._lost.sentence)
        self.lose_after -= 1
        op = self._queue.pop(0)
        self.clock_us += op.time_us
        op.run()

    def _run_all(self) -> None:
        self.enter()
        while self._queue:
            self._run_one()
        while self._beside:
            self._beside.pop(0)[1]()

    def _wait_for_all(self) -> None:
        self.full_waits += bool(self._queue)
        with contextlib.suppress(DeviceLostError):
            self._run_all()

    def _copy(self, target: int, source: int, nbytes: int) -> None:
        self.view(target, (nbytes,), "uint8")[:] = self.view(source, (nbytes,), "uint8")

    def _make(self, where: dict[int, Any], nbytes: int) -> int:
        block = np.full(max(nbytes, 1), _POISON, np.uint8)
        address = block.ctypes.data
        where[address] = block
        return address


def _compare(
    driver: FakeDriver,
    got: int,
    expected: int,
    sums: int,
    got_parts: np.int32,
    expected_parts: np.int32,
    kind: np.int32,
    count: np.uint32,
) -> None:
    def numbers(address: int, parts: np.int32) -> NDArray[np.float32]:
        stored = driver.view(address, (int(parts), int(count)), ("float32", "float16", E4M3)[kind])
        rows = from_e4m3(stored) if stored.dtype == E4M3 else stored.astype(np.float32)
        return np.add.reduce(rows[1:], axis=0, initial=0) + rows[0] if parts > 1 else rows[0]

    one, other = numbers(got, got_parts), numbers(expected, expected_parts)
    comparable, there = np.isfinite(other), np.isfinite(one)
    both = comparable & there
    apart = one[both].astype(np.float64) - other[both]
    found = driver.view(sums, (1024, 4), "float64")
    found[:] = 0.0
    found[0] = (
        np.square(apart).sum(),
        np.square(other[comparable].astype(np.float64)).sum(),
        np.count_nonzero(comparable & ~there),
        np.count_nonzero(one.view(np.uint32) != other.view(np.uint32)),
    )


COMPARISON = FakeKernel(_compare)
"""What ``comparison.cu`` does."""
