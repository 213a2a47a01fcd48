"""Which combinations a run of the tests tries: each with each only before a release, with ``FULL=1``."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

FULL = os.environ.get("FULL") == "1"


def in_turn(things: Iterable[T], ways: Iterable[U], each: int = 1) -> list[tuple[T, U]]:
    """Pair every thing with `each` of the ways, in turn, so that every way occurs too; ``FULL=1`` pairs all with all.

    For defects of a thing or of a way, which any pair shows; what one pair alone can show needs a test of its own.
    """
    known = tuple(ways)
    if FULL:
        return list(itertools.product(things, known))
    return [(thing, known[(number + turn) % len(known)]) for number, thing in enumerate(things) for turn in range(each)]
