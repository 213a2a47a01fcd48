"""Blends of a session with second latents: adding, fitting to a model, mixing, files, requests, drafts."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from explorer_app.controller.drafts import draft_with_edits
from explorer_app.controller.restoring import picture_session
from explorer_app.exporting.keyframes import Keyframe, KeyframePath
from explorer_app.exporting.picture_document import PictureDocument, document_from_text, document_to_text
from explorer_app.exporting.recipe_text import as_python
from explorer_app.session.adapting import adapt, fit_edits
from explorer_app.session.edits import AddBlend, RemoveBlend
from explorer_app.session.local_blends import LocalBlend, blend_at, mixed_local_blends
from explorer_app.session.parameter_names import name_in_text, parameter_name
from explorer_app.session.parameters import SetParameter, parameter, parameters_of
from explorer_app.session.patches import Patch
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Session
from explorer_app.session.session_json import SessionFileError, session_from_json, session_to_json, stored_of
from explorer_app.session.storage import load_session_file, save_session
from explorer_app.session.timeline.seam import seam
from explorer_app.session.timeline.states import states_between
from explorer_app.session.tracks import Key, Timeline, Track
from gpu_backend import (
    MASK_SIDE,
    MAX_BLENDS,
    Latent,
    LocalEdits,
    MaskedBlend,
    PictureMask,
    Point,
    Recipe,
    RenderRequest,
    RowRange,
    Truncation,
    stored_latent,
)
from tests.helpers.fake_controller import facts

TOP = PictureMask(bytes([255]) * (MASK_SIDE**2 // 2) + bytes(MASK_SIDE**2 // 2))
SEVEN = Latent(Point(((7, 1.0),)))
SKY = LocalBlend(1, SEVEN, TOP, RowRange(0, 1), 0.8, 0.2, label="sky")
STORED = LocalBlend(4, Latent(stored_latent(np.ones((1, facts().w_dim), np.float32))), TOP)
SESSION = Session(truncation=Truncation(0.5), blends=(SKY, STORED))


def test_a_request_has_every_blend_that_is_on_and_painted_even_without_strength() -> None:
    blends = (replace(SKY, strength=0.0), replace(STORED, is_on=False), LocalBlend(9, SEVEN))
    assert resolve(replace(SESSION, blends=blends)).edits == LocalEdits(
        blends=(MaskedBlend(Recipe(SEVEN, Truncation(0.5)), TOP, RowRange(0, 1), 0.0, 0.2),)
    )


def test_a_new_blend_has_a_number_that_nothing_else_names() -> None:
    session = replace(SESSION, patches=(Patch("audio/beat", "blend/9/strength", 0.0, 1.0, "add"),))
    added = AddBlend(SEVEN, TOP, "seed 7").apply(session)
    assert added.blends[-1] == LocalBlend(10, SEVEN, TOP, label="seed 7")
    assert RemoveBlend(10).apply(added) == session
    full = replace(session, blends=tuple(replace(SKY, number=number) for number in range(MAX_BLENDS)))
    assert AddBlend(SEVEN).apply(full) == full


def test_blends_come_back_from_a_file_with_their_masks_and_latents(tmp_path: Path) -> None:
    save_session(tmp_path / "a.loom", SESSION, steps=((Session(blends=(SKY,)), "Blend"),))
    file = load_session_file(tmp_path / "a.loom")
    assert file.session == SESSION
    assert file.steps[0][0].blends == (SKY,)


def test_a_damaged_blend_is_refused() -> None:
    data, stored = session_to_json(SESSION), stored_of((SESSION,))
    assert session_from_json(json.loads(json.dumps(data)), stored) == SESSION
    first = data["blends"][0]
    for blends in (
        [first, first],
        [{**first, "number": 0}],
        [{**first, "on": 1}],
        [{**first, "rows": [1]}],
        [{**first, "mask": "0" * 64}],
        [{**first, "strength": float("nan")}],
        [{**first, "number": number + 1} for number in range(MAX_BLENDS + 1)],
    ):
        with pytest.raises(SessionFileError):
            session_from_json({**data, "blends": blends}, stored)


def test_a_picture_without_a_session_gives_its_blends_back() -> None:
    edits = resolve(SESSION).edits
    blend = ((Recipe(Latent(), Truncation(0.5)), 1.0),)
    read = document_from_text(document_to_text(PictureDocument(RenderRequest("model", blend, edits=edits), "cats")))
    assert read.request.edits == edits
    assert resolve(picture_session(read)).edits == edits


def test_the_program_of_a_picture_makes_its_mask(tmp_path: Path) -> None:
    request = RenderRequest("model", edits=resolve(replace(SESSION, blends=(SKY,))).edits)
    program = as_python(request, tmp_path / "cats.pkl")
    made: dict[str, object] = {}
    exec(program.partition("with open_renderer")[0], made)
    assert made["request"] == request


def test_a_model_keeps_the_blends_whose_latents_it_can_have() -> None:
    model = facts()
    other = LocalBlend(2, Latent(stored_latent(np.ones((1, model.w_dim + 1), np.float32))), TOP)
    session = replace(SESSION, blends=(replace(SKY, rows=RowRange(1, 99)), other))
    fitted = adapt(session, model)
    assert fitted.session.blends == (replace(SKY, rows=RowRange(1, model.num_ws - 1)),)
    assert any("blends" in change for change in fitted.changes)
    assert fit_edits(resolve(session).edits, model) == resolve(fitted.session).edits


def test_between_two_states_a_blend_that_one_lacks_comes_from_no_strength() -> None:
    halves = {0: 0.5, 1: 0.5}
    assert mixed_local_blends({0: (), 1: (SKY,)}, halves, 0) == (replace(SKY, strength=0.4),)
    assert mixed_local_blends({0: (replace(SKY, is_on=False),), 1: (SKY,)}, halves, 0) == (replace(SKY, strength=0.4),)
    soft = replace(SKY, softness=0.6, strength=0.4)
    assert mixed_local_blends({0: (soft,), 1: (SKY,)}, halves, 0)[0].softness == pytest.approx(0.4)
    other = replace(SKY, latent=Latent())
    assert mixed_local_blends({0: (SKY,), 1: (other,)}, halves, 0) == (SKY,)
    assert mixed_local_blends({0: (SKY,), 1: (other,)}, halves, 1) == (other,)
    assert mixed_local_blends({0: (SKY,), 1: (SKY,)}, {0: 2.0, 1: -1.0}, 0) == (SKY,)


def test_keys_of_whole_pictures_and_of_a_path_carry_blends() -> None:
    plain = replace(SESSION, blends=())
    between = states_between(plain, SESSION, "w-linear", 0.5, 8)
    assert [blend.strength for blend in between.blends] == [0.4, 0.5]
    keys = [Keyframe.of(resolve(session)) for session in (plain, SESSION)]
    frame = KeyframePath(keys, "w-linear", 2, False).frame(1)
    assert frame.edits == resolve(between).edits


def test_a_track_of_a_strength_is_part_of_whether_a_loop_closes() -> None:
    keys = tuple(Key(Fraction(time), value) for time, value in ((0, 0.0), (2, 1.0)))
    moved = replace(SESSION, timeline=Timeline(tracks=(Track("blend/1/strength", keys),)))
    assert not seam(moved, 0.0, 2.0).value_meets
    assert seam(replace(SESSION), 0.0, 2.0).value_meets


def test_parameters_of_a_session_name_each_field_of_a_blend() -> None:
    paths = [row.path for row in parameters_of(SESSION, facts()) if row.part == "blend"]
    assert len(paths) == 14
    assert parameter_name("blend/1/strength", SESSION) == "sky"
    assert parameter_name("blend/4/softness", SESSION) == "Blend 4, soft edge"
    assert name_in_text("blend/9/strength", SESSION) == "Blend 9"
    assert SetParameter("blend/9/strength", 0.5).apply(SESSION) == SESSION
    assert parameter("blend/1/strength").clamped(3.0) == 1.0


def test_a_draft_shows_a_blend_from_its_first_layer_on() -> None:
    model = facts()
    drafts = sorted(model.draft_resolutions)
    whole = resolve(replace(SESSION, blends=(replace(SKY, rows=RowRange()),))).edits
    assert draft_with_edits(drafts[0], whole, model) == drafts[0]
    last = model.num_ws - 1
    fine = resolve(replace(SESSION, blends=(replace(SKY, rows=RowRange(last, last)),))).edits
    assert draft_with_edits(drafts[0], fine, model) is None


TOP = PictureMask(bytes([255]) * (MASK_SIDE**2 // 2) + bytes(MASK_SIDE**2 // 2))
LEFT = PictureMask((bytes([255]) * (MASK_SIDE // 2) + bytes(MASK_SIDE // 2)) * MASK_SIDE)


def test_the_blend_at_a_place_is_the_one_whose_picture_shows_most() -> None:
    def number(x: float, y: float, *blends: LocalBlend) -> int:
        found = blend_at(blends, x, y, RowRange(0, 3), 8)
        return 0 if found is None else found.number

    top, left = LocalBlend(1, mask=TOP, softness=0.0), LocalBlend(2, mask=LEFT, softness=0.0)
    places = ((0.75, 0.25), (0.25, 0.25), (0.25, 0.75), (0.75, 0.75))
    assert [number(x, y, top, left) for x, y in places] == [1, 2, 2, 0]
    assert [number(x, y, left, top) for x, y in places] == [1, 1, 2, 0], "later blends are over earlier ones"
    assert number(-1.0, 2.0, left) == 2, "a place beyond the edge is at the edge"
    for hidden in (replace(top, is_on=False), replace(top, mask=None), replace(top, strength=0.4)):
        assert number(0.75, 0.25, hidden) == 0
    assert number(0.75, 0.25, replace(top, rows=RowRange(0, 2))) == 1
    assert number(0.75, 0.25, replace(top, rows=RowRange(2, 7))) == 0, "the arrangement is the first picture's"
