from pathlib import Path

import pytest
from PIL import Image

from explorer_app.exporting.contact_sheet import write_contact_sheet
from explorer_app.exporting.errors import ExportError

COLOURS = [(200, 10, 10), (10, 200, 10), (10, 10, 200)]


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{index}.png" for index in range(3)]
    for path, colour in zip(paths, COLOURS, strict=True):
        Image.new("RGB", (16, 16), colour).save(path)
    return paths


def test_pictures_stand_in_reading_order(tmp_path: Path, pictures: list[Path]) -> None:
    write_contact_sheet(tmp_path / "sheet.png", pictures, columns=2, side_px=32)
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.size == (76, 76)
        assert [sheet.getpixel(place) for place in ((20, 20), (56, 20), (20, 56))] == COLOURS
        assert sheet.getpixel((56, 56)) == (0, 0, 0)


def test_the_ending_says_the_format(tmp_path: Path, pictures: list[Path]) -> None:
    for name, kind in (("a.PNG", "PNG"), ("b.jpg", "JPEG"), ("c.jpeg", "JPEG")):
        write_contact_sheet(tmp_path / name, pictures, columns=3)
        with Image.open(tmp_path / name) as sheet:
            assert sheet.format == kind


def test_a_sheet_that_cannot_be_written_is_told_in_a_sentence(tmp_path: Path, pictures: list[Path]) -> None:
    with pytest.raises(ExportError, match=r"^sheet\.png could not be written"):
        write_contact_sheet(pictures[0] / "sheet.png", pictures, columns=2)
