"""The words of ``latentloom farm``, and what ``render`` says of its farm; processes are started elsewhere."""

import argparse
import contextlib
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from explorer_app.cli.arguments import gpu_list
from explorer_app.cli.farm import job_lines, parser
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.farm.job import FarmJob
from explorer_app.farm.keys import default_keys_path, read_keys
from explorer_app.farm.local_farm import CrewMember, crew_of_this_machine
from explorer_app.farm.work import JobStatus, WorkerStatus
from gpu_backend import DeviceFacts
from tests.helpers.command import Command
from tests.helpers.farm import FakeFarm, station


def test_every_word_has_help(command: Command) -> None:
    for word in ("up", "join", "keys", "status", "log", "pause", "resume", "cancel", "priority", "worker", "scheduler"):
        assert command("farm", word, "--help").status == 0
        assert f"    {word} " in command("farm", "--help").out


def test_farm_needs_a_word(command: Command) -> None:
    assert "required: WORD" in command("farm").sentence


def test_workers_of_a_job_that_is_done_are_not_said_to_be_gone() -> None:
    workers = (WorkerStatus("gpu0", "NVIDIA H200", 1, 8.0, 0, "not there"),)
    under_way = JobStatus("3f2a" * 8, "walk", "rendering", 1, 2, "1 of 2 frames", 0, workers)
    assert job_lines(under_way)[1] == "    gpu0: not there, 1 frame, 8 fps; NVIDIA H200"
    done = JobStatus("3f2a" * 8, "walk", "done", 2, 2, "2 of 2 frames", 0, workers)
    assert job_lines(done)[1] == "    gpu0: 1 frame, 8 fps; NVIDIA H200"


def test_keys_are_written_for_their_owner_alone(command: Command, tmp_path: Path) -> None:
    outcome = command("farm", "keys", "--out", tmp_path / "farm.pem")
    assert outcome.status == 0
    assert str(tmp_path / "farm.pem") in outcome.err
    assert str(default_keys_path()) in outcome.err
    assert read_keys(tmp_path / "farm.pem").key.startswith("-----BEGIN PRIVATE KEY")
    assert (tmp_path / "farm.pem").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "words",
    [
        ("farm", "up", "--address", "0.0.0.0", "--keys", "none.pem"),
        ("farm", "join", "192.168.1.20", "--keys", "none.pem"),
        ("farm", "status", "--farm", "192.168.1.20", "--keys", "none.pem"),
        ("render", "--seeds", "1-3", "--path", "cubic", "--outdir", "out", "--farm", "host", "--keys", "none.pem"),
    ],
)
def test_beyond_this_machine_a_farm_needs_keys(command: Command, words: tuple[str, ...]) -> None:
    assert "latentloom farm keys" in command(*words).sentence


@pytest.mark.parametrize(
    "words", [("up", "--address", "tcp://0.0.0.0"), ("join", "tcp://10.0.0.1"), ("worker", "--farm", "tcp://10.0.0.1")]
)
def test_plain_text_beyond_this_machine_is_refused(command: Command, words: tuple[str, ...]) -> None:
    assert "encrypted connections only" in command("farm", *words).sentence


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--farm", "h", "--gpus", "all"), "names a farm that has its workers"),
        (("--farm", "h", "--cpu-workers", "1"), "names a farm that has its workers"),
        (("--gpus", "0", "--keys", "k"), "those of a --farm"),
        (("--keys", "k"), "belongs to a farm"),
        (("--spot-check", "3"), "belongs to a farm"),
        (("--priority", "3"), "belongs to a farm"),
        (("--gpus", "0", "--priority", "3"), "which several jobs share"),
        (("--farm", "h", "--priority", "high"), "whole number"),
        (("--gpus", "all", "--device", "cpu"), "have their devices"),
        (("--gpus", "all", "--jobs", "2"), "leave --jobs out"),
        (("--gpus", "one"), "GPUs are numbers"),
    ],
)
def test_options_that_exclude_each_other_are_refused(command: Command, words: tuple[str, ...], said: str) -> None:
    base = ("render", "--seeds", "1-3", "--path", "cubic", "--outdir", "out")
    assert said in command(*base, *words).sentence


def test_a_missing_extra_is_reported_with_the_command_that_adds_it(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for words in (("farm", "up"), ("render", "--seeds", "1-3", "--path", "cubic", "--outdir", "o", "--gpus", "all")):
        assert "pip install distributed cryptography" in command(*words).err


def devices(*ids: str) -> Callable[[], tuple[DeviceFacts, ...]]:
    return lambda: tuple(DeviceFacts(name=name, precision="fp32", reason="", id=name) for name in (*ids, "cpu"))


def test_a_crew_has_a_worker_for_each_gpu_which_sees_that_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_backend.find_devices", devices("cuda:0", "cuda:1", "cuda:2"))
    monkeypatch.setattr("explorer_app.farm.local_farm.usual_threads", lambda: 15)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert [(member.name, member.visible) for member in crew_of_this_machine(None, 0)] == [
        ("gpu0", "0"),
        ("gpu1", "1"),
        ("gpu2", "2"),
    ]
    assert crew_of_this_machine((2,), 1) == (
        CrewMember("gpu2", "2", 7),
        CrewMember("cpu0", None, 7, 8),
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,3,GPU-7")
    assert [member.visible for member in crew_of_this_machine((0, 2), 0)] == ["5", "GPU-7"]


def test_a_machine_without_a_gpu_gets_a_worker_on_its_cpu(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.setattr("gpu_backend.find_devices", devices())
    assert [member.device for member in crew_of_this_machine(None, 0)] == ["cpu"]
    assert "no GPU that can be used, but --gpus asks for 1" in command("farm", "up", "--gpus", "1").sentence
    assert "at least one worker" in command("farm", "up", "--gpus", "none").sentence


def test_render_on_a_farm_writes_what_render_writes(
    command: Command, networks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    farm = FakeFarm()
    for name in ("studio/gpu0", "studio/gpu1"):
        farm.add(name, station(tmp_path / name))
    monkeypatch.setattr("explorer_app.cli.farm_sequence.FarmJob", partial(FarmJob, connect=farm.connect))
    monkeypatch.setattr("explorer_app.farm.foreman._EXCHANGE_S", 0.02)
    words = ("render", "--network", networks / "plain.safetensors", "--seeds", "1-3", "--path", "linear")
    outcome = command(
        *words, "--frames", 8, "--outdir", tmp_path / "out", "--farm", "tcp://127.0.0.1:9", "--spot-check", 0
    )
    assert outcome.status == 0, outcome.err
    assert "17 frames are in" in outcome.err
    assert "studio/gpu0: " in outcome.err
    assert len(list((tmp_path / "out").glob("*.png"))) == 17
    again = command("render", "--resume", tmp_path / "out" / "path.manifest.json", "--farm", "tcp://127.0.0.1:9")
    assert again.status == 0, again.err
    farm.close()


def test_a_job_that_is_cancelled_on_the_farm_is_no_success(
    command: Command, networks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    farm = FakeFarm(orders=[("cancel", 0)])
    monkeypatch.setattr("explorer_app.cli.farm_sequence.FarmJob", partial(FarmJob, connect=farm.connect))
    words = ("render", "--network", networks / "plain.safetensors", "--seeds", "1-3", "--path", "linear")
    outcome = command(*words, "--frames", 8, "--outdir", tmp_path / "out", "--farm", "tcp://127.0.0.1:9")
    assert outcome.status == 2
    assert "cancelled on the farm: 0 of 17 frames are in" in outcome.sentence
    farm.close()


def test_a_farm_that_is_not_there_is_reported_in_a_sentence(command: Command, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert "No farm answers" in command("farm", "status", "--farm", f"tcp://127.0.0.1:{port}").sentence


def test_single_pictures_go_to_a_farm_under_the_names_of_their_files(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[SequenceSettings] = []
    monkeypatch.setattr("explorer_app.cli.render.render_on_farm", lambda settings, *_: calls.append(settings))
    assert command("render", "--seeds", "1-3,2", "--outdir", str(tmp_path), "--gpus", "all").status == 0
    (settings,) = calls
    assert settings.file_names == ("seed0001", "seed0002", "seed0003"), "a seed that is named twice is one file"
    assert (settings.frame_count, settings.overwrite) == (3, True)


def test_lists_of_gpus() -> None:
    assert gpu_list("all") is None
    assert gpu_list("none") == ()
    assert gpu_list("0,1,3,1") == (0, 1, 3)
    for text in ("", "a", "1-3", "-1", "1,", "9999"):
        with pytest.raises(argparse.ArgumentTypeError):
            gpu_list(text)


def test_a_priority_may_be_negative() -> None:
    assert parser().parse_args(["priority", "3f2a", "-5"]).number == -5


@pytest.mark.parametrize("is_up", [True, False])
def test_joining_says_whether_a_farm_is_there(command: Command, monkeypatch: pytest.MonkeyPatch, is_up: bool) -> None:
    monkeypatch.setattr("explorer_app.cli.farm.LocalFarm", lambda *_, **__: contextlib.nullcontext())
    monkeypatch.setattr("explorer_app.cli.farm._until_stopped", lambda console: None)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if is_up:
            listener.listen()
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        said = command("farm", "join", address, "--gpus", "none", "--cpu-workers", 2).err
    waits = f"No farm answers at {address}; 2 workers of this machine will join it once it is up.\n"
    assert said == (f"The farm at {address} gets 2 workers of this machine.\n" if is_up else waits)
