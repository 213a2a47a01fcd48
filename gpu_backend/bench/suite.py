"""A whole run: a drag, our networks, their kernels, the roofline, the peers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

import torch

from gpu_backend.bench.accuracy import measure_accuracy
from gpu_backend.bench.cases import SLOW, Choice, choose
from gpu_backend.bench.ceiling import measured_ceiling
from gpu_backend.bench.compiling import measure_compiling
from gpu_backend.bench.gesture import measure_gesture
from gpu_backend.bench.kernels import beside_ceiling, measure_kernels
from gpu_backend.bench.ladder import RungResult, climb
from gpu_backend.bench.options import BenchOptions
from gpu_backend.bench.ours import Ours
from gpu_backend.bench.peers import Peer
from gpu_backend.bench.random_model import random_model
from gpu_backend.bench.report import Accuracy, Ceiling, Compiling, Gesture, KernelCost, Report, RunFacts, Skipped
from gpu_backend.bench.shapes import SHAPES, shape_of
from gpu_backend.bench.stopwatch import SPENT, Budget, Effort, Stopwatch
from gpu_backend.bench.torch_side import cuda_problem
from gpu_backend.device import DeviceFacts, device_joules, keep_roofline, make_executor, processor_name
from gpu_backend.errors import DeviceError
from gpu_backend.model import Model, StyleGAN2Spec, read_model
from gpu_backend.plan.executor import Executor
from gpu_backend.plan.plan import Precision
from gpu_backend.renderer import Renderer
from gpu_backend.run_facts import date_now, find_commit, find_versions

Say = Callable[[str], None]
T = TypeVar("T")

_GPU_SHAPE, _CPU_SHAPE = SHAPES["ffhq1024"], SHAPES["ffhq256"]
_KERNEL_BATCHES = (1, 8)


def run_suite(options: BenchOptions, say: Say, budget: Budget | None = None) -> Report:
    """Run the selected measurements; Ctrl-C ends that, and what was measured until then is reported.

    Parameters
    ----------
    budget
        Shared with other runs; that of the options if None.

    Raises
    ------
    LoomError
        If the model cannot be read or the device is not there.
    """
    start = time.monotonic()
    budget = budget or Budget(options.budget_s)
    with _threads(options.threads):
        facts = _device_facts(options.device)
        model = _model(options, on_gpu=facts.id != "cpu")
        run = _Run(options, model, facts, budget, say)
        report = run.measure()
    return replace(report, run=replace(report.run, wall_s=round(time.monotonic() - start, 1)))


def run_ladder(options: BenchOptions, say: Say) -> tuple[RungResult, ...]:
    """Measure what each optimisation gains on the network and the device of the options.

    Raises
    ------
    LoomError
        If the model cannot be read or the device is not there.
    """
    with _threads(options.threads):
        facts = _device_facts(options.device)
        model = _model(options, on_gpu=facts.id != "cpu")
        return climb(model, facts.id, Budget(options.budget_s), say, runs=options.runs)


class _Run:
    def __init__(self, options: BenchOptions, model: Model, facts: DeviceFacts, budget: Budget, say: Say) -> None:
        self.options = options
        self.model = model
        self.facts = facts
        self.say = say
        self.on_gpu = facts.id != "cpu"
        self.choice: Choice = choose(
            on_gpu=self.on_gpu,
            batches=options.batches,
            peers=options.peers,
            precisions=options.precisions,
            everything=options.everything,
            quick=options.quick,
        )
        self.effort = _effort(options, on_gpu=self.on_gpu)
        self.budget = budget
        self.watch = Stopwatch(self.effort, budget, say, partial(device_joules, facts.id))
        self.executors: dict[Precision, Executor] = {}

    def measure(self) -> Report:
        """Everything in its order, what matters most first: a budget may end the run."""
        compiling, gestures = self._compiling(), self._gestures()
        try:
            kernels, ceiling = self._on_gpu() if self.on_gpu else self._on_processor()
        finally:
            for executor in self.executors.values():
                executor.close()
        if ceiling is not None and self.choice.ours:
            kernels = beside_ceiling(kernels, ceiling, self.choice.ours[0])
        accuracy = self._accuracy()
        left_out = (Skipped("by default", self.choice.left_out),) if self.choice.left_out else ()
        return Report(
            run=self._facts(),
            measurements=tuple(self.watch.measurements),
            skipped=(*self.watch.skipped, *left_out),
            kernels=kernels,
            ceiling=ceiling,
            gestures=gestures,
            compiling=compiling,
            accuracy=accuracy,
            method=_method(self.effort, on_gpu=self.on_gpu),
        )

    def _on_gpu(self) -> tuple[tuple[KernelCost, ...], Ceiling | None]:
        """In sequence: the first precision, ours and the peers', then the others; slow peers of all of them last."""
        first, others = self.choice.ours[:1], self.choice.ours[1:]
        self.watch.measure(self._ours(first, self.choice.batches), in_turns=False)
        kernels, ceiling = self._kernels(), self._ceiling()
        peers = self._peers()
        sooner = [peer for peer in peers if peer.case.precision in first and peer.case.who not in SLOW]
        self.watch.measure(sooner, in_turns=False)
        self.watch.measure(self._ours(others, self.choice.batches), in_turns=False)
        self.watch.measure([peer for peer in peers if peer not in sooner], in_turns=False)
        return kernels, ceiling

    def _on_processor(self) -> tuple[tuple[KernelCost, ...], Ceiling | None]:
        """All of a batch in turns."""
        peers = self._peers()
        for batch in self.choice.batches:
            now = [peer for peer in peers if peer.case.batch == batch]
            self.watch.measure([*self._ours(self.choice.ours, (batch,)), *now], in_turns=True)
        return self._kernels(), self._ceiling()

    def _executor(self, precision: Precision) -> Executor:
        if precision not in self.executors:
            executor, facts = make_executor(self.model, self.facts.id, precision)
            if executor.precision != precision and self.on_gpu:
                executor.close()
                raise DeviceError(facts.reason)
            self.executors[precision] = executor
        return self.executors[precision]

    def _ours(self, precisions: tuple[Precision, ...], batches: tuple[int, ...]) -> list[Ours]:
        return [
            Ours(self.model, self._executor, precision, batch, use_graph=use_graph)
            for precision in precisions
            for batch in batches
            for use_graph in ((True, False) if self.on_gpu else (True,))
        ]

    def _peers(self) -> list[Peer]:
        if not self.choice.peers:
            return []
        if self.on_gpu and (problem := cuda_problem()):
            self.watch.skipped.append(Skipped("every peer", problem))
            return []
        device, spec = torch.device(self.facts.id), self.model.spec
        if not isinstance(spec, StyleGAN2Spec):
            self.watch.skipped.append(Skipped("every peer", "they are written for StyleGAN2 alone"))
            return []
        return [Peer(case, spec, device) for case in self.choice.peers]

    def _compiling(self) -> Compiling | None:
        """Before anything else asks for kernels: the compiler itself is loaded here."""
        if not (self.on_gpu and self.choice.ours):
            return None
        precision = self.choice.ours[0]
        return self._named("compiling", lambda: measure_compiling(self.model, self.facts.id, precision))

    def _gestures(self) -> tuple[Gesture, ...]:
        """A drag in the first of our precisions."""
        if not self.choice.ours:
            return ()
        frames, limit_s = (1000, 10.0) if self.on_gpu else (100, 10.0)
        if self.options.quick:
            frames, limit_s = frames // 5, limit_s / 5
        precision = self.choice.ours[0]

        def drag() -> tuple[Gesture, ...]:
            with contextlib.closing(Renderer(self.model, self.facts.id, precision=precision)) as renderer:
                return (measure_gesture(renderer, frames=frames, limit_s=limit_s),)

        return self._named("gesture to frame", drag) or ()

    def _accuracy(self) -> tuple[Accuracy, ...]:
        """Each of our precisions on a GPU beside fp32, as far as the budget goes."""

        def opened(precision: Precision) -> Renderer:
            renderer = Renderer(self.model, self.facts.id, precision=precision)
            if renderer.device.precision != precision:
                renderer.close()
                raise DeviceError(renderer.device.reason)
            return renderer

        if not self.on_gpu:
            return ()
        found: list[Accuracy] = []
        for precision in self.choice.ours:
            title = f"accuracy, {precision}"
            if precision == "fp32":
                continue
            if self.budget.is_spent:
                self._skip(title, SPENT)
                continue
            measured = self._named(title, partial(measure_accuracy, opened, precision))
            found += () if measured is None else (measured,)
        return tuple(found)

    def _kernels(self) -> tuple[KernelCost, ...]:
        batches = [batch for batch in _KERNEL_BATCHES if batch in self.choice.batches] or [self.choice.batches[0]]
        found: list[KernelCost] = []
        for batch in batches if self.choice.ours else ():
            precision = self.choice.ours[0]
            runs = max(3, self.effort.runs // 2)
            measure = partial(
                measure_kernels,
                self.model,
                self._executor,
                precision,
                batch,
                runs=runs,
                counters=self.options.counters,
                problem=partial(self._skip, f"hardware counters, batch {batch}"),
            )
            found.extend(self._named(f"kernels, batch {batch}", measure) or ())
        return tuple(found)

    def _skip(self, what: str, sentence: str) -> None:
        self.watch.skipped.append(Skipped(what, sentence))

    def _ceiling(self) -> Ceiling | None:
        problem, known = cuda_problem() if self.on_gpu else "", self.facts.roofline
        if not problem:
            ceiling = self._named("roofline", lambda: measured_ceiling(torch.device(self.facts.id)))
            if ceiling is not None:
                keep_roofline(self.facts.id, ceiling.copy_bytes_per_s, ceiling.flop_per_s)
                return ceiling
        if known is not None:
            rates: dict[str, float] = {self.facts.precision: known.matrix_flop_per_s}
            return Ceiling(known.copy_bytes_per_s, rates, known.is_measured)
        if problem:
            self.watch.skipped.append(Skipped("roofline", problem))
        return None

    def _named(self, what: str, work: Callable[[], T]) -> T | None:
        """Announce and run a measurement; None, and an entry in the list of failures, if it fails or is stopped."""

        def told() -> T:
            self.say(what)
            return work()

        return self.watch.attempt(told, [what])

    def _facts(self) -> RunFacts:
        model = self.model.facts
        return RunFacts(
            date=date_now(),
            command=self.options.command,
            commit=self.options.commit or find_commit(),
            device=self.facts.name if self.on_gpu else processor_name(),
            device_kind="cuda" if self.on_gpu else "cpu",
            driver=self.facts.driver,
            reason=self.facts.reason,
            versions=find_versions(),
            network=model.name,
            resolution=model.resolution,
            parameters=model.parameters,
            threads=torch.get_num_threads(),
        )


def _device_facts(device: str) -> DeviceFacts:
    """Return the facts of a device, found out with a tiny network."""
    executor, facts = make_executor(random_model(shape_of("8:64:8")), device)
    executor.close()
    return facts


def _model(options: BenchOptions, *, on_gpu: bool) -> Model:
    if options.file is not None:
        return read_model(options.file)
    return random_model(options.shape or (_GPU_SHAPE if on_gpu else _CPU_SHAPE))


def _effort(options: BenchOptions, *, on_gpu: bool) -> Effort:
    if on_gpu:
        return Effort(runs=options.runs or (20 if options.quick else 50))
    runs = options.runs or (5 if options.quick else 15)
    return Effort(runs=runs, warm_up=2, warm_up_s=0.0, limit_s=20.0, least=3, rest_s=0.02)


@contextlib.contextmanager
def _threads(threads: int | None) -> Iterator[None]:
    """Set the threads of torch and of our CPU executor; None leaves torch's default."""
    before = torch.get_num_threads()
    if threads is not None:
        torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _method(effort: Effort, *, on_gpu: bool) -> tuple[str, ...]:
    """Describe how it was measured, for later readers."""
    common = (
        "Latency: from w rows to the bytes (B, G, R, X) of all pictures of the batch; median over the runs.",
        "Four inputs take turns; weights are the same size for all, random for the peers.",
        f"{effort.runs} runs each, fewer (at least {effort.least}) where they would take over {effort.limit_s:g} s.",
    )
    if not on_gpu:
        return (
            *common,
            f"Warm-up: {effort.warm_up} runs or more. All contenders of a batch take turns, a run each.",
            "Roofline: median copy of 128 MiB, read and written both counted; products of 1536 x 1536 normal numbers.",
            "Operations are those of plain convolutions; Winograd's, which ours has, needs fewer and may pass 100 %.",
        )
    return (
        *common,
        f"Warm-up: at least {effort.warm_up} runs and {effort.warm_up_s:g} s; slow ones stop after "
        f"{effort.limit_s / 2:g} s, not before the third run.",
        "Ours: an event pair around the graph, two runs in flight. Peers: an event pair around each call, all queued.",
        "The bytes stay on the device, peers convert with the same operation. Caches are not flushed.",
        "Memory: ours what plan and weights hold; peers what torch's allocator reserves after warm-up.",
        "Roofline: median copy of 1 GiB, read and written both counted; products of 8192 x 8192 normal numbers.",
        "Gesture to frame: Renderer.render of changing requests one at a time, the copy to the host included.",
    )
