"""A schedule bound to a GPU: memory, kernels and arguments settled once, then replayed as one graph.

A run is: new inputs into its lane's pinned memory; a copy to the device; the graph; copies of the requested outputs; an
event. With two lanes, one run is computed while the next is handed over. A caller waits only for the event of its own
run. A picture that nothing else is in flight with may have a graph of its own, whose last kernel writes the bytes to
pinned memory (`Schedule.zero_copy`).
"""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.driver.arguments import PackedArguments, pack_arguments
from gpu_backend.cuda.driver.interface import Driver, Event, Graph, LoadedKernel
from gpu_backend.cuda.driver.memory_pool import MemoryPool
from gpu_backend.cuda.driver.pinned import Memory, PinnedRing, address_of, array_over, pinned_memory
from gpu_backend.cuda.launches.zero_copy import HOST_SLOT
from gpu_backend.cuda.running.constants import ConstantStore
from gpu_backend.cuda.running.observation import observe_layers
from gpu_backend.cuda.running.pending_run import DeviceRun, Lane
from gpu_backend.cuda.running.staging import HeldInputs
from gpu_backend.cuda.schedule import Argument, Launch, Region, Schedule
from gpu_backend.cuda.timing.range_profiler import CountKernels
from gpu_backend.cuda.timing.step_timer import StepTimer
from gpu_backend.errors import CancelledError, DeviceError
from gpu_backend.frame import KernelCounters, StepTime, with_second
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.plan.arena import ALIGNMENT
from gpu_backend.plan.executor import FRAME_OUTPUTS
from gpu_backend.plan.plan import Plan

_LANES = 2
_KEPT = "pixels"
"""The output that is the caller's own, in memory that the device copied to."""

_BEHIND = "flags"
"""The output that may lie right behind the pixels: one copy brings both. Another one would take 8 us."""

_SMALL_NBYTES = 1 << 14

MakeTimer = Callable[[Schedule, Callable[[int], None]], StepTimer]
"""Given a schedule and how to start its launch of a number, returns what measures the launches."""


class CudaBoundPlan:
    """Implements `gpu_backend.plan.executor.BoundPlan`.

    Parameters
    ----------
    pool
        The executor's; what this plan takes goes back when it is closed.
    kernels
        Those of the schedule's recipes, loaded; they belong to the executor.
    constants
        The executor's; this plan allocates from it and frees on close.
    count
        Reads hardware counters; None where there are none.

    Raises
    ------
    DeviceMemoryError, DeviceLostError
        If the device refuses; nothing is left then.
    """

    def __init__(
        self,
        driver: Driver,
        pool: MemoryPool,
        schedule: Schedule,
        kernels: Mapping[KernelRecipe, LoadedKernel],
        constants: ConstantStore,
        make_timer: MakeTimer,
        count: CountKernels | None = None,
    ) -> None:
        self._driver = driver
        self._count = count
        self._counters: tuple[KernelCounters, ...] = ()
        self._pool = pool
        self._schedule = schedule
        self._constants = constants
        self._kernels = [kernels[launch.recipe] for launch in schedule.launches]
        self._regions: dict[str, Region] = {region.name: region for region in schedule.regions}
        self._optional_outputs = schedule.optional_outputs
        self._inputs = HeldInputs(schedule.regions, schedule.starts)
        self._lanes: list[Lane] = []
        self._events: list[Event] = []
        self._free: deque[Lane] = deque()
        self._in_flight: list[DeviceRun] = []
        self._base: int | None = None
        self._places: dict[str, int] = {}
        self._taken: dict[str, int] = {}
        self._graphs: dict[tuple[bool, int], Graph] = {}
        """By whether optional outputs are among what a run computes, and its first launch."""
        self._zero_copy = schedule.zero_copy
        self._zero_copy_kernel = None if self._zero_copy is None else kernels[self._zero_copy.recipe]
        self._zero_copy_arguments: PackedArguments | None = None
        self._zero_copy_graphs: dict[int, Graph] = {}
        """By the first launch of a run."""
        self._slot_flags: dict[int, Memory] = {}
        """By the address of a slot; made once, since a frame waits for it."""
        self._no_flags = bytes(0 if _BEHIND not in self._regions else self._regions[_BEHIND].nbytes)
        self._captures = 0
        self._is_closed = False
        self._in_slot = _in_slot(self._regions)
        self._slot_nbytes = max((at + region.nbytes for region, at in self._in_slot.values()), default=0)
        self._ring: PinnedRing | None = None
        if self._in_slot:
            self._ring = PinnedRing(pool, self._regions[_KEPT].nbytes, self._slot_nbytes)
        self._arguments: dict[bool, list[PackedArguments]] = {False: [], True: []}
        # A partial, not a bound method: a reference cycle would delay freeing the weights that the schedule holds.
        self._launch = partial(_launch, driver, schedule.launches, self._kernels)
        self._timers: dict[int, StepTimer] = {
            first: make_timer(
                _from(schedule, first), partial(_launch_later, self._launch, self._arguments[False], first)
            )
            for first in {0, schedule.kept_launches}
        }
        """By the first launch of a run."""
        try:
            self._bind()
        except BaseException:
            self.close()
            raise

    @property
    def plan(self) -> Plan:
        """The plan that runs."""
        return self._schedule.plan

    @property
    def schedule(self) -> Schedule:
        """The launches that run."""
        return self._schedule

    @property
    def nbytes(self) -> int:
        """Memory of the device for regions and pixels on their way; constants belong to the executor."""
        beside = sum(self._slot_nbytes for lane in self._lanes if lane.beside)
        return 0 if self._base is None else self._schedule.nbytes + beside

    @property
    def pinned_nbytes(self) -> int:
        """Memory of the host that the device copies from and to, pictures that are still looked at included."""
        outputs = sum(self._regions[name].nbytes for lane in self._lanes for name in lane.outputs)
        ring = 0 if self._ring is None else self._ring.nbytes
        return outputs + ring + len(self._lanes) * self._inputs.nbytes

    @property
    def captures(self) -> int:
        """Graphs captured so far: one for each kind of run (optional outputs, zero copy, kept buffers, measured)."""
        return self._captures + sum(timer.captures for timer in self._timers.values())

    @property
    def is_closed(self) -> bool:
        """Whether the memory was freed."""
        return self._is_closed

    def submit(
        self,
        inputs: Mapping[str, NDArray[Any]],
        *,
        outputs: tuple[str, ...] = FRAME_OUTPUTS,
        measure: bool = False,
        use_graph: bool = True,
        uses_kept: bool = False,
        should_cancel: Callable[[], bool] | None = None,
    ) -> DeviceRun:
        """Hand a run to the device.

        Raises
        ------
        CancelledError
            If `should_cancel`, called before the work is enqueued, returned true.
        ValueError
            If an input or an output is unknown to the plan, or an input does not fit.
        DeviceMemoryError, DeviceLostError
            If the device failed.
        RuntimeError
            If the plan was closed.
        """
        self._enter()
        self._pool.tidy()
        for name in outputs:
            if name not in self._regions or self._regions[name].role != "output":
                raise ValueError(f"the plan has no output {name!r}")
        self._inputs.take(inputs)
        start_s = time.perf_counter()
        # The events of a measured run are the plan's, so that only one such run may be on its way.
        while not self._free or (measure and any(run.is_measured for run in self._in_flight)):
            self._finish(self._in_flight[0])
        waited_ms = (time.perf_counter() - start_s) * 1e3
        if should_cancel is not None and should_cancel():
            raise CancelledError("The picture was cancelled, because it is no longer needed.")
        first = self._schedule.kept_launches if uses_kept else 0
        run = self._enqueue(outputs, first, measure=measure, use_graph=use_graph)
        run.waited_ms += waited_ms
        return run

    def run(
        self,
        inputs: Mapping[str, NDArray[Any]],
        *,
        outputs: tuple[str, ...] = FRAME_OUTPUTS,
        measure: bool = False,
        use_graph: bool = True,
        should_cancel: Callable[[], bool] | None = None,
    ) -> Mapping[str, NDArray[Any]]:
        """Submit and wait."""
        pending = self.submit(
            inputs, outputs=outputs, measure=measure, use_graph=use_graph, should_cancel=should_cancel
        )
        return pending.wait()

    def observe(self, inputs: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[np.float32]]:
        """Run once, launch by launch; return layer name -> copy of its output, (batch, channels, height, width)."""
        self._enter()
        self._inputs.take(inputs)
        self._finish_all()
        lane = self._free[0]
        self._send_inputs(lane)
        return observe_layers(self._driver, self._pool, self._schedule, self._kernels, self._places, self._taken)

    def counter_steps(self) -> Generator[None, None, None]:
        """Measure the hardware counters of every kernel for the last inputs; measured runs report them from then on."""
        if self._count is None:
            raise DeviceError("This device has no hardware counters.")
        self._enter()
        steps = self._count(len(self._kernels), self._run_launches)
        try:
            while True:
                next(steps)
                yield
                if self._is_closed:
                    raise CancelledError("The counters were not measured, because the plan is no longer needed.")
                self._driver.enter()
        except StopIteration as end:
            self._counters = end.value
        finally:
            steps.close()

    def place_of(self, name: str) -> int:
        """Return the device address of a region."""
        self._enter()
        return self._places[name]

    def write_region(self, name: str, array: NDArray[Any]) -> None:
        """Fill a region, after all runs so far."""
        self._enter()
        region = self._regions[name]
        if array.shape != region.shape or array.dtype != np.dtype(region.dtype):
            raise ValueError(f"region {name!r} is {region.dtype} {region.shape}, not {array.dtype} {array.shape}")
        self._driver.upload(self._places[name], np.ascontiguousarray(array))

    def clear(self) -> None:
        """Fill every region with zeros, as when the plan was bound, after all runs so far."""
        self._enter()
        assert self._base is not None
        self._driver.zero(self._base, self._schedule.nbytes)

    def launch(self, index: int) -> None:
        """Start one launch of the schedule by itself."""
        self._enter()
        self._launch(self._arguments[True], index)

    def close(self) -> None:
        """Free the memory once no run uses it. Pictures that were handed out stay. May be called twice."""
        if self._is_closed:
            return
        try:
            self._driver.enter()
            self._finish_all()
            for lane in self._lanes:
                self._driver.wait(lane.done)  # of a run too that was handed over in part
        except DeviceError as error:
            for run in self._in_flight:
                run.fail(error)
            self._in_flight.clear()
        self._is_closed = True
        for timer in self._timers.values():
            timer.close()
        driver = self._driver
        for graphs in (self._graphs, self._zero_copy_graphs):
            for graph in graphs.values():
                driver.release_graph(graph)
            graphs.clear()
        for event in self._events:
            driver.release_event(event)
        self._events.clear()
        for lane in self._lanes:
            if lane.beside:
                self._pool.release(lane.beside)
        self._lanes.clear()
        self._free.clear()
        if self._ring is not None:
            self._ring.close()
        self._constants.give_back(self._taken)
        self._taken = {}
        if self._base is not None:
            self._pool.release(self._base)
            self._base = None

    def _bind(self) -> None:
        driver, schedule = self._driver, self._schedule
        driver.enter()
        self._base = self._pool.reserve(schedule.nbytes)
        driver.zero(self._base, schedule.nbytes)
        self._places = {region.name: self._base + region.offset for region in schedule.regions}
        self._taken = self._constants.take(schedule.constants)
        for has_optional, packed in self._arguments.items():
            packed += (self._packed(launch, _arguments_of(launch, has_optional)) for launch in schedule.launches)
        if self._zero_copy is not None:
            self._zero_copy_arguments = self._packed(self._zero_copy, _arguments_of(self._zero_copy, False))
        for _ in range(_LANES):
            start, end, copied, done = (self._make_event() for _ in range(4))
            lane = Lane(start, end, copied, done, pinned_memory(self._pool, self._inputs.nbytes))
            self._lanes.append(lane)
            self._free.append(lane)

    def _packed(self, launch: Launch, arguments: Mapping[str, Argument]) -> PackedArguments:
        return pack_arguments(launch.recipe, arguments, self._places, self._taken, self._driver.tensor_map)

    def _make_event(self) -> Event:
        self._events.append(self._driver.make_event())
        return self._events[-1]

    def _enqueue(self, outputs: tuple[str, ...], first: int, *, measure: bool, use_graph: bool) -> DeviceRun:
        timer = self._timers[first]
        try:
            if measure:
                self._pool.make(timer.prepare)
            return self._enqueue_unguarded(outputs, first, measure=measure, use_graph=use_graph)
        except BaseException:
            if measure:
                timer.give_up()
            raise

    def _enqueue_unguarded(self, outputs: tuple[str, ...], first: int, *, measure: bool, use_graph: bool) -> DeviceRun:
        driver, timer, lane = self._driver, self._timers[first], self._free[0]
        has_optional = not self._optional_outputs.isdisjoint(outputs)
        replaces_run = measure and timer.replaces_run
        # A measured run that nothing is known to compare with follows a plain one, and so does one that is asked for
        # more than it computes.
        is_plain = not replaces_run or not timer.has_total or has_optional
        slot = self._ring.take() if self._ring is not None and _KEPT in outputs else None
        wanted = outputs if slot is None else tuple([name for name in outputs if name not in self._in_slot])
        is_alone = not (wanted or measure or self._in_flight)
        is_zero_copy = slot is not None and is_alone and use_graph and self._zero_copy is not None
        try:
            graph = None
            if is_plain and use_graph:
                # Before anything is enqueued: what a capture needs may wait for the device.
                graph = self._zero_copy_graphs.get(first) if is_zero_copy else self._graphs.get((has_optional, first))
                if graph is None:
                    graph = self._capture(first, has_optional=has_optional, is_zero_copy=is_zero_copy)
            for name in wanted:
                if name not in lane.outputs:
                    lane.outputs[name] = pinned_memory(self._pool, self._regions[name].nbytes)
            if slot is not None and is_zero_copy:
                self._name_slot(slot)
            self._send_inputs(lane)
            driver.record(lane.start)
            if not is_plain:
                timer.replay()
            elif graph is not None:
                driver.replay(graph)
            else:
                self._launch_all(self._arguments[has_optional], first)
            driver.record(lane.end)
            if is_plain and replaces_run:
                timer.replay()
            for name in wanted:
                self._copy_out(name, address_of(lane.outputs[name]))
            if slot is not None and self._in_flight:
                self._copy_pixels_beside(lane, slot)
            elif not is_zero_copy:
                if slot is not None:
                    driver.copy_out(slot, self._places[_KEPT], self._slot_nbytes)
                driver.record(lane.done)
        except BaseException:
            with contextlib.suppress(DeviceError):
                driver.record(lane.done)
            if slot is not None and self._ring is not None:
                self._ring.put_back(slot)
            raise
        # From here on the device is busy: what remains costs a frame no time.
        run = DeviceRun(lane, lane.end if is_zero_copy else lane.done, wanted, self._finish)
        if slot is not None and self._ring is not None:
            memory = self._ring.hand_out(slot)
            run.picture = {
                name: array_over(memory, region.shape, region.dtype, at)
                for name, (region, at) in self._in_slot.items()
                if name in outputs
            }
        # The time of a run that also brings its bytes to the host is not the one that steps add up to.
        run.is_replay, run.is_measured = is_plain and use_graph and not is_zero_copy, measure
        run.first = first
        self._free.popleft()
        self._in_flight.append(run)
        return run

    def _capture(self, first: int, *, has_optional: bool, is_zero_copy: bool) -> Graph:
        """Capture the launches from `first` on; with `is_zero_copy`, the last writes to the slot of `_name_slot`."""

        def work() -> None:
            if not is_zero_copy:
                self._launch_all(self._arguments[has_optional], first)
                return
            launch, kernel, arguments = self._zero_copy, self._zero_copy_kernel, self._zero_copy_arguments
            assert launch is not None
            assert kernel is not None
            assert arguments is not None
            end = len(self._kernels) - 2
            self._launch_all(self._arguments[False], first, end)
            place = launch.grid, launch.block, launch.shared_nbytes
            self._driver.launch(kernel, *place, arguments, follows_kernel=end > first)

        graph = self._pool.make(lambda: self._driver.capture(work))
        if is_zero_copy:
            self._zero_copy_graphs[first] = graph
        else:
            self._graphs[has_optional, first] = graph
        self._captures += 1
        return graph

    def _name_slot(self, slot: int) -> None:
        """Tell the next run where its bytes go, and clear the flags there, which its kernel may set."""
        self._inputs.put(HOST_SLOT, slot)
        flags = self._slot_flags.get(slot)
        if flags is None:
            region, at = self._in_slot[_BEHIND]
            flags = self._slot_flags[slot] = (ctypes.c_char * region.nbytes).from_address(slot + at)
        flags.raw = self._no_flags

    def _copy_pixels_beside(self, lane: Lane, slot: int) -> None:
        """Copy the pixels while the next run is computed: another one is in flight, so there will be a next one."""
        nbytes = self._slot_nbytes
        if not lane.beside:
            lane.beside = self._pool.reserve(nbytes)
        self._driver.copy(lane.beside, self._places[_KEPT], nbytes)
        self._driver.record(lane.copied)
        self._driver.copy_out_beside(slot, lane.beside, nbytes, lane.copied, lane.done)

    def _copy_out(self, name: str, target: int) -> None:
        self._driver.copy_out(target, self._places[name], self._regions[name].nbytes)

    def _send_inputs(self, lane: Lane) -> None:
        assert self._base is not None
        staging, address = lane.staging_array, lane.staging_address
        for copy in self._inputs.copies():
            end = copy.source + copy.nbytes
            staging[copy.source : end] = self._inputs.memory[copy.source : end]
            self._driver.copy_in(self._base + copy.target, address + copy.source, copy.nbytes)
        self._inputs.sent()

    def _launch_all(self, arguments: Sequence[PackedArguments], first: int = 0, end: int | None = None) -> None:
        for index in range(first, len(self._kernels) if end is None else end):
            self._launch(arguments, index, follows_kernel=index > first)

    def _run_launches(self) -> None:
        """Launch all kernels one by one, without a graph and its copies, and wait for them."""
        self._finish_all()
        lane = self._free[0]
        self._send_inputs(lane)
        self._launch_all(self._arguments[False])
        self._driver.record(lane.done)
        self._driver.wait(lane.done)

    def _finish(self, run: DeviceRun) -> None:
        """Wait for a run and fill it in. If the device failed, the waiter of the run gets the error."""
        if run.is_over:
            return
        start_s = time.perf_counter()
        try:
            self._driver.enter()
            self._driver.wait(run.done)
            run.waited_ms += (time.perf_counter() - start_s) * 1e3
            self._take_times(run)
            run.succeed(self._gather(run))
        except DeviceError as error:
            run.fail(error)
        self._in_flight.remove(run)
        self._free.append(run.lane)
        self._pool.tidy()

    def _finish_all(self) -> None:
        while self._in_flight:
            self._finish(self._in_flight[0])

    def _take_times(self, run: DeviceRun) -> None:
        elapsed_ms = self._driver.elapsed_ms(run.lane.start, run.lane.end)
        run.device_ms = elapsed_ms
        timer = self._timers[run.first]
        if run.is_replay:
            timer.note_total(elapsed_ms)
        if run.is_measured:
            steps, run.device_ms = timer.read(elapsed_ms)
            second = self._schedule.kept_launches - run.first
            run.steps = with_second(with_counters(steps, self._counters[run.first :]), second)
            run.timing_source = timer.source

    def _gather(self, run: DeviceRun) -> dict[str, NDArray[Any]]:
        outputs = dict(run.picture)
        is_frame = _KEPT in run.picture or _KEPT in run.wanted
        for name in run.wanted:
            region = self._regions[name]
            array = array_over(run.lane.outputs[name], region.shape, region.dtype)
            # A third run may take this lane before a frame is looked at: its outputs, and small ones, are copies.
            outputs[name] = array.copy() if is_frame or array.nbytes <= _SMALL_NBYTES else array
        return outputs

    def _enter(self) -> None:
        if self._is_closed:
            raise RuntimeError("this plan was closed")
        self._driver.enter()


def _in_slot(regions: Mapping[str, Region]) -> dict[str, tuple[Region, int]]:
    """Return the outputs that the copy of the pixels brings, and where in a slot each begins."""
    if _KEPT not in regions:
        return {}
    pixels = regions[_KEPT]
    found = {_KEPT: (pixels, 0)}
    flags = regions.get(_BEHIND)
    if flags is not None and 0 <= flags.offset - pixels.offset - pixels.nbytes < ALIGNMENT:
        found[_BEHIND] = flags, flags.offset - pixels.offset
    return found


def with_counters(steps: tuple[StepTime, ...], counters: Sequence[KernelCounters]) -> tuple[StepTime, ...]:
    """Return steps with the counters of their kernels, if there are any."""
    if len(steps) != len(counters):
        return steps
    return tuple(
        step if step.facts is None else replace(step, facts=replace(step.facts, counters=found))
        for step, found in zip(steps, counters, strict=True)
    )


def _launch(
    driver: Driver,
    launches: Sequence[Launch],
    kernels: Sequence[LoadedKernel],
    arguments: Sequence[PackedArguments],
    index: int,
    *,
    follows_kernel: bool = False,
) -> None:
    launch, kernel = launches[index], kernels[index]
    driver.launch(
        kernel, launch.grid, launch.block, launch.shared_nbytes, arguments[index], follows_kernel=follows_kernel
    )


def _launch_later(launch: Callable[..., None], arguments: Sequence[PackedArguments], first: int, index: int) -> None:
    launch(arguments, first + index)


def _from(schedule: Schedule, first: int) -> Schedule:
    return replace(schedule, launches=schedule.launches[first:]) if first else schedule


def _arguments_of(launch: Launch, has_optional: bool) -> Mapping[str, Argument]:
    if has_optional or not launch.optional:
        return launch.arguments
    return {name: None if name in launch.optional else item for name, item in launch.arguments.items()}
