"""What is cached beside the program is data of any origin: a damaged or odd file counts as none."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from gpu_backend.cuda.compiling import kernel_cache
from gpu_backend.cuda.compiling.kernel_cache import KernelCache
from gpu_backend.cuda.running.self_check import _read as read_verdicts
from gpu_backend.cuda.tiles.table import FORMAT, read_entries
from gpu_backend.cuda.timing import roofline
from gpu_backend.cuda.timing.roofline import measured_rates
from gpu_backend.cuda.tuning.timings import read_timings, save_timings
from gpu_backend.ops.kernels.conv_tile import ConvShape, ConvTile
from tests.helpers.fake_gpu import FAKE_GPU

SHAPE = ConvShape("conv", 64, 512, 512, 1)
TILE = ConvTile(8, 16, 64, 32, 3, 2, 2)
HUGE = "1" + "0" * 400
"""A whole number that no float holds."""

READERS: dict[str, Callable[[Path], object]] = {
    "tiles": read_entries,
    "timings": read_timings,
    "verdicts": read_verdicts,
    "rates": lambda path: measured_rates(FAKE_GPU, "fp32", path.parent),
    "kernel": lambda path: KernelCache(path.parent).read("k"),
    "failure": lambda path: KernelCache(path.parent).failure("k"),
}


def place(name: str, folder: Path) -> Path:
    """Return the path that a cache reads in a folder."""
    if name == "rates":
        return roofline._path(FAKE_GPU, folder)
    return folder / {"kernel": "k.kernel", "failure": "k.failure"}.get(name, f"{name}.json")


def kernel(facts: str) -> bytes:
    """Return the file of a kernel whose checksum is right."""
    body = facts.encode() + b"\ncubin"
    return kernel_cache._MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("name", READERS)
def test_a_pipe_in_place_of_a_cached_file_is_not_waited_for(name: str, tmp_path: Path) -> None:
    os.mkfifo(place(name, tmp_path))
    assert not READERS[name](place(name, tmp_path))


def test_numbers_that_no_float_holds_count_as_damage(tmp_path: Path) -> None:
    path = tmp_path / "timings.jsonl"
    save_timings(path, {SHAPE: {TILE: 1.25}})
    assert read_timings(path) == {SHAPE: {TILE: 1.25}}
    path.write_text(path.read_text().replace("1.25", HUGE))
    assert read_timings(path) == {}
    entry = {"shape": asdict(SHAPE), "tile": asdict(TILE), "time_us": 1.25}
    path.write_text(json.dumps({"format": FORMAT, "tiles": [entry]}))
    assert len(read_entries(path)) == 1
    path.write_text(path.read_text().replace("1.25", HUGE))
    assert read_entries(path) == {}
    rates = place("rates", tmp_path)
    rates.write_text(f'{{"format": 1, "copy_bytes_per_s": {HUGE}, "flop_per_s": {{"fp32": 1.0}}}}')
    assert measured_rates(FAKE_GPU, "fp32", tmp_path) is None


@pytest.mark.parametrize(
    "facts", ["[" * 100_000, json.dumps({"key": "k"} | dict.fromkeys(kernel_cache._FIELDS, 1e999))]
)
def test_a_kernel_with_facts_that_cannot_be_read_counts_as_missing(facts: str, tmp_path: Path) -> None:
    place("kernel", tmp_path).write_bytes(kernel(facts))
    assert KernelCache(tmp_path).read("k") is None
