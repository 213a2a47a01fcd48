import contextlib
import json
import os
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from explorer_app.session import parameters, storage
from explorer_app.session.edits import AddSources
from explorer_app.session.history import KeptSession
from explorer_app.session.resolve import kept_latent
from explorer_app.session.session import ModelReference, Position, Session, Slider, Source
from explorer_app.session.session_json import session_from_json, session_to_json
from explorer_app.session.storage import (
    SessionFileError,
    file_of_bytes,
    load_session,
    load_session_file,
    save_session,
)
from gpu_backend import (
    DirectionAmount,
    Latent,
    MixSource,
    Noise,
    Point,
    Recipe,
    RowRange,
    Tap,
    Transform,
    Truncation,
    stored_latent,
)
from tests.helpers.requests import point_of
from tests.helpers.strategies import examples, texts

NESTED = Latent(mix=(MixSource(Latent(), (0.5,)),), directions=(DirectionAmount("sefa/1", 1.0),))
FULL = Session(
    model=ModelReference("/models/cats.pkl", "cats", "ab" * 32),
    position=Position(1207.38, -0.04),
    pinned_blend=((Recipe(Latent(Point(((3, 0.5), (4, 0.5)), "z")), Truncation(0.5, 3)), 0.75), (Recipe(), 0.25)),
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


def test_a_session_comes_back_from_json_as_it_was() -> None:
    assert session_from_json(json.loads(json.dumps(session_to_json(FULL)))) == FULL
    assert session_from_json(session_to_json(Session())) == Session()


def test_a_session_comes_back_from_a_file_with_what_was_kept(tmp_path: Path) -> None:
    kept = (KeptSession(Session(), "Walk", 1.5e9, ("snow", "Für Elise")), KeptSession(FULL, "Mix"))
    save_session(tmp_path / "new" / "evening.loom", FULL, kept)
    assert load_session(tmp_path / "new" / "evening.loom") == FULL
    assert load_session_file(tmp_path / "new" / "evening.loom").kept == kept
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["evening.loom"]


def stored_session() -> Session:
    """A session that uses two stored latents, one of them twice."""
    face = stored_latent(np.arange(24, dtype=np.float32).reshape(4, 6))
    other = stored_latent(np.ones(6, dtype=np.float32))
    return replace(
        FULL,
        pinned_blend=((Recipe(Latent(face)), 1.0),),
        mix=(
            Source(Latent(face), (0.5,), "face"),
            Source(Latent(mix=(MixSource(Latent(other), (1.0,)),)), (1.0,), "b"),
        ),
    )


def test_stored_latents_lie_in_the_session_once_and_come_back(tmp_path: Path) -> None:
    session = stored_session()
    save_session(tmp_path / "evening.loom", session, (KeptSession(session, "Mix"),), ((session, "Walk"),), 0)
    file = load_session_file(tmp_path / "evening.loom")
    assert file.session == file.kept[0][0] == file.steps[0][0] == session
    with zipfile.ZipFile(tmp_path / "evening.loom") as archive:
        assert sorted(archive.namelist()) == ["latents.safetensors", "session.json"]
        assert len(archive.read("session.json")) < 10_000


def test_the_same_session_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save_session(tmp_path / f"{name}.loom", stored_session())
    assert (tmp_path / "a.loom").read_bytes() == (tmp_path / "b.loom").read_bytes()


def rewritten(path: Path, change: Callable[[str, bytes], bytes]) -> None:
    """Write the members of a session anew, each as `change` makes it."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, change(name, data))


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda name, data: data if name == "session.json" else data[:-4] + b"abcd", "not match"),
        (lambda name, data: data if name == "session.json" else data[:20], "damaged"),
        (lambda name, data: data if name == "session.json" else b"", "must be in the same file"),
        (lambda name, data: b"{" if name == "session.json" else data, "JSON"),
        (lambda name, data: b" " * (33 << 20) if name == "session.json" else data, "at most 32 MB"),
    ],
)
def test_a_zip_whose_members_were_changed_is_refused(
    tmp_path: Path, change: Callable[[str, bytes], bytes], part: str
) -> None:
    path = tmp_path / "evening.loom"
    save_session(path, stored_session())
    rewritten(path, change)
    with pytest.raises(SessionFileError, match=part):
        load_session(path)


def test_a_file_has_the_time_of_the_playhead(tmp_path: Path) -> None:
    path = tmp_path / "evening.loom"
    save_session(path, Session())
    assert load_session_file(path).time_s == 0.0
    save_session(path, Session(), time_s=23 / 6)
    assert load_session_file(path).time_s == 23 / 6
    for time in (b"-1", b"true", b'"4"', b"1e99"):

        def change(name: str, data: bytes, time: bytes = time) -> bytes:
            return data[: data.index(b'"time":')] + b'"time":%b}' % time

        rewritten(path, change)
        with pytest.raises(SessionFileError, match="time of the playhead must be a number"):
            load_session_file(path)


def test_a_file_has_the_time_of_the_playhead_at_each_step(tmp_path: Path) -> None:
    path, steps = tmp_path / "a.loom", ((Session(), "Start"), (Session(), "Walk"))
    save_session(path, Session(), (), steps, 1, step_times=(0.0, None))
    assert load_session_file(path).step_times == (0.0, None)
    save_session(path, Session(), (), steps, 1)
    assert load_session_file(path).step_times == (None, None)
    with pytest.raises(SessionFileError, match="time of the playhead must be a number"):
        save_session(path, Session(), (), steps, 1, step_times=(-1.0, 0.0))
    assert load_session_file(path).step_times == (None, None), "a former file is untouched"


@pytest.mark.parametrize("cut", [10, 100, 400, -30])
def test_a_zip_that_was_cut_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "evening.loom"
    save_session(path, stored_session())
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(SessionFileError, match=r"evening\.loom"):
        load_session(path)


def test_a_row_that_is_added_to_the_table_of_parameters_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {
        **{row.path: row for row in parameters.fixed_parameters()},
        "test.gain": replace(parameters.parameter("slider/x"), path="test.gain", high=2.0),
        "test.mode": replace(parameters.parameter("slider/y"), path="test.mode", kind="choice", default=0.0),
    }
    monkeypatch.setattr(parameters, "_rows", lambda: rows)
    data = session_to_json(Session(sliders=(Slider("x", 1.5),)))
    assert data["parameters"] == {"test.gain": 1.5}
    del data["sliders"]
    data["parameters"]["of a newer program"] = 3
    assert session_from_json(data).slider("x").amount == 1.5
    assert session_from_json({**data, "parameters": {"test.gain": 5.0}}).slider("x").amount == 2.0
    wrongs: tuple[object, ...] = ({"test.gain": "much"}, {"test.mode": 3}, [])
    for wrong in wrongs:
        with pytest.raises(SessionFileError):
            session_from_json({**data, "parameters": wrong})


def test_a_part_that_is_missing_gets_its_default() -> None:
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
def test_an_error_is_one_sentence(change: dict[str, Any], part: str) -> None:
    with pytest.raises(SessionFileError, match=part) as caught:
        session_from_json({**session_to_json(FULL), **change})
    assert caught.value.sentence.count(". ") == 0


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[1, 2]", b"{", b'{"format": NaN}', b"[" * 100_000])
def test_a_file_that_is_no_session_is_refused_with_its_name(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "evening.loom").write_bytes(data)
    with pytest.raises(SessionFileError, match=r"evening\.loom"):
        load_session_file(tmp_path / "evening.loom")


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SessionFileError, match="should be a session, but is a folder"):
        load_session_file(tmp_path)
    with pytest.raises(SessionFileError, match=r"none\.loom cannot be read"):
        load_session_file(tmp_path / "none.loom")


def test_a_refused_write_leaves_the_former_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts(8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts(8), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=examples(50), deadline=None)
@given(st.sampled_from(sorted(session_to_json(FULL))), _JSON)
def test_any_value_of_a_field_is_read_or_refused_as_a_session(name: str, value: Any) -> None:
    with contextlib.suppress(SessionFileError):
        session_from_json({**session_to_json(FULL), name: value})


OLD = Path(__file__).parents[2] / "data" / "sessions"
"""Files as version 1 wrote them, before sources were kept flat."""


def test_a_file_of_version_1_opens_with_everything_in_it() -> None:
    file = load_session_file(OLD / "version1.loom")
    assert replace(file.session, model=FULL.model) == FULL
    assert [item.label for item in file.kept] == ["Walk", "Mix"]
    assert file.session.mix[0].label == "a"


def test_a_session_whose_kept_sources_were_nested_ten_times_opens_flat(tmp_path: Path) -> None:
    session = load_session(OLD / "kept_ten_times.loom")
    assert [source.label for source in session.mix] == [f"kept {number}" for number in range(1, 11)]
    assert all(source.latent.mix == () for source in session.mix)
    save_session(tmp_path / "again.loom", session)
    assert (tmp_path / "again.loom").stat().st_size < 5_000
    assert load_session(tmp_path / "again.loom") == session


def test_nested_sources_that_were_painted_stay_in_what_was_kept() -> None:
    session = load_session(OLD / "nested.loom")
    kept = session.mix[-1].latent
    assert {point_of(source.latent).seeds[0][0] for source in kept.mix} >= {7}
    assert not any(source.latent.mix or source.latent.directions for source in kept.mix)


def test_forty_kept_sources_stay_small_and_none_holds_another(tmp_path: Path) -> None:
    session = Session(mix=(Source(Latent(Point(((7, 1.0),))), (0.5,) * 12, "seed 7"),))
    for number in range(40):
        session = replace(session, position=Position(float(number), 0.5))
        session = AddSources((Source(kept_latent(session), (0.5,) * 12, f"kept {number}"),)).apply(session)
        assert not any(source.latent.mix for source in session.mix[-1].latent.mix)
    save_session(tmp_path / "many.loom", session)
    assert load_session(tmp_path / "many.loom") == session


def test_a_session_that_could_not_be_read_back_never_replaces_one_that_can(tmp_path: Path) -> None:
    path = tmp_path / "evening.loom"
    save_session(path, FULL)
    crowded = replace(FULL, mix=tuple(Source(Latent(), (), "seed 0") for _ in range(5000)))
    with pytest.raises(SessionFileError, match="4096 items"):
        save_session(path, crowded)
    assert load_session(path) == FULL
    assert [item.name for item in tmp_path.iterdir()] == ["evening.loom"]


def test_a_session_of_thirty_megabytes_of_brackets_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "bomb.loom"
    path.write_bytes(b'{"format": "latent-loom-session", "version": 1, "mix": [' + b"[]," * 3_000_000 + b"[]]}")
    with pytest.raises(SessionFileError, match="holds at most 2,000,000 values"):
        load_session_file(path)


def test_rows_of_zeros_do_not_count_in_a_session_with_too_many_values() -> None:
    nested = Latent(mix=(MixSource(Latent(), (0.0,) * 4000),) * 600)
    text = json.dumps(session_to_json(Session(mix=(Source(nested, (1.0,), "kept 1"),))), separators=(",", ":"))
    assert file_of_bytes(text.encode(), "old.loom").session == Session(mix=(Source(Latent(), (1.0,), "kept 1"),))


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no named pipes among its files")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "evening.loom")
    with pytest.raises(SessionFileError, match="a pipe"):
        load_session_file(tmp_path / "evening.loom")


def test_kept_sessions_of_files_that_do_not_say_when_still_come_back() -> None:
    old = {**session_to_json(Session()), "kept": [["Walk", session_to_json(FULL)]]}
    assert file_of_bytes(json.dumps(old).encode(), "old.loom").kept == (KeptSession(FULL, "Walk"),)
    for broken in ([["Walk"]], [["Walk", session_to_json(FULL), "noon"]], [["Walk", session_to_json(FULL), 1, 2]]):
        with pytest.raises(SessionFileError):
            file_of_bytes(json.dumps({**old, "kept": broken}).encode(), "old.loom")


@pytest.mark.parametrize("tags", [[""], ["x" * 41], ["a"] * 17, [1]])
def test_tags_that_no_user_can_give_are_refused_by_reader_and_writer(tmp_path: Path, tags: Any) -> None:
    text = json.dumps({**session_to_json(Session()), "kept": [["Walk", session_to_json(Session()), 0.0, tags]]})
    with pytest.raises(SessionFileError, match="tags"):
        file_of_bytes(text.encode(), "tagged.loom")
    with pytest.raises(SessionFileError, match="tags"):
        save_session(tmp_path / "tagged.loom", Session(), (KeptSession(Session(), "Walk", 0.0, tags),))
    assert not list(tmp_path.iterdir())


def test_members_that_are_compressed_in_another_way_are_refused(tmp_path: Path) -> None:
    save_session(tmp_path / "evening.loom", FULL)
    with zipfile.ZipFile(tmp_path / "evening.loom") as archive:
        text = archive.read("session.json")
    with zipfile.ZipFile(tmp_path / "evening.loom", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("session.json", text)
    with pytest.raises(SessionFileError, match=r"evening\.loom should be a session, but is damaged"):
        load_session(tmp_path / "evening.loom")


def test_a_time_that_no_float_holds_is_refused() -> None:
    data = session_to_json(Session()) | {"kept": [["a", session_to_json(Session()), 10**400]]}
    with pytest.raises(SessionFileError, match="time of a kept session"):
        file_of_bytes(json.dumps(data).encode(), "a.loom")


@pytest.mark.parametrize("name", ["a\0b.loom", "\ud800.loom"])
def test_a_name_that_no_file_can_have_is_refused_with_a_sentence(name: str, tmp_path: Path) -> None:
    with pytest.raises(SessionFileError, match="cannot be read"):
        load_session(tmp_path / name)


def test_a_thousand_small_stored_latents_reach_the_limit_of_the_reader_in_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_MAX_TENSORS_NBYTES", 100_000)
    small = [stored_latent(np.full((1, 1), number, np.float32)) for number in range(1000)]
    sessions = [Session(mix=(Source(Latent(latent), (1.0,), "a"),)) for latent in small]
    save_session(tmp_path / "a.loom", Session(), [KeptSession(session, "a") for session in sessions[:500]])
    before = (tmp_path / "a.loom").read_bytes()
    assert len(load_session_file(tmp_path / "a.loom").kept) == 500
    with pytest.raises(SessionFileError, match="fewer stored latents and masks than these 1,000"):
        save_session(tmp_path / "a.loom", Session(), [KeptSession(session, "a") for session in sessions])
    assert (tmp_path / "a.loom").read_bytes() == before


def kept_with_rows(value: float) -> KeptSession:
    """A kept session with stored rows of 64 bytes."""
    recipe = Recipe(Latent(stored_latent(np.full((2, 8), value, np.float32))))
    return KeptSession(Session(pinned_blend=((recipe, 1.0),)), f"rows of {value}")


def test_as_much_is_kept_as_a_file_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MAX_STORED_NBYTES", 3 * 64)
    one, two, three, four = (kept_with_rows(value) for value in (1.0, 2.0, 3.0, 4.0))
    seeds = tuple(KeptSession(Session(position=Position(x, 0.0)), "seed") for x in (1.0, 2.0))
    assert storage.kept_that_fit([], (one, *seeds, two, three)) == (one, *seeds, two, three)
    assert storage.kept_that_fit([one.session], (two, one, three, four, seeds[0])) == (two, one, three)
    assert storage.kept_that_fit([one.session, two.session, three.session], (four,)) == ()
    save_session(tmp_path / "kept.loom", Session(), (one, two, three))
    with pytest.raises(SessionFileError):
        save_session(tmp_path / "kept.loom", Session(), (one, two, three, four))
    monkeypatch.setattr(storage, "MAX_KEPT", 2)
    assert storage.kept_that_fit([one.session], (*seeds, two)) == seeds[:1]
    assert storage.kept_that_fit([one.session, two.session, three.session], seeds) == ()
