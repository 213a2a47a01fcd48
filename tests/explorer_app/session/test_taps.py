from __future__ import annotations

from dataclasses import replace

import pytest

from explorer_app.session.taps import MAX_GAIN_DB, first_tap, fit_tap
from gpu_backend import LayerFacts, Tap
from tests.helpers.networks import make_stylegan2

FACTS = replace(
    make_stylegan2(resolution=32).facts,
    layers=(LayerFacts("a", 8, 4), LayerFacts("rgb", 3, 4), LayerFacts("b", 8, 8), LayerFacts("one", 1, 8)),
)


@pytest.mark.parametrize(
    ("tap", "fitted"),
    [
        (Tap("a", (7, 0, 3), -3.0, is_normalized=False), Tap("a", (7, 0, 3), -3.0, is_normalized=False)),
        (Tap("a", (8,)), Tap("a", (0,))),
        (Tap("a", (0, 8, 1)), Tap("a", (0, 1, 2))),
        (Tap("one", (0, 0, 0)), Tap("one", (0, 0, 0))),
        (Tap("one", (0, 1, 2)), Tap("one", (0,))),
        (Tap("a", ()), Tap("a", (0,))),
        (Tap("a", gain_db=1e9), Tap("a", gain_db=MAX_GAIN_DB)),
        (Tap("gone"), None),
    ],
)
def test_a_tap_gets_what_its_layer_can_have(tap: Tap, fitted: Tap | None) -> None:
    assert fit_tap(tap, FACTS) == fitted


def test_the_first_layer_to_show_is_no_torgb_and_half_way() -> None:
    assert first_tap(FACTS) == Tap("b")
    assert first_tap(replace(FACTS, layers=FACTS.layers[1:2])) == Tap("rgb")
    assert first_tap(replace(FACTS, layers=())) is None
