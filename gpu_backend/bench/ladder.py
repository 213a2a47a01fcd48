"""What each optimisation gains: the same network rendered step by step, from plain fp32 kernels to a batch of 32.

A rung adds one thing to the rung before. Each is timed as in the main table, and its first picture is compared with
that of the first rung.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import statistics
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpu_backend.bench.accuracy import decibels, psnr_db
from gpu_backend.bench.ours import Ours
from gpu_backend.bench.stopwatch import ENERGY_S, SPENT, STOPPED, Budget, why
from gpu_backend.bench.table import grid, number
from gpu_backend.cuda.launches.fused_convs import WITH_TMA
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.schedule import Schedule
from gpu_backend.cuda.tiles.target import (
    Target,
    portable,
    portable_without_epilogues,
    with_tiles_alone,
    without_tables,
)
from gpu_backend.device import choose_gpu, device_joules, make_executor, usable_precision
from gpu_backend.errors import CancelledError
from gpu_backend.model import Model
from gpu_backend.model.spec import StyleGAN2Spec
from gpu_backend.plan.executor import Executor
from gpu_backend.plan.plan import Plan, Precision
from gpu_backend.whole_file import write_whole

LEAST_RUNS = 50
_WARM_UP = 5
_SLOW_MS = 100.0
"""On the CPU a slower rung gets a tenth of the runs, but at least five."""

_STEP_MS = 20.0
"""About as long is a step of a measurement on a GPU."""

_MOST_AT_ONCE = 10
"""Runs of a step."""

Change = Callable[[Target], Target]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rung:
    """One way of rendering.

    Attributes
    ----------
    what
        The change from the previous rung.
    change
        What becomes of the GPU's target before a plan is lowered for it.
    """

    what: str
    precision: Precision
    batch: int = 1
    use_fused: bool = True
    use_graph: bool = False
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class RungResult:
    """The result of a rung; `problem` says why it was not measured.

    Attributes
    ----------
    image_ms
        Median time an image.
    largest_difference
        Of a byte of its first picture to that of the first rung, 0 to 255.
    image_j
        Energy an image of the whole GPU, in joules, idle power included; None if unknown, as on the CPU.
    psnr_db
        Peak signal-to-noise ratio of its first picture beside that of the first rung; infinite if they are equal.
    """

    rung: Rung
    image_ms: float = 0.0
    runs: int = 0
    largest_difference: int = 0
    problem: str = ""
    image_j: float | None = None
    psnr_db: float = math.inf


def rungs_of(architecture: str, *, has_fp8: bool = False, has_passes: bool = True) -> tuple[Rung, ...]:
    """Return the rungs for a GPU's architecture; for the CPU, if it is empty.

    Parameters
    ----------
    has_fp8
        Whether fp8 is possible there.
    has_passes
        Whether the network's convolutions can run without their epilogues: those of a StyleGAN2.
    """
    if not architecture:
        return (
            Rung("reference functions", "fp32", use_fused=False),
            Rung("fused steps, packed weights", "fp32"),
            Rung("batch 8", "fp32", batch=8),
        )
    rungs = [
        Rung("plain kernels", "fp32", use_fused=False),
        Rung("half precision", "fp16", use_fused=False),
    ]
    has_tma = architecture in WITH_TMA
    if has_passes:
        rungs.append(Rung("tensor cores (mma)", "fp16", change=portable_without_epilogues))
    fused = "fused epilogues" if has_passes else "tensor cores (mma), fused epilogues"
    rungs.append(Rung(fused, "fp16", change=portable))
    if has_tma:
        rungs.append(Rung("TMA", "fp16", change=without_tables))
        rungs.append(Rung("tuned tiles, wgmma", "fp16", change=with_tiles_alone))
        rungs.append(Rung("streaming, flat and persistent kernels", "fp16"))
    else:
        rungs.append(Rung("tuned tiles", "fp16"))
    return (
        *rungs,
        Rung("CUDA graph", "fp16", use_graph=True),
        Rung("batch 8", "fp16", batch=8, use_graph=True),
        Rung("batch 32", "fp16", batch=32, use_graph=True),
        *((Rung("8-bit products", "fp8", batch=32, use_graph=True),) if has_fp8 else ()),
    )


def rungs_for(model: Model, device: str) -> tuple[Rung, ...]:
    """Return the rungs of a model on a device. Raises DeviceError if there is no such device."""
    gpu = choose_gpu(device)
    if gpu is None:
        return rungs_of("")
    has_fp8 = usable_precision(model, gpu, "fp8")[0] == "fp8"
    has_passes = isinstance(model.spec, StyleGAN2Spec)
    return rungs_of(gpu.compile_architecture, has_fp8=has_fp8, has_passes=has_passes)


def climb(
    model: Model, device: str, budget: Budget, say: Callable[[str], None], *, runs: int | None = None
) -> tuple[RungResult, ...]:
    """Measure every rung on a device; one that fails, or has no time left, says so. Ctrl-C keeps what was measured.

    Parameters
    ----------
    runs
        Timed runs of each; `LEAST_RUNS` if None.

    Raises
    ------
    DeviceError
        If there is no such device.
    """
    gpu = choose_gpu(device)
    first: NDArray[np.uint8] | None = None
    found: list[RungResult] = []
    is_stopped = False
    for rung in rungs_for(model, device):
        if is_stopped or budget.is_spent:
            found.append(RungResult(rung, problem=STOPPED if is_stopped else SPENT))
            continue
        say(rung.what)
        try:
            climbed, picture = _measured(model, device if gpu is None else gpu.id, rung, runs or LEAST_RUNS)
        except KeyboardInterrupt:
            is_stopped = True
            found.append(RungResult(rung, problem=STOPPED))
            continue
        except Exception as error:  # a failure is reported; the other rungs are still measured
            found.append(RungResult(rung, problem=why(error)))
            continue
        first = picture if first is None else first
        found.append(compared(climbed, picture, first))
    return tuple(found)


def compared(climbed: RungResult, picture: NDArray[np.uint8], first: NDArray[np.uint8]) -> RungResult:
    """Return the result of a rung with the difference of its picture from that of the first rung."""
    largest = int(np.abs(picture.astype(np.int16) - first).max())
    return replace(climbed, largest_difference=largest, psnr_db=psnr_db(picture[..., :3], first[..., :3]))


def gains_of(found: Sequence[RungResult], place: int) -> tuple[float, float] | None:
    """Return by what factor a rung is faster than the one measured before it, and than the first; None if unknown."""
    measured = [earlier.image_ms for earlier in found[:place] if not earlier.problem]
    if found[place].problem or not measured:
        return None
    return measured[-1] / found[place].image_ms, measured[0] / found[place].image_ms


def ladder_table(found: Sequence[RungResult]) -> str:
    """Return the rungs as lines: time, gain over the rung before and over the first, difference of a pixel."""
    head = (
        "rung",
        "precision",
        "batch",
        "ms/image",
        "gain",
        "gain in all",
        "largest difference",
        "PSNR dB",
        "J/image",
        "runs",
    )
    return grid(head, [_row(found, place) for place in range(len(found))], left=2)


def write_ladder(found: Sequence[RungResult], path: Path) -> None:
    """Write the rungs as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    figures = "ms_an_image", "gain", "gain_in_all", "difference", "psnr_db", "j_an_image", "runs"
    writer.writerow(("rung", "precision", "batch", *figures))
    writer.writerows(_row(found, place) for place in range(len(found)))
    write_whole(path, text.getvalue().encode())


def _row(found: Sequence[RungResult], place: int) -> tuple[str, ...]:
    climbed = found[place]
    rung = climbed.rung
    name = (rung.what if place == 0 else f"+ {rung.what}", rung.precision, str(rung.batch))
    if climbed.problem:
        return (*name, climbed.problem, "", "", "", "", "", "")
    gains = [f"{gain:.2f} x" for gain in gains_of(found, place) or ()] or ["", ""]
    energy = "" if climbed.image_j is None else number(climbed.image_j)
    differences = str(climbed.largest_difference), decibels(climbed.psnr_db)
    return (*name, number(climbed.image_ms), *gains, *differences, energy, str(climbed.runs))


def _measured(model: Model, device: str, rung: Rung, runs: int) -> tuple[RungResult, NDArray[np.uint8]]:
    steps = measuring(model, device, rung, runs, lambda: False)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            climbed, picture = end.value
            return climbed, picture


def measuring(
    model: Model, device: str, rung: Rung, runs: int, should_yield: Callable[[], bool]
) -> Generator[None, None, tuple[RungResult, NDArray[np.uint8]]]:
    """Measure a rung in bounded steps, on one thread; return the result and the picture.

    Parameters
    ----------
    should_yield
        Once it returns true, a run on the CPU is given up, and repeated in the next step.
    """
    on_gpu = device != "cpu"
    with _executor(model, device, rung) as executor:
        ours = Ours(
            model, lambda precision: executor, rung.precision, rung.batch, use_graph=rung.use_graph,
            use_fused=rung.use_fused,
        )  # fmt: skip
        try:
            ours.bind()
            yield
            picture = yield from _repeated(lambda: ours.picture(should_yield))
            warm: list[float] = []
            while len(warm) < _WARM_UP:
                warm += yield from _repeated(lambda: ours.times_ms(2 if on_gpu else 1, should_yield))
            at_once = min(max(int(_STEP_MS / warm[-1]), 2), _MOST_AT_ONCE) if on_gpu else 1
            if not on_gpu and warm[-1] > _SLOW_MS:
                runs = min(runs, max(5, runs // 10))
            times: list[float] = []
            while len(times) < runs:
                count = min(at_once, runs - len(times))
                times += yield from _repeated(partial(ours.times_ms, count, should_yield))
            image_j = yield from _energy(device, ours, rung.batch, at_once)
        finally:
            ours.close()
    return RungResult(rung, statistics.median(times) / rung.batch, len(times), image_j=image_j), picture


def _repeated(run: Callable[[], T]) -> Generator[None, None, T]:
    """Run in one step, again after each step that was cancelled."""
    while True:
        try:
            result = run()
        except CancelledError:
            yield
            continue
        yield
        return result


def _energy(device: str, ours: Ours, batch: int, at_once: int) -> Generator[None, None, float | None]:
    """Return the joules an image, measured while steps follow each other closely; None if they do not, or unknown."""
    before, start = device_joules(device), time.monotonic()
    if before is None:
        return None
    images, busy_s = 0, 0.0
    while busy_s < ENERGY_S:
        began = time.monotonic()
        images += batch * len(ours.times_ms(at_once))
        busy_s += time.monotonic() - began
        yield
    after = device_joules(device)
    was_interrupted = time.monotonic() - start > 1.1 * busy_s
    return None if after is None or was_interrupted else (after - before) / images


@contextlib.contextmanager
def _executor(model: Model, device: str, rung: Rung) -> Iterator[Executor]:
    """Make an executor that lowers plans for the target of a rung."""
    gpu = choose_gpu(device)
    executor: Executor
    if gpu is None or rung.change is None:
        executor = make_executor(model, device, rung.precision)[0]
    else:
        # Imported here: it speaks to the driver, which nothing may load before a GPU was found.
        from gpu_backend.cuda.executor import CudaExecutor

        executor = CudaExecutor(model, gpu.index, rung.precision, lowered=_lowering(rung.change))
    try:
        yield executor
    finally:
        executor.close()


def _lowering(change: Change) -> Callable[..., Schedule]:
    def lowered(plan: Plan, weights: Any, target: Target, **options: Any) -> Schedule:
        return lower(plan, weights, change(target), **options)

    return lowered
