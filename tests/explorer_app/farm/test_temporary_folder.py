"""Folders that killed processes of a farm left are removed, and nothing else."""

import os
import tempfile
from pathlib import Path

import pytest

from explorer_app.farm import temporary_folder
from explorer_app.farm.temporary_folder import new_temporary_folder
from gpu_backend import machine_tag

LIVING = 4242


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files, on a machine with two processes."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(temporary_folder, "process_is_running", {LIVING, os.getpid()}.__contains__)
    return tmp_path


def left_by(folder: Path, pid: int, machine: str | None = None) -> Path:
    """A folder with a file, as a process leaves one."""
    left = folder / f"latentloom-farm-{machine or machine_tag()}-{pid}-ab_c12"
    left.mkdir()
    (left / "farm.pem").write_text("secret")
    return left


def test_folders_of_dead_processes_are_removed_and_those_of_living_ones_stay(folder: Path) -> None:
    dead, living = left_by(folder, 17), left_by(folder, LIVING)
    with new_temporary_folder() as first, new_temporary_folder() as second:
        assert first != second
        assert sorted(folder.iterdir()) == sorted([living, Path(first), Path(second)])
    assert list(folder.iterdir()) == [living]
    assert (living / "farm.pem").exists()
    assert not dead.exists()


def test_folders_of_other_machines_and_programs_stay(folder: Path) -> None:
    others = [left_by(folder, 17, "0123abcd" if machine_tag() != "0123abcd" else "4567abcd")]
    for name in ("latentloom-farm-x1y2z3", "latentloom-bench-17-abc", f"my-latentloom-farm-{machine_tag()}-17-abc"):
        (folder / name).mkdir()
        others.append(folder / name)
    with new_temporary_folder():
        assert all(path.is_dir() for path in others)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="accounts have no number")
def test_folders_of_other_accounts_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = left_by(folder, 17)
    account = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: account + 1)
    with new_temporary_folder():
        assert (left / "farm.pem").exists()


@pytest.mark.skipif(not hasattr(os, "symlink") or os.name == "nt", reason="links need rights there")
def test_links_and_files_stay(folder: Path) -> None:
    (folder / "precious").mkdir()
    (folder / "precious" / "file").touch()
    link = folder / f"latentloom-farm-{machine_tag()}-17-link"
    link.symlink_to(folder / "precious", target_is_directory=True)
    file = folder / f"latentloom-farm-{machine_tag()}-17-file"
    file.touch()
    with new_temporary_folder():
        assert link.is_symlink()
        assert file.exists()
    assert (folder / "precious" / "file").exists()
