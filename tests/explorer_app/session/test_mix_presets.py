from __future__ import annotations

import pytest

from explorer_app.session.edits import set_strengths
from explorer_app.session.mix_presets import PRESETS, base_share, preset_strengths
from explorer_app.session.session import Session, Source
from gpu_backend import Latent
from tests.helpers.panels import row_resolutions

ROWS = row_resolutions(256)


def test_groups_all_and_none_are_whole_numbers() -> None:
    assert preset_strengths("coarse", ROWS) == (1.0,) * 5 + (0.0,) * 9
    assert preset_strengths("middle", ROWS) == (0.0,) * 5 + (1.0,) * 4 + (0.0,) * 5
    assert preset_strengths("fine", ROWS) == (0.0,) * 9 + (1.0,) * 5
    assert preset_strengths("all", ROWS) == (1.0,) * 14
    assert preset_strengths("none", ROWS) == (0.0,) * 14


def test_rising_and_falling_meet_at_one() -> None:
    rising, falling = preset_strengths("rising", ROWS), preset_strengths("falling", ROWS)
    assert (rising[0], rising[-1]) == (0.0, 1.0)
    assert list(rising) == sorted(rising)
    assert [a + b for a, b in zip(rising, falling, strict=True)] == pytest.approx([1.0] * 14)


@pytest.mark.parametrize("resolution", [4, 8, 64, 1024])
@pytest.mark.parametrize("name", [name for name, _ in PRESETS])
def test_every_preset_fits_every_network(name: str, resolution: int) -> None:
    rows = row_resolutions(resolution)
    strengths = preset_strengths(name, rows)
    assert len(strengths) == len(rows)
    assert all(0.0 <= strength <= 1.0 for strength in strengths)


def test_an_unknown_preset_is_an_error() -> None:
    with pytest.raises(KeyError):
        preset_strengths("sideways", ROWS)


def test_the_base_keeps_the_weight_that_no_source_took() -> None:
    assert base_share([(1.0, 0.5, 0.0), (0.0, 0.5)], 3) == (0.0, 0.25, 1.0)
    assert base_share([], 2) == (1.0, 1.0)


def test_strengths_of_all_sources_change_in_one_step() -> None:
    session = Session(mix=(Source(Latent(), (0.0,), "a"), Source(Latent(), (0.0,), "b")))
    changed = set_strengths(((1.0,),)).apply(session)
    assert [source.strengths for source in changed.mix] == [(1.0,), (0.0,)]
    assert [source.label for source in changed.mix] == ["a", "b"]
