import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.formats.png import KEYWORD
from explorer_app.exporting.picture import encode_picture, read_picture, write_picture
from explorer_app.exporting.picture_document import PictureDocument
from explorer_app.session.edits import GoToSeed
from explorer_app.session.parameters import SetParameter
from explorer_app.session.resolve import resolve
from explorer_app.session.session import ModelReference, Position, Session, Slider, Source
from gpu_backend import Latent, Noise, Point, Recipe, RenderRequest, RowRange, Truncation, stored_latent
from gpu_backend.whole_file import part_name
from tests.helpers.failing_disk import FullDisk, dead_part
from tests.helpers.fake_engine import SIDE_PX, fake_frame

MODEL = ModelReference(path="/models/ffhq ü.pkl", name="ffhq ü", model_id="ab" * 32)
SESSION = Session(
    model=MODEL,
    position=Position(12.34, -5.6),
    truncation=Truncation(0.1 + 0.2, 8),
    noise=Noise("random", 7, 0.5, (1.0, 0.25)),
    classes=((3, 0.75), (1, 0.25)),
    sliders=(Slider("sefa/3", 1.7, RowRange(2, 5), "smile", True),),
    mix=(Source(Latent(Point(((9, 1.0),))), (0.0, 0.5, 1.0), "seed 9"),),
)


def test_a_saved_picture_gives_its_request_model_and_session_back(tmp_path: Path) -> None:
    frame = fake_frame(resolve(SESSION))
    write_picture(tmp_path / "a.png", frame, model_name=MODEL.name, session=SESSION)
    document = read_picture(tmp_path / "a.png")
    assert document == PictureDocument(frame.request, MODEL.name, SESSION)
    assert document.model == MODEL
    assert fake_frame(document.request).pixels.tobytes() == frame.pixels.tobytes()


@pytest.mark.parametrize("name", ["a.png", "a.JPG", "a.jpeg", "a.webp", "a.tif", "a.exr"])
def test_a_picture_of_any_format_gives_its_request_model_and_session_back(tmp_path: Path, name: str) -> None:
    frame = fake_frame(resolve(SESSION))
    image = np.zeros((SIDE_PX, SIDE_PX, 3), np.float32)
    write_picture(tmp_path / name, replace(frame, image=image), model_name=MODEL.name, session=SESSION)
    assert read_picture(tmp_path / name) == PictureDocument(frame.request, MODEL.name, SESSION)


def test_a_name_without_a_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"^a\.bmp should end in one of \.png, .*; choose another name\.$"):
        write_picture(tmp_path / "a.bmp", fake_frame(resolve(SESSION)), model_name="m")
    assert list(tmp_path.iterdir()) == []


def test_two_people_who_exchange_a_picture_exchange_its_stored_latents(tmp_path: Path) -> None:
    face = Latent(stored_latent(np.arange(24, dtype=np.float32).reshape(4, 6)))
    session = replace(SESSION, pinned_blend=((Recipe(face), 1.0),), mix=(Source(face, (0.5,), "face"),))
    frame = fake_frame(resolve(session))
    write_picture(tmp_path / "a.png", frame, model_name=MODEL.name, session=session)
    assert read_picture(tmp_path / "a.png") == PictureDocument(frame.request, MODEL.name, session)


def test_a_picture_without_a_session_gives_its_request_and_model_back(tmp_path: Path) -> None:
    recipe = Recipe(Latent(Point(((1, 0.3), (2, 0.7)), "z")), Truncation(-0.5, None))
    request = RenderRequest("cd" * 32, ((recipe, 0.4), (Recipe(), 0.6)), resolution=64)
    write_picture(tmp_path / "a.png", fake_frame(request), model_name="cats")
    document = read_picture(tmp_path / "a.png")
    assert document == PictureDocument(request, "cats", None)
    assert document.model == ModelReference("", "cats", "cd" * 32)


def test_the_pixels_and_the_recipe_are_there_for_any_other_program(tmp_path: Path) -> None:
    frame = fake_frame(resolve(SESSION))
    write_picture(tmp_path / "a.png", frame, model_name=MODEL.name, session=SESSION)
    with Image.open(tmp_path / "a.png") as image:
        assert image.mode == "RGB"
        assert image.size == (SIDE_PX, SIDE_PX)
        assert image.tobytes() == frame.to_rgb().tobytes()
        text = json.loads(image.info[KEYWORD])
    assert text["format"] == "latent-loom-picture"
    assert text["version"] == 1
    assert text["model"] == {"name": MODEL.name, "sha256": MODEL.model_id}
    assert text["request"]["model"] == MODEL.model_id
    assert text["session"]["format"] == "latent-loom-session"


def test_alpha_is_kept(tmp_path: Path) -> None:
    frame = fake_frame(resolve(SESSION), has_alpha=True)
    write_picture(tmp_path / "a.png", frame, model_name="")
    with Image.open(tmp_path / "a.png") as image:
        assert image.mode == "RGBA"
        assert image.tobytes() == frame.to_rgb().tobytes()


def test_the_same_frame_always_gives_the_same_bytes() -> None:
    document = PictureDocument(resolve(SESSION), MODEL.name, SESSION)
    first = encode_picture(fake_frame(document.request), document)
    assert first == encode_picture(fake_frame(document.request), document)
    assert b"tIME" not in first


def test_a_name_that_is_no_unicode_is_kept_too(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png", fake_frame(resolve(SESSION)), model_name="na\udcffme")
    assert read_picture(tmp_path / "a.png").model_name == "na\udcffme"


def test_saving_replaces_an_older_picture_and_makes_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.png"
    for session in (SESSION, GoToSeed(5).apply(SESSION)):
        write_picture(path, fake_frame(resolve(session)), model_name="m", session=session)
    assert read_picture(path).session == GoToSeed(5).apply(SESSION)
    assert [item.name for item in path.parent.iterdir()] == ["a.png"]


@pytest.mark.parametrize("stage", ["write", "move"])
def test_a_full_disk_leaves_the_older_picture_and_no_rest(tmp_path: Path, stage: str) -> None:
    path = tmp_path / "a.png"
    write_picture(path, fake_frame(resolve(SESSION)), model_name="m")
    before = path.read_bytes()
    other = SetParameter("slider/axis/1", 2.0).apply(SESSION)
    with pytest.raises(ExportError, match=r"^The disk is full, so a\.png in .*: make room and do the same again\.$"):
        write_picture(path, fake_frame(resolve(other)), model_name="m", disk=FullDisk(0, stage))
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["a.png"]


def test_a_folder_that_cannot_be_made_is_reported_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match=r"^a\.png could not be written to .*file \(.+\); choose a folder"):
        write_picture(tmp_path / "file" / "a.png", fake_frame(resolve(SESSION)), model_name="m")


def test_leftovers_of_an_interrupted_save_are_removed_by_the_next(tmp_path: Path) -> None:
    (tmp_path / dead_part("a.png")).write_bytes(b"half")
    live = part_name("b.png", os.getppid())
    (tmp_path / live).write_bytes(b"of another program, which still writes")
    write_picture(tmp_path / "a.png", fake_frame(resolve(SESSION)), model_name="m")
    assert sorted(item.name for item in tmp_path.iterdir()) == [live, "a.png"]


def test_a_recipe_that_could_not_be_read_back_is_not_written(tmp_path: Path) -> None:
    source = Source(Latent(), (0.123456789,) * 4000, "x")
    session = replace(SESSION, mix=(source,) * 200)
    with pytest.raises(ExportError.__mro__[1], match=r"^A picture's recipe has at most 4 MB, but this one has "):
        write_picture(tmp_path / "a.png", fake_frame(resolve(SESSION)), model_name="m", session=session)
    assert list(tmp_path.iterdir()) == []
