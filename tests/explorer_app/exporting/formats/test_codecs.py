import io
import struct
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from explorer_app.exporting.errors import ExportError, PictureError
from explorer_app.exporting.formats import deflate
from explorer_app.exporting.formats.codecs import encode_frame, scan_picture
from explorer_app.exporting.formats.picture_format import FORMATS, FormatName, PictureFormat
from gpu_backend import Frame, RenderRequest
from tests.helpers.fake_engine import SIDE_PX, fake_frame

REQUEST = RenderRequest("ab" * 32, wants_image=True)
TEXT = '{"a": "<&>]]>"}'
NAMES = tuple(FORMATS)
LIMIT = 1 << 20


def frame_of(height: int = 19, width: int = 23, *, has_alpha: bool = False, seed: int = 0) -> Frame:
    """A frame of smooth colours, with values beyond black and white."""
    rng = np.random.default_rng(seed)
    down, across = np.mgrid[0:height, 0:width]
    channels = 4 if has_alpha else 3
    phases = rng.uniform(0, 3, channels)
    image = np.stack([1.3 * np.sin(down / 9 + across / 11 + phase) for phase in phases], axis=-1).astype(np.float32)
    image.flags.writeable = False
    return replace(fake_frame(REQUEST), pixels=bytes_of(image), has_alpha=has_alpha, image=image)


def bytes_of(image: np.ndarray) -> np.ndarray:
    rgb = (image * 127.5 + 128).clip(0, 255).astype(np.uint8)
    alpha = rgb[..., 3:] if rgb.shape[2] == 4 else np.full_like(rgb[..., :1], 255)
    return np.ascontiguousarray(np.concatenate([rgb[..., 2::-1], alpha], axis=-1))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", [TEXT, '{"a": "' + "x" * 200_000 + '"}'], ids=["short", "beyond a JPEG segment"])
def test_every_format_gives_the_recipe_and_the_size_back(tmp_path: Path, name: FormatName, text: str) -> None:
    (tmp_path / "a").write_bytes(encode_frame(frame_of(), text, PictureFormat(name)))
    scan = scan_picture(tmp_path / "a", LIMIT)
    assert (scan.width, scan.height, scan.text, scan.is_whole) == (23, 19, text, True)


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_beyond_the_limit_is_not_read(tmp_path: Path, name: FormatName) -> None:
    (tmp_path / "a").write_bytes(encode_frame(frame_of(), "x" * 5000, PictureFormat(name)))
    scan = scan_picture(tmp_path / "a", 4000)
    assert scan.text is None
    assert "longer than" in scan.text_problem


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_lost_its_end_or_got_more_is_not_whole(tmp_path: Path, name: FormatName) -> None:
    data = encode_frame(frame_of(), TEXT, PictureFormat(name))
    for damaged in (data[:-1], data[: len(data) // 2], data[:20], data + b"\0"):
        (tmp_path / "a").write_bytes(damaged)
        assert not scan_picture(tmp_path / "a", LIMIT).is_whole


@pytest.mark.parametrize("name", ["jpeg", "webp"])
def test_a_side_that_a_format_cannot_store_is_refused_in_a_sentence(tmp_path: Path, name: FormatName) -> None:
    limit = FORMATS[name].max_side_px
    assert limit is not None
    frame = fake_frame(REQUEST)
    (tmp_path / "a").write_bytes(
        encode_frame(replace(frame, pixels=np.zeros((8, limit, 4), np.uint8)), TEXT, PictureFormat(name))
    )
    assert scan_picture(tmp_path / "a", LIMIT).width == limit
    with pytest.raises(ExportError, match="choose a smaller size or another format"):
        encode_frame(replace(frame, pixels=np.zeros((limit + 1, 8, 4), np.uint8)), TEXT, PictureFormat(name))


@pytest.mark.parametrize("name", NAMES)
def test_equal_frames_give_equal_bytes(name: FormatName) -> None:
    form = PictureFormat(name)
    assert encode_frame(frame_of(), TEXT, form) == encode_frame(frame_of(), TEXT, form)


@pytest.mark.parametrize("name", NAMES)
def test_any_change_of_a_byte_is_read_or_refused(tmp_path: Path, name: FormatName) -> None:
    data = encode_frame(frame_of(), TEXT, PictureFormat(name))
    rng = np.random.default_rng(1)
    for place in rng.integers(0, min(len(data), 900), 120):
        damaged = bytearray(data)
        damaged[place] = rng.integers(256)
        (tmp_path / "a").write_bytes(damaged)
        try:
            scan_picture(tmp_path / "a", LIMIT)
        except PictureError as error:
            assert error.sentence.endswith(".")  # noqa: PT017 - most changes are read


@pytest.mark.parametrize("form", [PictureFormat(), PictureFormat("png", None, "small"), PictureFormat("tiff")])
@pytest.mark.parametrize("has_alpha", [False, True])
def test_exact_formats_give_the_pixels_back(form: PictureFormat, has_alpha: bool) -> None:
    frame = frame_of(has_alpha=has_alpha)
    with Image.open(io.BytesIO(encode_frame(frame, TEXT, form))) as picture:
        assert picture.mode == ("RGBA" if has_alpha else "RGB")
        assert np.array_equal(np.asarray(picture), frame.to_rgb())


def test_webp_of_quality_100_is_exact() -> None:
    frame = frame_of()
    with Image.open(io.BytesIO(encode_frame(frame, TEXT, PictureFormat("webp", 100)))) as picture:
        assert np.array_equal(np.asarray(picture), frame.to_rgb())


@pytest.mark.parametrize("form", [PictureFormat("jpeg"), PictureFormat("webp")])
def test_lossy_formats_keep_the_colours(form: PictureFormat) -> None:
    frame = frame_of(64, 64)
    with Image.open(io.BytesIO(encode_frame(frame, TEXT, form))) as picture:
        difference = np.abs(np.asarray(picture.convert("RGB")).astype(int) - frame.to_rgb())
    assert difference.mean() < 2.5


def test_jpeg_shows_alpha_on_white() -> None:
    frame = frame_of(has_alpha=True)
    clear = replace(frame, pixels=frame.pixels * np.array([1, 1, 1, 0], np.uint8))
    with Image.open(io.BytesIO(encode_frame(clear, TEXT, PictureFormat("jpeg")))) as picture:
        assert np.asarray(picture).min() >= 254


@pytest.mark.parametrize("compression", ["fast", "small"])
def test_16_bit_png_holds_the_output_to_half_a_step(compression: str) -> None:
    frame = frame_of()
    data = encode_frame(frame, TEXT, PictureFormat("png16", None, compression))  # type: ignore[arg-type]
    assert frame.image is not None
    expected = np.rint((frame.image * 0.5 + 0.5).clip(0, 1) * 65535)
    assert np.abs(samples_of_png(data) - expected).max() <= 1


def test_exr_holds_linear_light_beyond_black_and_white() -> None:
    frame = frame_of(37, 29)
    assert frame.image is not None
    stored = floats_of_exr(encode_frame(frame, TEXT, PictureFormat("exr")), 37, 29)
    shown = frame.image * 0.5 + 0.5
    size = np.abs(shown)
    linear = np.sign(shown) * np.where(size <= 0.04045, size / 12.92, ((size + 0.055) / 1.055) ** 2.4)
    assert np.abs(stored - linear).max() < 1e-5
    assert stored.max() > 1.2
    assert stored.min() < -0.01


def test_a_float_format_of_a_frame_without_floats_is_refused() -> None:
    with pytest.raises(PictureError, match=r"render it again\.$"):
        encode_frame(replace(fake_frame(REQUEST), image=None), TEXT, PictureFormat("exr"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [(64, 64), (40, 20), (7, 30)])
def test_a_size_scales_and_crops(tmp_path: Path, name: FormatName, size: tuple[int, int]) -> None:
    (tmp_path / "a").write_bytes(encode_frame(frame_of(), TEXT, PictureFormat(name), size))
    scan = scan_picture(tmp_path / "a", LIMIT)
    assert (scan.width, scan.height) == size


def test_cropping_keeps_the_middle() -> None:
    pixels = np.zeros((30, 60, 4), np.uint8)
    pixels[:, 20:40] = 255
    frame = replace(fake_frame(REQUEST), pixels=pixels)
    with Image.open(io.BytesIO(encode_frame(frame, TEXT, PictureFormat(), (20, 30)))) as picture:
        assert np.asarray(picture).min() > 250


def test_png_without_isal_gives_the_same_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "isal", None)
    monkeypatch.setattr(deflate, "_compressor", deflate._compressor.__wrapped__)
    frame = frame_of()
    with Image.open(io.BytesIO(encode_frame(frame, TEXT, PictureFormat()))) as picture:
        assert np.array_equal(np.asarray(picture), frame.to_rgb())


def test_a_frame_of_random_pixels_comes_back_too() -> None:
    frame = fake_frame(REQUEST)
    with Image.open(io.BytesIO(encode_frame(frame, TEXT, PictureFormat("png", None, "small")))) as picture:
        assert picture.size == (SIDE_PX, SIDE_PX)
        assert np.array_equal(np.asarray(picture), frame.to_rgb())


def samples_of_png(data: bytes) -> np.ndarray:
    """Decode a 16-bit RGB PNG (PNG specification, section 9), since Pillow reads only its high bytes."""
    position, packed, width, height = 8, b"", 0, 0
    while position < len(data):
        length, kind = struct.unpack(">I4s", data[position : position + 8])
        body = data[position + 8 : position + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert (depth, colour) == (16, 2)
        if kind == b"IDAT":
            packed += body
        position += 12 + length
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, -1).astype(int)
    out = np.zeros((height, width * 6), int)
    for y, (kind, *row) in enumerate(rows.tolist()):
        for x, byte in enumerate(row):
            left = out[y, x - 6] if x >= 6 else 0
            above = out[y - 1, x] if y else 0
            corner = out[y - 1, x - 6] if y and x >= 6 else 0
            guess = left + above - corner
            paeth = min((left, above, corner), key=lambda value: abs(guess - value))
            out[y, x] = (byte + (0, left, above, (left + above) // 2, paeth)[kind]) % 256
    return out.astype(np.uint8).view(">u2").reshape(height, width, 3).astype(int)


def floats_of_exr(data: bytes, height: int, width: int) -> np.ndarray:
    """Decode scan lines of a ZIP-compressed file with float channels B, G, R, as the format's documentation says."""
    start = data.index(b"screenWindowWidth\0float\0") + len(b"screenWindowWidth\0float\0") + 4 + 4 + 1
    chunks = -(-height // 16)
    planes = np.empty((height, 3, width), np.float32)
    for place, offset in enumerate(struct.unpack(f"<{chunks}Q", data[start : start + 8 * chunks])):
        first, length = struct.unpack("<ii", data[offset : offset + 8])
        assert first == 16 * place
        lines = min(16, height - first)
        size = lines * 3 * width * 4
        packed = data[offset + 8 : offset + 8 + length]
        if length == size:
            whole = np.frombuffer(packed, np.uint8)
        else:
            halves = np.frombuffer(zlib.decompress(packed), np.uint8).astype(np.int64)
            halves[1:] -= 128
            halves = np.cumsum(halves).astype(np.uint8)
            whole = np.empty(size, np.uint8)
            whole[0::2], whole[1::2] = halves[: (size + 1) // 2], halves[(size + 1) // 2 :]
        planes[first : first + lines] = whole.view("<f4").reshape(lines, 3, width)
    return planes.transpose(0, 2, 1)[..., ::-1]


def test_the_checksum_of_chunks_is_that_of_zlib_with_and_without_isal(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = zlib.crc32(b"IDAT" + bytes(range(256)) * 999)
    assert deflate.checksum(bytes(range(256)) * 999, deflate.checksum(b"IDAT")) == expected
    monkeypatch.setitem(sys.modules, "isal", None)
    assert deflate._checksum.__wrapped__()(bytes(range(256)) * 999, zlib.crc32(b"IDAT")) == expected


@pytest.mark.parametrize("channels", [1, 2, 5])
def test_floats_of_other_channels_show_the_first_as_grey(tmp_path: Path, channels: int) -> None:
    image = np.linspace(-1, 1, 8 * 8 * channels, dtype=np.float32).reshape(8, 8, channels)
    pixels = bytes_of(np.repeat(image[..., :1], 3, axis=2))
    frame = replace(fake_frame(REQUEST), pixels=pixels, image=image)
    for name in ("png16", "exr"):
        (tmp_path / name).write_bytes(encode_frame(frame, TEXT, PictureFormat(name)))
        assert scan_picture(tmp_path / name, LIMIT).is_whole
    with Image.open(tmp_path / "png16") as picture:
        assert np.abs(np.asarray(picture.convert("RGB"), np.int16) - pixels[..., :3]).max() <= 1
