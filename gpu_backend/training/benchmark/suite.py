"""All rows in sequence, each with its own networks."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from gpu_backend.cuda.driver.probe import probe
from gpu_backend.device import processor_name
from gpu_backend.errors import LoomError
from gpu_backend.run_facts import date_now, find_commit, find_versions
from gpu_backend.training.benchmark.held_pictures import HeldPictures
from gpu_backend.training.benchmark.ladder import Row, ladder
from gpu_backend.training.benchmark.options import TrainBenchOptions
from gpu_backend.training.benchmark.report import SkippedRow, StepReport, StepTime
from gpu_backend.training.data.prefetch import Prefetch
from gpu_backend.training.network_pair import make_networks, network_shape
from gpu_backend.training.options import TrainOptions
from gpu_backend.training.processes import Processes, joined
from gpu_backend.training.step import Training

_MOST_WARM_UP = 8
"""Periods in which everything must have been captured."""
_LIMIT_S = 12.0
"""A row is timed no longer, but for its first periods."""
_LEAST_PERIODS = 3
"""One period does not show how far periods differ."""
_SPENT = "the time of --budget-s was spent"
STOPPED = "the run was stopped"


def run_suite(options: TrainBenchOptions, say: Callable[[str], None]) -> StepReport:
    """Measure all selected rows; Ctrl-C ends that, and what was measured until then is reported.

    Raises
    ------
    LoomError
        If there is no such device.
    """
    began = time.monotonic()
    rows: list[StepTime] = []
    skipped: list[SkippedRow] = []
    is_stopped = False
    with joined(options.device) as processes, _without_tf32():
        trained = train_options(options)
        source = HeldPictures(options.resolution)
        for row in ladder(processes.device):
            if row.name not in options.rows:
                continue
            is_spent = time.monotonic() - began > options.budget_s
            problem = row.problem or (STOPPED if is_stopped else _SPENT if is_spent else "")
            if not problem:
                say(f"measuring: {row.name}")
                try:
                    rows.append(_measured(row, trained, processes, source, options.steps))
                except (LoomError, RuntimeError) as error:
                    problem = str(error).splitlines()[0]
                except KeyboardInterrupt:
                    is_stopped, problem = True, STOPPED
                _clean(processes.device)
            if problem:
                skipped.append(SkippedRow(row.name, problem))
        return StepReport(
            date=date_now(),
            command=options.command,
            commit=options.commit or find_commit(),
            device=_device_name(processes.device),
            driver=probe().driver if processes.device.type == "cuda" else "",
            versions=find_versions(),
            resolution=options.resolution,
            batch=options.batch,
            parameters=_parameters(trained),
            method=_method(),
            rows=tuple(rows),
            skipped=tuple(skipped),
            wall_s=time.monotonic() - began,
        )


def train_options(options: TrainBenchOptions) -> TrainOptions:
    """Return the request of a training with these sizes and defaults otherwise."""
    return TrainOptions(
        resolution=options.resolution,
        batch=options.batch,
        channel_base=options.channel_base,
        channel_max=options.channel_max,
    ).checked()


def _measured(row: Row, options: TrainOptions, processes: Processes, source: HeldPictures, steps: int) -> StepTime:
    began = time.perf_counter()
    training = Training(options, processes, row.methods, make=row.make)
    period = options.r1_every
    device = processes.device
    with contextlib.closing(_Pictures(source, options.batch, device, prefetch=row.prefetch)) as pictures:

        def run_period() -> float:
            start = time.perf_counter()
            for _ in range(period):
                training.run_step(pictures.next())
            training.metrics.check()  # as training does; waits for the GPU
            _wait(device)
            return time.perf_counter() - start

        for _ in range(_MOST_WARM_UP):
            run_period()
            if training.is_settled:
                break
        prepared = time.perf_counter()
        times = [run_period()]
        while len(times) * period < steps and (len(times) < _LEAST_PERIODS or sum(times) < _LIMIT_S):
            times.append(run_period())
    step_ms = sum(times) / len(times) / period * 1e3
    return StepTime(
        name=row.name,
        what=row.what,
        step_ms=step_ms,
        least_ms=min(times) / period * 1e3,
        images_per_s=options.batch / step_ms * 1e3,
        nbytes=torch.cuda.max_memory_reserved(device) if device.type == "cuda" else None,
        steps=len(times) * period,
        prepare_s=prepared - began,
        base=row.base,
        no_gain=row.no_gain,
    )


class _Pictures:
    """Batches for a row; close it to end its thread."""

    def __init__(self, source: HeldPictures, batch: int, device: torch.device, *, prefetch: bool) -> None:
        self._device = device
        self._batches = source.batches(batch, 0, 0)
        self._prefetch = Prefetch(source, batch, 0, 0, device) if prefetch else None

    def next(self) -> Tensor:
        """Return the next batch on the device."""
        return next(self._batches).to(self._device) if self._prefetch is None else next(self._prefetch)

    def close(self) -> None:
        """End the thread."""
        if self._prefetch is not None:
            self._prefetch.close()


@contextlib.contextmanager
def _without_tf32() -> Iterator[None]:
    """Apply a row's TF32 setting to that row alone."""
    convolutions, products = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = convolutions, products


def _clean(device: torch.device) -> None:
    """Give back what a row held, so that the next one finds the GPU empty."""
    gc.collect()
    if device.type == "cuda":
        torch.compiler.reset()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else processor_name()


def _parameters(options: TrainOptions) -> int:
    with torch.device("meta"):  # values are not needed
        networks = make_networks(network_shape(options))
    return sum(parameter.numel() for network in networks for parameter in network.parameters())


def _method() -> tuple[str, ...]:
    """Return the conditions of the measurement, for the report."""
    return (
        "All four updates of each row, as in training: R1 every 16 steps, path lengths every 4 with half the pictures.",
        "Mean over whole periods of 16 steps, wall-clock time, with a device synchronisation at the end of each; "
        "warm-up: one period, or as many as it takes to capture everything.",
        "No TF32 in the rows of fp32; cuDNN tries its algorithms in all rows. Pictures come from ordinary memory of "
        "the host.",
        "Memory: the most that torch's allocator reserved.",
    )
