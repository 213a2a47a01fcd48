"""Folders in sentences; and no file that a person may hand on names a folder of that person."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from explorer_app.cli.path_text import folder_text, without_home
from explorer_app.exporting.chrome_trace import TracedFrame, write_trace
from explorer_app.session.history import KeptSession
from explorer_app.session.session import ModelReference, Session
from explorer_app.session.storage import save_session
from explorer_app.window.performance.step_csv import step_csv
from gpu_backend import FrameTimings, inspect_model, stored_latent, write_latent
from tests.helpers.command import Command
from tests.helpers.kernel_costs import costs, gpu_steps

HOME = "home-of-ada"


def contents(path: Path) -> list[bytes]:
    """Return the bytes of a file, and of what is in it if it is a zip."""
    data = path.read_bytes()
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return [data]
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [data, *(archive.read(name) for name in archive.namelist())]


def test_no_file_that_is_handed_on_names_the_folder_of_its_model(
    command: Command, networks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / HOME
    out = home / "out"
    out.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    network = home / "plain.safetensors"
    network.write_bytes((networks / "plain.safetensors").read_bytes())
    facts = inspect_model(network)
    session = Session(model=ModelReference(str(network), facts.name, facts.model_id))
    save_session(out / "mine.loom", session, (KeptSession(session, "kept"),), ((session, "Open"),), 0)
    pictures = ("render", "--network", network, "--seeds", "1,2", "--outdir")
    sequence = ("render", "--from", out / "stills" / "seed0001.png", out / "mine.loom", "--network", network)
    for words in (
        (*pictures, out / "stills", "--sheet", out / "sheet.jpg"),
        (*pictures, out / "path", "--path", "cubic", "--frames", "1"),
        (*sequence, "--outdir", out / "from", "--path", "linear", "--frames", "1"),
        ("convert", network, out / "converted.safetensors"),
        ("directions", out / "converted.safetensors", "--method", "sefa"),
    ):
        assert command(*words).status == 0, words
    latent = stored_latent(np.ones((4, 8), np.float32))
    for suffix in ("npz", "npy", "pt"):
        write_latent(out / f"w.{suffix}", latent)
    timings = FrameTimings(1.0, 0.5, 0.5, gpu_steps(3))
    write_trace(out / "trace.json", [TracedFrame(1.0, 16, 16, False, timings)], "CPU")
    (out / "steps.csv").write_text(step_csv(costs(), None))
    written = sorted(path for path in out.rglob("*") if path.is_file())
    assert {path.suffix for path in written} >= {
        ".png",
        ".jpg",
        ".json",
        ".loom",
        ".safetensors",
        ".csv",
        ".npz",
        ".pt",
    }
    for path in written:
        for data in contents(path):
            for encoding in ("utf-8", "utf-16-le"):
                assert HOME.encode(encoding) not in data, path
                assert str(tmp_path).encode(encoding) not in data, path


@pytest.mark.parametrize(
    ("folder", "text"),
    [
        ("", f".{os.sep}"),
        ("..", f"..{os.sep}"),
        (os.sep, os.sep),
        ("out", "out"),
        ("../out", os.path.join("..", "out")),
    ],
)
def test_a_folder_never_reads_as_the_full_stop(folder: str, text: str) -> None:
    assert folder_text(Path(folder)) == text


def test_the_home_folder_is_a_tilde_unless_it_is_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    for home, text in ((f"{os.sep}home{os.sep}ada", f"~{os.sep}out"), (os.sep, f"{os.sep}home{os.sep}ada{os.sep}out")):
        monkeypatch.setattr(Path, "home", lambda home=home: Path(home))
        assert without_home(f"{os.sep}home{os.sep}ada{os.sep}out") == text
