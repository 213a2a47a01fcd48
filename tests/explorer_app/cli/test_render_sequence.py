import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from explorer_app.cli import sequence
from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.picture import read_picture
from explorer_app.exporting.sequence import frame_count
from gpu_backend import Frame, Point, Renderer, RenderRequest
from tests.helpers.command import Command


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        ("linear", "w-linear"),
        ("cubic", "w-cubic"),
        ("w-slerp", "w-slerp"),
        ("z-linear", "z-linear"),
        ("slerp", "z-slerp"),
    ],
)
def test_each_kind_of_path_becomes_a_sequence(command: Command, tmp_path: Path, kind: str, stored: str) -> None:
    words = ("--seeds", "1,2,3", "--trunc", "0.5", "--path", kind, "--frames", "2", "--loop", "--outdir", tmp_path)
    outcome = command("render", *words)
    assert outcome.status == 0
    assert "6 of 6 frames\n" in outcome.err
    assert sorted(content(tmp_path)) == ["path.manifest.json", *(f"path_{index:05d}.png" for index in range(6))]
    manifest = json.loads((tmp_path / "path.manifest.json").read_text())
    assert manifest["state"] == "complete"
    assert (manifest["path"], manifest["loop"]) == (stored, True)
    assert manifest["z_dim"] == 8
    assert read_picture(tmp_path / "path_00002.png").request.blend[0][0].latent.point == Point(((2, 1.0),))


def test_without_a_loop_the_last_key_is_the_last_frame(command: Command, tmp_path: Path) -> None:
    command("render", "--seeds", "1,2", "--path", "linear", "--frames", "3", "--name", "walk", "--outdir", tmp_path)
    assert len(content(tmp_path)) == 1 + frame_count(2, 3, loop=False) == 5
    assert read_picture(tmp_path / "walk_00003.png").request.blend[0][0].latent.point == Point(((2, 1.0),))


def test_a_path_goes_through_saved_pictures(command: Command, tmp_path: Path) -> None:
    command("render", "--seeds", "5,9", "--trunc", "0.6", "--outdir", tmp_path)
    pictures = (tmp_path / "seed0005.png", tmp_path / "seed0009.png")
    command("render", "--from", *pictures, "--path", "cubic", "--frames", "2", "--outdir", tmp_path / "walk")
    first = read_picture(tmp_path / "walk" / "path_00000.png").request
    assert first == read_picture(pictures[0]).request


def test_ctrl_c_ends_cleanly_and_the_same_command_goes_on(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def words(folder: str) -> list[object]:
        return ["render", "--seeds", "1-3", "--path", "cubic", "--frames", "3", "--outdir", tmp_path / folder]

    command(*words("undisturbed"))
    render = Renderer.render
    rendered: list[RenderRequest] = []

    def interrupted(renderer: Renderer, request: RenderRequest, **options: Any) -> Frame:
        if len(rendered) == 3:
            raise KeyboardInterrupt
        rendered.append(request)
        return render(renderer, request, **options)

    monkeypatch.setattr(Renderer, "render", interrupted)
    outcome = command(*words("stopped"))
    monkeypatch.undo()
    assert outcome.status == 130
    assert f"3 of 7 frames are in {tmp_path / 'stopped'}; run the same command to continue.\n" in outcome.err
    assert outcome.err.endswith("Stopped.\n")
    assert json.loads((tmp_path / "stopped" / "path.manifest.json").read_text())["state"] == "cancelled"
    assert len(content(tmp_path / "stopped")) == 4


def test_ctrl_c_says_how_much_of_a_video_is_rendered_again(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("av")
    render = Renderer.render
    rendered: list[RenderRequest] = []

    def interrupted(renderer: Renderer, request: RenderRequest, **options: Any) -> Frame:
        if len(rendered) == 3:
            raise KeyboardInterrupt
        rendered.append(request)
        return render(renderer, request, **options)

    monkeypatch.setattr(Renderer, "render", interrupted)
    words = ("render", "--seeds", "1-3", "--path", "cubic", "--frames", "3", "--fps", "1")
    outcome = command(*words, "--video", tmp_path / "film.webm")
    assert f"2 of 7 frames are in {tmp_path}; run the same command to continue. It renders 1 more again" in outcome.err


def test_existing_frames_are_reported_and_kept(command: Command, tmp_path: Path) -> None:
    words = ("render", "--seeds", "1-3", "--path", "cubic", "--frames", "3", "--outdir", tmp_path)
    command(*words)
    before = content(tmp_path)
    (tmp_path / "path_00006.png").unlink()
    outcome = command(*words)
    assert "6 of 7 frames exist already." in outcome.err
    assert content(tmp_path) == before


def test_a_different_sequence_is_refused_unless_it_may_be_replaced(command: Command, tmp_path: Path) -> None:
    words = ("render", "--path", "linear", "--frames", "2", "--outdir", tmp_path, "--seeds")
    command(*words, "1,2,3")
    before = content(tmp_path)
    outcome = command(*words, "1,2")
    assert outcome.status == 2
    last = outcome.err.splitlines()[-1]
    assert last.startswith("latentloom render: The folder ")
    assert last.endswith("; choose another --name or --outdir, or replace it with --overwrite.")
    film = command(*words[:-3], "--seeds", "1,2", "--video", tmp_path / "path.gif")
    assert film.err.strip().endswith("; choose another file for --video, or replace it with --overwrite.")
    assert content(tmp_path) == before
    assert command(*words, "1,2", "--overwrite").status == 0
    assert len(content(tmp_path)) == 4


def long_path(network: Path, folder: Path) -> list[str]:
    return f"render --network {network} --seeds 1-8 --path cubic --frames 40 --loop --outdir {folder}".split()


KILLED = """
import sys
from explorer_app.cli import main

network, folder, *words = sys.argv[1:]
assert "torch" not in sys.modules and "PySide6" not in sys.modules
assert main(["inspect", network]) == 0
assert main(["convert", network, folder + "/copy.safetensors"]) == 0
assert "torch" not in sys.modules, "reading a model needs no torch"
assert main(["render", "--network", network, "--seeds", "1", "--outdir", folder]) == 0
libraries = ("PySide6", "shiboken6", "pyqtgraph", "qtawesome")
loaded = {name.split(".")[0] for name in sys.modules}.intersection(libraries)
assert not loaded, loaded
sys.modules.update(dict.fromkeys(libraries))  # from here on an import of them fails
main(words)
"""


@pytest.fixture(scope="module")
def killed(networks: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str]:
    """Folder, status and words of a process without a display that goes through commands and dies in a sequence."""
    folder = tmp_path_factory.mktemp("killed")
    network = networks / "plain.safetensors"
    environment = {name: value for name, value in os.environ.items() if not name.endswith("DISPLAY")}
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, network, folder, *long_path(network, folder / "killed")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert process.stderr is not None
    with process.stderr:
        seen = []
        for line in iter(process.stderr.readline, ""):
            seen.append(line)
            if len(list((folder / "killed").glob("*.png"))) > 1:
                break
        process.send_signal(signal.SIGKILL)
        seen.append(process.stderr.read())
    return folder, process.wait(), "".join(seen)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_the_commands_load_no_qt_and_need_no_display(killed: tuple[Path, int, str]) -> None:
    folder, status, seen = killed
    assert status == -signal.SIGKILL, seen
    assert (folder / "copy.safetensors").is_file()
    assert (folder / "seed0001.png").is_file()


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_process_is_finished_by_the_same_command_with_the_same_bytes(
    command: Command, networks: Path, killed: tuple[Path, int, str]
) -> None:
    folder, status, seen = killed
    network = networks / "plain.safetensors"
    assert status == -signal.SIGKILL, seen
    there = {name for name in content(folder / "killed") if not name.startswith(".")}
    assert 1 < len(there) < 321, "killed in the middle"
    assert json.loads((folder / "killed" / "path.manifest.json").read_text())["state"] == "unfinished"
    assert command(*long_path(network, folder / "killed")).status == 0
    assert command(*long_path(network, folder / "undisturbed")).status == 0
    assert content(folder / "killed") == content(folder / "undisturbed")


@contextlib.contextmanager
def no_file_above(nbytes: int) -> Iterator[None]:
    """Let the system refuse this process every write beyond a size."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
def test_a_disk_that_takes_no_more_stops_with_one_sentence_and_leaves_no_rest(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A log of its own: the one of the commands before may be past the limit.
    monkeypatch.setattr("explorer_app.logs.log_path", lambda: tmp_path / "latentloom.log")
    # A limit on the size of files stands in for a full disk: the plan fits, the first frame does not.
    with no_file_above(1000):
        done = command("render", "--seeds", "1", "--path", "cubic", "--outdir", tmp_path / "out")
    assert done.status == 2, done.err
    assert done.err.splitlines()[-1].startswith(
        "latentloom render: The system allows no file as large as path_00000.png"
    )
    assert "Traceback" not in done.err
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]


def test_a_frame_that_fails_leaves_an_unfinished_sequence(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class BrokenJob(SequenceJob):
        def deliver(self, frame: object) -> None:
            raise MemoryError

    monkeypatch.setattr(sequence, "SequenceJob", BrokenJob)
    done = command("render", "--seeds", "1", "--path", "cubic", "--outdir", tmp_path)
    assert (done.status, done.out) == (2, "")
    assert "memory" in done.err.splitlines()[-1]
    assert json.loads((tmp_path / "path.manifest.json").read_text())["state"] == "unfinished"


def test_a_manifest_resumes_its_sequence_with_its_own_network(command: Command, tmp_path: Path) -> None:
    words = ("render", "--seeds", "1-3", "--path", "cubic", "--frames", "3", "--outdir", tmp_path / "out")
    command(*words)
    before = content(tmp_path / "out")
    moved = (tmp_path / "out").rename(tmp_path / "elsewhere")
    (moved / "path_00002.png").unlink()
    outcome = command("render", "--resume", moved / "path.manifest.json")
    assert outcome.status == 0, outcome.err
    assert content(moved) == before


@pytest.mark.parametrize("more", [["--seeds", "1"], ["--outdir", "x"], ["--frames", "3"], ["--trunc", "0.5"]])
def test_a_sequence_that_is_resumed_takes_no_other_settings(command: Command, tmp_path: Path, more: list[str]) -> None:
    outcome = command("render", "--resume", tmp_path / "path.manifest.json", *more)
    assert f"{more[0]} cannot be given with it" in outcome.sentence


def test_a_pipe_or_a_missing_file_in_place_of_a_manifest_is_refused_at_once(command: Command, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "path.manifest.json")
    assert "pipe" in command("render", "--resume", tmp_path / "path.manifest.json").sentence
    assert "cannot be opened" in command("render", "--resume", tmp_path / "other.manifest.json").sentence


def test_a_pipe_in_the_manifests_place_is_refused_at_once(command: Command, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "path.manifest.json")
    outcome = command("render", "--seeds", "1-3", "--path", "cubic", "--outdir", tmp_path)
    assert outcome.status == 2
    assert "path.manifest.json cannot be written, since it is a folder, a pipe or a device" in outcome.err


def test_without_a_folder_nothing_is_rendered(command: Command) -> None:
    assert "--outdir" in command("render", "--seeds", "1").sentence


class LeavingReader(io.StringIO):
    """A pipe whose reader leaves when it has read a word."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self._word = word
        self._has_left = False

    def flush(self) -> None:
        if self._has_left:
            raise BrokenPipeError(32, "Broken pipe")
        self._has_left = self._word in self.getvalue()


@pytest.mark.parametrize(
    ("word", "status", "state"),
    [(" of 8", 141, "unfinished"), ("8 of 8", 0, "complete"), ("described", 0, "complete")],
)
def test_the_exit_status_says_whether_all_frames_are_there_when_the_reader_leaves(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, status: int, state: str
) -> None:
    monkeypatch.setattr(sys, "stderr", LeavingReader(word))
    assert (
        command("render", "--seeds", "1,2", "--path", "linear", "--frames", "7", "--outdir", tmp_path).status == status
    )
    assert json.loads((tmp_path / "path.manifest.json").read_text())["state"] == state
    assert len(list(tmp_path.glob("path_*.png"))) == 8 or status == 141


def test_single_pictures_are_done_or_not_when_the_reader_leaves(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, (word, status) in enumerate((("(1 of 3)", 141), ("(3 of 3)", 0), ("3 pictures", 0))):
        folder = tmp_path / str(number)
        monkeypatch.setattr(sys, "stderr", LeavingReader(word))
        assert command("render", "--seeds", "1-3", "--outdir", folder).status == status, word
        # What waited for an encoder when the reader left is dropped whole; if all did, there is no folder either.
        names = sorted(path.name for path in folder.glob("*"))
        assert names == [f"seed{seed:04d}.png" for seed in range(1, 1 + len(names))]
        assert (len(names) == 3) == (status == 0)


def test_frames_for_print_have_the_pixels_of_their_size_and_say_their_resolution(
    command: Command, tmp_path: Path
) -> None:
    words = ["--seeds", "1,2", "--path", "linear", "--frames", "1", "--size", "10x20mm", "--background", "#102030"]
    assert command("render", *words, "--outdir", tmp_path).status == 0
    with Image.open(tmp_path / "path_00001.png") as picture:
        assert picture.size == (118, 236)
        assert picture.info["dpi"] == pytest.approx((300, 300), abs=0.01)
    files = json.loads((tmp_path / "path.manifest.json").read_text())["files"]
    assert (files["size"], files["dpi"], files["background"]) == ([118, 236], 300, "#102030")
    assert command("render", "--resume", tmp_path / "path.manifest.json").status == 0
    other = command("render", *words, "--dpi", "150", "--outdir", tmp_path)
    assert other.status != 0
    assert "different sequence" in other.err


def test_another_video_of_the_name_is_refused_with_options_that_a_video_has(command: Command, tmp_path: Path) -> None:
    words = ("render", "--seeds", "1,2", "--path", "linear", "--video", tmp_path / "a.gif", "--frames")
    assert command(*words, "1").status == 0
    other = command(*words, "2")
    assert other.status == 2
    assert "choose another file for --video, or replace it with --overwrite" in other.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--size", "210x297mm", "--video", "a.gif"), "in pixels"),
        (("--dpi", "300", "--video", "a.gif"), "belong to pictures"),
        (("--size", "xmm"), "210x297mm"),
        (("--size", "9000x9000mm"), "a side has 1 to"),
        (("--background", "plaid"), "a background is white"),
        (("--dpi", "20000"), "pixels an inch"),
    ],
)
def test_options_of_print_that_make_no_sense_are_refused(
    command: Command, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    target = () if "--video" in words else ("--outdir", tmp_path)
    outcome = command("render", "--seeds", "1,2", "--path", "linear", *words, *target)
    assert outcome.status == 2
    assert told in outcome.err


def test_a_grid_of_more_pictures_than_fit_becomes_several_sheets_for_print(command: Command, tmp_path: Path) -> None:
    words = ["--seeds", "0-4", "--size", "48x32", "--dpi", "300", "--outdir", tmp_path / "out"]
    outcome = command("render", *words, "--sheet", tmp_path / "all.png", "--grid", "2x2")
    assert outcome.status == 0
    assert sorted(path.name for path in tmp_path.glob("all*")) == ["all_1.png", "all_2.png"]
    with Image.open(tmp_path / "all_1.png") as sheet:
        assert sheet.size == (3 * 4 + 2 * 48, 3 * 4 + 2 * 32)
        assert sheet.info["dpi"] == pytest.approx((300, 300), abs=0.01)
    alone = command("render", *words, "--grid", "2x2")
    assert alone.status == 2
    assert "give --sheet too" in alone.err
