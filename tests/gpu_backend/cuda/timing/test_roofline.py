"""The best that a GPU can do: from its clocks, or as it was measured."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.timing.roofline import keep_measured_rates, measured_rates, theoretical_rates

H100 = Gpu(
    0,
    "NVIDIA H100 80GB HBM3",
    "sm_90",
    "sm_90a",
    80 << 30,
    132,
    232448,
    50 << 20,
    "GPU-1",
    clock_khz=1_830_000,
    memory_clock_khz=2_619_000,
    memory_bus_bits=5120,
)


def test_the_published_peaks_of_an_h100_come_out() -> None:
    assert theoretical_rates(H100, "fp16") == pytest.approx((3.35e12, 989e12), rel=0.01)
    assert theoretical_rates(H100, "fp32") == pytest.approx((3.35e12, 61.9e12), rel=0.01)


def test_products_of_tf32_have_half_the_rate_of_fp16_where_there_are_any() -> None:
    assert theoretical_rates(H100, "tf32") == pytest.approx((3.35e12, 494e12), rel=0.01)
    assert theoretical_rates(replace(H100, architecture="sm_75"), "tf32") is None


def test_a_product_of_bf16x3_costs_three_of_bf16() -> None:
    assert theoretical_rates(H100, "bf16x3") == pytest.approx((3.35e12, 330e12), rel=0.01)
    assert theoretical_rates(replace(H100, architecture="sm_75"), "bf16x3") is None


def test_a_geforce_card_has_half_the_rate() -> None:
    card = replace(H100, name="NVIDIA GeForce RTX 3090", architecture="sm_86", multiprocessors=82, clock_khz=1_695_000)
    found = theoretical_rates(card, "fp16")
    assert found is not None
    assert found[1] == pytest.approx(71e12, rel=0.01)


@pytest.mark.parametrize("change", [{"clock_khz": 0}, {"memory_clock_khz": 0}, {"architecture": "sm_999"}])
def test_unknown_values_stay_unknown(change: dict[str, Any]) -> None:
    assert theoretical_rates(replace(H100, **change), "fp16") is None


def test_measured_limits_are_kept_per_gpu(tmp_path: Path) -> None:
    assert measured_rates(H100, "fp16", tmp_path / "new") is None
    keep_measured_rates(H100, 4.1e12, {"fp16": 7.7e14, "bf16": 7.8e14}, tmp_path / "new")
    assert measured_rates(H100, "fp16", tmp_path / "new") == (4.1e12, 7.7e14)
    assert measured_rates(H100, "fp32", tmp_path / "new") is None
    assert measured_rates(replace(H100, uuid="GPU-2"), "fp16", tmp_path / "new") is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"format": 0}',
        b'{"format": 1, "copy_bytes_per_s": "x", "flop_per_s": {"fp16": 1}}',
        b'{"format": 1, "copy_bytes_per_s": 1, "flop_per_s": {"fp16": NaN}}',
        b'{"format": 1, "copy_bytes_per_s": 1, "flop_per_s": [1]}',
        b"[" * 100_000,
    ],
)
def test_a_file_that_is_not_whole_counts_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "GPU-1.json").write_bytes(content)
    assert measured_rates(H100, "fp16", tmp_path) is None


def test_a_folder_that_takes_no_files_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    keep_measured_rates(H100, 1.0, {"fp16": 1.0}, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b""
    assert measured_rates(H100, "fp16", tmp_path / "file") is None
