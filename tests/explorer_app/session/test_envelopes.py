"""Envelopes: modulation as a function of time, sounds in files."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from explorer_app.session import envelopes
from explorer_app.session.envelopes import (
    Envelope,
    cut_envelopes,
    envelopes_from_json,
    envelopes_to_json,
    free_name,
    needed_envelopes,
    sound_modulation,
    with_sound,
    without_sound,
)
from explorer_app.session.patches import Patch
from explorer_app.session.resolve import NO_MODULATION, evaluate
from explorer_app.session.session import Position, Session
from explorer_app.session.session_json import SessionFileError
from explorer_app.session.storage import load_session, save_session
from explorer_app.session.timeline.evaluation import is_piece, moves_something, session_at
from explorer_app.session.timeline.timeline_json import timeline_from_json, timeline_to_json
from explorer_app.session.tracks import WALK, Key, Sound, Timeline, Track
from gpu_backend import Truncation

DIGEST = "a" * 64
SOUND = Sound("drums", DIGEST, "drums.wav", 1.0, Fraction(2))
RAMP = Envelope(DIGEST, "rms", np.linspace(0, 65535, 101).astype("<u2").tobytes())
"""Rises from 0 to 1 in a second."""
PSI = Patch("audio/drums/rms", "truncation.psi", 0.0, 1.0)


def session(*patches: Patch, sound: Sound = SOUND) -> Session:
    return Session(timeline=Timeline(sounds=(sound,)), patches=patches)


def psi(patched: Session, t: float) -> float:
    return evaluate(patched, sound_modulation(patched, {RAMP.key: RAMP}), t).truncation.psi


def test_a_parameter_follows_the_sound_where_it_stands_on_the_timeline() -> None:
    patched = session(PSI)
    assert [psi(patched, t) for t in (0.0, 1.9, 2.25, 2.505, 3.0, 9.0)] == pytest.approx(
        [0.0, 0.0, 0.25, 0.505, 1.0, 0.0], abs=1e-3
    )


def test_an_offset_acts_later_and_low_above_high_inverts() -> None:
    later = session(replace(PSI, low=1.0, high=0.0, offset_s=0.5))
    assert [psi(later, t) for t in (2.4, 2.75, 3.5)] == pytest.approx([1.0, 0.75, 0.0], abs=1e-3)


def test_added_values_lie_on_top_of_what_the_session_has_and_stay_in_range() -> None:
    added = replace(session(replace(PSI, mode="add", high=0.5)), truncation=Truncation(psi=0.4))
    assert psi(added, 2.5) == pytest.approx(0.65, abs=1e-3)
    assert psi(replace(added, truncation=Truncation(psi=1.9)), 3.0) == 2.0


def test_a_release_goes_on_after_the_sound_has_ended() -> None:
    falling = session(replace(PSI, release_s=0.5))
    assert psi(falling, 3.5) == pytest.approx(np.exp(-1), abs=0.02)
    assert psi(falling, 30.0) == 0.0


def test_a_patch_that_is_off_or_without_sound_or_envelope_does_nothing() -> None:
    assert sound_modulation(session(replace(PSI, is_on=False)), {RAMP.key: RAMP}) == NO_MODULATION
    assert sound_modulation(session(replace(PSI, source="audio/bass/rms")), {RAMP.key: RAMP}) == NO_MODULATION
    assert sound_modulation(session(PSI), {}) == NO_MODULATION
    assert sound_modulation(session(replace(PSI, source="midi/a/1")), {RAMP.key: RAMP}) == NO_MODULATION
    assert needed_envelopes(session(PSI, replace(PSI, parameter="noise.gain"))) == [RAMP.key]


def test_sound_moves_what_keys_set_and_a_walk_leads_on_from_the_place_that_sound_gives() -> None:
    keyed = Track("truncation.psi", (Key(Fraction(0), 0.5),))
    moved = replace(
        session(replace(PSI, mode="add", high=0.2), Patch("audio/drums/rms", "position.x", 10.0, 20.0)),
        timeline=Timeline((keyed, Track(WALK)), sounds=(SOUND,)),
        position=Position(1.0, 1.0),
    )
    sound = sound_modulation(moved, {RAMP.key: RAMP})
    found = session_at(moved, 3.0, sound)
    assert found.truncation.psi == pytest.approx(0.7, abs=1e-3)
    assert found.position == Position(20.0, 1.0)
    assert found.pinned_blend != session_at(moved, 3.0).pinned_blend


def test_a_timeline_with_a_sound_is_a_piece() -> None:
    assert is_piece(session())
    assert not moves_something(session().timeline)
    assert not is_piece(Session())


def test_names_of_sounds_are_different_and_one_replaces_its_namesake() -> None:
    timeline = with_sound(Timeline(), SOUND)
    assert free_name(timeline, "drums") == "drums 2"
    assert free_name(timeline, " ") == "sound"
    louder = replace(SOUND, gain_db=3.0)
    assert with_sound(timeline, louder).sounds == (louder,)
    assert without_sound(timeline, "drums") == Timeline()


# -- files ----------------------------------------------------------------------------------------------------------


def test_sounds_come_back_from_a_project(tmp_path: Path) -> None:
    piece = session(PSI, sound=replace(SOUND, path="stems/drums.wav", gain_db=-3.0, is_muted=True))
    save_session(tmp_path / "a.loom", piece)
    assert load_session(tmp_path / "a.loom") == piece
    assert "sounds" not in timeline_to_json(Timeline(), [])


@pytest.mark.parametrize(
    "change",
    [
        {"sha256": "A" * 64},
        {"path": "/home/me/a.wav"},
        {"path": "../a.wav"},
        {"path": "C:/a.wav"},
        {"path": ""},
        {"seconds": 0},
        {"seconds": 1e6},
        {"gain": 100},
        {"muted": 1},
        {"name": 3},
    ],
)
def test_a_damaged_sound_is_refused(change: dict[str, Any]) -> None:
    data = timeline_to_json(Timeline(sounds=(SOUND,)), [])
    data["sounds"][0].update(change)
    with pytest.raises(SessionFileError):
        timeline_from_json(data, [])


def test_two_sounds_of_one_name_are_refused() -> None:
    data = timeline_to_json(Timeline(sounds=(SOUND, SOUND)), [])
    with pytest.raises(SessionFileError, match="different names"):
        timeline_from_json(data, [])


def test_envelopes_come_back_from_json() -> None:
    assert envelopes_from_json(json.loads(json.dumps(envelopes_to_json([RAMP])))) == (RAMP,)


@pytest.mark.parametrize(
    "change",
    [
        {"feature": "loudness"},
        {"values": "!"},
        {"values": 3},
        {"values": base64.b64encode(b"no zlib").decode()},
        {"values": base64.b64encode(zlib.compress(b"odd")).decode()},
        {"values": base64.b64encode(zlib.compress(bytes(20_000_000), 1)).decode()},
    ],
)
def test_damaged_envelopes_are_refused(change: dict[str, Any]) -> None:
    (data,) = envelopes_to_json([RAMP])
    with pytest.raises(SessionFileError):
        envelopes_from_json([{**data, **change}])


def test_envelopes_are_neither_written_nor_read_beyond_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    data = envelopes_to_json([RAMP])
    monkeypatch.setattr(envelopes, "_MAX_NBYTES", 5 * len(RAMP.values))
    assert len(envelopes_from_json(data * 5)) == 5
    assert envelopes_to_json([RAMP] * 5) == data * 5
    for refused in (lambda: envelopes_from_json(data * 6), lambda: envelopes_to_json([RAMP] * 6)):
        with pytest.raises(SessionFileError, match="render a shorter stretch"):
            refused()


def test_an_export_holds_no_more_of_an_envelope_than_it_needs() -> None:
    patched = session(PSI, replace(PSI, offset_s=-0.5))
    (cut,) = cut_envelopes([RAMP], patched, 2.0)
    assert 50 < len(cut.values) / 2 < 60
    whole, part = sound_modulation(patched, {RAMP.key: RAMP}), sound_modulation(patched, {cut.key: cut})
    assert [evaluate(patched, whole, t) for t in (0.0, 1.6, 1.99)] == [
        evaluate(patched, part, t) for t in (0, 1.6, 1.99)
    ]
