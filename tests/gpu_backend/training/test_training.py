"""A small training from its first step to what it leaves behind."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend import Renderer, read_model
from gpu_backend.errors import RequestError
from gpu_backend.training import loop
from gpu_backend.training.checkpoint import CheckpointError, checkpoints, read_checkpoint, write_checkpoint
from gpu_backend.training.data.source import DataError
from gpu_backend.training.log import read_log
from gpu_backend.training.loop import train
from gpu_backend.training.metrics import DivergedError
from gpu_backend.training.networks.generator import Generator
from gpu_backend.training.progress import TrainProgress
from gpu_backend.training.request import TrainOutcome, TrainRequest
from gpu_backend.training.step import Training
from tests.gpu_backend.training.fake_source import SIZES, FakeSource
from tests.helpers.networks import as_stylegan2
from tests.helpers.one_thread import one_thread_of_torch

CPU = torch.device("cpu")


@pytest.fixture(autouse=True, scope="module")
def one_thread_and_the_same_random_numbers_afterwards() -> Iterator[None]:
    with one_thread_of_torch():
        yield


@pytest.fixture(autouse=True, scope="module")
def no_plots() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "plots_problem", lambda: "not here")
        yield


def run(out: Path, kimg: float, resume: Path | None = None, at_batch: Any = None, **given: Any) -> TrainOutcome:
    request = TrainRequest(out, {**SIZES, "kimg": kimg, **given}, resume, "cpu")
    return train(request, lambda _: None, lambda _: None, lambda _, side, __: FakeSource(side, at_batch))


def same(first: Any, second: Any) -> bool:
    if isinstance(first, torch.Tensor):
        return first.dtype == second.dtype and torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a training of 10 steps ended, with two kinds of everything that is optional."""
    out = tmp_path_factory.mktemp("trained")
    run(out, 0.040, augment=True, mirror=True, augment_kimg=0.1)
    return out


def test_losses_are_finite_and_logged(trained: Path) -> None:
    rows = read_log(trained / "log.csv")
    assert [row["step"] for row in rows] == [2, 4, 6, 8, 10]
    for row in rows:
        assert {"loss_g", "loss_d", "norm_g", "norm_d", "images_per_s", "real_sign"} <= row.keys()
        assert np.isfinite(list(row.values())).all()
    assert "r1" in rows[0]
    assert "path" in rows[0]


def test_a_folder_holds_a_checkpoint_a_snapshot_sheets_and_a_log(trained: Path) -> None:
    names = {path.name for path in trained.iterdir()} - {"training.png"}
    snapshot = {"checkpoint-000000040.pt", "network-000000040.safetensors", "sheet-000000040.png"}
    assert names == snapshot | {"real.png", "log.csv"}


def test_a_snapshot_opens_in_the_renderer_and_shows_what_was_trained(trained: Path) -> None:
    model = read_model(trained / "network-000000040.safetensors")
    network = Generator(as_stylegan2(model).spec)
    network.load_state_dict(read_checkpoint(checkpoints(trained)[-1], CPU)[1]["ema"])
    z = np.random.default_rng(0).standard_normal((2, 16)).astype(np.float32)
    renderer = Renderer(model, "cpu")
    try:
        ws = renderer.map(z)
        came = renderer.synthesize(ws, "const")
    finally:
        renderer.close()
    with torch.no_grad():
        expected = network(torch.from_numpy(z)).numpy()
    assert np.abs(came - expected).max() < 1e-4


def test_resuming_gives_the_bits_of_no_interruption(trained: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"augment": True, "mirror": True, "augment_kimg": 0.1}
    run(tmp_path, 0.016, **given)
    run(tmp_path, 0.040, tmp_path)
    first, second = (read_checkpoint(checkpoints(folder)[-1], CPU) for folder in (trained, tmp_path))
    assert first[1].keys() == second[1].keys()
    for name in first[1]:
        assert same(first[1][name], second[1][name]), name
    assert first[0] == second[0]
    snapshots = [(folder / "network-000000040.safetensors").read_bytes() for folder in (trained, tmp_path)]
    assert snapshots[0] == snapshots[1]
    assert [row["loss_g"] for row in read_log(trained / "log.csv")] == [
        row["loss_g"] for row in read_log(tmp_path / "log.csv")
    ]


def test_an_older_checkpoint_cuts_the_log_back(tmp_path: Path) -> None:
    run(tmp_path, 0.008)
    old = checkpoints(tmp_path)[0]
    run(tmp_path, 0.024, tmp_path)
    run(tmp_path, 0.016, old)
    assert [row["step"] for row in read_log(tmp_path / "log.csv")] == [2, 4]
    assert checkpoints(tmp_path)[-1].name == "checkpoint-000000016.pt", "the newest is the one written last"


def test_a_clock_that_was_set_back_costs_no_new_checkpoint(tmp_path: Path) -> None:
    later_s = time.time() + 5 * 3600.0
    for seen in (8, 16, 24, 12):
        path = write_checkpoint(tmp_path, {}, {"pictures_seen": seen})
        if seen in (8, 16):
            os.utime(path, (later_s + seen, later_s + seen))
    assert [path.name for path in checkpoints(tmp_path)] == ["checkpoint-000000024.pt", "checkpoint-000000012.pt"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_stop_saves_after_the_current_step(number: signal.Signals, tmp_path: Path) -> None:
    handler = signal.getsignal(number)

    def interrupt(batch: int) -> None:
        if batch == 3:
            signal.raise_signal(number)

    outcome = run(tmp_path, 1.0, at_batch=interrupt)
    assert (outcome.was_stopped, outcome.stop_signal, outcome.pictures_seen) == (True, number, 16)
    assert [path.name for path in checkpoints(tmp_path)] == ["checkpoint-000000016.pt"]
    assert outcome.snapshot is not None
    assert outcome.snapshot.is_file()
    assert signal.getsignal(number) is handler


def test_ctrl_c_before_the_first_step_is_done_ends_at_once(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, 1.0, at_batch=lambda _: signal.raise_signal(signal.SIGINT))
    assert checkpoints(tmp_path) == []


def test_a_nan_stops_with_the_step_the_cause_and_the_last_good_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, 0.008)
    usual = Training.run_step

    def spoiled(self: Training, pictures: torch.Tensor) -> None:
        if self.step == 4:
            with torch.no_grad():
                self.discriminator.logit.weight.fill_(float("nan"))
        usual(self, pictures)

    monkeypatch.setattr(Training, "run_step", spoiled)
    with pytest.raises(DivergedError) as caught:
        run(tmp_path, 0.1, tmp_path)
    assert caught.value.sentence == (
        "Training stopped after 0.0 kimg because the generator's loss became nan in step 5; "
        "continue from checkpoint-000000008.pt, with a lower --learning-rate or a larger --gamma."
    )
    assert [path.name for path in checkpoints(tmp_path)] == ["checkpoint-000000008.pt"]


def test_progress_reports_speed_and_time_left(tmp_path: Path) -> None:
    told: list[TrainProgress] = []
    request = TrainRequest(tmp_path, {**SIZES, "kimg": 0.016}, None, "cpu")
    train(request, lambda _: None, told.append, lambda _, side, __: FakeSource(side))
    steps = [one.step for one in told]
    assert steps == sorted(set(steps))
    assert {2, 4} <= set(steps) <= {1, 2, 3, 4}, "others are told too where a step takes long"
    *before, last = told
    assert all(one.left_s > 0 for one in before)
    assert last.left_s == 0
    assert all("images/s" in one.text() for one in told)


def test_half_precision_and_accumulation_train_too(tmp_path: Path) -> None:
    for precision in ("bf16", "fp16"):
        run(tmp_path / precision, 0.008, precision=precision, accumulate=2)
        assert read_log(tmp_path / precision / "log.csv")


def test_a_folder_with_a_training_is_not_restarted_and_sizes_stay(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="already contains a training"):
        run(trained, 0.1)
    with pytest.raises(RequestError, match="channel_max differ"):
        run(trained, 0.1, trained, channel_max=8)
    with pytest.raises(CheckpointError, match="no checkpoint to resume from"):
        run(tmp_path, 0.1, tmp_path)
    (tmp_path / "checkpoint-000000001.pt").write_bytes(b"not one")
    with pytest.raises(CheckpointError, match="is not one"):
        run(tmp_path, 0.1, tmp_path)


def test_results_must_not_lie_among_the_pictures(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    for out in ("pictures", "pictures/run", "pictures/../pictures/run"):
        with pytest.raises(RequestError, match="choose another --out"):
            run(tmp_path / out, 0.1, data=str(tmp_path / "pictures"))
    assert list((tmp_path / "pictures").iterdir()) == []


def test_options_out_of_range_are_one_sentence(tmp_path: Path) -> None:
    for given in (
        {"resolution": 48},
        {"batch": 0},
        {"mixing": 2.0},
        {"accumulate": 3},
        {"learning_rate": float("inf")},
    ):
        with pytest.raises(RequestError):
            run(tmp_path, 0.1, **given)
    assert list(tmp_path.iterdir()) == []


def test_a_slow_machine_soon_shows_how_long_it_will_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    class Clock:
        @staticmethod
        def perf_counter() -> float:
            return now[0]

    def slow(number: int) -> None:
        now[0] += 8.0  # a batch of four pictures takes eight seconds

    class SlowSource(FakeSource):
        is_on_device = False

    monkeypatch.setattr(loop, "time", Clock)
    said: list[str] = []
    told: list[TrainProgress] = []
    request = TrainRequest(tmp_path, {**SIZES, "kimg": 0.016, "log_kimg": 4.0}, None, "cpu")
    train(request, said.append, told.append, lambda _, side, __: SlowSource(side, slow))
    assert "Pictures come at 0.5 a second, so at least 32 s are left." in said
    assert any(line.startswith("Drawing real.png: ") for line in said)
    assert told[0].step < 4, "there is a word before the first report"
    assert told[0].left_s > 0
    assert "loss" not in told[0].text()


def test_the_time_left_is_estimated_before_a_picture_is_drawn_or_a_step_begins(tmp_path: Path) -> None:
    said: list[str] = []
    at_first_picture: list[str] = []

    def note(number: int) -> None:
        if not at_first_picture:
            at_first_picture.extend(said)

    request = TrainRequest(tmp_path, {**SIZES, "kimg": 0.004}, None, "cpu")
    train(request, said.append, lambda _: None, lambda _, side, __: FakeSource(side, note))
    shown = re.fullmatch(r"A step of 4 pictures takes about (.+), so about .+ are left\.", at_first_picture[-1])
    assert shown is not None
    assert shown[1] != "0 s"
    said.clear()
    train(
        TrainRequest(tmp_path, {}, tmp_path, "cpu"), said.append, lambda _: None, lambda _, side, __: FakeSource(side)
    )
    assert not any("left" in line for line in said), "a training that has ended has no time left"


def test_drawing_the_sheet_does_not_lower_the_pace_that_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    class Clock:
        @staticmethod
        def perf_counter() -> float:
            return now[0]

    def slow(number: int) -> None:
        now[0] += 20.0  # the sheet's batch of 64 pictures, and the batch of four of a step

    monkeypatch.setattr(loop, "time", Clock)
    told: list[TrainProgress] = []
    request = TrainRequest(tmp_path, {**SIZES, "kimg": 0.004, "log_kimg": 4.0}, None, "cpu")
    train(request, lambda _: None, told.append, lambda _, side, __: FakeSource(side, slow))
    assert told[0].images_per_s == pytest.approx(4 / 20)


def test_a_picture_that_cannot_be_read_does_not_lose_the_steps_before_it(tmp_path: Path) -> None:
    def broken_at(place: int) -> Any:
        def at(batch: int) -> None:
            if batch == place:
                raise DataError("b.png should be a picture, but cannot be read as one.")

        return at

    with pytest.raises(DataError, match=r"read as one; checkpoint-000000012\.pt has the training up to it\.$"):
        run(tmp_path, 1.0, at_batch=broken_at(3))
    assert [path.name for path in checkpoints(tmp_path)] == ["checkpoint-000000012.pt"]
    with pytest.raises(DataError, match=r"read as one\.$"):  # no step since
        run(tmp_path, 1.0, resume=tmp_path, at_batch=broken_at(3))
    assert run(tmp_path, 0.020, resume=tmp_path).pictures_seen == 20
