"""A file is there whole or not at all, with the permissions that any other file gets."""

import contextlib
import errno
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from gpu_backend import Disk, FileGroup, remove_leftovers, write_whole
from gpu_backend.whole_file import part_name
from tests.helpers.failing_disk import FullDisk, MortalDisk, PowerCutError, dead_part

posix = pytest.mark.skipif(sys.platform == "win32", reason="this system has no permission bits")


@pytest.fixture(params=[0o022, 0o027, 0o077, 0o000])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    former = os.umask(request.param)
    yield request.param
    os.umask(former)


def fill_by_replacing(path: Path) -> None:
    """Write as a library does that puts a private file of its own in place."""
    own = path.with_name(".tmp012345")
    path.with_name(".tmp543210").write_bytes(b"left behind")
    own.write_bytes(b"new")
    own.chmod(0o600)
    own.replace(path)


@posix
@pytest.mark.parametrize("content", [b"new", fill_by_replacing])
def test_a_file_gets_the_permissions_that_the_account_gives(
    content: bytes | Callable[[Path], None], umask: int, tmp_path: Path
) -> None:
    write_whole(tmp_path / "file", content)
    assert (tmp_path / "file").read_bytes() == b"new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666 & ~umask
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_function_writes_the_file_aside(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    seen = []

    def fill(path: Path) -> None:
        seen.append((path.name, path.parent.parent, (tmp_path / "file").read_bytes()))
        path.write_bytes(b"new")

    write_whole(tmp_path / "file", fill)
    assert seen == [("file", tmp_path, b"old")], "a library may choose the format by the name"
    assert (tmp_path / "file").read_bytes() == b"new"


@posix
@pytest.mark.parametrize("content", [b"new", fill_by_replacing])
def test_a_link_stays_and_the_file_that_it_leads_to_is_replaced(
    content: bytes | Callable[[Path], None], tmp_path: Path
) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles" / "settings.json").write_bytes(b"old")
    (tmp_path / "settings.json").symlink_to(Path("dotfiles") / "settings.json")
    (tmp_path / "missing.json").symlink_to(tmp_path / "dotfiles" / "missing.json")
    for name in ("settings.json", "missing.json"):
        write_whole(tmp_path / name, content)
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "dotfiles" / name).read_bytes() == b"new"
    left = sorted(path.name for path in tmp_path.rglob("*"))
    assert left == ["dotfiles", "missing.json", "missing.json", "settings.json", "settings.json"]


@posix
def test_a_link_that_leads_nowhere_is_an_error_and_stays(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "dangling").symlink_to(tmp_path / "no folder" / "file")
    for name, reason in (("loop", errno.ELOOP), ("dangling", errno.ENOENT)):
        with pytest.raises(OSError, match=re.escape(os.strerror(reason))):
            write_whole(tmp_path / name, b"new")
        assert (tmp_path / name).is_symlink()


def failing(path: Path) -> None:
    path.write_bytes(b"half")
    raise ValueError


def interrupted(path: Path) -> None:
    path.write_bytes(b"half")
    raise KeyboardInterrupt


@pytest.mark.parametrize(("fill", "error"), [(failing, ValueError), (interrupted, KeyboardInterrupt)])
def test_a_function_that_fails_leaves_what_was_there(
    fill: Callable[[Path], None], error: type[BaseException], tmp_path: Path
) -> None:
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
    assert caught.value.filename == str(tmp_path / "file"), "whoever tells of it can name the file"
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"old")]


@pytest.mark.parametrize("operation", [0, 1])
def test_the_leftover_of_a_power_cut_is_hidden_and_can_be_removed(operation: int, tmp_path: Path) -> None:
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

    def note_flush(number: int) -> None:
        done.append("flushed")
        flush(number)

    def note_move(path: Path, target: Path) -> Path:
        done.append("moved")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", note_flush)
    monkeypatch.setattr(Path, "replace", note_move)
    write_whole(tmp_path / "file", b"new")
    write_whole(tmp_path / "file", fill_by_replacing)
    folder = ["flushed"] if sys.platform != "win32" else []
    filling = ["moved", "flushed", "moved"]
    assert done == ["flushed", "moved", *folder, *filling, *folder], "the filling moves a file of its own first"


def test_a_folder_that_cannot_be_flushed_does_not_undo_a_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flush = os.fsync

    def flush_files_only(number: int) -> None:
        if os.fstat(number).st_mode & 0o040000:
            raise OSError(errno.EINVAL, "not for folders")
        flush(number)

    monkeypatch.setattr(os, "fsync", flush_files_only)
    write_whole(tmp_path / "file", b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"new")]


@pytest.mark.parametrize("content", [b"new", fill_by_replacing])
def test_a_check_reads_the_new_file_back_before_it_replaces_the_old_one(
    content: bytes | Callable[[Path], None], tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"old")
    seen = []
    write_whole(
        tmp_path / "file",
        content,
        check=lambda path: seen.append((path.read_bytes(), (tmp_path / "file").read_bytes())),
    )
    assert seen == [(b"new", b"old")]
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"new")]


def refuse(path: Path) -> None:
    raise ValueError("not readable")


@pytest.mark.parametrize("content", [b"new", fill_by_replacing])
def test_a_file_that_fails_its_check_leaves_what_was_there(
    content: bytes | Callable[[Path], None], tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(ValueError, match="not readable"):
        write_whole(tmp_path / "file", content, check=refuse)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"old")]


def test_the_first_write_into_a_folder_removes_what_dead_programs_left_there(tmp_path: Path) -> None:
    (tmp_path / dead_part("other")).write_bytes(b"half")
    folder = tmp_path / dead_part("model.safetensors")
    folder.mkdir()
    (folder / ".tmp0aF3").write_bytes(b"half of a library's own file")
    stay = {part_name("other", os.getppid()), ".other.part", "other.part", f"x{dead_part('other')}"}
    for name in stay:
        (tmp_path / name).write_bytes(b"x")
    write_whole(tmp_path / "file", b"new")
    assert {path.name for path in tmp_path.iterdir()} == {"file", *stay}


@pytest.mark.parametrize("name", [".file.0123abcd.part", ".file.00000000-1-0123abcd.part"])
def test_a_part_file_of_an_unknown_writer_is_removed_when_it_is_a_day_old(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"half")
    for age_h, is_kept in ((23, True), (25, False)):
        os.utime(path, (time.time() - 3600 * age_h,) * 2)
        remove_leftovers(tmp_path, "file".__eq__)
        assert path.exists() == is_kept


def test_a_file_that_this_process_is_writing_is_no_leftover(tmp_path: Path) -> None:
    def fill(path: Path) -> None:
        path.write_bytes(b"new")
        remove_leftovers(tmp_path, lambda name: True)

    write_whole(tmp_path / "file", fill)
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_file_that_this_process_is_writing_is_no_leftover_in_a_folder_with_two_paths(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real", target_is_directory=True)

    def fill(path: Path) -> None:
        path.write_bytes(b"new")
        write_whole(tmp_path / "link" / "other", b"other")  # the first write into a folder removes leftovers

    write_whole(tmp_path / "real" / "file", fill)
    assert {path.name for path in (tmp_path / "real").iterdir()} == {"file", "other"}


def test_a_name_of_more_than_one_line_is_found_again(tmp_path: Path) -> None:
    (tmp_path / dead_part("two\nlines")).write_bytes(b"half")
    remove_leftovers(tmp_path, lambda name: name.startswith("two"))
    assert list(tmp_path.iterdir()) == []


KILLER = """
import os, resource, signal, sys
from pathlib import Path
from gpu_backend.whole_file import write_whole

folder, target = Path(sys.argv[1]), Path(sys.argv[1]) / "file"
OLD, NEW = b"o" * 3000, b"n" * 5000

def fill(path):
    own = path.with_name(".tmp0aF3")
    own.write_bytes(NEW)
    own.replace(path)

def child(work):
    number = os.fork()
    if number == 0:
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])

def dying(content, last):
    left = [last]
    def step(*_):
        left[0] -= 1
        if left[0] < 0:
            os._exit(9)
    flush = os.fsync
    os.fsync = lambda number: (step(), flush(number), step())
    sys.addaudithook(lambda event, given: step() if str(folder) in str(given) else None)
    write_whole(target, content)

def cut(content, room):
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    write_whole(target, content)

def trial(work, content, number):
    target.write_bytes(OLD)
    code = child(lambda: work(content, number))
    left = target.read_bytes()
    assert left in (OLD, NEW), (work, number, left[:9], len(left))
    assert code == 0 or work is dying or left == OLD
    assert child(lambda: write_whole(target, content)) == 0
    assert [path.name for path in folder.iterdir()] == ["file"] and target.read_bytes() == NEW, list(folder.iterdir())
    return code, left

for content in (NEW, fill):
    seen = []
    while not seen or seen[-1][0] == 9:
        seen.append(trial(dying, content, len(seen)))
    assert len(seen) > 6 and {left for _, left in seen} == {OLD, NEW}, seen
    assert [trial(cut, content, room)[0] for room in (0, 1, 4096, 4999, 5000)] == [-signal.SIGXFSZ] * 4 + [0]
    print(len(seen))
"""
"""Kills a child before every call that concerns the folder, before and after every flush, and after some of the bytes;
then looks, and writes once more."""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_kill_at_any_step_leaves_the_old_or_the_new_file_and_the_next_write_cleans_up(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.split()) == 2


class CountingDisk(Disk):
    """Counts flushes, and holds the first one until it is let."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.flushed: list[list[str]] = []

    def flush(self, paths: Sequence[Path]) -> None:
        self.flushed.append([path.name.split(".")[1] for path in paths])
        assert self.gate.wait(30)
        super().flush(paths)


def test_files_that_were_added_while_others_were_flushed_are_flushed_together(tmp_path: Path) -> None:
    disk, stored = CountingDisk(), threading.Semaphore(0)
    group = FileGroup(tmp_path / "out", disk, stored.release)
    group.add("0", b"first")
    while not disk.flushed:
        stored.acquire(timeout=0.001)
    for number in range(1, 9):
        group.add(str(number), b"more")
    assert (group.written, group.has_room) == (0, True)
    assert not (tmp_path / "out" / "0").exists(), "it is not on the disk yet"
    disk.gate.set()
    group.close()
    group.close()
    assert disk.flushed == [["0"], [str(number) for number in range(1, 9)]]
    assert group.written == 9
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [str(number) for number in range(9)]


@pytest.mark.parametrize("stage", ["write", "move"])
def test_a_full_disk_ends_a_group_and_leaves_no_parts(stage: str, tmp_path: Path) -> None:
    group = FileGroup(tmp_path, FullDisk(2, stage))
    with contextlib.suppress(OSError):
        for number in range(5):
            group.add(str(number), b"data")
            while stage == "write" and group.written <= number and group.error is None:
                time.sleep(0.001)
    group.close()
    assert group.written == 2
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["0", "1"]
    assert (group.error is None) == (stage == "write"), "who adds is told of a write at once"


def test_a_group_makes_its_folder_again_when_it_was_deleted(tmp_path: Path) -> None:
    group = FileGroup(tmp_path / "out")
    group.add("0", b"data")
    while group.written < 1:
        time.sleep(0.001)
    shutil.rmtree(tmp_path / "out")
    group.add("1", b"data")
    group.close()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["1"]


def test_a_group_writes_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "file").write_bytes(b"old")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "0").symlink_to(tmp_path / "far" / "file")
    group = FileGroup(tmp_path / "out")
    group.add("0", b"new")
    group.close()
    assert (tmp_path / "far" / "file").read_bytes() == b"new"
    assert (tmp_path / "out" / "0").is_symlink()
    assert group.written == 1


@pytest.mark.parametrize("letter", ["n", "\u56fe"])
def test_the_longest_name_of_a_file_system_can_be_written(tmp_path: Path, letter: str) -> None:
    name = letter * (255 // len(letter.encode()))
    write_whole(tmp_path / name, b"new")
    write_whole(tmp_path / name, fill_by_replacing)
    assert (tmp_path / name).read_bytes() == b"new"
    left = tmp_path / dead_part(name)
    left.write_bytes(b"half")
    remove_leftovers(tmp_path, name.startswith)
    assert [path.name for path in tmp_path.iterdir()] == [name]
