from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from explorer_app.rendering import thumbnail_file
from explorer_app.rendering.thumbnail_file import StoredThumbnail, ThumbnailFile, session_digest
from explorer_app.rendering.thumbnails import w_signature
from explorer_app.session.session import ModelReference, Position, Session
from explorer_app.session.timeline.edits import with_state
from explorer_app.session.tracks import Timeline


def picture(shade: int) -> StoredThumbnail:
    return StoredThumbnail(np.full((3, 5, 4), shade, np.uint8), np.full(6, shade, np.float16))


@pytest.fixture
def file(tmp_path: Path) -> Iterator[ThumbnailFile]:
    made = ThumbnailFile(tmp_path / "state" / "thumbnails.sqlite", capacity=3)
    yield made
    made.close()


def is_same(found: StoredThumbnail | None, wanted: StoredThumbnail) -> bool:
    assert found is not None
    assert found.signature is not None
    assert wanted.signature is not None
    return np.array_equal(found.pixels, wanted.pixels) and np.array_equal(found.signature, wanted.signature)


def test_pictures_are_there_in_a_later_run_and_the_first_ones_go_beyond_the_limit(
    tmp_path: Path, file: ThumbnailFile
) -> None:
    assert file.get(b"1") is None
    file.put([(b"%d" % n, picture(n)) for n in range(5)])
    file.close()
    later = ThumbnailFile(tmp_path / "state" / "thumbnails.sqlite", capacity=3)
    assert [later.get(b"%d" % n) is not None for n in range(5)] == [False, False, True, True, True]
    assert is_same(later.get(b"4"), picture(4))
    later.put([(b"4", picture(9))])
    assert is_same(later.get(b"4"), picture(9))
    later.close()


def test_two_windows_share_the_file(tmp_path: Path, file: ThumbnailFile) -> None:
    other = ThumbnailFile(tmp_path / "state" / "thumbnails.sqlite")
    file.put([(b"1", picture(1))])
    other.put([(b"2", picture(2))])
    assert is_same(file.get(b"2"), picture(2))
    assert is_same(other.get(b"1"), picture(1))
    other.close()


def test_a_damaged_file_is_recreated_and_an_impossible_one_given_up(tmp_path: Path, file: ThumbnailFile) -> None:
    path = tmp_path / "state" / "thumbnails.sqlite"
    path.parent.mkdir()
    path.write_bytes(b"no database, but long enough to be taken for one " * 100)
    assert file.get(b"1") is None
    file.put([(b"1", picture(1))])
    assert is_same(file.get(b"1"), picture(1))
    nowhere = ThumbnailFile(path / "under a file" / "thumbnails.sqlite")
    nowhere.put([(b"1", picture(1))])
    assert nowhere.get(b"1") is None
    nowhere.close()


def test_a_row_that_is_no_picture_is_none(file: ThumbnailFile) -> None:
    file.put([(b"1", picture(1))])
    assert file._connection is not None
    with file._connection as connection:
        connection.execute("UPDATE thumbnails SET width = 1000000")
    assert file.get(b"1") is None


def test_the_digest_is_that_of_the_picture_and_its_model() -> None:
    session = Session(model=ModelReference("", "a", "1" * 64))
    moved = replace(session, position=Position(1.0, 2.0))
    keyed = replace(session, timeline=with_state(Timeline(), moved, Timeline().end))
    assert session_digest(keyed) == session_digest(session) != session_digest(moved)
    assert session_digest(replace(session, model=ModelReference("", "a", "2" * 64))) != session_digest(session)


def test_the_signature_is_the_mean_of_thirds_of_the_rows() -> None:
    rows = np.repeat(np.arange(6, dtype=np.float32)[:, None], 4, axis=1)
    assert w_signature(rows).tolist() == [0.5] * 4 + [2.5] * 4 + [4.5] * 4
    assert w_signature(rows[2:3] * 1e9).tolist() == [65504.0] * 12


def test_a_database_without_one_of_the_columns_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "thumbnails.sqlite"
    first = ThumbnailFile(path)
    first.put([(b"1", picture(1))])
    assert first._connection is not None
    first._connection.execute("ALTER TABLE thumbnails DROP COLUMN pixels")
    first.close()
    again = ThumbnailFile(path)
    for _ in range(2):
        again.put([(b"1", picture(1))])
    assert is_same(again.get(b"1"), picture(1))
    again.close()


def test_a_database_with_text_that_is_none_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "thumbnails.sqlite"
    first = ThumbnailFile(path)
    first.put([(b"1", picture(1))])
    first.close()
    content = path.read_bytes()
    path.write_bytes(
        content.replace(b"tablethumbnails", b"table\x94humbnails").replace(b"CREATE TABLE t", b"xREATE TABLE t")
    )
    again = ThumbnailFile(path)
    for _ in range(2):
        again.put([(b"1", picture(1))])
    assert is_same(again.get(b"1"), picture(1))
    again.close()


def test_a_window_that_finds_no_table_keeps_the_one_that_another_window_makes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "thumbnails.sqlite"
    first, second = ThumbnailFile(path), ThumbnailFile(path)
    first.put([(b"1", picture(1))])
    looks, look = [False], thumbnail_file._is_current
    monkeypatch.setattr(thumbnail_file, "_is_current", lambda connection: looks.pop() if looks else look(connection))
    second.put([(b"2", picture(2))])
    assert not looks
    assert is_same(second.get(b"1"), picture(1))
    assert is_same(first.get(b"2"), picture(2))
    first.close()
    second.close()
