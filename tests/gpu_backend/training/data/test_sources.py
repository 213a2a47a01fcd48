"""Sources show the same pictures in the same order, from wherever they go on."""

from __future__ import annotations

import contextlib
import io
import zipfile
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from gpu_backend.errors import RequestError
from gpu_backend.training.data import open_source
from gpu_backend.training.data.prefetch import Prefetch
from gpu_backend.training.data.reference import fingerprint
from gpu_backend.training.data.source import DataError, shuffled

CPU = torch.device("cpu")
PICTURES = 7


def png(number: int, size: tuple[int, int] = (16, 16)) -> bytes:
    target = io.BytesIO()
    Image.new("RGB", size, (number * 20, 255 - number * 20, 7)).save(target, "PNG")
    return target.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "pictures"
    (place / "more").mkdir(parents=True)
    for number in range(PICTURES):
        (place / ("more" if number % 2 else ".") / f"{number}.png").write_bytes(png(number))
    (place / "notes.txt").write_text("no picture")
    return place


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "pictures.zip"
    with zipfile.ZipFile(path, "w") as file:
        for number in range(PICTURES):
            file.writestr(f"in/{number}.png", png(number))
    return path


def numbers(batch: torch.Tensor) -> list[int]:
    assert batch.dtype == torch.uint8
    assert (batch == batch[:, :, :1, :1]).all()
    return [int(value) // 20 for value in batch[:, 0, 0, 0]]


@pytest.mark.parametrize("kind", ["folder", "archive"])
def test_files_come_in_one_order_that_goes_on_at_any_position(kind: str, request: pytest.FixtureRequest) -> None:
    place: Path = request.getfixturevalue(kind)
    with contextlib.closing(open_source(str(place), 8, CPU)) as source:
        whole = [number for batch in islice(source.batches(3, 5, 0), 7) for number in numbers(batch)]
        assert sorted(whole[:PICTURES]) == sorted(whole[PICTURES : 2 * PICTURES]) == list(range(PICTURES))
        assert whole[:PICTURES] != whole[PICTURES : 2 * PICTURES]
        later = [number for batch in islice(source.batches(3, 5, 12), 3) for number in numbers(batch)]
        assert later == whole[12:21]
        other = [number for batch in islice(source.batches(3, 6, 0), 7) for number in numbers(batch)]
        assert other != whole
        assert f"{PICTURES} pictures" in source.name


@pytest.mark.parametrize("kind", ["folder", "archive"])
def test_what_a_mac_puts_beside_every_file_is_no_picture(kind: str, request: pytest.FixtureRequest) -> None:
    place: Path = request.getfixturevalue(kind)
    before = fingerprint(place)
    if kind == "folder":
        (place / "._0.png").write_bytes(b"attributes")
        assert fingerprint(place) == before, "the pictures are the same"
    else:
        with zipfile.ZipFile(place, "a") as file:
            file.writestr("__MACOSX/in/._0.png", b"attributes")
    with contextlib.closing(open_source(str(place), 8, CPU)) as source:
        assert source.name.endswith(f"{PICTURES} pictures")
        (batch,) = islice(source.batches(PICTURES, 5, 0), 1)
        assert sorted(numbers(batch)) == list(range(PICTURES))


def test_pictures_are_cropped_to_their_middle(tmp_path: Path) -> None:
    picture = np.zeros((20, 60, 3), np.uint8)
    picture[:, 20:40] = 200
    (tmp_path / "in").mkdir()
    Image.fromarray(picture).save(tmp_path / "in" / "wide.png")
    with contextlib.closing(open_source(str(tmp_path / "in"), 8, CPU)) as source:
        batch = next(source.batches(1, 0, 0))
    assert batch.shape == (1, 3, 8, 8)
    assert (batch == 200).all()


def test_an_unreadable_source_is_one_sentence(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(RequestError, match=r"there is no .*nowhere"):
        open_source(str(tmp_path / "nowhere"), 8, CPU)
    with pytest.raises(DataError, match="cannot be read as one"):
        open_source(str(folder / "0.png"), 8, CPU)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="empty has none"):
        open_source(str(tmp_path / "empty"), 8, CPU)
    (folder / "0.png").write_bytes(b"no picture at all")
    with (
        contextlib.closing(open_source(str(folder), 8, CPU)) as source,
        pytest.raises(DataError, match=r"0\.png of pictures should be a picture"),
    ):
        list(islice(source.batches(PICTURES, 0, 0), 1))


def test_every_picture_is_shown_once_before_any_comes_again() -> None:
    first = list(islice(shuffled(10, 1, 0), 30))
    assert [sorted(first[start : start + 10]) for start in (0, 10, 20)] == [list(range(10))] * 3
    assert list(islice(shuffled(10, 1, 13), 17)) == first[13:]


def test_the_world_depends_on_seed_and_position_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpu_backend.training.data import world

    def draw(factors: torch.Tensor, seeds: torch.Tensor, side: int, *, device: torch.device) -> torch.Tensor:
        values = (factors[:, 0] + (seeds % 13) / 13.0) / 2 - 0.5
        return values[:, None, None, None].expand(-1, 3, side, side)

    monkeypatch.setattr(world, "draw", draw)
    monkeypatch.setattr(world, "sample_factors", lambda count, generator: torch.rand(count, 2, generator=generator))
    with contextlib.closing(open_source("world", 8, CPU)) as source:
        whole = torch.cat(list(islice(source.batches(40, 1, 0), 4)))
        assert torch.equal(torch.cat(list(islice(source.batches(16, 1, 48), 7))), whole[48:160])
        assert not torch.equal(next(source.batches(40, 2, 0)), whole[:40])
    assert len(whole[:, 0, 0, 0].unique()) > 50


def test_batches_are_loaded_ahead_in_order_and_the_thread_ends(folder: Path) -> None:
    with contextlib.closing(open_source(str(folder), 8, CPU)) as source:
        expected = [numbers(batch) for batch in islice(source.batches(2, 0, 4), 5)]
        with contextlib.closing(Prefetch(source, 2, 0, 4, CPU)) as prefetch:
            assert [numbers(batch) for batch in islice(prefetch, 5)] == expected


def test_an_error_while_loading_is_raised_where_the_batch_is_wanted(folder: Path) -> None:
    for path in folder.rglob("*.png"):
        path.write_bytes(b"gone")
    with (
        contextlib.closing(open_source(str(folder), 8, CPU)) as source,
        contextlib.closing(Prefetch(source, 2, 0, 0, CPU)) as prefetch,
        pytest.raises(DataError, match="cannot be read"),
    ):
        next(prefetch)


def test_a_damaged_picture_of_a_zip_of_another_kind_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "pictures.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("0.png", png(0))
        start = archive.infolist()[0].header_offset + 30 + len("0.png") + 9
    content = bytearray(path.read_bytes())
    content[start : start + 40] = b"\xff" * 40
    path.write_bytes(content)
    with (
        contextlib.closing(open_source(str(path), 16, CPU)) as source,
        pytest.raises(DataError, match="cannot be read"),
    ):
        next(source.batches(1, 0, 0))


def test_grey_pictures_of_sixteen_bits_are_not_white(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 3
    levels = np.full((16, 16), 100 * 257, np.uint16)
    levels[8:] = 200 * 257
    Image.fromarray(levels).save(tmp_path / "grey.png", exif=exif)
    with contextlib.closing(open_source(str(tmp_path), 16, CPU)) as source:
        (picture,) = next(iter(source.batches(1, 0, 0)))
    assert picture[:, 0].eq(200).all(), "turned as its EXIF data says"
    assert picture[:, 15].eq(100).all()
