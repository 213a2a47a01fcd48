"""Pictures and manifests that earlier versions of the program wrote; no file here was made by this one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer_app.exporting.manifest import read_manifest
from explorer_app.exporting.picture import read_picture
from explorer_app.exporting.sequence import plan_sequence
from explorer_app.session.session import Session
from explorer_app.session.storage import load_session
from gpu_backend import DirectionAmount, Latent, MixSource, Noise, Point, Recipe, RowRange, Truncation, recipe_from_json

DATA = Path(__file__).parents[2] / "data"
FIRST = Recipe(Latent(Point(((3, 1.0),))), Truncation(0.7, 8))
LAST = Recipe(
    Latent(
        Point(((5, 0.25), (6, 0.75))),
        directions=(DirectionAmount("sefa/1", 2.5, RowRange(0, 3)),),
        mix=(MixSource(Latent(Point(((9, 1.0),))), (0.0, 1.0)),),
    ),
    Truncation(0.5),
)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_sequence_of_an_earlier_version_is_made_as_it_was_planned(version: int) -> None:
    manifest = read_manifest(DATA / "sequences" / f"version{version}" / "walk.manifest.json")
    settings = manifest.settings
    assert (settings.name, settings.kind, settings.frames_per_step, settings.loop) == ("walk", "w-cubic", 4, True)
    assert settings.model.model_id == "ab" * 32
    assert [key.blend for key in settings.keys] == [
        ((FIRST, 1.0),),
        ((FIRST, 0.5), (LAST, 0.5)),
        ((LAST, 1.0),),
    ]
    assert {key.noise for key in settings.keys} == {Noise("random", 7, 0.5)}
    assert (manifest.state, manifest.frames_written) == ("unfinished", 3)
    assert len(plan_sequence(settings)) == 12


def test_each_frame_of_a_sequence_of_version_1_is_the_one_that_its_manifest_lists() -> None:
    path = DATA / "sequences" / "version1" / "walk.manifest.json"
    told = json.loads(path.read_bytes())
    recipes = [recipe_from_json(item) for item in told["recipes"]]
    plan = plan_sequence(read_manifest(path).settings)
    for index, frame in enumerate(told["frames"]):
        blend = {recipes[place]: weight for place, weight in frame["blend"]}
        assert dict(plan.request(index).blend) == pytest.approx(blend)


def test_a_picture_of_version_1_brings_its_session_back() -> None:
    document = read_picture(DATA / "sessions" / "version1.png")
    session = document.session
    assert session is not None
    beside = load_session(DATA / "sessions" / "version1.loom")
    assert session == beside
    assert session != Session()
    assert document.request.model_id
