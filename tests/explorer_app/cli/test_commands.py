import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from explorer_app.audio.decoding import sound_facts
from explorer_app.cli import demo, inspection
from explorer_app.cli.main import COMMANDS
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.session.storage import load_session, save_session
from explorer_app.version import __version__
from gpu_backend import Noise, read_model
from tests.helpers.command import Command
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan1_file import write_stylegan1
from tests.helpers.stylegan1_names import tensorflow1_variables


def test_inspect_says_what_a_file_holds(command: Command, networks: Path) -> None:
    path = networks / "labelled.safetensors"
    outcome = command("inspect", path)
    assert (outcome.status, outcome.err) == (0, "")
    facts = read_model(path).facts
    for text in (facts.model_id, facts.family, "16 x 16", f"{facts.num_ws} w rows", f"{facts.parameters:,}"):
        assert text in outcome.out


def test_inspect_lets_nothing_from_the_file_steer_the_terminal(
    command: Command, networks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = read_model(networks / "plain.safetensors").facts
    hostile = replace(facts, names_requested=("os \x1b[2Jsystem", "na\udcffme \u202e"))
    monkeypatch.setattr(inspection, "inspect_model", lambda path: hostile)
    out = command("inspect", "any").out
    assert "os \\x1b[2Jsystem" in out
    assert all(letter.isprintable() or letter == "\n" for letter in out)


def test_inspect_gives_json_to_other_programs(command: Command, networks: Path) -> None:
    outcome = command("inspect", networks / "plain.safetensors", "--json")
    facts = json.loads(outcome.out)
    assert facts["model_id"] == read_model(networks / "plain.safetensors").facts.model_id
    assert facts["resolution"] == 16
    assert facts["names_requested"] == []


def test_inspect_of_something_else_is_one_sentence(command: Command, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a model")
    for path in (tmp_path / "notes.txt", tmp_path, tmp_path / "missing.pkl"):
        assert command("inspect", path).sentence


def test_inspect_reports_what_came_to_light_of_a_file_that_is_not_opened(command: Command, tmp_path: Path) -> None:
    made = make_stylegan1()
    tensors = {**tensorflow1_variables(made), "synthesis/lod": np.array(1.5, np.float32)}
    path = write_stylegan1(tmp_path / "old.pkl", made, tensors=tensors)
    outcome = command("inspect", path)
    assert "stored before it was" in outcome.sentence
    for line in (
        f"File: {path}",
        "Level of detail: 1.5 halvings left",
        "  dnnlib.tflib.network Network",
    ):
        assert line in outcome.out.splitlines()
    assert command("inspect", path, "--json").out == ""


def test_convert_keeps_every_weight(command: Command, networks: Path, tmp_path: Path) -> None:
    outcome = command("convert", networks / "plain.safetensors", tmp_path / "copy.safetensors")
    assert outcome.status == 0
    before, after = read_model(networks / "plain.safetensors"), read_model(tmp_path / "copy.safetensors")
    assert before.spec == after.spec
    assert before.weights.keys() == after.weights.keys()
    assert all(np.array_equal(before.weights[name], after.weights[name]) for name in before.weights)


def test_convert_to_half_makes_a_smaller_file(command: Command, networks: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "half.safetensors"
    assert command("convert", networks / "plain.safetensors", target, "--half").status == 0
    before, after = read_model(networks / "plain.safetensors"), read_model(target)
    assert target.stat().st_size < (networks / "plain.safetensors").stat().st_size
    assert all(np.allclose(before.weights[name], after.weights[name], rtol=1e-3, atol=1e-3) for name in before.weights)


def test_convert_refuses_to_write_over_its_source_or_to_another_kind(
    command: Command, networks: Path, tmp_path: Path
) -> None:
    path = networks / "plain.safetensors"
    assert "choose another name" in command("convert", path, path).sentence
    assert "should end in .safetensors" in command("convert", path, tmp_path / "out.pkl").sentence
    assert "x.safetensors cannot be written" in command("convert", path, path / "x.safetensors").sentence


def test_convert_replaces_a_file_only_when_told_so(command: Command, networks: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.safetensors"
    target.write_bytes(b"dear to somebody")
    words = ("convert", networks / "plain.safetensors", target)
    sentence = command(*words).sentence
    assert "already exists" in sentence
    assert "--overwrite" in sentence
    assert target.read_bytes() == b"dear to somebody"
    assert command(*words, "--overwrite").status == 0
    assert read_model(target).spec == read_model(networks / "plain.safetensors").spec


def test_the_demo_is_a_piece_that_its_own_sound_moves_and_a_contact_sheet(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "SECONDS", 2)
    monkeypatch.setattr(demo, "FPS", 6)
    monkeypatch.setattr(demo, "has_video_extra", lambda: False)
    assert command("demo").status == 0
    folder = tmp_path / "latentloom-demo"
    session = load_session(folder / "demo.loom")
    assert {sound.path for sound in session.timeline.sounds} == {f"sounds/{n}.wav" for n in ("drums", "bass", "pad")}
    assert {patch.source for patch in session.patches} >= {"audio/pad/rms", "audio/drums/onset"}
    with Image.open(folder / "contact-sheet.png") as sheet, Image.open(folder / "demo-video.webp") as video:
        assert sheet.width > 4 * 256
        assert getattr(video, "n_frames", 1) == 12
    assert sound_facts(folder / "demo.wav").seconds == 2.0
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    again = command("demo")
    assert "12 of 12" not in again.err, "nothing is rendered twice"
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_the_demo_does_not_replace_a_picture_of_its_sheets_name(command: Command, tmp_path: Path) -> None:
    theirs = tmp_path / "contact-sheet.png"
    Image.new("RGB", (8, 8), "red").save(theirs)
    before = theirs.read_bytes()
    assert "Latent Loom did not save it; choose another --outdir" in command("demo", "--outdir", tmp_path).sentence
    assert theirs.read_bytes() == before
    assert list(tmp_path.iterdir()) == [theirs]


def test_the_demo_does_not_overwrite_an_edited_project(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered: list[SequenceSettings] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "SECONDS", 2)
    monkeypatch.setattr(demo, "has_video_extra", lambda: True)
    monkeypatch.setattr(demo, "render_sequence", lambda settings, *_: rendered.append(settings))
    monkeypatch.setattr(demo, "write_contact_sheet", lambda *_, **__: None)
    assert command("demo").status == 0
    assert command("demo").status == 0, "it is the demo as it was"
    project = tmp_path / "latentloom-demo" / "demo.loom"
    save_session(project, replace(load_session(project), noise=Noise("none")))
    edited = project.read_bytes()
    assert "was changed since; choose another folder with --outdir" in command("demo").sentence
    assert project.read_bytes() == edited
    assert len(rendered) == 4


def test_the_version_is_reported(command: Command) -> None:
    assert command("--version").out == f"Latent Loom {__version__}\n"


def test_help_names_the_commands(command: Command) -> None:
    text = command("--help").out
    for name in (*COMMANDS, "--device", "--version", "--log"):
        assert f" {name} " in text
    for name in ("render", "inspect", "convert", "demo"):
        outcome = command(name, "--help")
        assert outcome.status == 0
        assert outcome.out.startswith(f"usage: latentloom {name} ")


def test_a_file_that_is_not_there_is_reported_before_a_window_opens(command: Command, tmp_path: Path) -> None:
    sentence = command(tmp_path / "missing.pkl").sentence
    assert "there is no" in sentence
    assert "invert" in command("invert").sentence
    assert command("--surprise").status == 2


def test_without_a_display_the_window_is_not_tried(networks: Path) -> None:
    code = (
        "import os, sys; os.environ.pop('QT_QPA_PLATFORM', None); from explorer_app.cli import main\n"
        "status = main(sys.argv[1:]); assert 'PySide6' not in sys.modules; sys.exit(status)\n"
    )
    done = run_fresh(code, networks / "plain.safetensors")
    if sys.platform.startswith("linux"):
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith("latentloom: There is no display to open a window on; render without one: ")


def test_the_package_runs_as_a_module(networks: Path) -> None:
    done = run_fresh("import runpy; runpy.run_module('explorer_app', run_name='__main__')", "--version")
    assert (done.returncode, done.stdout) == (0, f"Latent Loom {__version__}\n"), done.stderr


def test_a_missing_bundled_model_is_one_sentence(command: Command, networks: Path, tmp_path: Path) -> None:
    bundled = networks / "bundled" / "models" / "plain.safetensors"
    bundled.unlink()
    assert "bundled model is missing" in command("render", "--seeds", "1", "--outdir", tmp_path).sentence


def run_fresh(code: str, *words: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={
            **{name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")},
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        },
    )


def test_a_reader_that_leaves_early_is_no_error(networks: Path) -> None:
    code = (
        "import os, sys; from explorer_app.cli import main\n"
        "readable, writable = os.pipe(); os.close(readable); os.dup2(writable, 1)\n"
        "sys.exit(main(['inspect', sys.argv[1]]))\n"
    )
    done = run_fresh(code, networks / "plain.safetensors")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "words",
    [
        ("demo", "--outdir", "n" * 300),
        ("convert", "missing.pkl", f"{'n' * 300}.safetensors"),
        ("convert", "missing.pkl", f"file/{'n'}.safetensors"),
    ],
)
def test_a_target_that_cannot_be_written_is_refused_before_work_begins(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    assert "cannot be written" in command(*words).sentence
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
