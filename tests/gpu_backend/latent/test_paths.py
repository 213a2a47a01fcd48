"""Paths: which recipe is in which frame, and by how much."""

from dataclasses import replace

import numpy as np
import pytest

from gpu_backend import (
    Arc,
    DirectionAmount,
    Latent,
    Point,
    Recipe,
    RenderRequest,
    RequestError,
    Truncation,
    path_blends,
    plane_point,
    request_from_json,
    request_to_json,
)
from gpu_backend.latent.paths import LatentPath, PathKind
from gpu_backend.latent.seeds import blend_z, seed_to_z
from gpu_backend.latent.slerp import slerp_weights
from tests.helpers.requests import point_of

Blend = tuple[tuple[Recipe, float], ...]
KINDS = ("w-linear", "w-cubic", "w-slerp", "z-linear", "z-slerp")


def on_seed(seed: int, psi: float = 0.7) -> Recipe:
    return Recipe(Latent(Point(((seed, 1.0),))), Truncation(psi))


def keys(*seeds: int) -> list[Blend]:
    return [((on_seed(seed), 1.0),) for seed in seeds]


def values(blends: list[Blend], numbers: dict[Recipe, np.ndarray]) -> np.ndarray:
    """Each frame as an array, with a made-up array for each keyframe recipe."""
    return np.array([sum(weight * numbers[recipe] for recipe, weight in blend) for blend in blends])


def numbers_for(blends: list[Blend], dimensions: int = 3) -> dict[Recipe, np.ndarray]:
    rng = np.random.default_rng(11)
    return {recipe: rng.normal(size=dimensions) for blend in blends for recipe, _ in blend}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_a_loop_has_a_step_for_each_key_and_an_open_path_ends_on_the_last(kind: PathKind, count: int) -> None:
    chosen = keys(*range(count))
    looped = path_blends(chosen, kind, 5, True)
    opened = path_blends(chosen, kind, 5, False)
    assert len(looped) == count * 5
    assert len(opened) == (count - 1) * 5 + 1
    assert opened[-1] == chosen[-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loop", [True, False])
def test_a_frame_beyond_the_path_is_refused(kind: PathKind, loop: bool) -> None:
    path = LatentPath(keys(0, 1), kind, 4, loop)
    for frame in (-1, len(path)):
        with pytest.raises(RequestError, match=rf"must be in 0 .. {len(path) - 1}"):
            path.blend(frame)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loop", [True, False])
def test_a_path_passes_through_its_keys_exactly(kind: PathKind, loop: bool) -> None:
    chosen = keys(4, 8, 15, 16, 23)
    frames = path_blends(chosen, kind, 7, loop)
    assert frames[::7] == chosen


def test_a_linear_path_in_w_is_the_straight_line_between_neighbours() -> None:
    chosen = keys(1, 2, 3)
    numbers = numbers_for(chosen)
    found = values(path_blends(chosen, "w-linear", 4, True), numbers)
    corners = [numbers[key[0][0]] for key in chosen]
    expected = [
        (1 - step / 4) * corners[index] + step / 4 * corners[(index + 1) % 3] for index in range(3) for step in range(4)
    ]
    assert found == pytest.approx(np.array(expected), abs=1e-12)


def test_keys_between_seeds_are_blended_whole() -> None:
    between: Blend = ((Recipe(Latent(plane_point(0.5, 0.25))), 0.75), (on_seed(9), 0.25))
    frames = path_blends([between, keys(9)[0]], "w-linear", 2, False)
    assert dict(frames[1]) == {between[0][0]: 0.375, on_seed(9): 0.625}, "a recipe of both keys comes once"


def spline_samples(closed: bool, count: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    chosen = keys(*range(count))
    numbers = numbers_for(chosen)
    frames = values(path_blends(chosen, "w-cubic", steps, closed), numbers)
    return frames, np.array([numbers[key[0][0]] for key in chosen])


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("count", [3, 5, 12])
def test_a_spline_is_a_cubic_whose_slope_and_curvature_go_on_at_every_key(closed: bool, count: int) -> None:
    steps = 50
    frames, _ = spline_samples(closed, count, steps)
    if closed:
        frames = np.concatenate([frames, frames[: 2 * steps]])
    third = np.diff(frames, 3, axis=0) * steps**3
    # Third differences are constant inside a cubic piece, and around a key they stay between those of its two pieces:
    # a jump in the slope or the curvature would stand out by a factor of the step or its square.
    for key in range(1, len(frames) // steps):
        around = third[key * steps - 2 : key * steps + 1]
        before, after = third[key * steps - 5], third[key * steps + 3 if key * steps + 3 < len(third) else -1]
        room = 1e-3 + 0.5 * np.abs(before - after)
        assert np.all(around >= np.minimum(before, after) - room)
        assert np.all(around <= np.maximum(before, after) + room)
    for piece in range(len(frames) // steps):
        inside = third[piece * steps : (piece + 1) * steps - 2]
        assert np.ptp(inside, axis=0) == pytest.approx(np.zeros(3), abs=1e-3)


def test_a_closed_spline_joins_its_end_to_its_start_as_smoothly_as_anywhere() -> None:
    steps = 100
    frames, _ = spline_samples(True, 6, steps)
    round_trip = np.concatenate([frames[-2:], frames[:2]])
    jumps = np.abs(np.diff(frames, 2, axis=0)).max()
    assert np.abs(np.diff(round_trip, 2, axis=0)).max() <= 1.05 * jumps


def test_it_does_not_matter_where_a_closed_spline_starts() -> None:
    chosen = keys(*range(5))
    numbers = numbers_for(chosen)
    first = values(path_blends(chosen, "w-cubic", 6, True), numbers)
    turned = values(path_blends([*chosen[2:], *chosen[:2]], "w-cubic", 6, True), numbers)
    assert np.roll(first, -12, axis=0) == pytest.approx(turned, abs=1e-9)


def test_an_open_spline_ends_without_curvature() -> None:
    frames, _ = spline_samples(False, 5, 200)
    curvature = np.abs(np.diff(frames, 2, axis=0)) * 200**2
    assert curvature[[0, -1]].max() < 0.05 * curvature.max()


def test_an_open_spline_through_two_keys_is_a_line() -> None:
    frames, corners = spline_samples(False, 2, 8)
    assert frames == pytest.approx(np.linspace(corners[0], corners[1], 9), abs=1e-12)


def test_the_weights_of_a_spline_sum_to_one_and_fade_with_distance() -> None:
    frames = path_blends(keys(*range(100)), "w-cubic", 3, True)
    for blend in frames:
        assert sum(weight for _, weight in blend) == pytest.approx(1.0, abs=1e-7)
        assert len(blend) < 50, "keys far away have no say"


def test_a_periodic_spline_agrees_with_a_fourier_wave_it_samples() -> None:
    count, steps = 24, 4
    chosen = keys(*range(count))
    wave = {key[0][0]: np.array([np.sin(2 * np.pi * index / count)]) for index, key in enumerate(chosen)}
    frames = values(path_blends(chosen, "w-cubic", steps, True), wave)[:, 0]
    expected = np.sin(2 * np.pi * np.arange(count * steps) / (count * steps))
    assert frames == pytest.approx(expected, abs=1e-4)


def z_of(blend: Blend, z_dim: int) -> np.ndarray:
    (recipe, weight), *others = blend
    assert weight == 1.0
    assert not others
    point = point_of(recipe.latent)
    assert point.space == "z" or len(point.seeds) == 1
    return blend_z(point.seeds, z_dim).astype(np.float64)


def test_a_straight_path_in_z_is_the_line_between_two_normal_vectors() -> None:
    frames = path_blends(keys(3, 4), "z-linear", 10, False, z_dim=64)
    for step, blend in enumerate(frames):
        expected = (1 - step / 10) * seed_to_z(3, 64) + step / 10 * seed_to_z(4, 64)
        assert z_of(blend, 64) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("z_dim", [8, 64, 512])
def test_a_slerp_in_z_goes_from_length_to_length_and_turns_evenly(z_dim: int) -> None:
    frames = [z_of(blend, z_dim) for blend in path_blends(keys(3, 4), "z-slerp", 12, False, z_dim=z_dim)]
    lengths = np.linalg.norm(frames, axis=1)
    assert lengths == pytest.approx(np.linspace(lengths[0], lengths[-1], 13), rel=1e-5)
    units = np.array(frames) / lengths[:, None]
    turns = np.arccos(np.clip((units[1:] * units[:-1]).sum(axis=1), -1, 1))
    assert turns == pytest.approx(np.full(12, turns.mean()), rel=1e-3)


def test_a_slerp_between_vectors_of_one_length_keeps_it() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(2, 5))
    second *= np.linalg.norm(first) / np.linalg.norm(second)
    length = np.linalg.norm(first)
    angle = np.arccos(first @ second / length**2)
    for fraction in np.linspace(0, 1, 9):
        a, b = slerp_weights(float(fraction), float(angle), float(length), float(length))
        assert np.linalg.norm(a * first + b * second) == pytest.approx(length)


@pytest.mark.parametrize("angle", [0.0, np.pi])
def test_a_slerp_without_an_arc_is_a_straight_line(angle: float) -> None:
    assert slerp_weights(0.25, angle, 1.0, 1.0) == (0.75, 0.25)


@pytest.mark.parametrize("kind", ["z-linear", "z-slerp"])
def test_where_neighbours_differ_in_more_than_the_seed_both_get_the_same_z(kind: PathKind) -> None:
    pushed = Recipe(Latent(Point(((2, 1.0),)), classes=((1, 1.0),), directions=(DirectionAmount("sefa/0", 3.0),)))
    frame = path_blends([((on_seed(1), 1.0),), ((pushed, 1.0),)], kind, 4, False)[1]
    assert [weight for _, weight in frame] == [0.75, 0.25]
    first, second = (recipe for recipe, _ in frame)
    assert first.latent.point == second.latent.point
    assert point_of(first.latent).space == "z"
    assert first.truncation == Truncation(0.7)
    assert second.latent.classes == ((1, 1.0),)
    assert second.latent.directions == pushed.latent.directions


def test_staying_on_a_seed_while_the_rest_moves_needs_no_blended_z() -> None:
    frame = path_blends([((on_seed(1, 0.5), 1.0),), ((on_seed(1, 1.0), 1.0),)], "z-slerp", 2, False)[1]
    assert {point_of(recipe.latent).seeds for recipe, _ in frame} == {((1, 1.0),)}
    assert {recipe.truncation.psi: weight for recipe, weight in frame} == {0.5: 0.5, 1.0: 0.5}


@pytest.mark.parametrize("kind", ["z-linear", "z-slerp"])
def test_a_path_in_z_needs_keys_on_whole_seeds_and_names_the_one_that_is_not(kind: PathKind) -> None:
    between = ((Recipe(Latent(plane_point(0.5, 0.0))), 1.0),)
    with pytest.raises(RequestError, match="keyframe 2 lies between seeds"):
        path_blends([keys(1)[0], between], kind, 4, False)


def test_an_impossible_path_is_refused_with_a_sentence() -> None:
    with pytest.raises(RequestError, match="at least 1 frame a step, not 0"):
        path_blends(keys(1, 2), "w-linear", 0, False)
    with pytest.raises(RequestError, match="at least one keyframe"):
        path_blends([], "w-linear", 3, False)
    with pytest.raises(RequestError, match="at least one keyframe"):
        path_blends([keys(1)[0], ()], "w-linear", 3, False)
    with pytest.raises(RequestError, match="one of w-linear, w-cubic, w-slerp, z-linear, z-slerp, not 'spiral'"):
        path_blends(keys(1, 2), "spiral", 3, False)  # type: ignore[arg-type]


def test_an_arc_in_w_leads_from_point_to_point_between_seeds_too() -> None:
    between = Recipe(Latent(plane_point(0.5, 0.0)), Truncation(0.7))
    frame = path_blends([((on_seed(1, 0.7), 1.0),), ((between, 1.0),)], "w-slerp", 4, False)[1]
    assert frame == ((replace(between, latent=Latent(Arc(Point(((1, 1.0),)), plane_point(0.5, 0.0), 0.25))), 1.0),)
    assert request_from_json(request_to_json(RenderRequest("m", frame))).blend == frame


def test_an_arc_in_w_is_a_straight_line_where_a_key_is_a_blend() -> None:
    blended = ((on_seed(1), 0.5), (on_seed(2), 0.5))
    frames = path_blends([keys(3)[0], blended], "w-slerp", 4, False)
    assert frames == path_blends([keys(3)[0], blended], "w-linear", 4, False)


@pytest.mark.parametrize(
    "arc", [[], [{"seeds": [[1, 1.0]]}, {"seeds": [[2, 1.0]]}], [{}, 3, 0.5], [{}, {}, None], [{}, {}, "a"], 7]
)
def test_a_damaged_arc_is_refused(arc: object) -> None:
    data = request_to_json(RenderRequest("m"))
    data["blend"][0][0]["latent"] = {"arc": arc}
    with pytest.raises(RequestError):
        request_from_json(data)


def test_seeds_of_an_arc_count() -> None:
    point = Point(tuple((seed, 0.1) for seed in range(3000)))
    recipe = Recipe(Latent(Arc(point, point, 0.5)))
    with pytest.raises(RequestError, match="seeds"):
        request_to_json(RenderRequest("m", ((recipe, 1.0),)))
