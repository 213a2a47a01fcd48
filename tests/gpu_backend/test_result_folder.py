"""Folders for results."""

import errno
import tempfile
from pathlib import Path

import pytest

from gpu_backend.errors import RequestError
from gpu_backend.result_folder import make_folder


def test_a_folder_that_takes_no_files_is_reported_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(RequestError, match=r"must be a folder, but .*file is none"):
        make_folder(tmp_path / "file")
    with pytest.raises(RequestError, match="deep cannot be made: Not a directory"):
        make_folder(tmp_path / "file" / "deep")
    make_folder(tmp_path / "new" / "deep")
    assert list((tmp_path / "new" / "deep").iterdir()) == []


def test_a_folder_without_permission_is_still_called_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**options: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)  # who runs the tests as root may write anywhere
    with pytest.raises(RequestError, match=r"folder .* takes no files: Read-only file system"):
        make_folder(tmp_path)
