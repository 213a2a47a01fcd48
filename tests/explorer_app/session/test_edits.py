from dataclasses import replace
from fractions import Fraction

from explorer_app.session.edits import (
    PLACE,
    AddSources,
    GoToSeed,
    RemoveSource,
    ZeroSliders,
    set_slider,
    set_source,
    set_transform,
    set_truncation,
)
from explorer_app.session.parameters import SetParameter
from explorer_app.session.patches import Patch
from explorer_app.session.resolve import kept_latent, resolve, unobserved
from explorer_app.session.session import ModelReference, Position, Session, Slider, Source
from explorer_app.session.timeline.evaluation import keyed_at
from explorer_app.session.tracks import STATE, Key, Timeline, Track
from gpu_backend import Latent, Noise, Point, Recipe, RenderRequest, RowRange, Tap, Transform, Truncation, plane_point
from tests.helpers.edits import set_noise, whole_slider
from tests.helpers.requests import point_of

PLAIN = Session(model=ModelReference("/m", "m", "id"))
HELD = replace(
    PLAIN, pinned_blend=((Recipe(Latent(Point(((5, 1.0),)))), 0.25), (Recipe(Latent(Point(((6, 1.0),)))), 0.75))
)


def source(seed: int) -> Source:
    return Source(Latent(Point(((seed, 1.0),))), (0.5, 0.5), f"seed {seed}")


def test_walking_and_seeds_let_go_of_a_held_latent() -> None:
    assert SetParameter(PLACE, Position(1.5, 2.0)).apply(HELD) == replace(PLAIN, position=Position(1.5, 2.0))
    assert GoToSeed(1207).apply(HELD) == replace(PLAIN, position=Position(7.0, 12.0))


def test_a_seed_past_the_end_begins_again() -> None:
    assert GoToSeed(2**32 + 3).apply(PLAIN).position == Position(3.0, 0.0)


def test_truncation_and_classes_reach_a_held_latent_too() -> None:
    session = SetParameter("classes", ((2, 1.0),)).apply(set_truncation(Truncation(0.2)).apply(HELD))
    assert [recipe.truncation.psi for recipe, _ in resolve(session).blend] == [0.2, 0.2]
    assert [recipe.latent.classes for recipe, _ in resolve(session).blend] == [((2, 1.0),)] * 2


def test_a_slider_back_at_its_default_leaves_no_trace() -> None:
    session = SetParameter("slider/sefa/0", 2.0).apply(PLAIN)
    assert resolve(session).blend[0][0].latent.directions[0].amount == 2.0
    assert SetParameter("slider/sefa/0", 0.0).apply(session) == PLAIN


def test_a_slider_without_rows_goes_to_the_request_on_its_directions_own_rows() -> None:
    (item,) = resolve(SetParameter("slider/world/sun", 2.0).apply(PLAIN)).blend[0][0].latent.directions
    assert (item.rows, item.within_own) == (RowRange(), True)
    chosen = SetParameter("rows/world/sun", RowRange()).apply(SetParameter("slider/world/sun", 2.0).apply(PLAIN))
    (item,) = resolve(chosen).blend[0][0].latent.directions
    assert (item.rows, item.within_own) == (RowRange(), False), "all rows are a choice like others"


def test_rows_chosen_before_a_dimension_is_moved_come_with_its_first_amount() -> None:
    edit = set_slider("axis/3", RowRange(0, 4), SetParameter("slider/axis/3", 1.0))
    assert edit.target == "slider/axis/3"
    assert edit.apply(PLAIN).sliders == (Slider("axis/3", 1.0, RowRange(0, 4)),)
    plain = SetParameter("slider/axis/3", 1.0)
    assert set_slider("axis/3", None, plain) is plain


def test_zeroing_keeps_names_stars_and_ranges() -> None:
    session = whole_slider(Slider("sefa/0", 2.0, label="sun")).apply(SetParameter("slider/sefa/1", 1.0).apply(PLAIN))
    assert ZeroSliders().apply(session).sliders == (Slider("sefa/0", label="sun"),)


def test_a_range_goes_to_its_direction_alone() -> None:
    session = SetParameter("rows/sefa/3", RowRange(1, 2)).apply(PLAIN)
    assert session.slider("sefa/3").rows == RowRange(1, 2)
    assert session.slider("sefa/2") == Slider("sefa/2")


def test_sources_are_added_changed_and_taken_away() -> None:
    session = AddSources((source(2),)).apply(AddSources((source(1),)).apply(PLAIN))
    session = SetParameter("mix/0/strengths", (1.0,)).apply(session)
    session = set_source(1, source(3).latent, "seed 3").apply(session)
    assert [(item.label, item.strengths) for item in session.mix] == [("seed 1", (1.0,)), ("seed 3", (0.5, 0.5))]
    assert [item.label for item in RemoveSource(0).apply(session).mix] == ["seed 3"]
    assert [item.latent for item in resolve(session).blend[0][0].latent.mix] == [source(1).latent, source(3).latent]


def test_tracks_and_patches_of_a_source_go_with_it_and_those_of_later_ones_follow_them() -> None:
    key = Key(Fraction(1), 0.5)
    paths = ("mix/0/strength", "mix/1/strength", "mix/2/strength/1", "noise.gain")
    session = replace(
        AddSources((source(1), source(2), source(3))).apply(PLAIN),
        timeline=Timeline(tuple(Track(path, (key,)) for path in paths)),
        patches=(Patch("osc/1", "mix/1/strength"), Patch("osc/2", "mix/2/strength")),
    )
    removed = RemoveSource(1).apply(session)
    assert [item.label for item in removed.mix] == ["seed 1", "seed 3"]
    assert [track.path for track in removed.timeline.tracks] == ["mix/0/strength", "mix/1/strength/1", "noise.gain"]
    assert [patch.parameter for patch in removed.patches] == ["mix/1/strength"]


def test_a_source_is_removed_from_the_keys_that_have_it_in_its_place_so_that_tracks_still_name_the_others() -> None:
    first, second, third = (source(seed) for seed in (1, 2, 3))
    strong = replace(second, strengths=(1.0,), label="renamed")
    mixes = ((first, second, third), (first, strong, third), (first, third, second), (first,), ())
    keys = tuple(Key(Fraction(t), replace(PLAIN, mix=mix)) for t, mix in enumerate(mixes))
    timeline = Timeline((Track(STATE, keys), Track("mix/2/strength", (Key(Fraction(0), 0.75),))), end=Fraction(9))
    session = keyed_at(replace(PLAIN, mix=mixes[0], timeline=timeline), 0.0)
    removed = RemoveSource(1).apply(session)
    track = removed.timeline.track(STATE)
    assert track is not None
    assert [key.value.mix for key in track.keys] == [(first, third), (first, third), mixes[2], (first,), ()]
    played = keyed_at(removed, 0.0)
    assert [(item.label, item.strengths) for item in played.mix] == [("seed 1", (0.5, 0.5)), ("seed 3", (0.75, 0.75))]


def test_a_session_resolves_to_its_plane_point_with_everything_on_top() -> None:
    session = set_noise(Noise("random", 3)).apply(SetParameter(PLACE, Position(0.25, 0.5)).apply(PLAIN))
    request = resolve(session, resolution=64, measure_steps=True)
    assert (request.model_id, request.noise, request.resolution, request.measure_steps) == (
        "id",
        Noise("random", 3),
        64,
        True,
    )
    assert request.blend[0][0].latent.point == plane_point(0.25, 0.5)
    assert request.blend[0][0].truncation == session.truncation


def test_a_transform_reaches_the_request_and_none_leaves_the_network_its_own() -> None:
    turned = Transform(0.1, -0.2, 30.0, 1.5)
    assert resolve(set_transform(turned).apply(PLAIN)).transform == turned.matrix
    assert resolve(set_transform(Transform()).apply(set_transform(turned).apply(PLAIN))).transform is None
    assert resolve(PLAIN).transform is None


def test_a_layer_on_show_is_requested_at_its_own_resolution() -> None:
    tap = Tap("b8.conv1", (2, 0, 1), 6.0, is_normalized=False)
    session = SetParameter("layer", tap).apply(PLAIN)
    assert resolve(session, resolution=64) == replace(resolve(PLAIN), tap=tap)
    assert SetParameter("layer", None).apply(session) == PLAIN


def test_requests_that_differ_in_what_is_looked_at_beside_the_picture_ask_for_the_same() -> None:
    request = RenderRequest("id", tap=Tap("b4.conv1"))
    assert unobserved(replace(request, measure_steps=True, wants_tap_values=True)) == request


def test_a_pinned_blend_keeps_its_heaviest_part() -> None:
    assert point_of(kept_latent(HELD)).seeds == ((6, 1.0),)
    assert point_of(kept_latent(PLAIN)).seeds == ((0, 1.0),)
