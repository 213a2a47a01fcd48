"""The memory of this process, as the system counts it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from gpu_backend import process_memory, process_nbytes


def test_memory_that_is_used_counts() -> None:
    before = process_nbytes()
    assert before > 10_000_000, "an interpreter with NumPy"
    block = np.ones(64 << 20, np.uint8)
    assert process_nbytes() - before > 48 << 20
    del block


def test_where_the_system_does_not_tell_it_is_zero(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(process_memory, "_STATM", tmp_path / "none")
    assert process_nbytes() == 0
