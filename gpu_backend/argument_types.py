"""Types of command line options, for argparse: each reads a text, or raises ArgumentTypeError with what it expected."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable


def whole_number(least: int, most: int = 999_999_999) -> Callable[[str], int]:
    """Return a reader of whole numbers from `least` to `most`, both included, written in ASCII digits."""

    def read(text: str) -> int:
        is_number = text.isascii() and text.isdigit()
        is_long = is_number and len(text) > 9
        if not is_number or is_long or not least <= int(text) <= most:
            bounds = f"from {least} to {most:,}" if most < 999_999_999 or is_long else f"from {least} up"
            raise argparse.ArgumentTypeError(f"expected a whole number {bounds}, not {text[:40]!r}")
        return int(text)

    return read


def number_from_0(text: str) -> float:
    """Return a finite number that is not negative."""
    number = _finite(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"expected a number from 0 up, not {text[:40]!r}")
    return number


def number_above_0(text: str) -> float:
    """Return a finite positive number."""
    number = _finite(text)
    if number <= 0:
        raise argparse.ArgumentTypeError(f"expected a number above 0, not {text[:40]!r}")
    return number


def seconds(text: str) -> float:
    """Return a time in seconds, 0 to 1,000,000."""
    number = _finite(text)
    if not 0 <= number <= 1e6:
        raise argparse.ArgumentTypeError(f"expected seconds from 0 to 1,000,000, not {text[:40]!r}")
    return number


def names_of(known: tuple[str, ...], what: str = "names") -> Callable[[str], tuple[str, ...]]:
    """Return a reader of lists like ``a,b`` of known names; repeated names count once.

    Parameters
    ----------
    what
        The noun of the names, in plural, for the refusal.
    """

    def read(text: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"expected {what} of {', '.join(known)}, not {name[:40]!r}")
        return names

    return read


def _finite(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    return number if math.isfinite(number) else -1.0
