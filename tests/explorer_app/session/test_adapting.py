from dataclasses import replace
from fractions import Fraction

from explorer_app.session.adapting import FitOrigin, adapt
from explorer_app.session.edited_latent import FadeEdit, TakeEditedRows
from explorer_app.session.local_edits import style_lengths
from explorer_app.session.patches import Patch
from explorer_app.session.resolve import Modulation, Modulator, evaluate, resolve
from explorer_app.session.session import ModelReference, Session, Slider, Source
from explorer_app.session.timeline.evaluation import keyed_at, session_at
from explorer_app.session.tracks import STATE, Easing, Key, Timeline, Track
from gpu_backend import (
    DirectionAmount,
    Latent,
    MixSource,
    Noise,
    Point,
    Recipe,
    RowRange,
    StoredLatent,
    Tap,
    Transform,
    Truncation,
)
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import make_stylegan3

FACTS = make_stylegan2(resolution=32, w_dim=8, c_dim=2).facts
HERE = ModelReference(FACTS.path, FACTS.name, FACTS.model_id)
ELSEWHERE = ModelReference("/other", "other", "other")


def test_a_session_of_this_model_that_fits_is_left_as_it_is() -> None:
    session = Session(
        model=HERE,
        truncation=Truncation(0.5, FACTS.num_ws),
        sliders=(Slider("sefa/7", 1.0, RowRange(0, FACTS.num_ws - 1)), Slider("axis/3", 1.0)),
        mix=(Source(Latent(), (1.0,) * FACTS.num_ws, "seed 0"),),
    )
    assert adapt(session, FACTS).session == session
    assert adapt(session, FACTS).changes == ()


def test_strengths_are_cut_or_filled_up_with_zeros() -> None:
    for count in (3, 40):
        source = Source(Latent(), (1.0,) * count, "seed 0")
        fitted = adapt(Session(model=ELSEWHERE, mix=(source,)), FACTS)
        kept = min(count, FACTS.num_ws)
        assert fitted.session.mix[0].strengths == (1.0,) * kept + (0.0,) * (FACTS.num_ws - kept)
        assert "mix strengths were fitted to its rows" in fitted.changes


def test_directions_and_ranges_that_it_lacks_go() -> None:
    sliders = (
        Slider("sefa/8", 1.0),
        Slider("axis/8", 1.0),
        Slider("axis/x", 1.0),
        Slider("sefa/1", 1.0, RowRange(2, 99)),
        Slider("sefa/2", 1.0, RowRange(50, 60)),
        Slider("sefa/3", 1.0),
    )
    fitted = adapt(Session(model=ELSEWHERE, sliders=sliders), FACTS)
    assert [(item.direction, item.rows) for item in fitted.session.sliders] == [
        ("sefa/1", RowRange(2, FACTS.num_ws - 1)),
        ("sefa/2", RowRange()),
        ("sefa/3", None),
    ]
    assert "directions it does not have were removed" in fitted.changes
    assert "layer ranges were shortened" in fitted.changes


def test_a_removed_direction_is_no_shortened_range() -> None:
    session = Session(model=ELSEWHERE, sliders=(Slider("axis/8", 1.0, RowRange(1, 2)), Slider("sefa/1", 1.0)))
    changes = adapt(session, FACTS).changes
    assert "directions it does not have were removed" in changes
    assert "layer ranges were shortened" not in changes


def test_named_directions_stay_where_the_model_has_them() -> None:
    facts = replace(FACTS, named_directions=("world/sun height",))
    session = Session(model=HERE, sliders=(Slider("world/sun height", 1.0), Slider("world/haze", 1.0)))
    assert [item.direction for item in adapt(session, facts).session.sliders] == ["world/sun height"]


def test_keys_of_pictures_lose_directions_that_the_file_beside_the_same_model_no_longer_has() -> None:
    there = replace(FACTS, named_directions=("world/sun height",))
    gone = DirectionAmount("world/sun height", 1.0, RowRange(0, 3))
    latent = Latent(Point(((3, 1.0),)), directions=(gone,), mix=(MixSource(Latent(directions=(gone,)), (1.0,)),))
    states = (
        Session(model=HERE, sliders=(Slider("world/sun height", 1.0), Slider("sefa/1", 2.0))),
        Session(model=HERE, pinned_blend=((Recipe(latent), 1.0),)),
    )
    keys = tuple(Key(Fraction(place), state) for place, state in enumerate(states))
    timeline = Timeline(tracks=(Track(STATE, keys),), z_dim=FACTS.z_dim)
    session = Session(model=HERE, timeline=timeline)
    assert adapt(session, there).session.timeline is session.timeline

    fitted = adapt(session, FACTS)
    assert "directions it does not have were removed" in fitted.changes
    assert [item.direction for item in keyed_at(fitted.session, 0.0).sliders] == ["sefa/1"]
    (recipe, _) = resolve(keyed_at(fitted.session, 1.0)).blend[0]
    assert recipe.latent.directions == recipe.latent.mix[0].latent.directions == ()
    assert FitOrigin(session, fitted.session).restored(fitted.session) == session


def test_a_missing_class_is_replaced_by_the_first_and_none_stays_a_choice() -> None:
    assert adapt(Session(model=HERE, classes=((7, 1.0),)), FACTS).session.classes == ((0, 1.0),)
    assert adapt(Session(model=HERE), FACTS).session.classes == ()
    assert adapt(Session(model=ELSEWHERE), FACTS).session.classes == ((0, 1.0),)
    without = replace(FACTS, c_dim=0)
    assert adapt(Session(model=ELSEWHERE, classes=((1, 1.0),)), without).session.classes == ()


def test_a_first_start_reports_nothing_as_a_change() -> None:
    assert adapt(Session(), replace(FACTS, c_dim=0)).changes == ()
    assert adapt(Session(), FACTS).changes == ()


def test_cutoff_and_noise_end_where_the_layers_do() -> None:
    session = Session(model=ELSEWHERE, truncation=Truncation(0.5, 99), noise=Noise(layer_gains=(0.5,) * 99))
    fitted = adapt(session, FACTS)
    assert fitted.session.truncation == Truncation(0.5, FACTS.num_ws)
    assert len(fitted.session.noise.layer_gains) == len(FACTS.noise_layers)
    assert len(fitted.changes) == 2


def test_the_usual_cutoff_of_a_model_comes_and_goes_with_it_and_a_chosen_one_stays() -> None:
    first = make_stylegan1(resolution=32).facts
    assert first.usual_cutoff == 8
    begun = adapt(Session(), first)
    assert begun.session.truncation == Truncation(0.7, 8)
    assert begun.changes == ()
    come = adapt(Session(model=ELSEWHERE, truncation=Truncation(0.4)), first, None)
    assert come.session.truncation == Truncation(0.4, 8)
    assert come.changes == ("truncation acts on the first 8 rows, as is usual for it",)
    gone = adapt(come.session, FACTS, first.usual_cutoff)
    assert gone.session.truncation == Truncation(0.4, None)
    assert "truncation acts on all rows, as is usual for it" in gone.changes
    for cutoff in (3, None):
        chosen = replace(come.session, truncation=Truncation(0.4, cutoff))
        assert adapt(chosen, first).session == chosen
        assert adapt(chosen, FACTS, 8).session.truncation == Truncation(0.4, cutoff)
    small = make_stylegan1(resolution=8).facts
    assert adapt(Session(), small).session.truncation.cutoff == small.num_ws == 4


def test_a_transform_goes_where_the_network_takes_none() -> None:
    session = Session(model=ELSEWHERE, transform=Transform(degrees=10.0))
    fitted = adapt(session, FACTS)
    assert fitted.session.transform == Transform()
    assert "the transform, which it does not have, was reset" in fitted.changes
    assert adapt(session, make_stylegan3().facts).session.transform == Transform(degrees=10.0)


def test_a_layer_stays_shown_if_the_network_has_it_and_is_replaced_by_the_picture_if_not() -> None:
    session = Session(model=ELSEWHERE, tap=Tap("b8.conv1", (1,), 6.0, is_normalized=False))
    kept = adapt(session, FACTS)
    assert kept.session.tap == session.tap
    assert not any("layer" in change for change in kept.changes)
    gone = adapt(session, make_stylegan3().facts)
    assert gone.session.tap is None
    assert "the picture is shown, because it has no such layer" in gone.changes


def test_a_layer_is_shown_by_channels_that_it_has() -> None:
    count = next(layer.channels for layer in FACTS.layers if layer.name == "b8.conv1")
    for channels, fitted in (((count,), (0,)), ((0, count, 1), (0, 1, 2)), ((0, 1), (0,)), ((), (0,))):
        session = Session(model=ELSEWHERE, tap=Tap("b8.conv1", channels))
        assert adapt(session, FACTS).session.tap == Tap("b8.conv1", fitted)
        assert "the channels of the shown layer were limited to those that it has" in adapt(session, FACTS).changes
    loud = adapt(Session(model=HERE, tap=Tap("b8.conv1", gain_db=-1e6)), FACTS).session.tap
    assert loud == Tap("b8.conv1", gain_db=-100.0)


def test_latents_inside_a_pinned_blend_are_fitted_too() -> None:
    inner = Latent(
        classes=((9, 1.0),),
        mix=(MixSource(Latent(classes=((9, 1.0),)), (1.0,) * 99),),
        directions=(DirectionAmount("axis/99", 1.0), DirectionAmount("sefa/0", 1.0, RowRange(0, 99))),
    )
    held = adapt(
        Session(model=ELSEWHERE, pinned_blend=((Recipe(inner, Truncation(1, 99)), 1.0),)), FACTS
    ).session.pinned_blend[0][0]
    assert held.truncation.cutoff == FACTS.num_ws
    assert held.latent.classes == ((0, 1.0),)
    assert held.latent.mix[0].latent.classes == ((0, 1.0),)
    assert len(held.latent.mix[0].strengths) == FACTS.num_ws
    assert held.latent.directions == (DirectionAmount("sefa/0", 1.0, RowRange(0, FACTS.num_ws - 1)),)


def test_a_model_that_looks_classes_up_is_never_without_one() -> None:
    facts = replace(FACTS, looks_classes_up=True)
    assert adapt(Session(model=HERE), facts).session.classes == ((0, 1.0),)
    assert adapt(Session(model=HERE, classes=((1, 1.0),)), facts).session.classes == ((1, 1.0),)


def test_an_edit_to_rows_of_another_shape_leaves_the_picture_before_it() -> None:
    rows = StoredLatent(bytes(4 * 3 * 5), 3, 5)
    session = TakeEditedRows(Recipe(Latent(Point(((7, 1.0),)))), rows).apply(Session(model=ELSEWHERE))
    for share in (1.0, 0.25):
        fitted = adapt(FadeEdit(share).apply(session), FACTS)
        ((recipe, weight),) = fitted.session.pinned_blend
        assert (recipe.latent.point, weight) == (Point(((7, 1.0),)), 1.0)
        assert "stored latents of another shape were removed" in fitted.changes
    assert adapt(replace(session, pinned_blend=session.pinned_blend[1:]), FACTS).session.pinned_blend == ()


def test_a_first_class_after_a_model_without_classes_is_no_reset() -> None:
    assert adapt(Session(model=ELSEWHERE), FACTS).changes == ()
    assert adapt(Session(model=ELSEWHERE, classes=((9, 1.0),)), FACTS).changes == ("the class was reset",)


def test_a_controller_goes_through_no_more_classes_than_the_model_has() -> None:
    patch = Patch("midi/knobs/cc/1/21", "classes/number", 0.0, 999.0)
    assert adapt(Session(patches=(patch,)), FACTS).session.patches == (replace(patch, high=1.0),)
    assert adapt(Session(patches=(patch,)), replace(FACTS, c_dim=0)).session.patches == ()


def test_tracks_and_patches_of_rows_that_it_lacks_go() -> None:
    paths = [f"mix/0/strength/{row}" for row in (FACTS.num_ws - 1, FACTS.num_ws)]
    timeline = Timeline(tracks=tuple(Track(path, (Key(Fraction(0), 0.5),)) for path in paths))
    patches = tuple(Patch("osc/a/0", path) for path in paths)
    mix = (Source(Latent(), (1.0,) * (FACTS.num_ws + 4), "seed 0"),)
    fitted = adapt(Session(model=ELSEWHERE, mix=mix, timeline=timeline, patches=patches), FACTS)
    assert [track.path for track in fitted.session.timeline.tracks] == paths[:1]
    assert [patch.parameter for patch in fitted.session.patches] == paths[:1]
    assert "tracks of parameters that it does not have were removed" in fitted.changes
    (recipe, _) = resolve(keyed_at(fitted.session, 0.0)).blend[0]
    assert len(recipe.latent.mix[0].strengths) == FACTS.num_ws


def test_tracks_and_patches_of_style_channels_that_it_lacks_go() -> None:
    layer, count = next(iter(style_lengths(FACTS).items()))
    paths = [f"style/{layer}/{count - 1}", f"style/{layer}/{count}", "style/no layer/0"]
    timeline = Timeline(tracks=tuple(Track(path, (Key(Fraction(0), 0.5),)) for path in paths))
    patches = tuple(Patch("osc/a/0", path) for path in paths)
    fitted = adapt(Session(model=ELSEWHERE, timeline=timeline, patches=patches), FACTS).session
    assert [track.path for track in fitted.timeline.tracks] == paths[:1]
    assert [patch.parameter for patch in fitted.patches] == paths[:1]
    (offset,) = resolve(keyed_at(fitted, 0.0)).edits.style_offsets
    assert (offset.layer, offset.channel) == (layer, count - 1)


def test_a_track_goes_through_no_more_classes_than_the_model_has() -> None:
    keys = (Key(Fraction(0), 0), Key(Fraction(1), 999))
    session = Session(timeline=Timeline(tracks=(Track("classes/number", keys),)))
    (track,) = adapt(session, FACTS).session.timeline.tracks
    assert [key.value for key in track.keys] == [0, FACTS.c_dim - 1]
    assert adapt(session, replace(FACTS, c_dim=0)).session.timeline.tracks == ()


def test_what_sound_adds_and_handles_that_overshoot_end_at_the_last_class_of_the_model() -> None:
    class Five:
        def at(self, t: float) -> int:
            return 5

    overshoot = Easing("bezier", (0.2, 2.0, 0.8, 2.0))
    track = Track("classes/number", (Key(Fraction(0), 0, overshoot), Key(Fraction(1), FACTS.c_dim - 1)))
    fitted = adapt(Session(model=ELSEWHERE, timeline=Timeline(tracks=(track,))), FACTS).session
    last = ((FACTS.c_dim - 1, 1.0),)
    assert {keyed_at(fitted, t / 20).classes[0][0] for t in range(21)} == set(range(FACTS.c_dim))
    added = Modulation((Modulator("classes/number", Five(), "add"),))
    assert evaluate(adapt(Session(model=ELSEWHERE), FACTS).session, added).classes == last
    assert session_at(fitted, 1.0, added).classes == last


def test_what_a_fit_removed_comes_back_beside_what_was_edited_since() -> None:
    haze, sun = Slider("world/haze", 1.0), Slider("world/sun", 2.0)
    by_haze, by_psi = Patch("osc/a/0", "slider/world/haze"), Patch("osc/b/0", "truncation.psi")
    before = Session(model=ELSEWHERE, sliders=(haze, sun, Slider("sefa/1", 3.0)), patches=(by_haze, by_psi))
    fitted = adapt(before, replace(FACTS, named_directions=("world/sun",))).session
    assert fitted.sliders == (sun, Slider("sefa/1", 3.0))
    assert fitted.patches == (by_psi,)
    origin = FitOrigin(before, fitted)
    assert replace(origin.restored(fitted), model=ELSEWHERE) == before
    edited = replace(fitted, sliders=(Slider("world/sun", -1.0),), patches=(), truncation=Truncation(0.3))
    restored = origin.restored(edited)
    assert restored.sliders == (Slider("world/sun", -1.0), haze)
    assert restored.patches == (by_haze,)
    assert restored.truncation == Truncation(0.3)


def test_tracks_that_a_fit_removed_come_back_beside_edited_ones() -> None:
    psi = Track("truncation.psi", (Key(Fraction(0), 0.5),))
    haze = Track("slider/world/haze", (Key(Fraction(0), 0.5),))
    before = Session(model=ELSEWHERE, timeline=Timeline(tracks=(haze, psi)))
    fitted = adapt(before, FACTS).session
    assert fitted.timeline.tracks == (psi,)
    muted = replace(psi, is_muted=True)
    edited = replace(fitted, timeline=replace(fitted.timeline, tracks=(muted,)))
    assert FitOrigin(before, fitted).restored(edited).timeline.tracks == (muted, haze)
