import argparse
import contextlib

import pytest
from hypothesis import given, strategies as st

from explorer_app.cli.arguments import (
    count,
    finite_number,
    grid,
    positive_count,
    priority,
    seconds,
    seed,
    seed_list,
)
from gpu_backend import SEED_COUNT
from tests.helpers.strategies import texts, tries


def test_seeds_are_numbers_and_ranges_with_both_ends() -> None:
    assert seed_list("1,2,5-10") == (1, 2, 5, 6, 7, 8, 9, 10)
    assert seed_list(" 3 , 7 - 8 ") == (3, 7, 8)
    assert seed_list("9,1-2,1") == (9, 1, 2, 1)
    assert seed_list(f"{SEED_COUNT - 1}") == (SEED_COUNT - 1,)


@tries(40)
@given(st.lists(st.tuples(st.integers(0, SEED_COUNT - 60), st.integers(0, 50)), min_size=1, max_size=20))
def test_any_list_reads_back(ranges: list[tuple[int, int]]) -> None:
    text = ",".join(f"{first}-{first + more}" if more else str(first) for first, more in ranges)
    assert seed_list(text) == tuple(number for first, more in ranges for number in range(first, first + more + 1))


@tries(40)
@given(texts(30))
def test_any_text_is_seeds_or_refused(text: str) -> None:
    with contextlib.suppress(argparse.ArgumentTypeError):
        seeds = seed_list(text)
        assert seeds
        assert all(0 <= number < SEED_COUNT for number in seeds)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "numbers and ranges like 1,2,5-10, not ''"),
        ("1,,2", "not ''"),
        ("1-", "not '1-'"),
        ("-1", "not '-1'"),
        ("1.5", "not '1.5'"),
        ("1_000", "not '1_000'"),
        ("٣", "not '"),
        ("10-5", "a range of seeds must ascend, but 10-5 does not"),
        (str(SEED_COUNT), "seeds must be at most 4294967295"),
        ("9" * 5000, "not '"),
        ("0-4294967295", "at most 100000 seeds"),
        ("0-60000,0-60000", "at most 100000 seeds"),
    ],
)
def test_wrong_seeds_get_a_clear_answer(text: str, part: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as refusal:
        seed_list(text)
    assert part in str(refusal.value)


def test_numbers_are_checked() -> None:
    assert seed("7") == 7
    assert finite_number("-0.5") == -0.5
    assert count("0") == 0
    assert positive_count("12") == 12
    for kind, text in (
        (seed, "1,2"),
        (finite_number, "nan"),
        (finite_number, "x"),
        (count, "-1"),
        (positive_count, "0"),
    ):
        with pytest.raises(argparse.ArgumentTypeError, match="not "):
            kind(text)


def test_what_is_out_of_range_is_answered_with_the_range() -> None:
    for read, text, expected in (
        (grid, "0x2", "columns and rows like 4x3"),
        (grid, "wide", "columns and rows like 4x3"),
        (seconds, "1234567", "below 1,000,000"),
        (priority, "1234567", "of up to six digits"),
    ):
        with pytest.raises(argparse.ArgumentTypeError, match=f"{expected}, not '{text}'"):
            read(text)
    assert [grid(text) for text in ("4x3", "4", "99999x1")] == [(4, 3), (4, 4), (99999, 1)]
