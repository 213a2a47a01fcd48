"""A file is there whole or not at all, with the permissions that any other file gets."""

import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend import remove_leftovers, write_whole
from tests.helpers.failing_disk import FullDisk, MortalDisk, PowerCutError

posix = pytest.mark.skipif(sys.platform == "win32", reason="this system has no permission bits")


@pytest.fixture(params=[0o022, 0o027, 0o077, 0o000])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    former = os.umask(request.param)
    yield request.param
    os.umask(former)


def fill_by_replacing(path: Path) -> None:
    """Write as a library does that puts a private file of its own in place."""
    own = path.with_name("own")
    own.write_bytes(b"new")
    own.chmod(0o600)
    own.replace(path)


@posix
@pytest.mark.parametrize("content", [b"new", fill_by_replacing])
def test_a_file_gets_the_permissions_that_the_account_gives(content: object, umask: int, tmp_path: Path) -> None:
    write_whole(tmp_path / "file", content)
    assert (tmp_path / "file").read_bytes() == b"new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666 & ~umask
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_function_writes_the_file_aside(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    seen = []

    def fill(path: Path) -> None:
        seen.append((path.parent, (tmp_path / "file").read_bytes()))
        path.write_bytes(b"new")

    write_whole(tmp_path / "file", fill)
    assert seen == [(tmp_path, b"old")]
    assert (tmp_path / "file").read_bytes() == b"new"


def failing(path: Path) -> None:
    path.write_bytes(b"half")
    raise ValueError


def interrupted(path: Path) -> None:
    path.write_bytes(b"half")
    raise KeyboardInterrupt


@pytest.mark.parametrize(("fill", "error"), [(failing, ValueError), (interrupted, KeyboardInterrupt)])
def test_a_function_that_fails_leaves_what_was_there(fill: object, error: type[BaseException], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(error):
        write_whole(tmp_path / "file", fill)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"old")]


@pytest.mark.parametrize("stage", ["write", "move"])
def test_a_full_disk_leaves_what_was_there(stage: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(OSError, match="no room") as caught:
        write_whole(tmp_path / "file", b"new", FullDisk(0, stage))
    assert caught.value.errno == errno.ENOSPC
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"old")]


@pytest.mark.parametrize("operation", [0, 1])
def test_what_a_power_cut_leaves_is_hidden_and_can_be_removed(operation: int, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / ".mine.part").write_bytes(b"")
    with pytest.raises(PowerCutError):
        write_whole(tmp_path / "file", b"new", MortalDisk(operation))
    left = {path.name for path in tmp_path.iterdir()} - {"file", ".mine.part"}
    assert len(left) == 1
    assert left.pop().startswith(".file.")
    remove_leftovers(tmp_path, "other".__eq__)
    assert len(list(tmp_path.iterdir())) == 3
    remove_leftovers(tmp_path, "file".__eq__)
    assert {path.name for path in tmp_path.iterdir()} == {"file", ".mine.part"}
    assert (tmp_path / "file").read_bytes() == b"old"


def test_leftovers_of_a_folder_that_is_not_there_are_none(tmp_path: Path) -> None:
    remove_leftovers(tmp_path / "missing", "file".__eq__)
    assert list(tmp_path.iterdir()) == []


def test_the_data_reach_the_disk_before_the_file_comes_into_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    flush, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda number: (done.append("flushed"), flush(number))[1])
    monkeypatch.setattr(Path, "replace", lambda path, target: (done.append("moved"), replace(path, target))[1])
    write_whole(tmp_path / "file", b"new")
    write_whole(tmp_path / "file", fill_by_replacing)
    assert done == ["flushed", "moved", "moved", "flushed", "moved"], "the filling moves a file of its own first"
