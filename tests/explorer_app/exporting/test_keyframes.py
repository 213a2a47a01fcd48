"""What lies between keyframes: noise and transforms."""

from __future__ import annotations

import math

import pytest

from explorer_app.exporting.keyframes import Keyframe, KeyframePath
from gpu_backend import Latent, Noise, PathKind, Point, Recipe, Transform

PLAIN = Noise()
KINDS: tuple[PathKind, ...] = ("w-linear", "w-cubic", "w-slerp", "z-linear", "z-slerp")


def key(seed: int, noise: Noise = PLAIN, transform: Transform | None = None) -> Keyframe:
    blend = ((Recipe(Latent(Point(((seed, 1.0),)))), 1.0),)
    return Keyframe(blend, noise, None if transform is None else transform.matrix)


def transforms(path: KeyframePath) -> list[Transform]:
    found = [Transform.of_matrix(path.frame(index).transform or Transform().matrix) for index in range(len(path))]
    assert None not in found
    return [item for item in found if item is not None]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loop", [True, False])
def test_a_keyframe_is_passed_with_all_that_makes_its_picture(kind: PathKind, loop: bool) -> None:
    keys = [
        key(1, Noise("random", 3, gain=2.0), Transform(0.1, 0.2, 30.0, 2.0)),
        key(2, Noise("none")),
        key(3, Noise("const", layer_gains=(0.5,)), Transform(degrees=-170.0)),
    ]
    path = KeyframePath(keys, kind, 4, loop)
    assert [path.frame(place * 4) for place in range(3)] == keys


@pytest.mark.parametrize("kind", KINDS)
def test_values_common_to_all_keyframes_are_bit_identical_in_every_frame(kind: PathKind) -> None:
    noise, transform = Noise("random", 7, 1.3, (0.1, 0.7)), Transform(0.123, 0.456, 12.3, 1.7)
    path = KeyframePath([key(seed, noise, transform) for seed in (1, 2, 3)], kind, 7, True)
    frames = [path.frame(index) for index in range(len(path))]
    assert {frame.noise for frame in frames} == {noise}
    assert {frame.transform for frame in frames} == {transform.matrix}


def test_without_a_transform_no_frame_has_one() -> None:
    path = KeyframePath([key(1), key(2)], "w-linear", 3, False)
    assert {path.frame(index).transform for index in range(4)} == {None}


def test_half_way_a_picture_is_moved_turned_and_scaled_by_half() -> None:
    keys = [key(1), key(2, transform=Transform(0.2, -0.4, 90.0, 4.0))]
    (middle,) = transforms(KeyframePath(keys, "w-linear", 2, False))[1:2]
    assert (middle.x, middle.y, middle.degrees, middle.scale) == pytest.approx((0.1, -0.2, 45.0, 2.0))


@pytest.mark.parametrize("kind", ["w-linear", "w-cubic"])
def test_a_turn_goes_the_shorter_way_round(kind: PathKind) -> None:
    keys = [key(1, transform=Transform(degrees=170.0)), key(2, transform=Transform(degrees=-170.0))]
    angles = [item.degrees % 360.0 for item in transforms(KeyframePath(keys, kind, 4, False))]
    assert angles == pytest.approx([170.0, 175.0, 180.0, 185.0, 190.0])


@pytest.mark.parametrize("kind", ["w-linear", "w-cubic"])
def test_a_loop_of_whole_turns_is_steady_at_its_end_too(kind: PathKind) -> None:
    keys = [key(place, transform=Transform(degrees=90.0 * place)) for place in range(4)]
    angles = [item.degrees for item in transforms(KeyframePath(keys, kind, 5, True))]
    turns = [(b - a) % 360.0 for a, b in zip(angles, [*angles[1:], angles[0]], strict=True)]
    assert turns == pytest.approx([18.0] * 20)


def test_noise_fades_in_where_a_keyframe_has_none() -> None:
    keys = [key(1, Noise("none")), key(2, Noise("random", 5, 2.0, (0.5,)))]
    path = KeyframePath(keys, "w-linear", 4, False)
    frames = [path.frame(index).noise for index in range(5)]
    assert frames[0] == Noise("none")
    assert [(noise.mode, noise.seed) for noise in frames[1:]] == [("random", 5)] * 4
    assert [noise.gain for noise in frames[1:]] == pytest.approx([0.5, 1.0, 1.5, 2.0])
    assert [noise.layer_gains[0] for noise in frames[1:]] == pytest.approx([0.875, 0.75, 0.625, 0.5])


def test_a_spline_that_overshoots_turns_no_noise_around() -> None:
    gains = (0.0, 0.0, 3.0, 0.0, 0.0)
    path = KeyframePath([key(i, Noise(gain=gain)) for i, gain in enumerate(gains)], "w-cubic", 8, False)
    found = [path.frame(index).noise.gain for index in range(len(path))]
    assert min(found) == 0.0
    assert all(math.isfinite(gain) for gain in found)


def test_frames_are_the_same_in_any_order() -> None:
    keys = [key(1, Noise(gain=0.5)), key(2, transform=Transform(degrees=80.0)), key(3)]
    forwards = KeyframePath(keys, "w-cubic", 6, True)
    backwards = KeyframePath(keys, "w-cubic", 6, True)
    order = range(len(forwards))
    assert [forwards.frame(i) for i in order] == [backwards.frame(i) for i in reversed(order)][::-1]
