"""Tuning on a GPU: every convolution of a model searched for its fastest tile, the findings kept in a table.

The table is written after each finding, so that a search that is stopped keeps its findings.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from gpu_backend.cuda.compiling.compiler import compile_kernel
from gpu_backend.cuda.driver.probe import Gpu, gpu_called, probe
from gpu_backend.cuda.tiles.table import Tuned, kernels_digest, read_entries, save_entries, tuned_folder, tuned_path
from gpu_backend.cuda.tiles.target import target_of
from gpu_backend.cuda.tuning.isolated_conv import FusedExtras, IsolatedConvs
from gpu_backend.cuda.tuning.prediction import Prediction, PredictionQuality
from gpu_backend.cuda.tuning.tile_search import (
    Preparation,
    Step,
    TileFinding,
    TileProgress,
    TileTimer,
    findings_of,
    search_steps,
)
from gpu_backend.cuda.tuning.tile_timer import DeviceTileTimer
from gpu_backend.cuda.tuning.timings import read_timings, save_timings, timings_path
from gpu_backend.errors import DeviceError
from gpu_backend.model.model import Model
from gpu_backend.ops.kernels.conv_candidates import candidate_steps
from gpu_backend.ops.kernels.conv_tile import ConvShape, ConvTile, NoTileError
from gpu_backend.ops.kernels.e4m3 import NEEDS, multiplies_e4m3
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.fusion import multiplies_fp8
from gpu_backend.plan.plan import PlanKey, Precision

OpenTimer = Callable[[Gpu, IsolatedConvs], contextlib.AbstractContextManager[TileTimer]]


@contextlib.contextmanager
def device_timer(gpu: Gpu, convs: IsolatedConvs, *, spare_cores: int = 0) -> Iterator[TileTimer]:
    """Open a GPU for timing; the entering thread does the timing. `spare_cores` compile nothing."""
    # Imported here: the driver's own module, which nothing may load before the probe has found a GPU.
    from gpu_backend.cuda.driver.gpu_driver import GpuDriver

    driver = GpuDriver(gpu.index)
    try:
        timer = DeviceTileTimer(
            driver,
            convs,
            lambda recipe: compile_kernel(recipe, gpu.compile_architecture),
            gpu.l2_nbytes,
            spare_cores=spare_cores,
        )
        try:
            yield timer
        finally:
            timer.close()
    finally:
        driver.close()


class KeepingTimer:
    """A timer that notes every timing, also of shapes whose search is stopped.

    Parameters
    ----------
    timings
        Gets the newest time of each tile.
    """

    def __init__(self, timer: TileTimer, timings: dict[ConvShape, dict[ConvTile, float]]) -> None:
        self._timer = timer
        self._timings = timings

    def prepare(self, shape: ConvShape, tiles: Sequence[ConvTile]) -> Preparation:
        """Begin to compile."""
        return self._timer.prepare(shape, tiles)

    def time_us(self, shape: ConvShape, tile: ConvTile) -> float:
        """Time a tile and note it."""
        time_us = self._timer.time_us(shape, tile)
        self._timings.setdefault(shape, {})[tile] = time_us
        return time_us

    def problem(self, shape: ConvShape, tile: ConvTile) -> str:
        """Check a tile."""
        return self._timer.problem(shape, tile)


class TileTuning:
    """The search for a model's convolutions on one GPU.

    Parameters
    ----------
    device
        As in DeviceFacts: ``"cuda:0"``; or ``"auto"``, ``"cuda"`` for the first.
    batches
        Numbers of pictures at a time.
    precision
        "fp16", "fp8", "tf32" or "bf16x3": what the tensor cores multiply.
    table
        The file to write; None for that of this GPU and these kernels in the user's cache folder. What it holds
        already stays.
    spare_cores
        Cores of the CPU that compile nothing, for a window that shows pictures meanwhile.

    Raises
    ------
    DeviceError
        If there is no such GPU, or nothing to tune in fp8.
    """

    def __init__(
        self,
        model: Model,
        device: str = "auto",
        *,
        batches: Sequence[int] = (1,),
        precision: Precision = "fp16",
        table: Path | None = None,
        spare_cores: int = 0,
        open_timer: OpenTimer | None = None,
    ) -> None:
        self.gpu = _gpu_of(device)
        folder = tuned_folder()
        self.path = table or tuned_path(folder, self.gpu.name, self.gpu.compile_architecture)
        self._target = target_of(self.gpu, folder)
        spec = model.spec
        self._extras = FusedExtras.of(spec)
        self._open_timer = open_timer or partial(device_timer, spare_cores=spare_cores)
        model_id, side = model.facts.model_id, spec.resolution
        plans = [build_plan(spec, PlanKey(model_id, "synthesis", batch, side, precision)) for batch in batches]
        has_fp8 = multiplies_e4m3(self.gpu.compile_architecture) and any(map(multiplies_fp8, plans))
        if precision == "fp8" and not has_fp8:
            raise DeviceError(f"There is nothing to tune in fp8: {NEEDS}, and a StyleGAN2 or 3 of 64 x 64 or more.")
        self._convs = IsolatedConvs(plans, model.weights, self._target)
        self._timings = read_timings(timings_path(self.path))
        self._prediction = Prediction(self._timings, self._target.multiprocessors)
        self._shapes = tuple(
            shape for shape in self._convs.shapes if self._has_tile(shape) and self._convs.runs_with_tile(shape)
        )

    @property
    def quality(self) -> PredictionQuality:
        """How well the timings of this GPU so far predict those of shapes that are left out."""
        return self._prediction.quality

    @property
    def shapes(self) -> tuple[ConvShape, ...]:
        """The shapes to search, in order, without those whose kernels have no tile: plain ones and some fused ones."""
        return self._shapes

    def findings(
        self, *, budget_s: float = math.inf, progress: Callable[[TileProgress], None] = lambda progress: None
    ) -> Generator[TileFinding, None, None]:
        """Yield what was found, a shape after the other: all of `steps`, on a thread that has nothing else to do."""
        with contextlib.closing(self.steps(budget_s=budget_s)) as steps:
            yield from findings_of(steps, progress)

    def steps(
        self, *, budget_s: float = math.inf, clock: Callable[[], float] = time.monotonic
    ) -> Generator[Step, None, None]:
        """Yield after each bounded step, as `search_steps`; a finding is in the table when it is yielded.

        One thread takes all steps, and closes the generator: the first step opens the GPU for it.

        Raises
        ------
        DeviceError
            If the GPU fails, or the table cannot be written.
        """
        entries = read_entries(self.path)
        with self._open_timer(self.gpu, self._convs) as timer, self._kept_timings():
            noting = KeepingTimer(timer, self._timings)
            for step in search_steps(
                self.shapes, self._in_use, self._candidates, noting, budget_s=budget_s, clock=clock
            ):
                if isinstance(step, TileFinding):
                    step = replace(step, predicted_us=self._predicted_us(step))
                    entries[step.shape] = Tuned(step.tile, step.time_us)
                    self._timings.setdefault(step.shape, {}).update(step.times_us)
                    try:
                        save_entries(self.path, entries, self._about())
                        save_timings(timings_path(self.path), self._timings)
                    except OSError as error:
                        raise DeviceError(f"The table {self.path.name} was not written: {error.strerror}.") from error
                    self._learn()
                yield step

    @contextlib.contextmanager
    def _kept_timings(self) -> Iterator[None]:
        """Save all timings at the end, those of a shape whose search was stopped too."""
        try:
            yield
        finally:
            if self._timings:
                with contextlib.suppress(OSError):  # the table is beside it, and its failure is reported
                    save_timings(timings_path(self.path), self._timings)

    def _predicted_us(self, found: TileFinding) -> float | None:
        """Return what the model gives for a tile, from the time of the tile that was in use; None if it does not."""
        ratio = self._prediction.ratio(found.shape, found.tile, found.before)
        return None if ratio is None or not math.isfinite(found.before_us) else ratio * found.before_us

    def _learn(self) -> None:
        """Predict the shapes that follow from the timings of this search too."""
        self._prediction = Prediction(self._timings, self._target.multiprocessors, self._prediction)

    def _in_use(self, shape: ConvShape) -> ConvTile:
        return self._extras.explain(self._target.tiles, shape)[0]

    def _has_tile(self, shape: ConvShape) -> bool:
        try:
            self._in_use(shape)
        except NoTileError:
            return False
        return True

    def _candidates(self, shape: ConvShape) -> Iterator[ConvTile | None]:
        found = yield from candidate_steps(
            shape,
            self._target.architecture,
            self._target.multiprocessors,
            self._target.shared_nbytes_per_block,
            taps=self._extras.taps,
            picture_channels=self._extras.picture_channels,
        )
        yield from (yield from self._prediction.ordering_steps(shape, found))

    def _about(self) -> dict[str, str]:
        found = probe()
        return {
            "gpu": self.gpu.name,
            "architecture": self.gpu.compile_architecture,
            "driver": found.driver,
            "nvrtc": found.nvrtc,
            "kernels": kernels_digest(),
            "date": datetime.now(UTC).date().isoformat(),
        }


def _gpu_of(device: str) -> Gpu:
    found = probe()
    if not found.gpus:
        raise DeviceError(f"{found.problem.rstrip('.')} – tuning needs a GPU.")
    return gpu_called(found.gpus, device)
