"""Folders for results."""

from pathlib import Path

import pytest

from gpu_backend.errors import RequestError
from gpu_backend.result_folder import make_folder


def test_a_folder_that_takes_no_files_is_reported_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(RequestError, match="folder"):
        make_folder(tmp_path / "file")
    make_folder(tmp_path / "new" / "deep")
    assert list((tmp_path / "new" / "deep").iterdir()) == []
