"""Texts of the command line become numbers and names, or are refused with what was expected."""

import argparse
from collections.abc import Callable

import pytest

from gpu_backend.argument_types import names_of, number_above_0, number_from_0, seconds, whole_number


def test_numbers_and_names_are_read() -> None:
    assert [whole_number(0)(text) for text in ("0", "7", "999999999")] == [0, 7, 999_999_999]
    assert whole_number(1, 100)("100") == 100
    assert [number_from_0(text) for text in ("0", "1.5", "2e-3")] == [0.0, 1.5, 0.002]
    assert number_above_0("0.5") == 0.5
    assert seconds("12.5") == 12.5
    assert names_of(("a", "b", "c"))("b, a,b") == ("b", "a")


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (whole_number(0), "-1", "a whole number from 0 up"),
        (whole_number(0), "1.5", "a whole number from 0 up"),
        (whole_number(0), "", "a whole number from 0 up"),
        (whole_number(0), "٣", "a whole number from 0 up"),
        (whole_number(0), "1000000000", "a whole number from 0 to 999,999,999"),
        (whole_number(1, 1000), "0", "a whole number from 1 to 1,000"),
        (whole_number(1, 1000), "1001", "a whole number from 1 to 1,000"),
        (number_from_0, "-0.5", "a number from 0 up"),
        (number_from_0, "inf", "a number from 0 up"),
        (number_from_0, "nan", "a number from 0 up"),
        (number_above_0, "0", "a number above 0"),
        (number_above_0, "wide", "a number above 0"),
        (seconds, "-1", "seconds from 0 to 1,000,000"),
        (seconds, "1e7", "seconds from 0 to 1,000,000"),
        (names_of(("a", "b")), "a,c", "names of a, b"),
        (names_of(("png",), "formats"), "gif", "formats of png"),
    ],
)
def test_what_is_refused_says_what_was_expected(read: Callable[[str], object], text: str, expected: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"expected {expected}, not "):
        read(text)
