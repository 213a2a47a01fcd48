"""Projects: sessions with timelines in `.loom` files."""

from __future__ import annotations

import json
import random
import zipfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from explorer_app.session.blend import resolve_blend
from explorer_app.session.edits import GoToSeed
from explorer_app.session.history import History
from explorer_app.session.session import Position, Session, Slider
from explorer_app.session.storage import SessionFileError, load_session, load_session_file, save_session
from explorer_app.session.timeline import track_pool
from explorer_app.session.timeline.edits import (
    between_value,
    with_key,
    with_parameter_key,
    with_state,
    with_track,
)
from explorer_app.session.timeline.evaluation import session_at
from explorer_app.session.timeline.timeline_json import track_from_json, track_to_json
from explorer_app.session.tracks import MAX_SECONDS, NO_TIMELINE, STATE, WALK, BeatGrid, Easing, Key, Timeline, Track
from gpu_backend import SESSION_LIMITS, Latent, Point, Recipe, RowRange, StoredLatent, Tap, Truncation

STORED = StoredLatent(bytes(4 * 8), 1, 8)


def on_seed(seed: int) -> Session:
    return GoToSeed(seed).apply(Session())


def everything() -> Timeline:
    def keys(*values: object) -> tuple[Key, ...]:
        return tuple(Key(Fraction(n, 3), value) for n, value in enumerate(values))

    stored = ((Recipe(Latent(STORED)), 1.0),)
    seeds = ((Recipe(Latent(Point(((3, 0.5), (4, 0.5)))), Truncation(0.6)), 1.0),)
    bezier = Easing("bezier", (0.1, -0.5, 0.9, 1.5))
    return Timeline(
        (
            Track("truncation.psi", (Key(Fraction(1, 7), 0.3, bezier), Key(Fraction(9), 1.0, is_beat=True))),
            Track("pinned_blend", keys(seeds, stored), way="z-slerp", outside="mirror"),
            Track("position", keys(Position(1.5, 2.0), Position(3.0, 0.0)), outside="loop"),
            Track("classes", keys(((1, 0.5), (2, 0.5)), ())),
            Track("noise.mode", keys("const", "random")),
            Track("noise.seed", keys(4, 5)),
            Track("truncation.cutoff", keys(None, 7)),
            Track("layer", keys(None, Tap("b8.conv0", (1, 2, 3), 6.0))),
            Track("rows/sefa/1", keys(RowRange(2, 5), RowRange(3), None)),
            Track("slider/world/sun", keys(0.5, -2.0), is_muted=True),
            Track("mix/0/latent", keys(Latent(STORED), Latent(Point(((7, 1.0),))))),
            Track("mix/0/name", keys("a", "b")),
            Track("star/sefa/1", keys(True, False)),
            Track("mix/0/strengths", keys((0.0, 1.0), (0.5, 0.5))),
            Track(STATE, keys(replace(on_seed(5), sliders=(Slider("a", 1.0),)), on_seed(8))),
            Track(WALK, period=Fraction(20, 3), radius=0.6, seed=9),
        ),
        fps=Fraction(24000, 1001),
        end=Fraction(61, 2),
        loop=(Fraction(1), Fraction(7, 2)),
        is_looping=False,
        is_ping_pong=True,
        grid=BeatGrid(Fraction(257, 2), Fraction(1, 9), 3),
        snap="beat",
        z_dim=64,
    )


def test_a_project_comes_back_with_every_kind_of_track(tmp_path: Path) -> None:
    session = replace(on_seed(3), timeline=everything())
    save_session(tmp_path / "piece.loom", session)
    assert load_session(tmp_path / "piece.loom") == session


def test_the_same_project_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.loom", "b.loom"):
        save_session(tmp_path / name, replace(on_seed(3), timeline=everything()))
    assert (tmp_path / "a.loom").read_bytes() == (tmp_path / "b.loom").read_bytes()


def test_steps_of_the_history_share_the_tracks_that_did_not_change(tmp_path: Path) -> None:
    timelines = [everything()]
    for n in range(30):
        timelines.append(with_key(timelines[-1], "noise.gain", Fraction(n), n / 10))
    steps = [(replace(on_seed(3), timeline=timeline), "Timeline") for timeline in timelines]
    save_session(tmp_path / "piece.loom", steps[-1][0], (), steps, 30)
    file = load_session_file(tmp_path / "piece.loom")
    assert file.steps == tuple(steps)
    assert file.steps[3][0].timeline.tracks[0] is file.steps[20][0].timeline.tracks[0]
    with zipfile.ZipFile(tmp_path / "piece.loom") as archive:
        data = json.loads(archive.read("session.json"))
    assert len(data["tracks"]) == len(timelines[0].tracks) + 30


def test_a_history_that_is_too_long_loses_its_oldest_steps_and_the_project_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    less = replace(SESSION_LIMITS, nbytes=SESSION_LIMITS.nbytes // 30, values=SESSION_LIMITS.values // 30)
    monkeypatch.setattr(track_pool, "SESSION_LIMITS", less)
    numbers = random.Random(1)
    steps = []
    for n in range(12):
        keys = tuple(Key(Fraction(i, 30), numbers.random()) for i in range(1_000))
        steps.append((Session(timeline=Timeline((Track("noise.gain", keys),))), f"step {n}"))
    save_session(tmp_path / "piece.loom", steps[-1][0], (), steps, 11)
    file = load_session_file(tmp_path / "piece.loom")
    assert file.session == steps[-1][0]
    assert 0 < len(file.steps) < 12
    assert file.steps == tuple(steps[-len(file.steps) :])
    assert file.position == len(file.steps) - 1


def test_a_session_of_an_earlier_version_opens_without_a_timeline() -> None:
    from explorer_app.session.session_json import session_from_json, session_to_json

    assert session_from_json(session_to_json(on_seed(4))).timeline is NO_TIMELINE


def test_a_kept_latent_has_no_timeline() -> None:
    history = History().added(replace(on_seed(3), timeline=everything()), "Walk")
    assert history.starred(1, True).kept[0].session == on_seed(3)


def test_a_key_of_a_latent_that_is_not_pinned_keeps_the_picture_and_is_read_again(tmp_path: Path) -> None:
    stored = replace(on_seed(1), pinned_blend=((Recipe(Latent(STORED)), 1.0),))
    latents = with_parameter_key(Timeline(), stored, "pinned_blend", Fraction(0))
    seed = replace(on_seed(3), sliders=(Slider("a", 2.0),), timeline=latents)
    kept = with_state(latents, seed, Fraction(2))
    one = with_parameter_key(latents, seed, "pinned_blend", Fraction(2))
    for timeline in (kept, one):
        shown = session_at(replace(seed, timeline=timeline), 2.0)
        assert resolve_blend(shown) == resolve_blend(seed)
        save_session(tmp_path / "piece.loom", replace(seed, timeline=timeline))
        assert load_session(tmp_path / "piece.loom").timeline == timeline
    no_keys = with_track(Timeline(), Track("pinned_blend"))
    assert between_value(no_keys, "pinned_blend", seed, Fraction(0)) == resolve_blend(on_seed(3))


def test_a_state_holds_the_stored_latents_that_its_picture_needs(tmp_path: Path) -> None:
    session = replace(on_seed(1), pinned_blend=((Recipe(Latent(STORED)), 1.0),))
    timeline = with_state(Timeline(), session, Fraction(2))
    save_session(tmp_path / "piece.loom", replace(on_seed(1), timeline=timeline))
    assert load_session(tmp_path / "piece.loom").timeline == timeline


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"path": "no.such"}, "no parameter"),
        ({"keys": [[1, 0, 0.5, "smooth"]]}, "denominator"),
        ({"keys": [[1, 1, "x", "smooth"]]}, "number"),
        ({"keys": [[1, 1, 0.5, "bouncy"]]}, "easing"),
        ({"keys": [[1, 1, 0.5, [0, 1]]]}, "handle"),
        ({"keys": [[1, 1]]}, "key"),
        ({"keys": [[1 << 70, 1, 0.5, "hold"]]}, "time"),
        ({"outside": "bounce"}, "outside"),
        ({"period": [0, 1]}, "period"),
        ({"muted": 1}, "mute"),
    ],
)
def test_a_faulty_track_is_refused_with_one_sentence(tmp_path: Path, change: dict[str, Any], part: str) -> None:
    save_session(tmp_path / "piece.loom", Session(timeline=with_key(Timeline(), "noise.gain", Fraction(1), 0.5)))
    with zipfile.ZipFile(tmp_path / "piece.loom") as archive:
        data = json.loads(archive.read("session.json"))
    data["tracks"][0].update(change)
    (tmp_path / "broken.loom").write_text(json.dumps(data))
    with pytest.raises(SessionFileError, match=part):
        load_session(tmp_path / "broken.loom")


def test_a_timeline_of_a_day_with_keys_beyond_it_is_read_again(tmp_path: Path) -> None:
    keys = (Key(Fraction(1), 0.5), Key(Fraction(2 * MAX_SECONDS), 1.0))  # as earlier versions made them
    day = Timeline((Track("noise.gain", keys),), end=Fraction(MAX_SECONDS))
    save_session(tmp_path / "piece.loom", Session(timeline=day))
    assert load_session(tmp_path / "piece.loom").timeline == day


def test_keys_that_lie_in_disorder_are_put_in_order(tmp_path: Path) -> None:
    data = {
        "format": "latent-loom-session",
        "version": 1,
        "tracks": [{"path": "noise.gain", "keys": [[2, 1, 0.2, "hold"], [1, 1, 0.1, "hold"], [2, 1, 0.3, "hold"]]}],
        "timelines": [{"tracks": [0]}],
        "timeline": 0,
    }
    (tmp_path / "piece.loom").write_text(json.dumps(data))
    keys = load_session(tmp_path / "piece.loom").timeline.tracks[0].keys
    assert [(key.time, key.value) for key in keys] == [(1, 0.1), (2, 0.3)]


def test_a_number_outside_of_its_range_is_kept_in_it() -> None:
    data = track_to_json(Track("noise.gain", (Key(Fraction(0), 0.5),)))
    data["keys"][0][2] = 1e9
    assert track_from_json(data).keys[0].value == 10.0


@pytest.mark.parametrize(
    "export", [{"export.format": 3}, {"theme": "dark"}, ["export.format"], {"export.a": "x" * 5000}]
)
def test_export_choices_that_are_none_are_refused(tmp_path: Path, export: Any) -> None:
    data = {"format": "latent-loom-session", "version": 1, "export": export}
    (tmp_path / "piece.loom").write_text(json.dumps(data))
    with pytest.raises(SessionFileError, match="export choice"):
        load_session_file(tmp_path / "piece.loom")


def test_export_choices_that_could_not_be_read_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(SessionFileError, match="export choice"):
        save_session(tmp_path / "piece.loom", Session(), export={"export.a": "x" * 5000})
    assert not (tmp_path / "piece.loom").exists()
