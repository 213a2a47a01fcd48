import contextlib
import json
import os
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from explorer_app.exporting.errors import PictureError
from explorer_app.exporting.picture import encode_picture, read_picture
from explorer_app.exporting.picture_document import PictureDocument
from gpu_backend import PICTURE_LIMITS, RenderRequest
from tests.helpers.fake_engine import fake_frame
from tests.helpers.strategies import examples, texts

REQUEST = RenderRequest("ab" * 32)
GOOD = encode_picture(fake_frame(REQUEST), PictureDocument(REQUEST, "m"))
SIGNATURE = b"\x89PNG\r\n\x1a\n"
QUICK = settings(deadline=None, max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(*chunks: bytes, width: int = 1, height: int = 1) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return SIGNATURE + head + b"".join(chunks) + chunk(b"IDAT", zlib.compress(b"\0\0\0\0")) + chunk(b"IEND", b"")


def with_text(text: bytes, *, compressed: bool = False) -> bytes:
    data = zlib.compress(text, 9) if compressed else text
    return png(chunk(b"iTXt", b"latentloom\0" + bytes([compressed, 0]) + b"\0\0" + data))


def good_text() -> dict[str, Any]:
    return {
        "format": "latent-loom-picture",
        "version": 1,
        "request": {"model": "ab", "blend": [[{"latent": {}, "psi": 1.0}, 1.0]]},
        "model": {"name": "m", "sha256": "ab"},
    }


def sentence_for(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(PictureError) as refusal:
        read_picture(path)
    sentence = refusal.value.sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 400
    return sentence


def test_a_picture_of_another_program_is_distinguished(tmp_path: Path) -> None:
    sentence = sentence_for(tmp_path / "a.png", png(chunk(b"tEXt", b"Software\0other")))
    assert sentence.startswith("This picture holds no Latent Loom recipe: a.png was made by another program")


def test_a_file_without_a_picture_is_refused_with_a_sentence(tmp_path: Path) -> None:
    for data in (b"", b"GIF89a", b"\x89PNG", b"# text"):
        assert "should be a PNG, JPEG, WebP, AVIF, TIFF or EXR file" in sentence_for(tmp_path / "a.png", data)


def test_a_folder_a_pipe_and_a_missing_file_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "missing.png", tmp_path / ("long" * 200), Path("nul\0.png")):
        with pytest.raises(PictureError, match=r"\.$"):
            read_picture(path)


def test_a_compressed_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(with_text(json.dumps(good_text()).encode(), compressed=True))
    assert read_picture(tmp_path / "a.png").model_name == "m"


def test_a_recipe_is_found_behind_the_pixels_too(tmp_path: Path) -> None:
    text = chunk(b"iTXt", b"latentloom\0\0\0\0\0" + json.dumps(good_text()).encode())
    (tmp_path / "a.png").write_bytes(png()[: -len(chunk(b"IEND", b""))] + text + chunk(b"IEND", b""))
    assert read_picture(tmp_path / "a.png").model_name == "m"


@pytest.mark.parametrize(
    "make",
    [
        lambda: with_text(b" " * (64 << 20), compressed=True),
        lambda: with_text(b"[" * (6 << 20)),
        lambda: png(width=2**31 - 1, height=2**31 - 1),
        lambda: SIGNATURE + struct.pack(">I", 2**31 - 1) + b"iTXt" + b"latentloom\0",
        lambda: SIGNATURE + b"\0\0\0\0abcd\0\0\0\0" * 300_000,
    ],
    ids=["a text that unpacks to 64 MB", "a long text", "a picture of 2^62 pixels", "a lying length", "many chunks"],
)
def test_a_file_made_to_exhaust_memory_takes_little(tmp_path: Path, make: Callable[[], bytes]) -> None:
    (tmp_path / "a.png").write_bytes(make())
    tracemalloc.start()
    try:
        with pytest.raises(PictureError):
            read_picture(tmp_path / "a.png")
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (b"not json", "not JSON"),
        (b"\xff\xfe", "The recipe of a.png is damaged"),
        (b"[" * 100_000, "not JSON"),
        (b'{"format": "latent-loom-picture", "version": NaN}', "not JSON"),
        (b"[]", "'latent-loom-picture'"),
        (b'{"format": "latent-loom-picture"}', "version"),
        (b'{"format": "latent-loom-picture", "version": true}', "version"),
        (b'{"format": "latent-loom-picture", "version": 2}', "newer Latent Loom"),
        (b'{"format": "latent-loom-picture", "version": 1}', "damaged"),
        (json.dumps({**good_text(), "session": {"format": "x"}}).encode(), "damaged"),
        (json.dumps(good_text()).replace("1.0]", "1" + "0" * 400 + "]").encode(), "damaged"),
        (json.dumps(good_text()).replace("1.0]", "1" * 5000 + "]").encode(), "not JSON"),
        (json.dumps(good_text()).replace("1.0]", "1e999]").encode(), "damaged"),
    ],
)
def test_a_wrong_recipe_gets_a_sentence_that_says_what_is_wrong(tmp_path: Path, text: bytes, part: str) -> None:
    assert part in sentence_for(tmp_path / "a.png", with_text(text))


def test_a_recipe_with_a_wrong_checksum_does_not_count_and_is_called_damaged(tmp_path: Path) -> None:
    data = bytearray(with_text(json.dumps(good_text()).encode()))
    data[data.index(b"ab")] ^= 1
    assert "The recipe of a.png is damaged" in sentence_for(tmp_path / "a.png", bytes(data))


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("surplus", [1, 2000])
def test_a_recipe_that_is_too_long_is_refused_for_its_length(tmp_path: Path, compressed: bool, surplus: int) -> None:
    text = b" " * (PICTURE_LIMITS.nbytes + surplus)
    assert sentence_for(tmp_path / "a.png", with_text(text, compressed=compressed)) == (
        "The recipe of a.png is longer than the 4 MB that a recipe may have; save the picture again with Latent Loom."
    )


def test_a_long_text_of_another_program_does_not_count_as_a_recipe(tmp_path: Path) -> None:
    other = chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + b" " * (5 << 20))
    assert "holds no Latent Loom recipe" in sentence_for(tmp_path / "a.png", png(other))
    recipe = chunk(b"iTXt", b"latentloom\0\0\0\0\0" + json.dumps(good_text()).encode())
    (tmp_path / "a.png").write_bytes(png(other, recipe))
    assert read_picture(tmp_path / "a.png").model_name == "m"


@QUICK
@given(st.binary(max_size=400))
def test_random_bytes_are_refused_with_a_sentence(tmp_path: Path, data: bytes) -> None:
    sentence_for(tmp_path / "a.png", data)
    sentence_for(tmp_path / "a.png", SIGNATURE + data)


@QUICK
@given(st.data())
def test_a_damaged_picture_is_refused_or_gives_the_same_recipe(tmp_path: Path, data: st.DataObject) -> None:
    damaged = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "a.png"
    path.write_bytes(bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))
    with contextlib.suppress(PictureError):
        assert read_picture(path).request == REQUEST


@QUICK
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | texts(8),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts(8), inner, max_size=4),
        max_leaves=12,
    ),
    st.sampled_from(["request", "session", "model", "version", "blend", "noise", "latent", "psi", "seeds"]),
)
def test_any_json_in_place_of_a_field_is_read_or_refused(tmp_path: Path, value: Any, field: str) -> None:
    document = good_text()
    recipe = document["request"]["blend"][0][0]
    for holder in (document, document["request"], recipe, recipe["latent"]):
        holder[field] = value
    path = tmp_path / "a.png"
    path.write_bytes(with_text(json.dumps(document).encode()))
    with contextlib.suppress(PictureError):
        read_picture(path)
