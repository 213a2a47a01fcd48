"""Manifests: what is written is read back, and what others wrote is read within bounds or refused with a sentence."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.manifest import VERSION, frames_total, manifest_bytes, read_manifest
from explorer_app.exporting.sequence import SequenceSettings, plan_sequence
from explorer_app.exporting.sheet import SheetLayout
from explorer_app.session.session import ModelReference
from gpu_backend import (
    MANIFEST_LIMITS,
    MASK_SIDE,
    Latent,
    LocalEdits,
    MaskedBlend,
    MixSource,
    Noise,
    PictureMask,
    Point,
    Recipe,
    RequestError,
    Transform,
    request_from_json,
    request_to_json,
)


def key(seed: int, seeds: int = 1) -> Keyframe:
    """A keyframe that is a mix of so many seeds."""
    point = Point(tuple((seed + place, 1.0 / seeds) for place in range(seeds)))
    return Keyframe(((Recipe(Latent(point)), 1.0),), Noise("random", seed, 0.3, (0.5, 2.0)))


@pytest.fixture
def settings(tmp_path: Path) -> SequenceSettings:
    turned = replace(key(2), transform=Transform(0.1, 0.2, 33.0, 1.5).matrix)
    model = ModelReference("/home/me/models/m.pkl", "m", "ab" * 32)
    return SequenceSettings((key(1), turned, key(3)), tmp_path, "walk", model, "w-cubic", 7, True, 64, 256)


def written(settings: SequenceSettings) -> Path:
    settings.manifest_path.write_bytes(manifest_bytes(settings, "unfinished", None))
    return settings.manifest_path


def sentence_for(path: Path) -> str:
    with pytest.raises(ExportError) as refusal:
        read_manifest(path)
    sentence = refusal.value.sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 400
    return sentence


def test_a_manifest_reads_back_equal_except_for_the_path_of_the_model(settings: SequenceSettings) -> None:
    found = read_manifest(written(settings))
    assert found.settings == replace(settings, model=replace(settings.model, path=""))
    assert (found.state, found.frames_written) == ("unfinished", None)
    assert found.settings.makes_the_same_as(settings)


def test_the_same_sequence_has_the_same_manifest_in_every_folder(settings: SequenceSettings, tmp_path: Path) -> None:
    elsewhere = replace(settings, folder=tmp_path / "elsewhere", model=replace(settings.model, path="C:\\m.pkl"))
    assert manifest_bytes(elsewhere, "complete", 21) == manifest_bytes(settings, "complete", 21)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "other"}, "something else"),
        ({"version": 99}, "another version"),
        ({"version": "2"}, "another version"),
        ({"name": "run"}, "run.manifest.json"),
        ({"name": None}, "damaged"),
        ({"path": "spiral"}, "damaged"),
        ({"keys": []}, "keyframes"),
        ({"keys": [[]]}, "keyframe"),
        ({"keys": [{"blend": []}]}, "blend"),
        ({"keys": [{"blend": [[{}, 1.0]], "noise": 3}]}, "noise"),
        ({"keys": [{"blend": [[{}, 1.0]], "transform": [1.0]}]}, "nine numbers"),
        ({"keys": [{"blend": [[{}, 10**400]]}]}, "damaged"),
        ({"frames_per_step": 0}, "frames_per_step"),
        ({"frames_per_step": True}, "frames_per_step"),
        ({"frames_per_step": 99_999}, "100,000 frames"),
        ({"z_dim": 10**9}, "z_dim"),
        ({"resolution": -1}, "resolution"),
        ({"model": None}, "damaged"),
        ({"files": []}, "files"),
        ({"files": {"format": "bmp"}}, "format"),
        ({"files": {"format": ["png"]}}, "format"),
        ({"files": {"format": "png", "compression": 3}}, "format"),
        ({"files": {"format": "jpeg", "quality": 0}}, "quality"),
        ({"files": {"format": "png", "quality": 50}}, "no quality"),
        ({"files": {"format": "png", "size": 5}}, "size"),
        ({"files": {"format": "png", "size": [5, 10**9]}}, "height"),
    ],
)
def test_a_wrong_field_gets_a_sentence(settings: SequenceSettings, change: dict[str, Any], words: str) -> None:
    path = written(settings)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert words in sentence_for(path)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[]", "null", '{"version": NaN}', "\ud800", "x" * 100])
def test_a_file_that_is_no_manifest_is_refused_with_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "walk.manifest.json").write_text(text, errors="surrogatepass")
    sentence_for(tmp_path / "walk.manifest.json")
    assert frames_total(text.encode(errors="surrogatepass")) == 0


def test_a_pipe_a_folder_and_a_missing_file_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.manifest.json")
    for path in (tmp_path / "pipe.manifest.json", tmp_path, tmp_path / "missing.manifest.json"):
        sentence_for(path)


def test_a_file_larger_than_a_writer_makes_is_refused_before_it_is_read(settings: SequenceSettings) -> None:
    path = written(settings)
    with path.open("r+b") as file:
        file.truncate(MANIFEST_LIMITS.nbytes + 1)
    assert "MB" in sentence_for(path)


@pytest.mark.parametrize("kind", ["w-cubic", "w-linear"])
def test_reader_and_writer_refuse_frames_of_too_many_seeds(settings: SequenceSettings, kind: Any) -> None:
    """Thousands of seeds fit into a small file, and each costs a run of the mapping network."""
    heavy = replace(settings, kind=kind, keys=tuple(key(place, 4000) for place in range(4)))
    with pytest.raises(ExportError, match=r"^A frame may hold 4,096 seeds, but those near keyframe 1 would hold more;"):
        plan_sequence(heavy)
    assert "4,096 seeds" in sentence_for(written(heavy))


def test_a_keyframe_that_is_no_picture_of_its_own_is_refused(settings: SequenceSettings) -> None:
    with pytest.raises(RequestError, match="seeds"):
        plan_sequence(replace(settings, keys=(key(1, 5000), key(2))))


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize("kind", ["w-cubic", "w-linear"])
def test_every_frame_of_a_plan_that_is_accepted_can_be_written(
    settings: SequenceSettings, kind: Any, loop: bool
) -> None:
    """The heaviest path that passes: each frame's request is within the budget of one picture."""
    count = 4096 // (32 if kind == "w-cubic" else 2)
    plan = plan_sequence(
        replace(settings, kind=kind, loop=loop, frames_per_step=2, keys=tuple(key(9 * k, count) for k in range(40)))
    )
    for index in (1, 39, 41, len(plan) - 2):
        request = plan.request(index)
        assert request_from_json(request_to_json(request)) == request


def test_mix_sources_count_as_well(settings: SequenceSettings) -> None:
    source = MixSource(Latent(Point(tuple((seed, 1.0) for seed in range(2500)))), (1.0,))
    mixed = Keyframe(((Recipe(Latent(mix=(source,))), 1.0),))
    with pytest.raises(ExportError, match="seeds"):
        plan_sequence(replace(settings, kind="w-linear", loop=True, keys=(mixed, mixed)))
    plan_sequence(replace(settings, kind="w-linear", keys=(mixed, key(1, 1500))))


def test_thousands_of_keyframes_are_read_without_solving_for_their_spline(settings: SequenceSettings) -> None:
    many = replace(settings, keys=tuple(key(place) for place in range(4096)), frames_per_step=1)
    assert len(read_manifest(written(many)).settings.keys) == 4096


def test_a_manifest_has_the_mask_of_a_blend_once(settings: SequenceSettings) -> None:
    mask = PictureMask(bytes([255]) + bytes(MASK_SIDE**2 - 1))
    edits = LocalEdits(blends=(MaskedBlend(Recipe(Latent(Point(((9, 1.0),)))), mask, strength=0.5),))
    blended = replace(settings, keys=tuple(replace(one, edits=edits) for one in settings.keys))
    path = written(blended)
    assert read_manifest(path).settings.keys == blended.keys
    assert path.read_text().count('"mask"') == 1


def test_ranges_of_frames_that_overlap_are_read_only_as_far_as_a_sequence_goes(
    settings: SequenceSettings,
) -> None:
    path = written(settings)
    total = settings.frame_count
    data = json.loads(path.read_bytes())
    path.write_text(json.dumps(data | {"made_on": {"gpu": [[0, total]] * 100_000, "cpu": [[0, 2]]}}))
    assert [item.device for item in read_manifest(path).made_on] == ["gpu"]


def test_a_transform_of_no_size_counts_as_rest(settings: SequenceSettings) -> None:
    path = written(settings)
    data = json.loads(path.read_bytes())
    data["keys"][1]["transform"] = [1e12, 0.0, 0.0, 0.0, 1e12, 0.0, 0.0, 0.0, 1.0]
    path.write_text(json.dumps(data))
    huge, transform = 1e12, plan_sequence(read_manifest(path).settings).request(1).transform
    assert transform is not None
    assert max(map(abs, transform)) < huge


@pytest.mark.parametrize(
    ("change", "version"),
    [
        ({}, 3),
        ({"sheet": SheetLayout(2)}, VERSION),
        ({"file_names": ("a", "b", "c"), "frames_per_step": 1, "loop": False}, VERSION),
    ],
)
def test_versions_of_the_program_that_do_not_know_what_a_manifest_asks_for_refuse_it(
    settings: SequenceSettings, change: dict[str, Any], version: int
) -> None:
    assert json.loads(manifest_bytes(replace(settings, **change), "unfinished", None))["version"] == version
