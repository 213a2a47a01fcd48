"""``latentloom train`` hands its options to the trainer, and trains."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from explorer_app.cli import train
from gpu_backend import TrainOutcome, TrainRequest, read_model
from tests.helpers.command import Command
from tests.helpers.one_thread import one_thread_of_torch

SMALL = ("--resolution", "8", "--channel-base", "64", "--channel-max", "8", "--z-dim", "8", "--w-dim", "8")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[TrainRequest]:
    """The requests of every run, none of which runs."""
    requests: list[TrainRequest] = []

    def run(request: TrainRequest, say: object, progress: object) -> TrainOutcome:
        requests.append(request)
        return TrainOutcome(4000, False, Path("network-000004000.safetensors"))

    monkeypatch.setattr(train, "run_training", run)
    return requests


def test_only_what_is_requested_arrives(command: Command, calls: list[TrainRequest]) -> None:
    words = ("--out", "a", "--data", "cats.zip", "--batch", "16", "--gamma", "0.5", "--augment", "--no-mirror")
    outcome = command("train", *words)
    assert outcome.status == 0
    assert "4.0 kimg; the network is network-000004000.safetensors" in outcome.err
    given = {"data": "cats.zip", "batch": 16, "gamma": 0.5, "augment": True, "mirror": False}
    assert calls == [TrainRequest(Path("a"), given)]


def test_going_on_means_the_newest_of_the_folder_or_a_file(command: Command, calls: list[TrainRequest]) -> None:
    assert command("train", "--out", "a", "--resume").status == 0
    assert command("train", "--out", "a", "--resume", "b.pt", "--device", "cpu").status == 0
    assert [(one.resume, one.device) for one in calls] == [(Path("a"), "auto"), (Path("b.pt"), "cpu")]


def test_a_slip_is_one_sentence(command: Command, calls: list[TrainRequest]) -> None:
    slips = (("--resolution", "100"), ("--batch", "0"), ("--gamma", "-1"), ("--mixing", "2"), ("--device", "tpu"))
    for words in (*slips, ("--precision", "int8"), ("--kimg", "nan"), ("--surprise",)):
        assert command("train", "--out", "a", *words).sentence
    assert "--out" in command("train").sentence
    assert calls == []


@pytest.fixture
def one_thread() -> Iterator[None]:
    with one_thread_of_torch():
        yield


@pytest.mark.usefixtures("one_thread")
def test_a_folder_of_pictures_becomes_a_network(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for number in range(4):
        Image.fromarray(np.full((10, 12, 3), 60 * number, np.uint8)).save(pictures / f"{number}.png")
    words = ("--out", tmp_path / "out", "--device", "cpu")
    done = command("train", *words, "--data", pictures, *SMALL, "--batch", "4", "--kimg", "0.008")
    assert done.status == 0, done.err
    assert read_model(tmp_path / "out" / "network-000000008.safetensors").facts.resolution == 8
    assert "already contains a training" in command("train", *words, "--data", pictures).sentence
    again = command("train", *words, "--resume", "--kimg", "0.012")
    assert again.status == 0, again.err
    assert "Continuing from checkpoint-000000008.pt." in again.err
    monkeypatch.chdir(tmp_path / "out")
    checkpoint = (tmp_path / "out" / "checkpoint-000000012.pt").read_bytes()
    assert str(tmp_path).encode() not in checkpoint, "a path names folders of a person"
    (tmp_path / "elsewhere").mkdir()
    pictures.rename(tmp_path / "elsewhere" / "pictures")
    assert "say with --data where" in command("train", *words, "--resume", "--kimg", "0.016").sentence
    moved = command("train", *words, "--resume", "--kimg", "0.016", "--data", tmp_path / "elsewhere" / "pictures")
    assert (moved.status, "not those" in moved.err) == (0, False), moved.err
    (tmp_path / "elsewhere" / "pictures" / "0.png").unlink()
    other = command("train", *words, "--resume", "--kimg", "0.02", "--data", tmp_path / "elsewhere" / "pictures")
    assert (other.status, "The pictures are not those that the checkpoint was trained on." in other.err) == (0, True)
    assert "there is no" in command("train", "--out", tmp_path / "other", "--data", tmp_path / "nowhere").sentence
