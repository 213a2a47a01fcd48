"""The first layout of each workspace, by the room that there is."""

from __future__ import annotations

import pytest

from explorer_app.window.docks.layouts import HOMES, WORKSPACES, WorkspaceName, first_layout, with_toggled
from explorer_app.window.shell.dock_table import DOCKS

SIZES = [
    (640, 400),
    (800, 500),
    (1100, 700),
    (1199, 900),
    (1200, 700),
    (1268, 649),
    (1400, 900),
    (1588, 909),
    (2500, 1300),
]


@pytest.mark.parametrize(("width", "height"), [size for size in SIZES if size[0] >= 800])
def test_the_picture_has_at_least_half_of_the_width_in_explore(width: int, height: int) -> None:
    sides = [column.size for column in first_layout("explore", width, height).columns if column.area != "bottom"]
    assert width - sum(sides) - 6 * len(sides) >= width / 2


@pytest.mark.parametrize("workspace", WORKSPACES)
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_dock_has_one_place_and_the_performance_is_always_there(
    workspace: WorkspaceName, width: int, height: int
) -> None:
    keys = list(first_layout(workspace, width, height).keys)
    assert len(keys) == len(set(keys))
    assert "performance" in keys
    assert set(keys) <= set(HOMES)


def test_every_dock_of_the_table_has_a_home() -> None:
    assert {spec.key for spec in DOCKS} == set(HOMES)


def test_a_column_grows_by_one_of_its_own_panels() -> None:
    for workspace in WORKSPACES:
        for width, height in SIZES:
            for column in first_layout(workspace, width, height).columns:
                assert not column.grows or column.grows in [group[0] for group in column.groups]


def test_a_low_window_has_tabs_where_a_high_one_has_docks_below_each_other() -> None:
    low, high = (
        {column.area: column.groups for column in first_layout("explore", 1268, height).columns}
        for height in (649, 900)
    )
    assert low["right"] == (("performance", "model"),)
    assert high["right"] == (("performance",), ("model",))


def test_the_timeline_lies_below_the_left_panels_where_they_are_not_the_only_column() -> None:
    assert first_layout("animate", 1280, 720).has_wide_bottom
    assert not first_layout("animate", 800, 500).has_wide_bottom
    assert not first_layout("explore", 1600, 980).has_wide_bottom


def test_docks_that_are_toggled_keep_their_side_and_the_others_their_places() -> None:
    large = first_layout("explore", 1588, 909)
    found = {column.area: column for column in with_toggled(large, {"layers": True, "performance": False}).columns}
    assert found["right"].groups == (("layers",), ("model",))
    assert found["left"].groups == (("latent",), ("sliders",), ("mix",))
    alone = with_toggled(large, dict.fromkeys(HOMES, False) | {"timeline": True})
    (bottom,) = alone.columns
    assert (bottom.area, bottom.groups) == ("bottom", (("timeline",),))
    assert bottom.size > 200, "it needs more height than the history"
    (side, _) = with_toggled(first_layout("explore", 800, 560), {"model": True, "mix": False}).columns
    assert (side.area, side.groups) == ("left", (("latent", "sliders", "performance", "model"),)), "no second column"
    (column, *_) = with_toggled(first_layout("measure", 1588, 909), {"history": True}).columns
    assert column.area == "left"
    assert with_toggled(large, {"model": True, "edits": False}) == large
