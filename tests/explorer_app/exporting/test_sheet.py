from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from explorer_app.exporting.destination import sink_of
from explorer_app.exporting.errors import ExportError, PictureError
from explorer_app.exporting.formats.picture_format import PictureFormat
from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.manifest import read_manifest
from explorer_app.exporting.picture import read_picture, write_picture
from explorer_app.exporting.picture_document import PictureDocument
from explorer_app.exporting.sequence import SequenceSettings, plan_sequence
from explorer_app.exporting.sheet import (
    SHEET_FORMATS,
    SheetDocument,
    SheetLayout,
    read_sheet,
    sheet_from_text,
    sheet_to_text,
    write_contact_sheet,
    write_grid_sheet,
)
from explorer_app.exporting.sinks.frame_sink import Claim, FramePlan
from explorer_app.exporting.sinks.video_file import VideoFile
from explorer_app.session.session import ModelReference
from gpu_backend import PICTURE_LIMITS, Disk, Frame, Latent, Point, Recipe, RenderRequest
from tests.helpers.fake_engine import fake_frame

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


def test_transparent_parts_of_pictures_show_the_paper(tmp_path: Path) -> None:
    Image.new("RGBA", (16, 16), (200, 100, 40, 0)).save(tmp_path / "clear.png")
    Image.new("RGBA", (16, 16), (200, 100, 40, 128)).save(tmp_path / "half.png")
    write_contact_sheet(tmp_path / "sheet.png", [tmp_path / "clear.png", tmp_path / "half.png"], columns=2, side_px=16)
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert [sheet.getpixel(place) for place in ((12, 12), (32, 12))] == [(0, 0, 0), (100, 50, 20)]
    frame = fake_frame(RenderRequest("m", ((Recipe(Latent(Point(((1, 1.0),)))), 1.0),)))
    pixels = np.full((8, 8, 4), 90, np.uint8)
    pixels[:, :4, 3], pixels[:, 4:, 3] = 0, 255
    frame = replace(frame, pixels=pixels, has_alpha=True)
    write_grid_sheet(tmp_path / "grid.png", {(0, 0): frame}, side_px=8)
    with Image.open(tmp_path / "grid.png") as sheet:
        assert [sheet.getpixel(place) for place in ((5, 8), (10, 8))] == [(0, 0, 0), (90, 90, 90)]


def test_pictures_keep_their_shape_on_a_contact_sheet_and_may_be_large(
    tmp_path: Path, pictures: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = tmp_path / "wide.png"
    Image.new("RGB", (64, 32), COLOURS[0]).save(wide)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    write_contact_sheet(tmp_path / "sheet.png", [wide, wide], columns=2, side_px=32)
    write_contact_sheet(tmp_path / "mixed.png", [wide, pictures[1]], columns=2, side_px=32)
    assert Image.MAX_IMAGE_PIXELS == 100, "other files are as suspicious as before"
    monkeypatch.undo()
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.size == (2 * 36 + 4, 16 + 8)
    with Image.open(tmp_path / "mixed.png") as sheet:
        assert sheet.size == (76, 40)
        assert [sheet.getpixel((20, y)) for y in (8, 20, 32)] == [(0, 0, 0), COLOURS[0], (0, 0, 0)]
        assert sheet.getpixel((56, 8)) == COLOURS[1]


def test_the_ending_says_the_format(tmp_path: Path, pictures: list[Path]) -> None:
    for name, kind in (("a.PNG", "PNG"), ("b.jpg", "JPEG"), ("c.jpeg", "JPEG")):
        write_contact_sheet(tmp_path / name, pictures, columns=3)
        with Image.open(tmp_path / name) as sheet:
            assert sheet.format == kind


def test_a_sheet_that_cannot_be_written_is_reported_in_a_sentence(tmp_path: Path, pictures: list[Path]) -> None:
    with pytest.raises(ExportError, match=r"^sheet\.png could not be written"):
        write_contact_sheet(pictures[0] / "sheet.png", pictures, columns=2)


MODEL = ModelReference("", "m", "ab" * 32)


def key(seed: int) -> Keyframe:
    return Keyframe(((Recipe(Latent(Point(((seed, 1.0),)))), 1.0),))


def request(seed: int) -> RenderRequest:
    return RenderRequest(MODEL.model_id, key(seed).blend)


def sheet_settings(folder: Path, **fields: object) -> SequenceSettings:
    settings = SequenceSettings(
        tuple(map(key, range(5))), folder, "walk", MODEL, "w-linear", 1, z_dim=8, sheet=SheetLayout(3)
    )
    return replace(settings, **fields)  # type: ignore[arg-type]


def export(settings: SequenceSettings, stop_after: int = -1) -> None:
    job = SequenceJob(settings, threads=1)
    job.start()
    count = 0
    while count != stop_after and job.wait():
        wanted = job.next_request()
        if wanted is not None:
            job.deliver(fake_frame(wanted))
            count += 1
    if count == stop_after:
        job.stop(cancelled=True)
    assert job.join(60)
    assert job.error is None


def test_pictures_with_recipes_keep_them_on_a_contact_sheet(tmp_path: Path, pictures: list[Path]) -> None:
    frame = fake_frame(request(7))
    write_picture(tmp_path / "a.png", frame, model_name="cats")
    write_contact_sheet(tmp_path / "sheet.png", [pictures[0], tmp_path / "a.png"], columns=2, side_px=32)
    sheet = read_sheet(tmp_path / "sheet.png")
    assert sheet is not None
    assert sheet.cells == (None, PictureDocument(request(7), "cats"))
    assert (sheet.place_at(20, 20), sheet.place_at(56, 20), sheet.place_at(38, 20)) == (None, 1, None)


def test_a_grid_of_frames_keeps_their_recipes_in_their_places(tmp_path: Path) -> None:
    frames = {(0, 1): fake_frame(request(1)), (1, 0): fake_frame(request(2))}
    write_grid_sheet(tmp_path / "grid.jpg", frames, side_px=16, model_name="m")
    sheet = read_sheet(tmp_path / "grid.jpg")
    assert sheet is not None
    assert sheet.cells == (None, PictureDocument(request(1), "m"), PictureDocument(request(2), "m"), None)


@pytest.mark.parametrize("name", SHEET_FORMATS)
def test_the_frames_of_a_sequence_become_a_sheet_with_the_recipe_of_each(tmp_path: Path, name: str) -> None:
    settings = sheet_settings(tmp_path, form=PictureFormat(name))  # type: ignore[arg-type]
    export(settings)
    path = tmp_path / f"walk{settings.form.ending}"
    assert {item.name for item in tmp_path.iterdir()} == {path.name, "walk.manifest.json"}
    sheet, plan = read_sheet(path), plan_sequence(settings)
    assert sheet is not None
    assert sheet.cells == tuple(plan.document(index) for index in range(5))
    manifest = read_manifest(settings.manifest_path)
    assert (manifest.state, manifest.settings.sheet) == ("complete", SheetLayout(3))
    if name in ("png", "tiff"):
        with Image.open(path) as image:
            pixels = np.asarray(image.convert("RGB"))
        for place in range(5):
            left, top = sheet.corner(place)
            side = sheet.cell[0]
            wanted = fake_frame(plan.request(place)).pixels[..., 2::-1]
            assert np.array_equal(pixels[top : top + side, left : left + side], wanted)


def test_a_sheet_of_a_size_centres_square_pictures_on_its_paper(tmp_path: Path) -> None:
    export(
        sheet_settings(tmp_path, size=(100, 80), sheet=SheetLayout(3, 2, "white"), form=PictureFormat("png", dpi=300))
    )
    sheet = read_sheet(tmp_path / "walk.png")
    assert sheet is not None
    assert (sheet.cell, sheet.at) == ((30, 30), (1, 7))
    with Image.open(tmp_path / "walk.png") as image:
        assert image.size == (100, 80)
        assert image.getpixel((0, 0)) == (255, 255, 255)
        assert round(image.info["dpi"][0]) == 300


def test_a_stopped_sheet_goes_on_and_gets_the_same_bytes(tmp_path: Path) -> None:
    export(sheet_settings(tmp_path / "whole"))
    export(sheet_settings(tmp_path / "two"), stop_after=2)
    assert not (tmp_path / "two" / "walk.png").exists()
    export(sheet_settings(tmp_path / "two"))
    for name in ("walk.png", "walk.manifest.json"):
        assert (tmp_path / "two" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"form": PictureFormat("exr")}, "A sheet is one of png"),
        ({"size": (16, 4)}, "do not fit"),
        ({"frames_per_step": 2000}, "takes 4,096 pictures"),
        ({"form": PictureFormat("webp"), "size": (16_384, 64)}, "A WebP file has sides of up to 16,383 pixels"),
    ],
)
def test_a_sheet_that_cannot_be_is_refused_with_a_sentence(
    tmp_path: Path, fields: dict[str, object], problem: str
) -> None:
    with pytest.raises(ExportError, match=problem):
        plan_sequence(sheet_settings(tmp_path, **fields))


def test_a_sheet_whose_format_takes_no_side_so_long_is_refused_at_its_first_picture(tmp_path: Path) -> None:
    settings = sheet_settings(tmp_path, form=PictureFormat("jpeg"), sheet=SheetLayout(columns=1, gap_px=1000))
    with pytest.raises(ExportError, match="A JPEG file has sides of up to 65,500 pixels"):
        export(replace(settings, frames_per_step=16))
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["walk.manifest.json"]


def test_a_sheet_is_no_picture_and_a_picture_no_sheet(tmp_path: Path) -> None:
    export(sheet_settings(tmp_path))
    with pytest.raises(PictureError):
        read_picture(tmp_path / "walk.png")
    write_picture(tmp_path / "a.png", fake_frame(request(1)), model_name="m")
    assert read_sheet(tmp_path / "a.png") is None


@pytest.mark.parametrize(
    "change",
    [('"version":1', '"version":2'), ('"cell":[8,8]', '"cell":[0,8]'), ('"cell":[8,8]', '"cell":8'), ("}", "")],
)
def test_a_damaged_sheet_is_refused_with_a_sentence(change: tuple[str, str]) -> None:
    text = sheet_to_text(SheetDocument(1, 4, (8, 8), (0, 0), (PictureDocument(request(1), "m"), None)))
    assert sheet_from_text(text).cells[1] is None
    with pytest.raises(PictureError):
        sheet_from_text(text.replace(*change))


def test_a_sheet_with_more_recipes_than_a_reader_takes_is_refused() -> None:
    document = PictureDocument(request(1), "m" * 4096)
    cells = -(-PICTURE_LIMITS.nbytes // 4096)
    with pytest.raises(PictureError, match="put fewer pictures on a sheet"):
        sheet_to_text(SheetDocument(1, 4, (8, 8), (0, 0), (document,) * cells))


class SilentSink:
    """Takes frames and stores none, like a video in the middle of a segment."""

    is_joining = False
    written = 0
    error = None
    is_ready = True

    def open(self, plan: FramePlan, claim: Claim, changed: Callable[[], None]) -> None:
        pass

    def resumable_from(self, index: int, should_stop: Callable[[], bool]) -> int | None:
        return index if index < 5 else None

    def accept(self, index: int, frame: Frame) -> None:
        pass

    def close(self, *, discard: bool) -> None:
        pass

    def check_whole(self) -> None:
        pass


def test_a_sheet_is_joined_once_its_cells_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = sheet_settings(tmp_path)
    sink = sink_of(settings, Disk(), 1)
    assert isinstance(sink, VideoFile)
    job, seen = SequenceJob(settings, sink=sink), []
    join = sink.codec.join

    def watched(*parts: Any) -> None:
        seen.append((job.is_joining, job.shown == job.total))
        join(*parts)

    monkeypatch.setattr(sink.codec, "join", watched)
    job.start()
    while job.wait():
        wanted = job.next_request()
        assert wanted is not None
        assert not job.is_joining
        job.deliver(fake_frame(wanted))
    assert job.join(60)
    assert (job.error, seen, job.is_joining) == (None, [(True, True)], False)


@pytest.mark.parametrize(("sheet", "shown"), [(SheetLayout(3), 2), (None, 0)])
def test_progress_counts_rendered_frames_of_one_file_and_stored_pictures(
    tmp_path: Path, sheet: SheetLayout | None, shown: int
) -> None:
    job = SequenceJob(sheet_settings(tmp_path, sheet=sheet), sink=SilentSink())
    job.start()
    for _ in range(2):
        assert job.wait()
        wanted = job.next_request()
        assert wanted is not None
        job.deliver(fake_frame(wanted))
    assert (job.shown, job.done) == (shown, 0)
    job.stop(cancelled=False)
    assert job.join(60)
