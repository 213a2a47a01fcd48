"""How a command line ends: one sentence on stderr and a status that tells the truth."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from explorer_app import logs
from explorer_app.cli import render
from explorer_app.cli.console import Console
from explorer_app.cli.main import main
from gpu_backend import RequestError
from tests.explorer_app.cli.test_commands import run_fresh
from tests.helpers.command import Command

Run = Callable[[Sequence[str], Console], int]


class Full(io.StringIO):
    """A stream on a full disk."""

    def flush(self) -> None:
        if self.getvalue():
            raise OSError(28, "No space left on device")


class Unread(io.StringIO):
    """A pipe whose reader has left."""

    def flush(self) -> None:
        if self.getvalue():
            raise BrokenPipeError(32, "Broken pipe")


@pytest.fixture
def as_render(monkeypatch: pytest.MonkeyPatch) -> Callable[[Run], None]:
    """Put a function in the place of ``latentloom render``."""
    return lambda run: monkeypatch.setattr(render, "run", run)


def fails(error: BaseException) -> Run:
    def run(words: Sequence[str], console: Console) -> int:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "status", "part"),
    [
        (RequestError("It has no row 14."), 2, "latentloom render: It has no row 14.\n"),
        (OSError(28, "No space left on device", "out/a.png"), 2, "out/a.png: No space left on device.\n"),
        (MemoryError(), 2, "There was not enough memory for this"),
        (RuntimeError("can't start new thread"), 2, "There was not enough memory for this"),
        (KeyboardInterrupt(), 130, "Stopped.\n"),
        (BrokenPipeError(), 141, ""),
    ],
)
def test_each_end_has_its_status_and_at_most_a_sentence(
    command: Command, as_render: Callable[[Run], None], error: BaseException, status: int, part: str
) -> None:
    as_render(fails(error))
    outcome = command("render")
    assert outcome.status == status
    assert part in outcome.err
    assert outcome.err.count("\n") == (1 if part else 0)


def test_a_bug_shows_its_traceback_and_names_the_log_file(
    command: Command, as_render: Callable[[Run], None], caplog: pytest.LogCaptureFixture
) -> None:
    as_render(fails(KeyError("x")))
    outcome = command("render")
    assert outcome.status == 1
    assert "    KeyError: 'x'\n" in outcome.err
    assert outcome.err.endswith("latentloom.log says.\n")
    assert "KeyError: 'x'" in logs.log_path().read_text()
    caplog.clear()


def test_text_of_a_file_that_is_named_or_read_cannot_steer_the_terminal(
    command: Command, as_render: Callable[[Run], None], tmp_path: Path
) -> None:
    path = tmp_path / "a\x1b[2J\nlatentloom: All is well.\u202e.pkl"
    path.write_bytes(b"not a model")
    for words in (("inspect", path), ("render", "--network", path), (tmp_path / "no\nfile\x1b.pkl",)):
        assert not {"\x1b", "\u202e"} & set(command(*words).sentence)

    def run(words: Sequence[str], console: Console) -> int:
        console.warn("w_avg of \x1b[31mred\nforged")
        console.results(["class \x07\nforged"])
        return 0

    as_render(run)
    outcome = command("render")
    assert (outcome.out, outcome.err) == ("class \\x07\\nforged\n", "Warning: w_avg of \\x1b[31mred\\nforged\n")


@pytest.mark.parametrize(("stream", "status"), [(Full, 2), (Unread, 0)])
def test_results_that_cannot_be_printed_are_reported(
    stream: type[io.StringIO], status: int, networks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = io.StringIO()
    monkeypatch.setattr(sys, "stderr", errors)
    monkeypatch.setattr(sys, "stdout", stream())
    assert main(["inspect", str(networks / "plain.safetensors")]) == status
    assert errors.getvalue().count("\n") == (1 if status else 0)
    monkeypatch.setattr(sys, "stdout", stream())
    assert main(["--help"]) == status


def test_help_that_cannot_be_printed_is_reported_where_nothing_is_buffered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Unbuffered(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Unbuffered())
    assert main(["render", "--help"]) == 2
    assert "No space left" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["render", "--help"]])
def test_help_with_a_closed_stdout_is_an_error(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert main(words) == 2
    err = capsys.readouterr().err
    assert "standard output, which is closed" in err
    assert err.count("\n") == 1


def test_help_whose_reader_leaves_early_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unbuffered(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(sys, "stdout", Unbuffered())
    assert main(["--version"]) == 0


def test_a_deleted_working_folder_is_reported_before_a_library_trips_over_it(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, networks: Path
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert "working folder is gone" in command("render", "--seeds", "1", "--outdir", tmp_path).sentence
    assert command("inspect", networks / "plain.safetensors").status == 0
    assert command("--version").status == command("render", "--help").status == 0


def test_an_endless_file_name_is_no_endless_sentence(command: Command) -> None:
    for words in (("inspect", "x" * 5000), ("render", "--seeds", "1", "--outdir", "x" * 5000), ("x" * 5000,)):
        outcome = command(*words)
        assert outcome.status == 2
        assert len(outcome.err) < 600


def test_a_closed_stdout_is_reported(networks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = io.StringIO()
    monkeypatch.setattr(sys, "stderr", errors)
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["inspect", str(networks / "plain.safetensors")]) == 2
    assert "standard output, which is closed" in errors.getvalue()


def test_a_closed_stdout_is_no_bug_of_help_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["--help"]) == 2


def test_work_goes_on_where_nothing_can_be_said(
    as_render: Callable[[Run], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []

    def run(words: Sequence[str], console: Console) -> int:
        for number in range(3):
            console.progress(f"{number} of 3")
            done.append(number)
        return 0

    as_render(run)
    for stream in (Full(), None):
        done.clear()
        monkeypatch.setattr(sys, "stderr", stream)
        assert main(["render"]) == 0
        assert done == [0, 1, 2]


def test_a_reader_of_the_progress_that_leaves_ends_the_work_with_a_status_of_its_own(
    as_render: Callable[[Run], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(words: Sequence[str], console: Console) -> int:
        console.note("1 of 800")
        return 0

    as_render(run)
    monkeypatch.setattr(sys, "stderr", Unread())
    assert main(["render"]) == 141
    as_render(fails(RequestError("It has no row 14.")))
    assert main(["render"]) == 2, "the error counts for more than that nobody read it"


def test_a_misspelt_command_is_named_before_its_options(command: Command) -> None:
    assert command("rendr", "--seeds", "1").sentence.endswith("there is no rendr; the command is called render.")
    assert command("qqq", "--seeds", "1").sentence.endswith("there is no qqq.")
    assert "unrecognized arguments: --seeds" in command("--seeds", "1").sentence


@pytest.mark.parametrize(
    "words", [("--log", "debug", "render"), ("--log=debug", "render"), ("render", "--log", "debug")]
)
def test_log_may_stand_before_or_after_the_command(command: Command, words: tuple[str, ...]) -> None:
    outcome = command(*words)
    assert outcome.status == 2
    assert "latentloom render: One of --seeds, --from" in outcome.err


def test_log_shows_what_is_logged(command: Command, networks: Path) -> None:
    err = command("inspect", "--log", "info", networks / "none.pkl").err
    assert "INFO explorer_app.cli.main: latentloom inspect: " in err
    assert "choose from" in command("inspect", "--log", "loud", networks).sentence


def test_log_leaves_nothing_among_the_options_of_a_training(command: Command, tmp_path: Path) -> None:
    sentence = command("train", "--log", "error", "--out", tmp_path, "--resolution", "3").sentence
    assert "log" not in sentence


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_stop_while_modules_are_imported_is_no_traceback(number: signal.Signals) -> None:
    code = (
        "import os, signal, sys, explorer_app.__main__ as start\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == 'explorer_app.cli.console': os.kill(os.getpid(), {number.value})\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "sys.exit(start.main())\n"
    )
    done = run_fresh(code)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "Stopped.\n")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGTERM to one process")
def test_sigterm_ends_a_command_as_ctrl_c_does_with_a_status_of_its_own(
    command: Command, as_render: Callable[[Run], None]
) -> None:
    kept: list[str] = []

    def run(words: Sequence[str], console: Console) -> int:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        finally:
            kept.append("finished frames")
        return 0

    as_render(run)
    before = signal.getsignal(signal.SIGTERM)
    outcome = command("render")
    assert (outcome.status, outcome.err, kept) == (143, "Stopped.\n", ["finished frames"])
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
def test_a_signal_that_the_shell_had_ignored_for_a_background_job_stays_ignored(
    command: Command, as_render: Callable[[Run], None]
) -> None:
    def run(words: Sequence[str], console: Console) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return 0

    as_render(run)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert command("render").status == 0
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_stop_while_a_dataclass_is_made_has_its_status(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "stopped.py").write_text(
        "import sys, explorer_app.__main__ as start\n"
        "from explorer_app.cli import render\n"
        f"code = 'import os, time; os.kill(os.getpid(), {number.value}); time.sleep(5)'\n"
        "render.run = lambda words, console: exec(code)\n"
        "sys.argv = ['latentloom', 'render']\n"
        "sys.exit(start.main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "stopped"],  # Python looks at the mark after a module only
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
    )
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "Stopped.\n")


def test_nothing_is_imported_before_ctrl_c_is_heard() -> None:
    code = (
        "import sys; there = set(sys.modules); import explorer_app.__main__; print(*sorted(set(sys.modules) - there))"
    )
    done = run_fresh(code)
    assert set(done.stdout.split()) <= {
        "__future__",
        "explorer_app",
        "explorer_app.__main__",
        "explorer_app.interrupts",
    }


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_full_disk_behind_stdout_ends_the_process_with_a_sentence(networks: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "explorer_app", "inspect", str(networks / "plain.safetensors")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
    assert done.returncode == 2
    assert done.stderr == "latentloom inspect: The result could not be printed: No space left on device.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
def test_a_ctrl_c_that_a_library_swallows_ends_the_work_at_its_next_step(
    command: Command, as_render: Callable[[Run], None]
) -> None:
    steps: list[int] = []

    def run(words: Sequence[str], console: Console) -> int:
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        for number in range(3):
            console.progress(f"{number} of 3")
            steps.append(number)
        return 0

    as_render(run)
    outcome = command("render")
    assert (outcome.status, steps) == (130, [])
    assert outcome.err.endswith("Stopped.\n")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(command: Command, tmp_path: Path) -> None:
    pipes = {ending: tmp_path / f"pipe.{ending}" for ending in ("pkl", "png", "loom", "zip")}
    for pipe in pipes.values():
        os.mkfifo(pipe)
    for words in (
        ("inspect", pipes["pkl"]),
        ("doctor", pipes["pkl"]),
        ("convert", pipes["pkl"], tmp_path / "out.safetensors"),
        ("render", "--network", pipes["pkl"], "--seeds", "1", "--outdir", tmp_path),
        ("render", "--from", pipes["png"], "--outdir", tmp_path),
        ("render", "--from", pipes["loom"], "--outdir", tmp_path),
        ("directions", pipes["pkl"], "--method", "sefa"),
    ):
        assert command(*words).status == 2


def test_the_way_a_signal_is_answered_is_given_back(command: Command) -> None:
    before = signal.getsignal(signal.SIGINT)
    command("--version")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_rendering_without_torch_is_one_sentence(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, device: str
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "gpu_backend.cpu.executor", raising=False)
    sentence = command("render", "--seeds", "1", "--outdir", tmp_path, "--device", device).sentence
    assert sentence.startswith("Rendering on the CPU needs torch, which is not installed; install it with: ")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no users without a home folder")
def test_a_user_without_a_home_folder_needs_none(
    command: Command, networks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that runs under a number which the system does not know."""
    import pwd

    def unknown(number: int) -> object:
        raise KeyError(number)

    for name in ("HOME", *(f"XDG_{kind}_HOME" for kind in ("CONFIG", "DATA", "CACHE", "STATE"))):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setattr(sys.modules["explorer_app.cli.main"], "_NO_HOME", str(tmp_path / "file" / "home"))
    outcome = command("render", "--network", networks / "plain.safetensors", "--seeds", 1, "--outdir", tmp_path)
    assert outcome.status == 0, outcome.err
    assert (tmp_path / "seed0001.png").exists()
