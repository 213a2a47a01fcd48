"""Files with small random damage are read or refused with a sentence, and nothing else comes of them.

``MUTATIONS=58000`` tries so many of each format; the seed is fixed.
"""

from __future__ import annotations

import json
import os
import random
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.manifest import manifest_bytes, manifest_of
from explorer_app.exporting.picture import read_picture, write_picture
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.messages import MessageLog
from explorer_app.session.history import KeptSession
from explorer_app.session.model_places import ModelPlaces
from explorer_app.session.resolve import resolve
from explorer_app.session.session import ModelReference, Session
from explorer_app.session.storage import file_of_bytes, save_session
from explorer_app.settings import Settings
from gpu_backend import (
    LoomError,
    NamedDirections,
    RowRange,
    read_directions,
    read_latent,
    stored_latent,
    write_directions,
    write_latent,
)
from gpu_backend.model.class_names import read_class_names
from tests.helpers.fake_engine import fake_frame

COUNT = int(os.environ.get("MUTATIONS", "60"))
ID = "ab" * 32
SESSION = Session(ModelReference("", "m", ID))
PIECES = (
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b'"',
    b"null",
    b"true",
    b"-1",
    b"1e999",
    b"NaN",
    b"9" * 400,
    b"\\ud800",
    b"\0",
    b"\xff",
)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return bytes with one to three kinds of damage."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(changed) + 1)
        match chance.randrange(6):
            case 0:
                del changed[place:]
            case 1:
                changed[place:place] = chance.choice(PIECES)
            case 2:
                changed[place : place + chance.randint(1, 20)] = chance.choice(PIECES)
            case 3:
                changed[place:place] = changed[place : place + chance.randint(1, 200)]
            case 4:
                del changed[place : place + chance.randint(1, 20)]
            case _ if changed:
                changed[place % len(changed)] ^= 1 << chance.randrange(8)
            case _:
                pass
    return bytes(changed)


def session_file(folder: Path) -> Path:
    kept = (KeptSession(SESSION, "kept", 1.0),)
    save_session(folder / "a.loom", SESSION, kept, ((SESSION, "Open"),), 0)
    return folder / "a.loom"


def session_json(folder: Path) -> Path:
    import zipfile

    with zipfile.ZipFile(session_file(folder)) as archive:
        (folder / "b.loom").write_bytes(archive.read("session.json"))
    return folder / "b.loom"


def picture(suffix: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        frame = fake_frame(resolve(SESSION))
        values = np.zeros((frame.height, frame.width, 3), np.float32)
        path = folder / f"a.{suffix}"
        write_picture(path, replace(frame, image=values), model_name="m", session=SESSION)
        return path

    return write


def manifest(folder: Path) -> Path:
    key = Keyframe.of(resolve(SESSION))
    settings = SequenceSettings((key, key), folder, "walk", SESSION.model, "w-linear", 4, z_dim=8)
    (folder / "walk.manifest.json").write_bytes(manifest_bytes(settings, "unfinished", None))
    return folder / "walk.manifest.json"


def preferences(folder: Path) -> Path:
    settings = Settings(folder / "settings.json", MessageLog())
    settings.change(last_model="m", choices={"a": "b"}, layouts={"explore": "AAAA"}, drift_speed=1.0)
    settings.save()
    return folder / "settings.json"


def places(folder: Path) -> Path:
    ModelPlaces(folder / "models.json").remember(ID, folder / "m.pkl")
    return folder / "models.json"


def labels(folder: Path) -> Path:
    (folder / "a.labels.txt").write_text("{0: 'tench, Tinca tinca',\n 1: \"goldfish\",\n 2: 'great white shark'}\n")
    return folder / "a.labels.txt"


def labels_json(folder: Path) -> Path:
    (folder / "a.labels.json").write_text(json.dumps({"0": ["n01440764", "tench"], "1": ["n1", "b"], "2": ["n2", "c"]}))
    return folder / "a.labels.json"


def latent(suffix: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        write_latent(folder / f"w.{suffix}", stored_latent(np.ones((2, 4), np.float32)))
        return folder / f"w.{suffix}"

    return write


def directions(folder: Path) -> Path:
    found = NamedDirections(
        ("world/a",), np.ones((1, 4), np.float32), (RowRange(0, 1),), (1.0,), (0.0,), ({"reach": 1.0},)
    )
    write_directions(found, folder / "a.directions.safetensors", ID)
    return folder / "a.directions.safetensors"


def read_settings(path: Path) -> object:
    return Settings(path, MessageLog()).values


def read_places(path: Path) -> object:
    return ModelPlaces(path).find(SESSION.model)


CASES: dict[str, tuple[Callable[[Path], Path], Callable[[Path], object]]] = {
    "session": (session_file, lambda path: file_of_bytes(path.read_bytes(), path.name)),
    "session in JSON": (session_json, lambda path: file_of_bytes(path.read_bytes(), path.name)),
    **{suffix: (picture(suffix), read_picture) for suffix in ("png", "jpg", "webp", "tif", "exr")},
    "manifest": (manifest, lambda path: manifest_of(path.read_bytes(), path)),
    "preferences": (preferences, read_settings),
    "model places": (places, read_places),
    "labels": (labels, lambda path: read_class_names(path, 3)),
    "labels in JSON": (labels_json, lambda path: read_class_names(path, 3)),
    "npz": (latent("npz"), read_latent),
    "npy": (latent("npy"), read_latent),
    "pt": (latent("pt"), read_latent),
    "directions": (directions, lambda path: read_directions(path, ID, 4, 2)),
}


@pytest.mark.parametrize("name", CASES)
def test_damaged_files_are_read_or_refused_with_a_sentence(name: str, tmp_path: Path) -> None:
    write, read = CASES[name]
    path = write(tmp_path)
    read(path)
    good = path.read_bytes()
    chance = random.Random(f"latentloom {name}")
    sentence, refused = ".", 0
    for number in range(COUNT):
        damaged = mutated(good, chance)
        path.write_bytes(damaged)
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Reading `.npy` or `.npz` file required", UserWarning)
                read(path)
        except LoomError as error:
            refused += 1
            sentence = error.sentence
        except Exception as error:
            raise AssertionError(f"mutation {number} of a {name}: {damaged[:2000]!r}") from error
        assert sentence.endswith(".")
        assert "\n" not in sentence
    assert refused or name in ("preferences", "model places")
