from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from explorer_app.exporting.claim import place_objection
from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.formats.picture_format import PictureFormat
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.sequence import SequenceSettings, plan_sequence
from explorer_app.exporting.video.video_format import VideoFormat
from explorer_app.session.session import ModelReference
from gpu_backend import Latent, Noise, PathKind, Point, Recipe, RequestError, Transform, Truncation

TURNED = Transform(0.1, 0.0, 30.0).matrix


def key(seed: int) -> Keyframe:
    blend = ((Recipe(Latent(Point(((seed, 1.0),))), Truncation(0.7)), 1.0),)
    return Keyframe(blend, Noise("random", 3), TURNED)


SETTINGS = SequenceSettings(
    keys=(key(1), key(2), key(3)),
    folder=Path("out"),
    name="walk",
    model=ModelReference("m.pkl", "m", "ab" * 32),
    kind="w-linear",
    frames_per_step=4,
)


@pytest.mark.parametrize("kind", ["w-linear", "w-cubic", "w-slerp", "z-linear", "z-slerp"])
@pytest.mark.parametrize("loop", [False, True])
def test_every_frame_has_a_request_and_keys_stand_where_they_should(kind: PathKind, loop: bool) -> None:
    settings = replace(SETTINGS, kind=kind, loop=loop)
    sequence = plan_sequence(settings)
    assert len(sequence) == settings.frame_count == (12 if loop else 9)
    assert [Keyframe.of(sequence.request(index * 4)) for index in range(3)] == list(settings.keys)
    assert {sequence.request(index).noise for index in range(len(sequence))} == {Noise("random", 3)}
    assert {sequence.request(index).transform for index in range(len(sequence))} == {TURNED}
    assert {sequence.request(index).model_id for index in range(len(sequence))} == {"ab" * 32}
    assert settings.manifest_path == Path("out/walk.manifest.json")


def test_a_half_way_frame_blends_its_neighbours() -> None:
    blend = plan_sequence(SETTINGS).request(6).blend
    assert blend == ((key(2).blend[0][0], 0.5), (key(3).blend[0][0], 0.5))


def test_one_key_gives_one_frame() -> None:
    assert len(plan_sequence(replace(SETTINGS, keys=(key(1),)))) == 1


@pytest.mark.parametrize(
    "name",
    ["", "  ", ".hidden", "a/b", "a\\b", "..", "a:b", "a\nb", "a*", "x" * 101, "nul\0", "NUL", "com1.a", "漢" * 80],
)
def test_a_name_that_is_no_file_name_is_refused(name: str) -> None:
    with pytest.raises(ExportError, match=r"^(A|The) name .*\.$"):
        plan_sequence(replace(SETTINGS, name=name))


def test_a_sequence_too_long_to_number_is_refused_before_it_is_planned() -> None:
    with pytest.raises(
        ExportError, match=r"^A sequence can have 100,000 frames, but this one would have 2,000,000,001;"
    ):
        plan_sequence(replace(SETTINGS, frames_per_step=10**9))


@pytest.mark.parametrize("format_of", [{"form": PictureFormat("webp")}, {"video": VideoFormat("webp")}])
def test_a_size_that_the_format_cannot_store_is_refused_before_the_first_frame(
    format_of: dict[str, Any],
) -> None:
    plan_sequence(replace(SETTINGS, size=(16_383, 8), **format_of))
    with pytest.raises(ExportError, match="has sides of up to 16,383 pixels, but this one would have 16,384 × 8"):
        plan_sequence(replace(SETTINGS, size=(16_384, 8), **format_of))
    plan_sequence(replace(SETTINGS, size=(16_384, 8)))


def test_too_many_keys_are_refused() -> None:
    with pytest.raises(ExportError, match="4,096 keyframes"):
        plan_sequence(replace(SETTINGS, keys=(key(1),) * 4097, frames_per_step=1))


def test_keys_that_do_not_suit_the_path_are_refused() -> None:
    between = Keyframe(((Recipe(Latent(Point(((1, 0.5), (2, 0.5))))), 1.0),))
    with pytest.raises(RequestError, match="whole seeds"):
        plan_sequence(replace(SETTINGS, keys=(key(1), between), kind="z-slerp"))
    with pytest.raises(RequestError):
        plan_sequence(replace(SETTINGS, frames_per_step=0))


def test_a_picture_with_a_name_of_its_own_goes_there_and_is_looked_for_there(wanted: SequenceSettings) -> None:
    assert wanted.frame_path(7) == wanted.folder / f"{wanted.name}_00007.png"
    still = replace(wanted, keys=wanted.keys[:1], file_names=("still",))
    assert still.frame_path(0) == wanted.folder / "still.png"
    assert place_objection(still) == ""
    wanted.folder.mkdir(exist_ok=True)
    still.frame_path(0).touch()
    assert place_objection(still).startswith("There is a still.png in this folder")
