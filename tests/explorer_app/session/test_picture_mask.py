"""Masks: brushes, files."""

from __future__ import annotations

import base64
import itertools
import zlib

import pytest

from explorer_app.session.picture_mask import inverted, painted
from explorer_app.session.session import Session
from explorer_app.session.session_json import SessionFileError, session_from_json, session_to_json
from gpu_backend import MASK_SIDE, MaskError, PictureMask, mask_from_text, mask_to_text


def test_a_hard_brush_freezes_a_disc_and_thaws_it_again() -> None:
    mask = painted(None, [(0.5, 0.5)], 0.25, 0.0, freezes=True)
    assert mask is not None
    share = mask.shares
    assert share[64, 64] == share[64, 64 + 30] == 1.0
    assert share[64, 64 + 36] == share[64 + 24, 64 + 24] == 0.0
    assert painted(mask, [(0.5, 0.5)], 0.4, 0.0, freezes=False) is None, "nothing is frozen"


def test_a_soft_brush_fades_towards_its_edge() -> None:
    mask = painted(None, [(0.5, 0.5)], 0.25, 1.0, freezes=True)
    assert mask is not None
    row = mask.shares[64, 64:]
    assert 0.45 < row[16] < 0.55
    assert all(a >= b for a, b in itertools.pairwise(row))


def test_a_stroke_has_no_gaps_however_far_its_points_are_apart() -> None:
    mask = painted(None, [(0.1, 0.5), (0.9, 0.5)], 0.03, 0.0, freezes=True)
    assert mask is not None
    assert mask.shares[64, 13:115].min() == 1.0


def test_inverting_twice_changes_nothing() -> None:
    mask = painted(None, [(0.2, 0.3)], 0.1, 0.5, freezes=True)
    assert inverted(inverted(mask)) == mask
    whole = inverted(None)
    assert whole == PictureMask(b"\xff" * MASK_SIDE**2)
    assert inverted(whole) is None


def test_a_mask_is_small_in_a_file_and_is_read_back() -> None:
    mask = painted(None, [(0.2, 0.3), (0.7, 0.4)], 0.1, 0.5, freezes=True)
    assert mask is not None
    text = mask_to_text(mask)
    assert len(text) < 3000
    assert mask_from_text(text) == mask
    session = Session(mask=mask)
    assert session_from_json(session_to_json(session)) == session


@pytest.mark.parametrize(
    "text",
    [
        7,
        "no base64 !",
        base64.b64encode(b"no zlib").decode(),
        base64.b64encode(zlib.compress(b"\1" * 100)).decode(),
        "A" * 10_000_000,
    ],
    ids=["number", "base64", "zlib", "short", "long"],
)
def test_a_damaged_mask_is_refused_in_a_sentence(text: object) -> None:
    assert_damaged(text)


def test_a_mask_that_unpacks_to_a_hundred_megabytes_is_refused() -> None:
    assert_damaged(base64.b64encode(zlib.compress(bytes(100_000_000), 1)).decode())


def assert_damaged(text: object) -> None:
    with pytest.raises(MaskError):
        mask_from_text(text)
    data = {**session_to_json(Session()), "mask": text}
    with pytest.raises(SessionFileError, match="damaged"):
        session_from_json(data)


def test_a_mask_that_freezes_nothing_is_none() -> None:
    assert mask_from_text(base64.b64encode(zlib.compress(bytes(MASK_SIDE**2))).decode()) is None
