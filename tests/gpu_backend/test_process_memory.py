"""The memory of this process, as the system counts it."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import pytest

from gpu_backend import process_memory, process_nbytes


def test_memory_that_is_used_counts() -> None:
    before = process_nbytes()
    assert before > 10_000_000, "an interpreter with NumPy"
    # Pages of its own: an allocator may give out memory that the process already holds.
    with mmap.mmap(-1, 64 << 20) as block:
        block.write(bytes(64 << 20))
        assert process_nbytes() - before > 48 << 20


def test_where_the_system_does_not_tell_it_is_zero(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(process_memory, "_STATM", tmp_path / "none")
    assert process_nbytes() == 0
