"""A tuning that shares its thread with pictures."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gpu_backend.cuda.driver.probe import Gpu, Probe
from gpu_backend.cuda.tiles.table import read_entries
from gpu_backend.cuda.tuning import tile_tuning
from gpu_backend.cuda.tuning.isolated_conv import IsolatedConvs
from gpu_backend.cuda.tuning.tile_search import TileTimer
from gpu_backend.cuda.tuning.tile_tuning import TileTuning
from gpu_backend.cuda.tuning.tuning_run import TuningRun
from gpu_backend.errors import DeviceLostError
from gpu_backend.ops.kernels.conv_tile import ConvShape, ConvTile
from tests.helpers.fake_gpu import FAKE_GPU
from tests.helpers.networks import make_stylegan2

MODEL = make_stylegan2(resolution=8, channel_base=128, channel_max=12)
GPU = replace(FAKE_GPU, name="NVIDIA Fake", shared_nbytes_per_block_optin=166912, multiprocessors=108)


@dataclass
class Workshop:
    """A GPU on which every tile takes a second of `now`, and compiling takes until `is_done`."""

    now: float = 0.0
    is_done: bool = True
    is_open: bool = False
    timed: int = 0
    error: Exception | None = None

    def prepare(self, shape: ConvShape, tiles: Sequence[ConvTile]) -> Workshop:
        return self

    def wait(self) -> None:
        assert self.is_done, "the thread would wait for a compiler"

    def time_us(self, shape: ConvShape, tile: ConvTile) -> float:
        self.now += 1
        self.timed += 1
        if self.error is not None:
            raise self.error
        return float(tile.threads)

    def problem(self, shape: ConvShape, tile: ConvTile) -> str:
        return ""

    @contextlib.contextmanager
    def open(self, gpu: Gpu, convs: IsolatedConvs) -> Iterator[TileTimer]:
        self.is_open = True
        try:
            yield self
        finally:
            self.is_open = False


@pytest.fixture
def workshop() -> Workshop:
    return Workshop()


@pytest.fixture
def make(workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], TuningRun]:
    monkeypatch.setattr(tile_tuning, "probe", lambda: Probe((GPU,), "", "580.1", "13.0"))

    def run(budget_s: float) -> TuningRun:
        tuning = TileTuning(MODEL, table=tmp_path / "table.json", open_timer=workshop.open)
        return TuningRun(tuning, budget_s, clock=lambda: workshop.now)

    return run


def test_each_step_times_one_tile_and_what_is_found_is_in_the_table(
    make: Callable[[float], TuningRun], workshop: Workshop
) -> None:
    run = make(1000.0)
    count = len(run.tuning.shapes)
    while not run.is_done:
        before = workshop.timed
        found = run.step()
        assert workshop.timed - before <= 1
        assert len(run.findings) / count <= run.state.share <= 1.0
        if found is not None:
            assert found.shape in read_entries(run.tuning.path)
    assert [item.shape for item in run.findings] == list(run.tuning.shapes)
    assert run.state.share == 1.0
    assert not workshop.is_open


def test_while_kernels_are_compiled_there_is_no_step(make: Callable[[float], TuningRun], workshop: Workshop) -> None:
    workshop.is_done = False
    run = make(1000.0)
    while not run.is_waiting:
        run.step()
    assert run.step() is None
    assert workshop.timed == 0
    workshop.is_done = True
    run.step()
    assert workshop.timed == 1


def test_the_budget_counts_the_time_of_steps_alone(make: Callable[[float], TuningRun], workshop: Workshop) -> None:
    run = make(60.0)
    while not run.is_done:
        run.step()
        if not run.is_waiting:
            workshop.now += 100.0 if run.state.progress is not None and run.state.progress.tried else 0.0
    assert workshop.timed >= 40


def test_stopping_early_frees_the_gpu_and_keeps_what_was_found(
    make: Callable[[float], TuningRun], workshop: Workshop
) -> None:
    run = make(1000.0)
    while not run.findings:
        run.step()
    assert workshop.is_open
    run.close()
    run.close()
    assert run.is_done
    assert not workshop.is_open
    assert list(read_entries(run.tuning.path)) == [run.findings[0].shape]
    assert run.step() is None


def test_a_gpu_that_fails_ends_the_run(make: Callable[[float], TuningRun], workshop: Workshop) -> None:
    workshop.error = DeviceLostError("The GPU stopped answering.")
    run = make(1000.0)
    run.step()  # the first progress
    run.step()  # compiles
    with pytest.raises(DeviceLostError):
        run.step()
    assert run.is_done
