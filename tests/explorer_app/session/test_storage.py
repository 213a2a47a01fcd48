import contextlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from explorer_app.session.session import ModelReference, Position, Session, Slider, Source
from explorer_app.session.storage import (
    SessionFileError,
    load_session,
    load_session_file,
    save_session,
    session_from_json,
    session_to_json,
)
from gpu_backend import DirectionAmount, Latent, MixSource, Noise, Point, Recipe, RowRange, Tap, Transform, Truncation

NESTED = Latent(mix=(MixSource(Latent(), (0.5,)),), directions=(DirectionAmount("sefa/1", 1.0),))
FULL = Session(
    model=ModelReference("/models/cats.pkl", "cats", "ab" * 32),
    position=Position(1207.38, -0.04),
    held=((Recipe(Latent(Point(((3, 0.5), (4, 0.5)), "z")), Truncation(0.5, 3)), 0.75), (Recipe(), 0.25)),
    classes=((2, 0.5), (3, 0.5)),
    truncation=Truncation(-0.3, 7),
    noise=Noise("random", 9, 0.5, (1.0, 0.0)),
    sliders=(Slider("sefa/0", 1.8, RowRange(2, 5), "Sun height", True), Slider("axis/17", -2.4)),
    mix=(
        Source(
            Latent(mix=(MixSource(Latent(), (0.5,)),), directions=(DirectionAmount("sefa/1", 1.0),)), (0.25, 1), "a"
        ),
    ),
    transform=Transform(0.25, -0.5, -30.0, 1.25),
    tap=Tap("b64.conv1", (3, 0, 7), -6.5, is_normalized=False),
)


def test_a_session_comes_back_from_json_as_it_was():
    assert session_from_json(json.loads(json.dumps(session_to_json(FULL)))) == FULL
    assert session_from_json(session_to_json(Session())) == Session()


def test_a_session_comes_back_from_a_file_with_what_was_kept(tmp_path: Path):
    kept = ((Session(), "Walk"), (FULL, "Mix"))
    save_session(tmp_path / "new" / "evening.loom", FULL, kept)
    assert load_session(tmp_path / "new" / "evening.loom") == FULL
    assert load_session_file(tmp_path / "new" / "evening.loom").kept == kept
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["evening.loom"]


def test_a_part_that_is_missing_gets_its_default():
    assert session_from_json({"format": "latent-loom-session", "version": 1}) == Session()


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"format": "other"}, "format"),
        ({"version": 2}, "update"),
        ({"version": None}, "version number"),
        ({"version": True}, "version number"),
        ({"position": [1]}, "two numbers"),
        ({"position": [1, float("inf")]}, "finite"),
        ({"position": [1, 10**400]}, "too large"),
        ({"psi": "much"}, "psi"),
        ({"transform": [1, 0, 0]}, "transform"),
        ({"tap": "b64.conv1"}, "tap"),
        ({"tap": {"channels": [0]}}, "name a layer"),
        ({"tap": {"layer": "b64.conv1", "channels": [-1]}}, "channel"),
        ({"transform": {"degrees": "much"}}, "transform's degrees"),
        ({"transform": {"scale": 0}}, "scale must be in 0.001..1000"),
        ({"transform": {"scale": -1.0}}, "scale must be in"),
        ({"cutoff": -1}, "cutoff"),
        ({"classes": [[1]]}, "pair"),
        ({"classes": [[-1, 1.0]]}, "class"),
        ({"held": [[{}, "heavy"]]}, "weight"),
        ({"noise": {"mode": "loud"}}, "noise mode"),
        ({"sliders": [{"direction": 3}]}, "direction"),
        ({"sliders": [{"direction": "sefa/0", "starred": 1}]}, "star"),
        ({"sliders": [{"direction": "sefa/0", "rows": [1]}]}, "rows"),
        ({"mix": [{"latent": {"seeds": [[-1, 1]]}}]}, "seed"),
        ({"mix": 7}, "list"),
        ({"model": []}, "object"),
        ({"sliders": [{}] * 5000}, "4096"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(change: dict[str, Any], part: str):
    with pytest.raises(SessionFileError, match=part) as caught:
        session_from_json({**session_to_json(FULL), **change})
    assert caught.value.sentence.count(". ") == 0


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[1, 2]", b"{", b'{"format": NaN}', b"[" * 100_000])
def test_a_file_that_is_no_session_is_refused_with_its_name(tmp_path: Path, data: bytes):
    (tmp_path / "evening.loom").write_bytes(data)
    with pytest.raises(SessionFileError, match=r"evening\.loom"):
        load_session_file(tmp_path / "evening.loom")


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path):
    for path in (tmp_path, tmp_path / "none.loom"):
        with pytest.raises(SessionFileError, match=r"\.loom"):
            load_session_file(path)


def test_a_refused_write_leaves_the_former_file_and_nothing_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "evening.loom"
    save_session(path, FULL)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space"):
        save_session(path, replace(FULL, mix=()))
    assert load_session(path) == FULL
    assert [item.name for item in tmp_path.iterdir()] == ["evening.loom"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(session_to_json(FULL))), _JSON)
def test_whatever_stands_in_a_field_it_is_read_or_refused_as_a_session(name: str, value: Any):
    with contextlib.suppress(SessionFileError):
        session_from_json({**session_to_json(FULL), name: value})
