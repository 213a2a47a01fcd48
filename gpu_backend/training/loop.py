"""The training loop: steps, reports, checkpoints, snapshots, and the end of a training.

Stages::

    options of the checkpoint, overridden by the given ones         options.py, checkpoint.py
    source -> prefetch -> step, repeatedly                          data/, step.py
    every step: agree with the other processes whether to stop      stop.py, processes.py
    every 16 steps: check the metrics                               metrics.py; NaN ends the training
    every few thousand pictures: a line in the log                  log.py
    at intervals, and however the training ends: a checkpoint, a snapshot, a sheet, plots
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpu_backend.errors import DeviceMemoryError, RequestError
from gpu_backend.result_folder import make_folder
from gpu_backend.run_facts import plots_problem
from gpu_backend.training import metrics as names
from gpu_backend.training.checkpoint import checkpoints, find_checkpoint, read_checkpoint, write_checkpoint
from gpu_backend.training.data import PictureSource, open_source
from gpu_backend.training.data.prefetch import Prefetch
from gpu_backend.training.data.reference import data_reference, find_data
from gpu_backend.training.data.source import DataError
from gpu_backend.training.ema import ema_beta
from gpu_backend.training.estimate import step_seconds
from gpu_backend.training.log import TrainLog
from gpu_backend.training.metrics import DivergedError
from gpu_backend.training.options import WORLD, TrainOptions, options_from
from gpu_backend.training.plots import draw_plots
from gpu_backend.training.processes import Processes, joined
from gpu_backend.training.progress import TrainProgress, duration
from gpu_backend.training.request import TrainOutcome, TrainRequest
from gpu_backend.training.sheet import grid_side, sample_sheet, sheet_of, write_sheet
from gpu_backend.training.snapshot import write_snapshot
from gpu_backend.training.step import Training
from gpu_backend.training.stop import stop_signals

_CHECK_STEPS = 16

_SHEET_PART = 4
"""Batch size for drawing the sheet of real pictures."""

_FIRST_WORD_S, _QUIET_S = 10.0, 60.0
"""Seconds between progress lines within a report interval: the first, and all later ones."""

Say = Callable[[str], None]
Open = Callable[[str, int, torch.device], PictureSource]


def train(
    request: TrainRequest, say: Say, progress: Callable[[TrainProgress], None], opened: Open | None = None
) -> TrainOutcome:
    """Train until the requested number of pictures was shown, or until a stop signal after the first step began.

    Parameters
    ----------
    say, progress
        Receive notes and reports; called only in the first of several processes.

    Raises
    ------
    LoomError
        If options, data, device, checkpoint or folder are invalid, or training diverges.
    """
    with joined(request.device) as processes:
        saved: dict[str, Any] = {}
        given = request.given
        state: dict[str, Any] | None = None
        if request.resume is not None:
            path = find_checkpoint(request.resume)
            saved, state = read_checkpoint(path, processes.device)
            if "data" not in given:
                given = {**given, "data": find_data(saved, request.out)}
            if processes.is_first:
                say(f"Continuing from {path.name}.")
        elif checkpoints(request.out):
            raise RequestError(
                f"The folder {request.out} already contains a training; give --resume, or choose another folder."
            )
        options = options_from(saved, given).checked(processes.count)
        differing = options.differing_sizes(options_from(saved, {})) if saved else ()
        if differing:
            verb = "differs" if len(differing) == 1 else "differ"
            raise RequestError(
                f"A training keeps its network's sizes, but {', '.join(differing)} {verb} from the checkpoint's."
            )
        if request.resume is None:
            _check_apart(request.out, options.data)
        make_folder(request.out)
        opened = opened or functools.partial(open_source, say=say if processes.is_first else _ignore)
        with contextlib.closing(opened(options.data, options.resolution, processes.device)) as source:
            reference = data_reference(options.data)
            if saved.get("data_fingerprint", reference["data_fingerprint"]) != reference["data_fingerprint"]:
                (say if processes.is_first else _ignore)(
                    "The pictures are not those that the checkpoint was trained on."
                )
            training = Training(options, processes)
            if state is not None:
                training.load_state(state)
            if processes.is_first:
                say(f"Training on {source.name} at {options.resolution} x {options.resolution}, {processes.device}.")
                if training.kernels_problem:
                    say(f"Steps take longer, since our own kernels do not run here: {training.kernels_problem}")
            return _Loop(training, {**options.to_json(), **reference}, request.out, say, progress).run(source)


def _check_apart(out: Path, data: str) -> None:
    """Raise RequestError if results would lie among the pictures: sheets would be trained on after a resume."""
    if data != WORLD and Path(data).is_dir() and out.resolve().is_relative_to(Path(data).resolve()):
        raise RequestError(
            f"The sheets of a training are pictures too, so {out} must not be in {data}; choose another --out."
        )


class _Loop:
    """State of a call of `train`."""

    def __init__(
        self,
        training: Training,
        saved_options: dict[str, Any],
        out: Path,
        say: Say,
        progress: Callable[[TrainProgress], None],
    ) -> None:
        self.training, self.out, self._say, self._progress = training, out, say, progress
        self._saved_options = saved_options
        self.options: TrainOptions = training.options
        self.processes: Processes = training.processes
        self._log = TrainLog(out / "log.csv", training.step) if self.processes.is_first else None
        self._began = self._reported = time.perf_counter()
        self._reported_at = training.pictures_seen
        self._speaks_at = self._began + _FIRST_WORD_S
        self._saved_at = -1
        self._began_at = training.step
        self._snapshot: Path | None = None
        self._reported_no_plots = False

    def run(self, source: PictureSource) -> TrainOutcome:
        training, processes = self.training, self.processes
        if processes.is_first and processes.device.type == "cpu" and self._is_unfinished:
            self._print_estimate()
        if processes.is_first and not (self.out / "real.png").exists():
            write_sheet(self.out / "real.png", sheet_of(self._real_pictures(source, grid_side(source.resolution) ** 2)))
        prefetch = Prefetch(
            source,
            training.share,
            processes.own_seed(self.options.seed),
            training.pictures_seen // processes.count,
            processes.device,
        )
        self._reported = time.perf_counter()  # the pace is that of the steps
        with contextlib.closing(prefetch):
            try:
                if self._is_unfinished:  # this step compiles for minutes; nothing is lost if it is interrupted
                    self._run_step(prefetch)
                processes.meet()
                with stop_signals() as stop:
                    while not (is_stopped := processes.any(stop.is_set)) and self._is_unfinished:
                        self._run_step(prefetch)
                    self._save()
            except DivergedError as error:
                raise DivergedError(self._last_words(error.sentence)) from error
            except DataError as error:
                if not self._keeps_steps():
                    raise
                newest = checkpoints(self.out)[-1].name
                raise DataError(
                    f"{error.sentence.removesuffix('.')}; {newest} has the training up to it.", error.details
                ) from error
            except torch.OutOfMemoryError as error:
                raise DeviceMemoryError(
                    f"Training {self.options.batch // processes.count} pictures a step needs more memory than the GPU "
                    f"has free; compute them in more parts with --accumulate {self.options.accumulate * 2}.",
                    str(error),
                ) from error
        return TrainOutcome(training.pictures_seen, is_stopped, self._snapshot, stop.number)

    def _keeps_steps(self) -> bool:
        """Save the steps before a picture that cannot be read. Return whether there are any, and they are saved."""
        if self.processes.count > 1 or self.training.step == self._began_at:  # to save, all processes must meet
            return False
        self._save()
        return True

    def _print_estimate(self) -> None:
        """Say how long the training may take, before a first step that may take minutes."""
        step = step_seconds(self.training)
        left = step * self._pictures_left / self.options.batch
        shown = duration(step) if step >= 10 else f"{step:.1f} s" if step >= 1 else f"{1e3 * step:.0f} ms"
        self._say(f"A step of {self.options.batch} pictures takes about {shown}, so about {duration(left)} are left.")

    def _real_pictures(self, source: PictureSource, count: int) -> Tensor:
        """Return the first pictures; if the source is slow, report its rate and the resulting training time."""
        parts: list[Tensor] = []
        began = told = time.perf_counter()
        size = count if source.is_on_device else min(count, _SHEET_PART)
        for part in source.batches(size, self.options.seed, 0):
            parts.append(part)
            seen, now = len(parts) * size, time.perf_counter()
            if seen >= count:
                break
            if now - told > _FIRST_WORD_S / 4 and told == began:
                rate = seen / (now - began) * self.processes.count
                left = duration(self._pictures_left / rate)
                self._say(f"Pictures come at {rate:.1f} a second, so at least {left} are left.")
                told = now
            elif now - told > _FIRST_WORD_S:
                self._say(f"Drawing real.png: {seen} of {count} pictures.")
                told = now
        return torch.cat(parts)[:count]

    @property
    def _is_unfinished(self) -> bool:
        return self._pictures_left > 0

    @property
    def _pictures_left(self) -> float:
        return max(0.0, self.options.kimg * 1000 - self.training.pictures_seen)

    def _run_step(self, pictures: Iterator[Tensor]) -> None:
        """Run a step and the actions due after it."""
        training = self.training
        training.run_step(next(pictures))
        if training.step % _CHECK_STEPS == 0:
            training.metrics.check()
        if self._is_due(self.options.log_kimg):
            self._report()
        elif self.processes.is_first and time.perf_counter() > self._speaks_at:
            self._report_progress(*self._pace())
        if self._is_due(self.options.snapshot_kimg):
            self._save()

    def _is_due(self, kimg: float) -> bool:
        """Return whether this step reached the next multiple of an interval in pictures."""
        seen, every = self.training.pictures_seen, kimg * 1000
        return seen // every > (seen - self.options.batch) // every

    def _report(self) -> None:
        training, options = self.training, self.options
        means = training.metrics.means()
        now, rate = self._pace()
        self._reported, self._reported_at = now, training.pictures_seen
        if self._log is None:
            return
        chance = float(training.chance.p)
        columns = {
            "step": training.step,
            "kimg": training.pictures_seen / 1000,
            "seconds": now - self._began,
            "images_per_s": rate,
            "augment_p": chance,
            "ema_beta": ema_beta(options.batch, training.pictures_seen, options.ema_half_life, options.ema_ramp),
        }
        metrics = {
            "loss_g": names.G_LOSS,
            "loss_d": names.D_LOSS,
            "r1": names.R1,
            "path": names.PATH,
            "real_sign": names.SIGN,
            "norm_g": names.G_NORM,
            "norm_d": names.D_NORM,
        }
        columns |= {column: means[name] for column, name in metrics.items() if name in means}
        if training.device.type == "cuda":
            columns["memory_gib"] = torch.cuda.max_memory_allocated(training.device) / 2**30
        self._log.add(columns)
        self._report_progress(now, rate, loss_g=columns.get("loss_g", math.nan), loss_d=columns.get("loss_d", math.nan))

    def _pace(self) -> tuple[float, float]:
        """Return the current time, and the pictures per second since the last report."""
        now = time.perf_counter()
        return now, (self.training.pictures_seen - self._reported_at) / max(now - self._reported, 1e-9)

    def _report_progress(self, now: float, rate: float, loss_g: float = math.nan, loss_d: float = math.nan) -> None:
        training, options = self.training, self.options
        self._speaks_at = now + _QUIET_S
        self._progress(
            TrainProgress(
                step=training.step,
                kimg=training.pictures_seen / 1000,
                total_kimg=options.kimg,
                images_per_s=rate,
                left_s=self._pictures_left / rate,
                loss_g=loss_g,
                loss_d=loss_d,
                augment_p=float(training.chance.p),
            )
        )

    def _save(self) -> None:
        """Write all files, unless already done after this step. The next report excludes the time of writing."""
        training = self.training
        training.metrics.check()
        if self._saved_at == training.step:
            return
        self._saved_at = training.step
        began = time.perf_counter()
        state = training.state()
        if self.processes.is_first:
            self._write(state)
        self._reported += time.perf_counter() - began

    def _write(self, state: dict[str, Any]) -> None:
        training = self.training
        write_checkpoint(self.out, self._saved_options, state)
        self._snapshot = write_snapshot(self.out, training.ema, training.pictures_seen)
        write_sheet(self.out / f"sheet-{training.pictures_seen:09d}.png", sample_sheet(training.ema, training.device))
        problem = plots_problem()
        if not problem:
            draw_plots(self.out / "log.csv", self.out / "training.png")
        elif not self._reported_no_plots:
            self._reported_no_plots = True
            self._say(f"skipped: plots: {problem}")

    def _last_words(self, what: str) -> str:
        good = checkpoints(self.out)
        place = f"continue from {good[-1].name}" if good else "no checkpoint was written yet, so start again"
        seen = self.training.pictures_seen / 1000
        return (
            f"Training stopped after {seen:,.1f} kimg because {what}; {place}, with a lower --learning-rate or a "
            "larger --gamma."
        )


def _ignore(_: str) -> None:
    """Ignore a message, because the first process prints it."""
