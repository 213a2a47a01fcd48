"""Photos, as the dialog shows them and the search reads them."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from explorer_app.controller import files as files_module
from explorer_app.controller.photo_file import Photo, PhotoError, load_photo
from explorer_app.messages import Level
from tests.helpers.controller_harness import Harness


def pixel(photo: Photo, x: int, y: int) -> tuple[int, ...]:
    start = 3 * (y * photo.shown_width + x)
    return tuple(photo.pixels[start : start + 3])


def test_a_file_that_is_no_picture_is_reported(open_harness: Harness) -> None:
    opened: list[Photo] = []
    open_harness.controller.files.photo_opened.connect(opened.append)
    path = open_harness.folder / "notes.png"
    path.write_text("not a picture")
    with pytest.raises(PhotoError, match=r"notes\.png should be a picture"):
        load_photo(path)
    open_harness.controller.files.open_photo(path)
    open_harness.until(lambda: open_harness.said(Level.ERROR))
    assert "should be a picture" in open_harness.said(Level.ERROR)[-1]
    assert opened == []


def test_a_photo_is_read_beside_the_window(open_harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def recorded(path: Path) -> Photo:
        threads.append(threading.current_thread())
        return load_photo(path)

    monkeypatch.setattr(files_module, "load_photo", recorded)
    files = open_harness.controller.files
    opened: list[Photo] = []
    files.photo_opened.connect(opened.append)
    path = open_harness.folder / "garden.png"
    Image.new("RGB", (40, 20)).save(path)
    files.open_photo(path)
    assert opened == []
    open_harness.until(lambda: opened)
    assert (opened[0].path, opened[0].width, opened[0].height) == (path, 40, 20)
    assert threading.main_thread() not in threads


def test_a_photo_is_turned_as_its_camera_was(tmp_path: Path) -> None:
    path = tmp_path / "turned.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (2000, 1000)).save(path, exif=exif)
    photo = load_photo(path)
    assert (photo.width, photo.height) == (1000, 2000)
    assert (photo.shown_width, photo.shown_height) == (512, 1024)
    assert len(photo.pixels) == 3 * 512 * 1024


def test_a_photo_is_shown_as_the_search_reads_it(tmp_path: Path) -> None:
    Image.new("RGBA", (32, 16), (255, 255, 255, 0)).save(tmp_path / "clear.png")
    assert pixel(load_photo(tmp_path / "clear.png"), 3, 3) == (0, 0, 0)
    Image.fromarray(np.full((16, 32), 257 * 90, np.uint16)).save(tmp_path / "grey.png")
    photo = load_photo(tmp_path / "grey.png")
    assert pixel(photo, 3, 3) == (90, 90, 90)
    assert (photo.width, photo.height) == (32, 16)


def test_a_photo_of_few_pixels_is_refused(tmp_path: Path) -> None:
    Image.new("RGB", (40, 15)).save(tmp_path / "line.png")
    with pytest.raises(PhotoError, match="at least 16 x 16 pixels, but has 40 x 15"):
        load_photo(tmp_path / "line.png")
