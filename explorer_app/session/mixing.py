"""Values between states: weighted sums, and which item of one state is which of another."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

_Item = TypeVar("_Item")


def mixed_number(values: Mapping[int, float], weights: Mapping[int, float]) -> float:
    """Return a weighted sum; equal values give exactly that value, since weights sum to 1 only nearly."""
    if is_same(values.values()):
        return next(iter(values.values()))
    return math.fsum(weight * values[index] for index, weight in weights.items())


def is_same(values: Iterable[object]) -> bool:
    """Return whether there is only one value, however often."""
    first, *others = values
    return all(other == first for other in others)


def by_key(states: Mapping[int, Iterable[_Item]], key: Callable[[_Item], Hashable]) -> list[dict[int, _Item]]:
    """Return, for each key in the order of its first item, the states that have an item of that key, and the items."""
    found: dict[Hashable, dict[int, _Item]] = {}
    for index, items in states.items():
        for item in items:
            found.setdefault(key(item), {})[index] = item
    return list(found.values())
