"""``latentloom project``: files in, w rows out, and what is refused."""

from __future__ import annotations

import argparse
import errno
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from explorer_app.cli import projection
from explorer_app.cli.arguments import UsageError
from explorer_app.cli.projection import _jobs
from explorer_app.exporting.picture import read_picture
from gpu_backend import PhotoTuning, Projection, read_latent, read_model
from tests.helpers.command import Command
from tests.helpers.networks import make_stylegan2

QUICK = ("--steps", 3, "--candidates", 2)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    Image.new("RGB", (20, 30), (90, 140, 60)).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def test_a_picture_becomes_w_rows_of_the_bundled_model(command: Command, photo: Path) -> None:
    out = photo.parent / "new" / "photo.npz"
    outcome = command("project", photo, "--out", out, *QUICK)
    assert outcome.status == 0, outcome.err
    assert "holds the w rows of photo.png: PSNR " in outcome.err
    spec = make_stylegan2(seed=1).spec
    assert (read_latent(out).num_ws, read_latent(out).w_dim) == (spec.num_ws, spec.w_dim)
    again = command("project", photo, "--out", out, *QUICK)
    assert "already exists" in again.sentence
    assert command("project", photo, "--out", out, "--overwrite", *QUICK).status == 0


def test_the_same_words_give_the_same_rows(command: Command, networks: Path, photo: Path) -> None:
    rows = []
    for name in ("one.npy", "two.npy"):
        words = ("project", photo, "--network", networks / "other.safetensors", "--out", photo.parent / name, *QUICK)
        assert command(*words).status == 0
        rows.append(np.load(photo.parent / name))
    np.testing.assert_array_equal(rows[0], rows[1])


def test_a_folder_of_pictures_becomes_a_folder_of_w_rows(command: Command, photo: Path) -> None:
    folder = photo.parent / "photos"
    folder.mkdir()
    for name in ("b.jpg", "a.png"):
        Image.new("RGB", (16, 16)).save(folder / name)
    (folder / "notes.txt").write_text("no picture")
    assert command("project", folder, "--out", photo.parent / "out", *QUICK).status == 0
    assert sorted(path.name for path in (photo.parent / "out").iterdir()) == ["a.npz", "b.npz"]


@pytest.mark.parametrize(("platform", "is_refused"), [("linux", False), ("darwin", True), ("win32", True)])
def test_pictures_of_one_name_would_replace_each_others_rows(
    tmp_path: Path, platform: str, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("Hills.png", "hills.jpg"):
        Image.new("RGB", (8, 8)).save(tmp_path / name)
    monkeypatch.setattr(sys, "platform", platform)
    options = argparse.Namespace(source=tmp_path, out=tmp_path / "out")
    if is_refused:
        with pytest.raises(UsageError, match="differ only in their suffix"):
            _jobs(options)
    else:
        assert [target.name for _, target in _jobs(options)] == ["Hills.npz", "hills.npz"]


def test_a_folder_that_was_stopped_goes_on_with_the_pictures_that_are_left(command: Command, tmp_path: Path) -> None:
    photos, out = tmp_path / "photos", tmp_path / "out"
    photos.mkdir()
    out.mkdir()
    for name in ("a.png", "b.png"):
        Image.new("RGB", (16, 16)).save(photos / name)
    (out / "a.npz").write_text("of the first run")
    words = ("project", photos, "--out", out, *QUICK)
    assert "--resume" in command(*words).sentence
    outcome = command(*words, "--resume")
    assert outcome.status == 0, outcome.err
    assert "1 of 2 pictures have their files already." in outcome.err
    assert (out / "a.npz").read_text() == "of the first run"
    read_latent(out / "b.npz")
    assert command(*words, "--resume").status == 0
    assert "not allowed with" in command(*words, "--resume", "--overwrite").sentence
    refused = command("project", photos, "--out", tmp_path / "rows.npz", *QUICK)
    assert "rows.npz is the name of a file" in refused.sentence
    assert not (tmp_path / "rows.npz").exists()


def test_a_tuned_model_is_kept_beside_the_rows_and_opens(command: Command, networks: Path, photo: Path) -> None:
    out, base = photo.parent / "photo.npz", networks / "other.safetensors"
    words = ("project", photo, "--network", base, "--out", out, *QUICK, "--tune", 2)
    outcome = command(*words)
    assert outcome.status == 0, outcome.err
    assert "tuned to photo.png: PSNR " in outcome.err
    tuned = read_model(photo.parent / "photo.safetensors")
    assert tuned.facts.flavour == "tuned to photo.png"
    assert any((tuned.weights[name] != array).any() for name, array in read_model(base).weights.items())
    out.unlink()
    assert "photo.safetensors already exists" in command(*words).sentence


def test_a_tuned_model_is_tuned_again_and_never_replaces_its_model(
    command: Command, networks: Path, photo: Path
) -> None:
    base, folder = networks / "other.safetensors", photo.parent
    for network, name in ((base, "once"), (folder / "once.safetensors", "twice")):
        words = ("project", photo, "--network", network, "--out", folder / f"{name}.npz", *QUICK, "--tune", 2)
        assert command(*words).status == 0
    assert read_model(folder / "twice.safetensors").facts.flavour == "tuned to photo.png"
    again = ("project", photo, "--network", folder / "once.safetensors", "--out", folder / "once.npz", *QUICK)
    assert "is the model that is tuned" in command(*again, "--tune", 2, "--overwrite").sentence
    assert command(*again, "--overwrite").status == 0


def test_a_damaged_picture_of_a_folder_is_named_and_the_others_are_projected(command: Command, photo: Path) -> None:
    (photo.parent / "broken.png").write_bytes(b"\x89PNG")
    outcome = command("project", photo.parent, "--out", photo.parent / "out", *QUICK)
    assert outcome.status == 2
    assert "broken.png should be a picture" in outcome.err
    assert "1 of 2 files could not be read" in outcome.err
    assert (photo.parent / "out" / "photo.npz").exists()


def test_a_stop_keeps_the_best_rows_so_far(command: Command, photo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Projection.step

    def interrupted(projection: Projection) -> object:
        if projection.report.step == 2 and projection.report.stage == "w":
            raise KeyboardInterrupt
        return plain(projection)

    monkeypatch.setattr(Projection, "step", interrupted)
    out = photo.parent / "photo.npz"
    words = ("project", photo, "--out", out, "--steps", 5, "--candidates", 2)
    outcome = command(*words)
    assert outcome.status == 130
    assert "photo.png, stopped early" in outcome.err
    assert read_latent(out).num_ws > 0
    first = out.read_bytes()
    outcome = command(*words, "--resume")
    assert outcome.status == 130, "rows of a search that was stopped are not its result"
    assert "0 of 1 pictures have their files already." in outcome.err
    assert "of an earlier search" in outcome.err
    assert out.read_bytes() == first
    monkeypatch.setattr(Projection, "step", plain)
    assert command(*words, "--resume").status == 0
    assert out.read_bytes() != first
    assert "1 of 1 pictures have their files already." in command(*words, "--resume").err
    assert sorted(path.name for path in photo.parent.iterdir()) == ["photo.npz", "photo.png"]


def test_a_tuned_model_that_was_stopped_is_made_again(
    command: Command, photo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = PhotoTuning.step

    def interrupted(tuning: PhotoTuning) -> object:
        if tuning.report.step == 1:
            raise KeyboardInterrupt
        return plain(tuning)

    monkeypatch.setattr(PhotoTuning, "step", interrupted)
    out = photo.parent / "photo.npz"
    words = ("project", photo, "--out", out, *QUICK, "--tune", 2)
    assert command(*words).status == 130
    tuned = photo.parent / "photo.safetensors"
    first = tuned.read_bytes()
    outcome = command(*words[:-1], 3, "--resume")
    assert outcome.status == 130
    assert "by an earlier search" in outcome.err
    assert tuned.read_bytes() == first
    monkeypatch.setattr(PhotoTuning, "step", plain)
    outcome = command(*words, "--resume")
    assert outcome.status == 0, outcome.err
    assert "tuned to photo.png: PSNR " in outcome.err
    assert "1 of 1 pictures have their files already." in command(*words, "--resume").err


def test_a_model_or_picture_that_cannot_be_projected_is_refused_with_a_sentence(command: Command, photo: Path) -> None:
    folder, out = photo.parent, photo.parent / "x.npz"
    assert "name a picture or a folder" in command("project", folder / "none.png", "--out", out).sentence
    assert "should end in .npz" in command("project", photo, "--out", folder / "x.png").sentence
    assert "should be a folder" in command("project", folder, "--out", photo).sentence
    (folder / "empty").mkdir()
    assert "holds no pictures" in command("project", folder / "empty", "--out", out).sentence
    assert "from 1 to 100,000" in command("project", photo, "--out", out, "--steps", 0).sentence
    assert "from 0 up" in command("project", photo, "--out", out, "--seed", -1).sentence


def test_a_picture_of_a_pixel_is_refused_and_the_others_of_its_folder_are_projected(
    command: Command, photo: Path
) -> None:
    folder = photo.parent
    Image.new("RGB", (1, 1)).save(folder / "dot.png")
    sentence = command("project", folder / "dot.png", "--out", folder / "dot.npz", *QUICK).sentence
    assert sentence == "dot.png should have at least 16 x 16 pixels, but has 1 x 1."
    outcome = command("project", folder, "--out", folder / "out", *QUICK)
    assert outcome.status == 2
    assert sentence in outcome.err
    assert [path.name for path in (folder / "out").iterdir()] == ["photo.npz"]


def test_what_was_found_for_a_photo_is_rendered(command: Command, photo: Path) -> None:
    found, out = photo.parent / "photo.npz", photo.parent / "out"
    assert command("project", photo, "--out", found, *QUICK).status == 0
    outcome = command("render", "--from", found, "--outdir", out)
    assert outcome.status == 0, outcome.err
    assert read_picture(out / "photo.png").request.blend[0][0].latent.point == read_latent(found)


def test_a_full_disk_is_answered_with_what_continues(
    command: Command, photo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, latent: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(projection, "write_latent", full)
    sentence = command("project", photo, "--out", photo.parent / "photo.npz", *QUICK).sentence
    assert sentence.startswith("The disk is full, so photo.npz in ")
    assert "search again with --resume" in sentence
    monkeypatch.undo()
    assert command("project", photo, "--out", photo.parent / "photo.npz", "--resume", *QUICK).status == 0
