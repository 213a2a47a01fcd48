"""Models that a worker keeps."""

import hashlib
import os
import time
from pathlib import Path

from explorer_app.farm import model_store
from explorer_app.farm.model_store import ModelStore


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
