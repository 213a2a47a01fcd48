"""Bends and style channels of a session: adding, fitting to a model, mixing, files, requests."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from explorer_app.controller.restoring import picture_session
from explorer_app.exporting.keyframes import Keyframe, KeyframePath
from explorer_app.exporting.picture_document import PictureDocument, document_from_text, document_to_text
from explorer_app.exporting.recipe_text import as_python
from explorer_app.session.adapting import adapt, fit_edits
from explorer_app.session.edits import AddBend, AddBlend, AddStyleChannels, RemoveBend, RemoveBlend, RemoveStyleChannel
from explorer_app.session.local_blends import LocalBlend
from explorer_app.session.local_edits import (
    LayerBend,
    StyleChannel,
    bendable_layers,
    mixed_bends,
    mixed_style_channels,
    style_lengths,
)
from explorer_app.session.parameter_names import name_in_text, parameter_name
from explorer_app.session.parameters import SetParameter, parameter, parameters_of
from explorer_app.session.patches import Patch
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Session
from explorer_app.session.session_json import SessionFileError, session_from_json, session_to_json
from explorer_app.session.timeline.edits import with_key
from explorer_app.session.timeline.evaluation import keyed_at
from explorer_app.session.timeline.states import states_between
from explorer_app.session.tracks import STATE, Key, Timeline, Track
from gpu_backend import (
    MAX_BENDS,
    MAX_STYLE_OFFSETS,
    Bend,
    Latent,
    LocalEdits,
    Model,
    Noise,
    Recipe,
    RenderRequest,
    StyleOffset,
)
from tests.helpers.fake_controller import facts
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import make_stylegan3

GAIN = LayerBend(1, "b8.conv0", "gain", 3.0, (0, 2))
MOVE = LayerBend(4, "b4.conv1", "move", 0.25, (), -0.5)
SKY = StyleChannel("b8.conv0", 5, 2.0, 8.0, "sky")
SESSION = Session(bends=(GAIN, MOVE), style_channels=(SKY,))


@pytest.mark.parametrize(
    "model",
    [
        make_stylegan2(resolution=16),
        make_stylegan2(resolution=16, architecture="resnet"),
        make_stylegan1(resolution=16),
        make_stylegan3(num_layers=5),
    ],
    ids=["skip", "resnet", "AdaIN", "T"],
)
def test_the_layers_that_facts_tell_are_those_that_the_renderer_takes(model: Model) -> None:
    from gpu_backend.plan import edit_inputs

    assert bendable_layers(model.facts) == edit_inputs.bendable_layers(model.spec)
    assert style_lengths(model.facts) == edit_inputs.style_lengths(model.spec)


def test_a_request_has_every_bend_that_is_on_even_at_rest() -> None:
    session = replace(SESSION, bends=(replace(GAIN, amount=1.0), replace(MOVE, is_on=False)))
    assert resolve(session).edits == LocalEdits(
        (Bend("b8.conv0", "gain", 1.0, (0, 2)),), (StyleOffset("b8.conv0", 5, 2.0),)
    )


def test_a_new_bend_is_at_rest_and_has_a_number_that_nothing_else_names() -> None:
    session = replace(SESSION, patches=(Patch("audio/beat", "bend/9/gain", 0.0, 1.0, "add"),))
    added = AddBend("b8.conv0", "scale", (1,)).apply(session)
    assert added.bends[-1] == LayerBend(10, "b8.conv0", "scale", 1.0, (1,))
    assert RemoveBend(10).apply(added) == session
    full = replace(session, bends=tuple(replace(GAIN, number=number) for number in range(MAX_BENDS)))
    assert AddBend("b8.conv0", "gain").apply(full) == full


def test_channels_that_are_found_replace_those_that_were_never_touched() -> None:
    untouched = StyleChannel("b4.conv1", 0)
    session = replace(SESSION, style_channels=(SKY, untouched))
    found = (StyleChannel("b8.conv0", 5, reach=3.0), StyleChannel("b8.conv0", 6))
    assert AddStyleChannels(found).apply(session).style_channels == (SKY, found[1])
    assert RemoveStyleChannel("b8.conv0", 5).apply(session).style_channels == (untouched,)
    full = replace(session, style_channels=tuple(StyleChannel("a", number) for number in range(MAX_STYLE_OFFSETS)))
    assert SetParameter("style/b4.conv1/3", 1.0).apply(full) == full


def test_a_search_keeps_channels_that_keys_or_controllers_move_through_rest() -> None:
    keyed, played = StyleChannel("b4.conv1", 0, reach=3.0), StyleChannel("b4.conv1", 1, reach=2.0)
    session = replace(SESSION, style_channels=(keyed, played, StyleChannel("b4.conv1", 2)))
    session = replace(session, timeline=with_key(session.timeline, keyed.path, Fraction(1), 0.5))
    session = replace(session, patches=(Patch("audio/beat", played.path, 0.0, 1.0, "add"),))
    assert AddStyleChannels(()).apply(session).style_channels == (keyed, played)


def test_what_is_removed_takes_its_tracks_and_patches_along() -> None:
    blend = LocalBlend(2, Latent())
    paths = ("style/b8.conv0/5", "bend/1/gain", "bend/1/on", "blend/2/strength", "truncation.psi", "bend/10/gain")
    timeline = Timeline(tuple(Track(path, (Key(Fraction(1), 0.5),)) for path in paths))
    patches = tuple(Patch("audio/a/beat", path) for path in ("style/b8.conv0/5", "bend/1/gain", "truncation.psi"))
    session = replace(SESSION, blends=(blend,), timeline=timeline, patches=patches)
    for edit in (RemoveStyleChannel("b8.conv0", 5), RemoveBend(1), RemoveBlend(2)):
        session = edit.apply(session)
    assert [track.path for track in session.timeline.tracks] == ["truncation.psi", "bend/10/gain"]
    assert [patch.parameter for patch in session.patches] == ["truncation.psi"]
    at_rest = keyed_at(session, 1.0)
    assert (at_rest.style_channels, at_rest.bends, at_rest.blends) == ((), (MOVE,), ())


def test_what_is_removed_does_not_come_back_with_keys_of_pictures() -> None:
    kept, gone = StyleChannel("b8.conv0", 6, 1.0), StyleChannel("b8.conv0", 7, 2.0)
    blends = LocalBlend(1, Latent()), LocalBlend(2, Latent())
    states = (
        Session(style_channels=(kept, gone), bends=(GAIN, MOVE), blends=blends),
        Session(style_channels=(replace(gone, amount=0.0),), bends=(GAIN,)),
        Session(style_channels=(kept,)),
    )
    track = Track(STATE, tuple(Key(Fraction(t), state) for t, state in enumerate(states)))
    session = replace(states[0], timeline=Timeline((track,)))
    for edit in (RemoveStyleChannel("b8.conv0", 7), RemoveBend(GAIN.number), RemoveBlend(2)):
        session = edit.apply(session)
    for t in (0.0, 0.5, 1.0, 2.0):
        at = keyed_at(session, t)
        assert gone.key not in {item.key for item in at.style_channels}
        assert GAIN.number not in {bend.number for bend in at.bends}
        assert {blend.number for blend in at.blends} <= {1}
    first = keyed_at(session, 0.0)
    assert (first.style_channels, first.bends, first.blends) == ((kept,), (MOVE,), blends[:1])
    after = session.timeline.track(STATE)
    assert after is not None
    assert after.keys[2] is track.keys[2], "what has nothing of it is the same"


def test_a_new_bend_or_blend_has_a_number_that_no_key_of_a_picture_has() -> None:
    state = Session(bends=(replace(GAIN, number=4),), blends=(LocalBlend(6, Latent()),))
    session = Session(timeline=Timeline((Track(STATE, (Key(Fraction(0), state),)),)))
    assert AddBend("b8.conv0", "gain").apply(session).bends[0].number == 5
    assert AddBlend(Latent()).apply(session).blends[0].number == 7


def test_both_come_back_from_a_file_and_a_damaged_one_is_refused() -> None:
    data = session_to_json(SESSION)
    assert session_from_json(data) == SESSION
    for key, value in (
        ("bends", [data["bends"][0]] * 2),
        ("bends", [{**data["bends"][0], "number": 0}]),
        ("bends", [{**data["bends"][0], "on": 1}]),
        ("bends", [{**data["bends"][0], "bend": ["b8.conv0", "melt", 1.0, []]}]),
        ("bends", [{**data["bends"][0], "number": number + 1} for number in range(MAX_BENDS + 1)]),
        ("styles", [["b8.conv0", 0, 1.0]]),
        ("styles", [["b8.conv0", 0, 1.0, float("inf"), ""]]),
    ):
        with pytest.raises(SessionFileError):
            session_from_json({**data, key: value})


def test_a_picture_without_a_session_gives_its_edits_back() -> None:
    edits = resolve(SESSION).edits
    document = PictureDocument(RenderRequest("model", ((Recipe(), 1.0),), edits=edits), "cats")
    read = document_from_text(document_to_text(document))
    assert read.request.edits == edits
    assert resolve(picture_session(read)).edits == edits


def test_the_program_of_a_picture_names_its_edits(tmp_path) -> None:  # type: ignore[no-untyped-def]
    program = as_python(RenderRequest("model", edits=resolve(SESSION).edits), tmp_path / "cats.pkl")
    assert "LocalEdits(" in program
    assert "Bend(" in program
    compile(program, "picture.py", "exec")


def test_a_model_keeps_the_edits_of_layers_and_channels_that_it_has() -> None:
    model = facts()
    layer, count = next(iter(bendable_layers(model).items()))
    kept = LayerBend(1, layer, "gain", 2.0, (0, count, count + 1))
    session = Session(
        bends=(kept, LayerBend(2, "b999.conv0", "gain", 2.0), LayerBend(3, layer, "turn", 9.0, (count,))),
        style_channels=(StyleChannel(layer, 0, 1.0), StyleChannel(layer, 10**5, 1.0), StyleChannel("x", 0, 1.0)),
    )
    fitted = adapt(session, model)
    assert fitted.session.bends == (replace(kept, channels=(0,)),)
    assert fitted.session.style_channels == (StyleChannel(layer, 0, 1.0),)
    assert "bends of layers and channels that it does not have were removed" in fitted.changes
    assert any("style channels" in change for change in fitted.changes)
    assert adapt(Session(bends=(kept,)), model).changes == ("bends were limited to the channels that it has",)
    assert fit_edits(resolve(session).edits, model) == resolve(fitted.session).edits


def test_between_two_states_a_bend_that_one_lacks_comes_from_rest() -> None:
    halves = {0: 0.5, 1: 0.5}
    (bend,) = mixed_bends({0: (), 1: (GAIN,)}, halves, 0)
    assert bend == replace(GAIN, amount=2.0)
    (bend,) = mixed_bends({0: (replace(GAIN, is_on=False),), 1: (GAIN,)}, halves, 0)
    assert bend == replace(GAIN, amount=2.0)
    scale = LayerBend(1, "b8.conv0", "scale", 4.0)
    assert mixed_bends({0: (scale,), 1: ()}, halves, 0)[0].amount == pytest.approx(2.0)
    assert mixed_bends({0: (scale,), 1: (GAIN,)}, halves, 0) == (scale,)
    assert mixed_bends({0: (scale,), 1: (GAIN,)}, halves, 1) == (GAIN,)
    assert mixed_style_channels({0: (), 1: (SKY,)}, {0: 0.75, 1: 0.25})[0].amount == 0.5


def test_keys_of_whole_pictures_and_of_a_path_carry_edits() -> None:
    plain = replace(SESSION, bends=(), style_channels=())
    between = states_between(plain, SESSION, "w-linear", 0.5, 8)
    assert [bend.amount for bend in between.bends] == [2.0, 0.125]
    assert between.style_channels[0].amount == 1.0
    keys = [Keyframe.of(resolve(session)) for session in (plain, SESSION)]
    frame = KeyframePath(keys, "w-linear", 2, False).frame(1)
    assert frame.edits == resolve(between).edits
    assert keys[0] == Keyframe(resolve(plain).blend, Noise())


def test_parameters_of_a_session_name_each_number_of_a_bend() -> None:
    paths = [row.path for row in parameters_of(SESSION, facts()) if row.part in ("bend", "style")]
    assert paths == [
        *("bend/1/gain", "bend/1/on", "bend/1/name"),
        *("bend/4/right", "bend/4/down", "bend/4/on", "bend/4/name"),
        *("style/b8.conv0/5", "style.name/b8.conv0/5"),
    ]
    assert parameter_name("bend/4/down", SESSION) == "Move b4.conv1, down"
    assert parameter_name("bend/1/gain", SESSION) == "Gain b8.conv0"
    assert parameter_name("bend/7/gain", SESSION) == "Bend 7"
    assert name_in_text("style/b8.conv0/5", SESSION) == "sky"
    assert parameter_name("style/b8.conv0/6", SESSION) == "b8.conv0 · 6"


def test_a_number_that_a_bend_does_not_have_is_at_rest_and_cannot_be_set() -> None:
    for path in ("bend/1/scale", "bend/9/gain"):
        assert parameter(path).read(SESSION) == parameter(path).default
        assert SetParameter(path, 3.0).apply(SESSION) == SESSION
