"""Picture files of other programs: ordinary formats are read, everything else is refused and runs nothing."""

import io
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gpu_backend import picture_file
from gpu_backend.picture_file import PictureFileError, opened_picture, upright_in_eight_bits

EPS = b"""%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 8 8
%%EndComments
showpage
%%EOF
"""


def encoded(kind: str) -> bytes:
    target = io.BytesIO()
    Image.new("RGB", (8, 8), (200, 100, 50)).save(target, kind)
    return target.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "TIFF", "GIF", "BMP", "PPM", "TGA"])
def test_ordinary_formats_are_read_from_files_and_bytes(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.png").write_bytes(encoded(kind))
    for source in (tmp_path / "a.png", encoded(kind)):
        with opened_picture(source, "a.png") as picture:
            assert picture.convert("RGB").size == (8, 8)


@pytest.mark.parametrize("name", ["a.eps", "a.png"])
def test_a_picture_that_is_a_program_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(EPS)
    with pytest.raises(PictureFileError, match="should be a picture"), opened_picture(tmp_path / name, name) as picture:
        picture.load()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes in folders")
def test_a_pipe_and_a_folder_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(PictureFileError, match="a folder, a pipe or a device"), opened_picture(path, path.name):
            pass


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_file, "MAX_PICTURE_PIXELS", 63)
    with pytest.raises(PictureFileError, match="8 x 8 pixels"), opened_picture(encoded("PNG"), "a.png"):
        pass


@pytest.mark.parametrize("error", [RuntimeError("of libavif"), MemoryError(), OSError("truncated"), SyntaxError()])
def test_whatever_a_decoder_raises_is_a_sentence(error: Exception) -> None:
    with pytest.raises(PictureFileError, match=r"a\.png should be a picture"), opened_picture(encoded("PNG"), "a.png"):
        raise error


def test_a_picture_is_turned_upright_and_has_eight_bits(tmp_path: Path) -> None:
    levels = np.linspace(0, 65535, 64, dtype=np.uint16).reshape(2, 32)
    exif = Image.Exif()
    exif[0x0112] = 6
    for name, array in (("a.png", levels), ("a.tif", levels.astype(np.int32)), ("b.tif", (levels / 65535.0))):
        Image.fromarray(array.astype(np.float32) if array.dtype == np.float64 else array).save(
            tmp_path / name, exif=exif
        )
        with opened_picture(tmp_path / name, name) as picture:
            upright = upright_in_eight_bits(picture)
        assert (upright.mode, upright.size) == ("L", (2, 32))
        np.testing.assert_allclose(np.asarray(upright)[:, ::-1].T, levels / 257.0, atol=1.0)


def test_damaged_exif_data_turns_nothing(tmp_path: Path) -> None:
    Image.new("RGB", (8, 4)).save(tmp_path / "a.png", exif=b"Exif\0\0no TIFF")
    with opened_picture(tmp_path / "a.png", "a.png") as picture:
        assert upright_in_eight_bits(picture).size == (8, 4)


def test_a_picture_beyond_the_limit_of_pillow_is_called_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 31)  # 8 x 8 are more than twice as many
    too_many = pytest.raises(PictureFileError, match="too many pixels: more than 89 million")
    with too_many, opened_picture(encoded("PNG"), "a.png"):
        pass


def test_a_file_that_the_system_refuses_is_not_called_no_picture(tmp_path: Path) -> None:
    refused = pytest.raises(PictureFileError, match=r"^a\.png cannot be read \(No such file or directory\)\.$")
    with refused, opened_picture(tmp_path / "a.png", "a.png"):
        pass
