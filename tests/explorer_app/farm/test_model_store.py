"""Models that a worker keeps."""

import hashlib
import os
import time
from pathlib import Path

from explorer_app.farm import model_store
from explorer_app.farm.model_store import ModelStore
from gpu_backend import machine_tag
from tests.helpers.failing_disk import NO_PROCESS


def test_a_model_that_arrives_stays_when_the_clock_was_set_back(tmp_path: Path) -> None:
    store = ModelStore(tmp_path)
    later_s = time.time() + 5 * 3600.0
    ids = []
    for number in range(model_store._MAX_KEPT + 1):
        data = f"model {number}".encode()
        ids.append(hashlib.sha256(data).hexdigest())
        store.begin()
        store.add_piece(0, data)
        store.finish(ids[-1], ".safetensors")
        if number < model_store._MAX_KEPT:
            os.utime(tmp_path / f"{ids[-1]}.safetensors", (later_s + number, later_s + number))
    assert {path.stem for path in tmp_path.glob("*.safetensors")} == set(ids[1:])


def test_the_pieces_of_a_worker_that_was_killed_are_removed_by_the_next(tmp_path: Path) -> None:
    dead, other_machine = f".incoming-{machine_tag()}-{NO_PROCESS}", f".incoming-00000000-{NO_PROCESS}"
    alive = f".incoming-{machine_tag()}-{os.getppid()}"
    for name in (dead, other_machine, alive):
        (tmp_path / name).write_bytes(b"half a model")
    store = ModelStore(tmp_path)
    store.begin()
    store.add_piece(0, b"half")
    assert {path.name for path in tmp_path.iterdir()} == {
        other_machine,
        alive,
        f".incoming-{machine_tag()}-{os.getpid()}",
    }


def test_files_of_directions_are_bounded_and_drop_no_model(tmp_path: Path) -> None:
    model = tmp_path / f"{'ab' * 32}.safetensors"
    model.write_bytes(b"weights")
    os.utime(model, (1, 1))
    store = ModelStore(tmp_path)
    paths = []
    for number in range(model_store._MAX_KEPT + 2):
        paths.append(store.keep_directions("ab" * 32, b"directions %d" % number))
        os.utime(paths[-1], (number + 2, number + 2))
    assert set(tmp_path.iterdir()) == {model, *paths[2:]}


def test_a_model_is_kept_although_another_worker_deletes_an_older_one_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "gone.pkl").symlink_to(tmp_path / "nowhere.pkl")  # in the folder's list, but without a time
    store = ModelStore(tmp_path)
    data = b"weights"
    store.add_piece(0, data)
    store.finish(hashlib.sha256(data).hexdigest(), ".pkl")
    assert (tmp_path / f"{hashlib.sha256(data).hexdigest()}.pkl").read_bytes() == data
