"""Pixels an inch, sizes in print, and what lies behind transparent parts."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.formats.codecs import encode_frame, scan_picture
from explorer_app.exporting.formats.picture_format import (
    Background,
    FormatName,
    PictureFormat,
    Size,
    pixels_of_print,
    written_as,
)
from gpu_backend import Frame, RenderRequest
from tests.helpers.fake_engine import fake_frame

TEXT = '{"a": 1}'


def half_transparent(side: int = 64) -> Frame:
    """A red square whose left half is transparent and whose right half is not."""
    image = np.zeros((side, side, 4), np.float32)
    image[..., 0], image[..., 1:3], image[..., 3] = 1.0, -1.0, -1.0
    image[:, side // 2 :, 3] = 1.0
    image.flags.writeable = False
    pixels = np.zeros((side, side, 4), np.uint8)
    pixels[..., 2] = 255
    pixels[:, side // 2 :, 3] = 255
    request = RenderRequest("ab" * 32, wants_image=True)
    return replace(fake_frame(request), pixels=pixels, has_alpha=True, image=image)


def opened(data: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(data))
    picture.load()
    return picture


@pytest.mark.parametrize("name", ["png", "png16", "jpeg", "tiff"])
def test_a_picture_says_its_pixels_an_inch(tmp_path: Path, name: FormatName) -> None:
    data = encode_frame(half_transparent(), TEXT, PictureFormat(name, dpi=300))
    assert opened(data).info["dpi"] == pytest.approx((300, 300), abs=0.01)
    (tmp_path / "a").write_bytes(data)
    scan = scan_picture(tmp_path / "a", 1 << 20)
    assert (scan.text, scan.is_whole) == (TEXT, True)


@pytest.mark.parametrize("name", ["webp", "avif"])
def test_a_picture_for_the_web_says_it_as_exif(name: FormatName) -> None:
    exif = opened(encode_frame(half_transparent(), TEXT, PictureFormat(name, dpi=300))).getexif()
    assert (exif[282], exif[283], exif[296]) == (300.0, 300.0, 2)


def test_an_exr_says_it_in_its_header() -> None:
    data = encode_frame(half_transparent(), TEXT, PictureFormat("exr", dpi=300))
    assert b"xDensity\0float\0\4\0\0\0\0\0\x96\x43" in data


@pytest.mark.parametrize(
    ("background", "colour"),
    [("white", (255, 255, 255)), ("black", (0, 0, 0)), ("#1d2025", (0x1D, 0x20, 0x25)), ("checkerboard", (204,) * 3)],
)
@pytest.mark.parametrize("name", ["png", "tiff"])
def test_transparent_parts_lie_on_the_background(
    name: FormatName, background: Background, colour: tuple[int, int, int]
) -> None:
    picture = opened(encode_frame(half_transparent(), TEXT, PictureFormat(name, background=background)))
    assert picture.mode == "RGB"
    assert picture.getpixel((5, 0)) == colour
    assert picture.getpixel((60, 0)) == (255, 0, 0)


def test_16_bits_lie_on_the_background_too(tmp_path: Path) -> None:
    data = encode_frame(half_transparent(), TEXT, PictureFormat("png16", background="black"))
    assert data[25] == 2, "RGB without alpha"
    (tmp_path / "a").write_bytes(data)
    assert scan_picture(tmp_path / "a", 1 << 20).is_whole


def test_without_a_background_alpha_stays_and_a_jpeg_is_white() -> None:
    assert opened(encode_frame(half_transparent(), TEXT, PictureFormat("png"))).mode == "RGBA"
    white = opened(encode_frame(half_transparent(), TEXT, PictureFormat("jpeg"))).getpixel((5, 5))
    assert isinstance(white, tuple)
    assert min(white) > 250


@pytest.mark.parametrize(
    ("text", "dpi", "size"),
    [
        ("210x297mm", 300, (2480, 3508)),
        ("8 × 10 in", 300, (2400, 3000)),
        ("10cm", 254, (1000, 1000)),
        ("1920x1080", 300, None),
    ],
)
def test_a_size_in_print_is_pixels(text: str, dpi: int, size: Size | None) -> None:
    assert pixels_of_print(text, dpi) == size


@pytest.mark.parametrize("text", ["0x5mm", "3000x3000mm"])
def test_a_size_in_print_has_bounds(text: str) -> None:
    with pytest.raises(ExportError, match="a side has 1 to"):
        pixels_of_print(text, 300)


def test_a_resolution_and_a_background_have_bounds() -> None:
    with pytest.raises(ExportError, match="pixels an inch"):
        PictureFormat(dpi=0)
    with pytest.raises(ExportError, match="A background is"):
        PictureFormat(background="plaid")


def test_different_print_settings_write_a_different_file() -> None:
    forms = [PictureFormat(), PictureFormat(dpi=300), PictureFormat(background="black")]
    assert len({written_as(form, None) for form in forms}) == 3
    assert len({form.without_compression for form in forms}) == 3
