"""A model's SHA-256 is taken from a table only while nothing says that the file is another one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from explorer_app.session import model_hashes
from explorer_app.session.model_hashes import ModelHashes

A, B = "a" * 64, "b" * 64
LONG_AGO_NS = 1_700_000_000_000_000_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cats.pkl"
    path.write_bytes(b"cats")
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "state" / "model-hashes.json"


def test_an_unchanged_file_is_known_at_the_next_start(file: Path, table: Path) -> None:
    ModelHashes(table).remember(file, file.stat(), A)
    assert ModelHashes(table).find(file, file.stat()) == A


def test_without_a_file_the_table_is_kept_in_memory(file: Path) -> None:
    hashes = ModelHashes(None)
    assert hashes.find(file, file.stat()) == ""
    hashes.remember(file, file.stat(), A)
    assert hashes.find(file, file.stat()) == A


def test_another_size_time_inode_or_path_is_another_file(file: Path, table: Path) -> None:
    hashes = ModelHashes(table)
    hashes.remember(file, file.stat(), A)

    other = file.with_name("dogs.pkl")
    other.write_bytes(b"cats")
    os.utime(other, ns=(LONG_AGO_NS, LONG_AGO_NS))
    assert hashes.find(other, other.stat()) == ""

    os.utime(file, ns=(LONG_AGO_NS, LONG_AGO_NS + 1))
    assert hashes.find(file, file.stat()) == ""
    file.write_bytes(b"more cats")
    os.utime(file, ns=(LONG_AGO_NS, LONG_AGO_NS))
    assert hashes.find(file, file.stat()) == ""
    os.replace(other, file)
    assert file.stat().st_size == 4
    assert file.stat().st_mtime_ns == LONG_AGO_NS
    assert hashes.find(file, file.stat()) == "", "another inode"


def test_a_file_that_changed_while_it_was_read_or_just_before_is_not_noted(file: Path, table: Path) -> None:
    hashes = ModelHashes(table)
    before = file.stat()
    file.write_bytes(b"dogs!")
    hashes.remember(file, before, A)
    hashes.remember(file, file.stat(), B)  # changed a moment ago
    assert not table.exists()


def test_known_hashes_are_not_written_again(file: Path, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ModelHashes(table).remember(file, file.stat(), A)
    monkeypatch.setattr(model_hashes, "write_whole", lambda *_: pytest.fail("written again"))
    ModelHashes(table).remember(file, file.stat(), A)


def test_two_programs_add_to_one_table_and_the_oldest_go(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_hashes, "MAX_FILES", 2)
    first, second = ModelHashes(table), ModelHashes(table)
    files = [tmp_path / f"{number}.pkl" for number in range(3)]
    for path in files:
        path.write_bytes(b"x")
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    for hashes, path in zip((first, second, first), files, strict=True):
        hashes.remember(path, path.stat(), A)
    assert [ModelHashes(table).find(path, path.stat()) for path in files] == ["", A, A]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"format": "else", "files": {}}',
        '{"format": "latent-loom-model-hashes", "files": {"PATH": [4, 1700000000000000000, 1, "no hash"]}}',
        '{"format": "latent-loom-model-hashes", "files": {"PATH": [4, "then", 1]}}',
        '{"format": "latent-loom-model-hashes", "files": 3}',
    ],
)
def test_a_damaged_table_is_an_empty_one(text: str, file: Path, table: Path) -> None:
    table.parent.mkdir()
    table.write_text(text.replace("PATH", str(file)), "utf-8")
    hashes = ModelHashes(table)
    assert hashes.find(file, file.stat()) == ""
    hashes.remember(file, file.stat(), B)
    assert ModelHashes(table).find(file, file.stat()) == B
