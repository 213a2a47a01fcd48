from __future__ import annotations

import pytest

from explorer_app.session.edits import set_row_ranges
from explorer_app.session.row_groups import range_name, range_text, resolution_spans, row_groups, same_rows
from explorer_app.session.session import Session, Slider
from gpu_backend import RowRange
from tests.helpers.panels import row_resolutions


def test_a_large_network_splits_at_16_and_64_pixels() -> None:
    groups = row_groups(row_resolutions(256))
    assert [group.caption for group in groups] == ["coarse 4–16", "middle 32–64", "fine 128–256"]
    assert [(group.first, group.last) for group in groups] == [(0, 4), (5, 8), (9, 13)]


@pytest.mark.parametrize(
    ("resolution", "captions"),
    [
        (64, ["coarse 4–8", "middle 16–32", "fine 64"]),
        (32, ["coarse 4–8", "middle 16", "fine 32"]),
        (16, ["coarse 4", "middle 8", "fine 16"]),
        (8, ["coarse 4", "middle 8"]),
        (4, ["coarse 4"]),
    ],
)
def test_a_small_network_deals_its_resolutions_out_evenly(resolution: int, captions: list[str]) -> None:
    groups = row_groups(row_resolutions(resolution))
    assert [group.caption for group in groups] == captions


@pytest.mark.parametrize("resolution", [4, 8, 16, 32, 64, 128, 256, 512, 1024])
def test_groups_hold_every_row_once(resolution: int) -> None:
    rows = row_resolutions(resolution)
    held = [row for group in row_groups(rows) for row in range(len(rows)) if row in group]
    assert held == list(range(len(rows)))


def test_labels_span_the_rows_of_one_resolution() -> None:
    spans = resolution_spans(row_resolutions(16))
    assert [(span.name, span.first, span.last) for span in spans] == [("4", 0, 0), ("8", 1, 2), ("16", 3, 5)]


def test_no_model_has_no_groups() -> None:
    assert row_groups(()) == ()
    assert resolution_spans(()) == ()


def test_a_range_has_words_and_a_name() -> None:
    rows = row_resolutions(256)
    assert range_text(RowRange(), rows) == "rows 0–13"
    assert range_text(RowRange(4, 4), rows) == "row 4"
    assert range_text(RowRange(9, 40), rows) == "rows 9–13"
    assert [range_name(item, rows) for item in (RowRange(), RowRange(0, 13), RowRange(5, 8), RowRange(5, 7))] == [
        "all",
        "all",
        "middle",
        "",
    ]


def test_an_open_end_is_the_last_row() -> None:
    assert same_rows(RowRange(2), RowRange(2, 13), 14)
    assert not same_rows(RowRange(2), RowRange(2, 12), 14)


def test_ranges_of_several_directions_change_in_one_step_and_defaults_are_dropped() -> None:
    session = Session(sliders=(Slider("sefa/1", 2.0), Slider("sefa/0", rows=RowRange(0, 3))))
    names = ("sefa/0", "sefa/1", "sefa/2")
    narrowed = set_row_ranges(dict.fromkeys(names, RowRange(5, 8))).apply(session)
    assert [narrowed.slider(f"sefa/{index}").rows for index in range(3)] == [RowRange(5, 8)] * 3
    assert narrowed.slider("sefa/1").amount == 2.0
    widened = set_row_ranges(dict.fromkeys(names, None)).apply(narrowed)
    assert widened.sliders == (Slider("sefa/1", 2.0),)
