"""The table on the terminal holds everything, in columns."""

from dataclasses import replace

import pytest

from gpu_backend.bench.report import OURS, KernelCost, Report
from gpu_backend.bench.table import number, rate, size, table
from tests.gpu_backend.bench.made_up import RUN, made_up_report, measurement


def test_it_reports_all_there_is() -> None:
    text = table(made_up_report())
    for part in (
        "ffhq1024: 1024 x 1024, 30.0 M parameters",
        "NVIDIA H200, driver 580.95.05, torch 2.11.0",
        "commit 0123456789ab",
        "kernels, batch 8",
        "fallback: it differed from its reference",
        "copies 4000 GB/s",
        "p99 3.50 ms",
        "host time a frame: 0.090 ms",
        "25 kernels compiled on 16 threads in 6.50 s, found in the cache in 0.120 s",
        "skipped: compiled, fp16, batch 32: out of memory",
    ):
        assert part in text, text


def test_hardware_counters_stand_beside_the_occupancy_that_they_explain() -> None:
    lines = table(made_up_report()).splitlines()
    place = next(place for place, line in enumerate(lines) if line.startswith("layer"))
    head, styles = lines[place], lines[place + 1]
    assert "occupancy  limited by" in head
    assert head.split()[-7:] == ["achieved", "SM", "DRAM", "sectors/load", "sectors/store", "waves", "state"]
    assert "registers, warps" in styles
    assert styles.split()[-6:-2] == ["31.3%", "50.0%", "25.0%", "9.4"]
    assert len(head) == len(styles)


def test_rows_stand_in_columns_the_fastest_first_and_compare_with_ours() -> None:
    lines = table(made_up_report()).splitlines()
    head = next(line for line in lines if line.startswith("who"))
    first = lines[lines.index(head) + 1]
    assert first.split()[:3] == [OURS, "fp16", "1"]
    peer = next(line for line in lines if line.startswith("compiled"))
    assert peer.split()[-3:] == ["3.00", "x", "75%"]
    assert len(peer) == len(head)


def test_gains_are_explained_where_there_are_any() -> None:
    assert "gain: how many times as fast latentloom is" in table(made_up_report())
    assert "gain: " not in table(Report(RUN, (measurement(OURS, "fp16", 1, 1.0),)))


def test_a_column_that_nothing_was_measured_for_is_left_out() -> None:
    row = measurement(OURS, "fp16", 1, 1.0)
    for image_j, is_there in ((None, False), (0.25, True)):
        lines = table(Report(RUN, (replace(row, image_j=image_j),))).splitlines()
        head = next(line for line in lines if line.startswith("who"))
        assert ("J/image" in head) == is_there
        assert "gain" not in head


def test_memory_that_was_not_measured_is_not_compared() -> None:
    rows = (measurement(OURS, "fp16", 1, 1.0), replace(measurement("eager", "fp16", 1, 2.0), nbytes=None))
    report = Report(RUN, rows)
    assert (report.gain_over(rows[1]), report.memory_saved_over(rows[1])) == (2.0, None)
    assert (report.gain_over(rows[0]), report.memory_saved_over(rows[0])) == (None, None)


@pytest.mark.parametrize(("share", "says_why"), [(0.9, False), (2.4, True)])
def test_a_step_of_the_processor_above_its_roofline_is_explained(share: float, says_why: bool) -> None:
    cost = KernelCost(1, "synthesis.b64.conv1", "modulated_conv", 40.0, 0.3, 10**9, 10**6, share)
    text = table(Report(replace(RUN, device_kind="cpu", driver=""), (), kernels=(cost,)))
    assert ("Winograd" in text) == says_why


@pytest.mark.parametrize(
    ("device_ms", "cpu_ms", "is_told"), [(None, 160.0, False), (None, 40.0, True), (0.5, 0.1, False)]
)
def test_a_processor_that_others_used_too_is_reported(device_ms: float | None, cpu_ms: float, is_told: bool) -> None:
    (gesture, *_) = made_up_report().gestures
    gesture = replace(gesture, device_ms=device_ms, host_ms=85.0 if device_ms is None else 0.2, cpu_ms=cpu_ms)
    text = table(Report(RUN, (), gestures=(gesture,)))
    assert ("other programs" in text) == is_told


@pytest.mark.parametrize(("value", "text"), [(123.4, "123"), (12.34, "12.3"), (1.234, "1.23"), (0.1234, "0.123")])
def test_numbers_have_three_figures(value: float, text: str) -> None:
    assert number(value) == text


def test_sizes_have_units() -> None:
    assert (size(1_500_000_000), size(1_500_000)) == ("1.50 GB", "1.5 MB")
    assert (rate(7.7e14), rate(8.2e10)) == ("770 TFLOP/s", "82 GFLOP/s")
