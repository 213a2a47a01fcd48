"""What can be told of a step, and the CSV of it."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from explorer_app.rendering.frame_statistics import StepCost
from explorer_app.window.performance.step_columns import (
    COLUMNS,
    KEYS,
    amount,
    columns_for,
    known_keys,
    microseconds,
    roofline_share,
    tooltip,
)
from explorer_app.window.performance.step_csv import step_csv
from tests.helpers.kernel_costs import COUNTERS, REASON, ROOFLINE, costs

CPU_STEP = StepCost("synthesis.b8.conv0", "modulated_conv", 900.0, 1.0, 90_000_000, 1_000_000)


def texts(step: StepCost) -> dict[str, str]:
    return {column.key: column.text(column.value(step, ROOFLINE)) for column in columns_for([step])}


def test_the_details_of_a_kernel_are_complete() -> None:
    shown = texts(costs()[0])  # 8 GFLOP and 4 MB in 20 us
    assert shown == {
        "layer": "b4.conv1",
        "kernel": "mod_conv",
        "state": "fused",
        "time": "20.0",
        "share": "5 %",
        "occupancy": "50 %",
        "achieved": "46 %",
        "limit": "regs",
        "registers": "96",
        "shared": "96.0",
        "spills": "0",
        "grid": "64 × 8",
        "block": "128",
        "waves": "1.94",
        "bandwidth": "200",
        "compute": "400",
        "roofline": "50 %",
        "sm": "72 %",
        "dram": "8 %",
        "loads": "4.0",
        "stores": "16.0",
    }


def test_hardware_counters_are_columns_once_they_are_measured() -> None:
    known = costs()[0].facts
    assert known is not None
    step = replace(costs()[0], facts=replace(known, counters=None))
    counters = replace(COUNTERS, load_sectors=None)
    counted = replace(step, facts=replace(known, counters=counters, limits=("registers", "shared memory")))
    columns = {"achieved", "sm", "dram", "loads", "stores"}
    assert not columns & known_keys([step], ROOFLINE)
    assert known_keys([step, counted], ROOFLINE) - known_keys([step], ROOFLINE) == columns - {"loads"}
    shown = texts(counted)
    assert (shown["achieved"], shown["loads"]) == ("46 %", "–")
    assert shown["limit"] == "regs smem"
    assert "SM throughput: 72 %" in tooltip(counted, COLUMNS, ROOFLINE)
    (row,) = csv.DictReader(io.StringIO(step_csv([counted], ROOFLINE)))
    assert (row["occupancy_limit"], row["sm_share"]) == ("registers, shared memory", "0.72")


@pytest.mark.parametrize(
    ("flops", "nbytes", "share"),
    [(8_000_000_000, 0, 0.5), (0, 40_000_000, 0.5), (8_000_000_000, 80_000_000, 1.0), (0, 0, 0.0)],
)
def test_the_roofline_is_the_longer_of_operations_and_bytes(flops: int, nbytes: int, share: float) -> None:
    step = replace(costs()[0], flops=flops, nbytes=nbytes)
    assert roofline_share(step, ROOFLINE) == pytest.approx(share)


def test_without_a_roofline_or_a_time_the_share_is_unknown() -> None:
    assert roofline_share(costs()[0], None) is None
    assert roofline_share(replace(costs()[0], time_us=0.0), ROOFLINE) is None


def test_on_the_processor_columns_of_kernels_do_not_exist_and_rates_are_smaller() -> None:
    assert known_keys([CPU_STEP], None) == {"layer", "kernel", "time", "share", "bandwidth", "compute"}
    compute = columns_for([CPU_STEP])[KEYS.index("compute")]
    assert (compute.title, compute.text(compute.value(CPU_STEP, None))) == ("GF/s", "100")


def test_a_step_without_operations_has_a_dash_for_its_rate() -> None:
    assert texts(replace(costs()[0], flops=0))["compute"] == "–"


def test_a_small_value_is_never_shown_as_zero() -> None:
    small = replace(costs()[0], kernel="modulated_up_conv", flops=192, nbytes=768)
    small = replace(small, time_us=1.73, facts=replace(small.facts, waves=0.001) if small.facts else None)
    shown = [column.text(column.value(small, ROOFLINE)) for column in COLUMNS]
    told = [shown[KEYS.index(key)] for key in ("kernel", "waves", "compute", "roofline")]
    assert told == ["up_conv", "<0.01", "<0.01", "<1 %"]
    assert "Operations: 192\nBytes: 768 B\n" in tooltip(small, COLUMNS, ROOFLINE)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 "), (999, "999 "), (999.6, "1.00 k"), (49_408, "49.4 k"), (301_989_888, "302 M"), (4.198e12, "4.20 T")],
)
def test_amounts_have_three_figures_and_a_prefix(value: float, text: str) -> None:
    assert amount(value) == text


def test_every_column_explains_itself_in_a_sentence() -> None:
    for column in COLUMNS:
        assert column.tip.endswith(".")
    assert len({column.key for column in COLUMNS}) == len(COLUMNS)
    assert sorted(column.rank for column in COLUMNS) == list(range(len(COLUMNS)))


def test_the_tooltip_says_all_and_why_a_kernel_fell_back() -> None:
    told = tooltip(costs(fallback=0)[0], COLUMNS, ROOFLINE)
    lines = told.splitlines()
    assert lines[:2] == ["synthesis.b4.conv1 · modulated_conv", f"fallback: {REASON}"]
    for words in ("Time: 20.0 µs", "Shared memory: 96.0 KiB", "Grid: 64 × 8", "At best: 10.0 µs", "Roofline: 50 %"):
        assert words in lines


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.32, "0.32"),
        (9.994, "9.99"),
        (34.12, "34.1"),
        (312.4, "312"),
        (9_999.0, "9,999"),
        (12_400.0, "12.4k"),
        (204_475.0, "204k"),
        (999_600.0, "1M"),
        (2_350_100.0, "2.35M"),
    ],
)
def test_times_have_three_figures_or_more(value: float, text: str) -> None:
    assert microseconds(value) == text


def test_csv_has_all_columns_with_units_and_unrounded_numbers() -> None:
    rows = list(csv.DictReader(io.StringIO(step_csv(costs(fallback=1), ROOFLINE))))
    assert len(rows) == 6
    assert rows[0]["layer"] == "b4.conv1"
    assert float(rows[0]["time_us"]) == 20.0
    assert float(rows[0]["flop_per_s"]) == pytest.approx(4e14)
    assert (rows[0]["grid"], rows[0]["shared_bytes"], rows[0]["flops"]) == ("64x8x1", "98304", "8000000000")
    assert (rows[1]["state"], rows[1]["reason"]) == ("fallback", REASON)


def test_csv_of_the_processor_leaves_out_what_does_not_exist() -> None:
    heading = step_csv([CPU_STEP], None).splitlines()[0]
    assert heading == "layer,kernel,time_us,share,bytes_per_s,flop_per_s,flops,bytes"
