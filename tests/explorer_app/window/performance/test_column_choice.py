"""Which columns the table shows."""

from __future__ import annotations

import pytest

from explorer_app.window.performance.column_choice import ColumnChoice
from explorer_app.window.performance.step_columns import KEYS

ALL = frozenset(KEYS)
NATURAL = dict.fromkeys(KEYS, 50) | {"layer": 80, "kernel": 90}


def test_a_narrow_table_shows_what_matters_most_and_a_wide_one_everything() -> None:
    choice = ColumnChoice(NATURAL)
    assert list(choice.widths(ALL, 300)) == ["layer", "time", "share", "occupancy", "roofline"]
    assert list(choice.widths(ALL, 1200)) == list(KEYS)


@pytest.mark.parametrize("room", [240, 280, 330, 420, 640, 1200, 2000])
def test_columns_fill_the_room_exactly(room: int) -> None:
    assert sum(ColumnChoice(NATURAL).widths(ALL, room).values()) == room


def test_more_room_never_takes_a_column_away() -> None:
    choice = ColumnChoice(NATURAL)
    shown: set[str] = set()
    for room in range(240, 1400, 10):
        wider = set(choice.widths(ALL, room))
        assert shown <= wider
        shown = wider


@pytest.mark.parametrize("room", range(230, 400, 10))
def test_on_a_processor_names_of_kernels_have_their_room_or_are_left_out(room: int) -> None:
    known = frozenset({"layer", "kernel", "time", "share", "bandwidth", "compute"})
    widths = ColumnChoice(NATURAL).widths(known, room)
    assert widths.get("kernel", 90) >= 0.9 * NATURAL["kernel"]
    assert {"layer", "time", "share"} <= set(widths)


def test_columns_that_have_nothing_to_tell_are_left_out() -> None:
    known = frozenset({"layer", "kernel", "time", "share", "bandwidth", "compute"})
    assert set(ColumnChoice(NATURAL).widths(known, 2000)) == known


def test_chosen_columns_stay_however_narrow_it_gets_and_the_layer_is_always_among_them() -> None:
    choice = ColumnChoice(NATURAL)
    choice.take("grid,block,waves,spills,registers")
    widths = choice.widths(ALL, 100)
    assert list(widths) == ["layer", "registers", "spills", "grid", "block", "waves"]
    assert sum(widths.values()) > 100
    assert not choice.is_automatic


@pytest.mark.parametrize("keys", ["", "nonsense", "colour,,"])
def test_a_choice_that_says_nothing_is_as_many_as_fit(keys: str) -> None:
    choice = ColumnChoice(NATURAL)
    choice.take(keys)
    assert choice.is_automatic
