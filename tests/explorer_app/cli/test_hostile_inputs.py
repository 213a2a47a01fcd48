"""Inputs made to cost time or memory, and pipes in the place of files: each ends with a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.exporting.video.video_format import VideoFormat
from explorer_app.session.resolve import resolve
from explorer_app.session.session import ModelReference, Session
from gpu_backend import LoomError, NamedDirections, RowRange, write_directions
from gpu_backend.training.command import run_training
from gpu_backend.training.quality.feature_file import read_features
from gpu_backend.training.request import TrainRequest
from tests.helpers.command import Command

BUDGETS = """
import json, resource, struct, sys, zipfile, zlib
from pathlib import Path

from explorer_app.exporting.manifest import read_manifest
from explorer_app.exporting.picture import encode_picture, read_picture
from explorer_app.exporting.picture_document import PictureDocument
from explorer_app.messages import MessageLog
from explorer_app.session.model_places import ModelPlaces
from explorer_app.session.session import ModelReference, Session
from explorer_app.session.session_json import session_to_json
from explorer_app.session.storage import load_session_file
from explorer_app.settings import Settings
from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.exporting.video.video_format import VideoFormat
from explorer_app.session.resolve import resolve
from explorer_app.session.session import ModelReference, Session
from gpu_backend import LoomError, read_latent
from gpu_backend.model.class_names import read_class_names

folder = Path(sys.argv[1])
SEEDS = [[number, 1.0] for number in range(240_000)]
SESSION = session_to_json(Session())
SEQUENCE = {"format": "latent-loom-sequence", "version": 2, "name": "walk", "path": "w-linear", "loop": False,
            "frames_per_step": 2, "z_dim": 512, "model": {"name": "m", "sha256": "ab"}}

def picture(blend, is_compressed):
    text = json.dumps({"format": "latent-loom-picture", "version": 1, "request": {"model": "ab", "blend": blend},
                       "model": {"name": "m", "sha256": "ab"}}).encode()
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    text = zlib.compress(text) if is_compressed else text
    return (bytes.fromhex("89504e470d0a1a0a") + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
            + chunk(b"iTXt", b"latentloom" + bytes([0, is_compressed, 0, 0, 0]) + text)
            + chunk(b"IDAT", zlib.compress(bytes(4))) + chunk(b"IEND", b""))

def zipped(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("_", "."), data)

def array(type, shape, data=b""):
    head = f"{{'descr': '{type}', 'fortran_order': False, 'shape': {shape}, }}".ljust(118).encode()
    return b"\\x93NUMPY" + bytes([1, 0]) + struct.pack("<H", len(head)) + head + data

recipe = {"latent": {"point": SEEDS}, "psi": 1.0}
(folder / "seeds.png").write_bytes(picture([[recipe, 1.0]], 0))
(folder / "packed.png").write_bytes(picture([[recipe, 1.0]], 1))
recipes = [[{"latent": {"point": [[number, 1.0]]}, "psi": 1.0}, 1.0] for number in range(60_000)]
(folder / "recipes.png").write_bytes(picture(recipes, 1))
step = '["x",' + json.dumps(SESSION) + "],"
history = '"history": {"position": 0, "steps": [' + step * 120_000 + step[:-1] + "]}}"
(folder / "steps.loom").write_text(json.dumps(SESSION)[:-1] + "," + history)
(folder / "brackets.loom").write_text('{"x":[' + "[]," * 9_000_000 + "[]]}")
(folder / "nested.loom").write_text("[" * (8 << 20))
(folder / "long.loom").write_text('"' + "a" * (40 << 20) + '"')
zipped(folder / "bomb.loom", session_json=bytes(80 << 20))
zipped(folder / "latents.loom", session_json=json.dumps(SESSION), latents_safetensors=bytes(80 << 20))
for name, keys in (("many", "[" + '{"blend":[]},' * 4_000_000 + "{}]"), ("none", "[" * 1_000_000)):
    (folder / name).mkdir()
    text = json.dumps(SEQUENCE)[:-1] + ', "keys": ' + keys + "}"
    (folder / name / "walk.manifest.json").write_text(text)
line = "n0 " + "1, " * (1 << 20)
(folder / "line.txt").write_text(line)
(folder / "lines.txt").write_text("1: a\\n" * 700_000)
(folder / "quotes.txt").write_text("{'" * (1 << 21))
(folder / "digits.json").write_text("[" + "9" * (3 << 20) + "]")
(folder / "huge.npy").write_bytes(array("<f4", (100_000, 100_000)))
(folder / "objects.npy").write_bytes(array("|O", (1,), b"\\x80\\x04K\\x01."))
(folder / "deep.npy").write_bytes(array("<f4", "(" * 60))
zipped(folder / "bomb.npz", w_npy=array("<f4", (1, 20_000_000)) + bytes(80 << 20))
zipped(folder / "bomb.pt", **{"archive/data_pkl": bytes(80 << 20)})
(folder / "settings.json").write_text("[" * (5 << 20))
(folder / "models.json").write_text('{"places": {' + "[" * (3 << 20))

resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))  # hundreds of times of what is needed; a quadratic reader takes hours
readers = {".png": read_picture, ".loom": load_session_file, ".txt": lambda path: read_class_names(path, 3),
           ".npy": read_latent, ".npz": read_latent, ".pt": read_latent}
for path in sorted(folder.rglob("*.*")):
    read = read_manifest if path.name.endswith("manifest.json") else readers.get(path.suffix)
    if path.name == "digits.json":
        read = readers[".txt"]
    if read is None:
        continue
    try:
        read(path)
    except LoomError as error:
        assert error.sentence.endswith(".") and len(error.sentence) < 400, error.sentence
        print(path.name, error.sentence)
    else:
        raise AssertionError(f"{path} was read")
messages = MessageLog()
Settings(folder / "settings.json", messages)
assert [message.level.name for message in messages.messages] == ["WARNING"]
assert ModelPlaces(folder / "models.json").last_seen(ModelReference("", "", "ab")) == ""
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no resource limits for a process")
def test_inputs_made_to_cost_time_or_memory_are_refused_within_a_budget(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BUDGETS, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert done.stdout.count("\n") > 18


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_a_pipe_is_never_waited_for_where_training_reads(pipe: Path, tmp_path: Path) -> None:
    with pytest.raises(LoomError, match="but this is a folder, a pipe or a device"):
        read_features(pipe)
    with pytest.raises(LoomError, match="is a pipe or a device"):
        run_training(TrainRequest(tmp_path / "out", {"data": str(pipe)}), lambda _: None, lambda _: None)
    assert not (tmp_path / "out").exists()


def test_missing_pictures_are_reported_before_torch_is_loaded(tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(LoomError, match=r"there is no .*missing\."):
        run_training(TrainRequest(tmp_path, {"data": str(tmp_path / "missing")}), said.append, lambda _: None)
    assert said == []


def test_a_pipe_is_not_replaced_by_what_is_written(command: Command, networks: Path, pipe: Path) -> None:
    sheet = pipe.rename(pipe.with_suffix(".jpg"))
    words: tuple[str | Path, ...] = ("render", "--seeds", "1", "--outdir", pipe.parent / "out", "--sheet", sheet)
    assert "is a folder, a pipe or a device" in command(*words).sentence
    video = sheet.rename(pipe.with_suffix(".gif"))
    words = ("render", "--seeds", "1,2", "--path", "linear", "--network", "missing.pkl", "--video", video)
    assert "is a folder, a pipe or a device" in command(*words).sentence
    target = video.rename(pipe.with_suffix(".safetensors"))
    words = ("convert", networks / "plain.safetensors", target, "--overwrite")
    assert "is a folder, a pipe or a device" in command(*words).sentence
    found = NamedDirections(
        ("world/a",), np.ones((1, 8), np.float32), (RowRange(0, 1),), (1.0,), (0.0,), ({"reach": 1.0},)
    )
    with pytest.raises(LoomError, match="there is a folder, a pipe or a device of that name"):
        write_directions(found, target, "ab" * 32)
    assert target.is_fifo()


def test_an_export_of_the_window_does_not_wait_for_a_pipe_in_the_place_of_its_video(pipe: Path) -> None:
    target = pipe.rename(pipe.with_name("walk.gif"))
    key = Keyframe.of(resolve(Session()))
    model = ModelReference("", "m", "ab" * 32)
    job = SequenceJob(
        SequenceSettings((key, key), target.parent, "walk", model, "w-linear", 2, z_dim=8, video=VideoFormat("gif"))
    )
    job.start()
    with pytest.raises(LoomError, match="should be a file, but is a folder, a pipe or a device"):
        job.wait()
    assert job.join(30)
