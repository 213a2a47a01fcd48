"""A checkpoint names its pictures without a path, and knows them again by their fingerprint."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from gpu_backend.errors import RequestError
from gpu_backend.training.data.reference import data_reference, find_data


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "secret" / "cats"
    (folder / "black").mkdir(parents=True)
    (folder / "a.png").write_bytes(b"1")
    (folder / "black" / "b.jpg").write_bytes(b"22")
    (folder / "notes.txt").write_bytes(b"not a picture")
    return folder


def test_a_folder_is_found_again_by_its_name_and_its_pictures(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = data_reference(str(pictures))
    assert saved["data"] == "cats"
    monkeypatch.chdir(pictures.parent)
    assert find_data(saved, Path("run")) == str(pictures)
    monkeypatch.chdir(pictures)
    assert data_reference(".") == saved
    assert find_data(saved, pictures.parent / "run") == str(pictures), "beside the folder of the training"
    with pytest.raises(RequestError, match="trained on cats"):
        find_data(saved, pictures / "run")
    (pictures / "notes.txt").unlink()
    assert data_reference(str(pictures)) == saved
    (pictures / "a.png").write_bytes(b"333")
    with pytest.raises(RequestError, match="say with --data"):
        find_data(saved, pictures.parent / "run")


def test_a_zip_is_known_by_its_content(tmp_path: Path) -> None:
    def write(content: bytes) -> dict[str, str]:
        with zipfile.ZipFile(tmp_path / "cats.zip", "w") as archive:
            archive.writestr("a.png", content)
        return data_reference(str(tmp_path / "cats.zip"))

    saved = write(b"1")
    assert find_data(saved, tmp_path / "run") == str(tmp_path / "cats.zip")
    assert write(b"2") != saved


def test_the_world_and_paths_of_earlier_versions_are_taken_as_they_are(tmp_path: Path) -> None:
    assert find_data(data_reference("world"), tmp_path) == "world"
    assert find_data({}, tmp_path) == "world"
    assert find_data({"data": "/old/cats.zip"}, tmp_path) == "/old/cats.zip"


def test_a_folder_named_world_stays_a_folder(tmp_path: Path) -> None:
    (tmp_path / "world").mkdir()
    saved = data_reference(str(tmp_path / "world"))
    assert Path(find_data(saved, tmp_path / "run")) == tmp_path / "world"
