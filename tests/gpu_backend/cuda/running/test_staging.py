from __future__ import annotations

import numpy as np
import pytest

from gpu_backend.cuda.running.staging import Copy, HeldInputs
from gpu_backend.cuda.schedule import Region

_REGIONS = (
    Region("late", (4,), "float32", "input", 1024),
    Region("ws", (2, 8), "float32", "input", 0),
    Region("noise_gain", (3,), "float32", "input", 256),
    Region("between", (8,), "float32", "scratch", 512),
)


@pytest.fixture
def held() -> HeldInputs:
    return HeldInputs(_REGIONS)


def test_everything_goes_over_at_the_beginning_a_copy_for_each_stretch(held: HeldInputs) -> None:
    assert held.copies() == (Copy(0, 0, 268), Copy(512, 1024, 16))
    assert held.nbytes == 528
    held.sent()
    assert held.copies() == ()


def test_an_input_may_start_with_something_else_than_zeros() -> None:
    held = HeldInputs(_REGIONS, {"late": np.arange(4, dtype=np.float32)})
    assert held.memory[512:528].view(np.float32).tolist() == [0, 1, 2, 3]
    assert not held.memory[:64].any()


def test_staged_ranges_are_copied_once_with_the_gaps_between(held: HeldInputs) -> None:
    held.sent()
    held.take({"noise_gain": np.full(3, 2, np.float32)})
    assert held.copies() == (Copy(256, 256, 12),)
    held.take({"ws": np.ones((2, 8), np.float32)})
    assert held.copies() == (Copy(0, 0, 268),)
    held.sent()
    assert held.copies() == ()


def test_bytes_are_held_where_the_copies_say(held: HeldInputs) -> None:
    assert np.array_equal(held.memory[256:268].view(np.float32), np.ones(3, np.float32))
    held.take({"late": np.arange(4, dtype=np.float64), "ws": np.arange(8, dtype=np.float32)})
    assert np.array_equal(held.memory[512:528].view(np.float32), np.arange(4))
    assert np.array_equal(held.memory[:64].view(np.float32), np.tile(np.arange(8), 2))


def test_nothing_is_taken_if_anything_does_not_fit(held: HeldInputs) -> None:
    held.sent()
    with pytest.raises(ValueError, match="must have the shape"):
        held.take({"ws": np.ones((2, 8)), "late": np.ones(5)})
    assert held.copies() == ()
    assert not held.memory[:64].any()
