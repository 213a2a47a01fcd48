"""Patches: shaping, attack and release, the table and its edits, files."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from explorer_app.session.adapting import adapt
from explorer_app.session.edits import GoToSeed
from explorer_app.session.history import KeptSession
from explorer_app.session.parameters import ParameterError, parameter
from explorer_app.session.patch_file import load_patches, save_patches
from explorer_app.session.patch_table import (
    ADJUST,
    SetPatches,
    patches_from_json,
    patches_to_json,
    with_changed,
    with_patch,
    without_patch,
)
from explorer_app.session.patches import MAX_PATCHES, Follower, Patch, PatchError, audio_parts, followed, shaped
from explorer_app.session.session import Position, Session, Slider, Source, as_still, in_project_of
from explorer_app.session.storage import SessionFileError, load_session_file, save_session
from explorer_app.session.timeline import track_pool
from gpu_backend import SESSION_LIMITS, Latent, LoomError
from tests.helpers.networks import make_stylegan2

PSI = Patch("audio/drums/onset", "truncation.psi", 0.5, 0.9, release_s=0.2)
SUN = Patch("midi/knob/1/7", "slider/sefa/3", 2.0, -2.0, "add", curve=1.5, is_picked_up=True, is_on=False)


def test_a_patch_maps_its_source_to_a_range_which_may_be_inverted() -> None:
    assert [shaped(PSI, value) for value in (0.0, 0.5, 1.0)] == pytest.approx([0.5, 0.7, 0.9])
    assert shaped(PSI, 7.0) == pytest.approx(0.9)
    assert shaped(PSI, -1.0) == 0.5
    assert shaped(replace(SUN, curve=0.0), 0.25) == pytest.approx(1.0)


def test_a_curve_squares_or_takes_the_root() -> None:
    assert shaped(Patch("osc/a", "noise.gain", curve=1.0), 0.5) == pytest.approx(0.25)
    assert shaped(Patch("osc/a", "noise.gain", curve=-1.0), 0.25) == pytest.approx(0.5)


def test_attack_and_release_are_the_same_live_and_over_a_whole_envelope() -> None:
    patch = Patch("audio/a/rms", "noise.gain", attack_s=0.05, release_s=0.4)
    values = np.random.default_rng(1).random(300).astype(np.float32)
    follower = Follower(patch, float(values[0]))
    live = [follower.step(float(value), 0.01) for value in values]
    assert followed(values, 100.0, patch) == pytest.approx(np.array(live), abs=1e-6)


def test_a_step_reaches_two_thirds_after_the_attack_and_falls_at_once_without_a_release() -> None:
    patch = Patch("audio/a/rms", "noise.gain", attack_s=0.1)
    values = np.array([0.0, *[1.0] * 10, 0.0], np.float32)
    found = followed(values, 100.0, patch)
    assert found[10] == pytest.approx(1 - np.exp(-1), abs=1e-6)
    assert found[11] == 0.0
    plain = replace(patch, attack_s=0.0)
    assert followed(values, 100.0, plain) is values


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("audio/drums/rms", ("drums", "rms")),
        ("audio/a/b/band/7", ("a/b", "band/7")),
        ("audio/beat/beat", ("beat", "beat")),
        ("audio/band/8", ("", "")),
        ("input/rms", ("", "")),
    ],
)
def test_an_audio_source_names_its_sound_and_what_of_it(source: str, parts: tuple[str, str]) -> None:
    assert audio_parts(source) == parts


@pytest.mark.parametrize(
    "change",
    [
        {"source": "sensor/1"},
        {"low": float("nan")},
        {"high": float("inf")},
        {"curve": 5.0},
        {"attack_s": -0.1},
        {"release_s": 61.0},
        {"offset_s": 1e5},
        {"mode": "multiply"},
    ],
)
def test_a_patch_out_of_range_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(PatchError):
        replace(PSI, **change)


def test_patches_are_added_changed_moved_and_removed() -> None:
    both = with_patch(with_patch((), PSI), SUN)
    assert both == (PSI, SUN)
    assert without_patch(both, 0) == (SUN,)
    louder = replace(PSI, high=1.0)
    assert with_changed(both, 0, louder) == (louder, SUN)


def test_only_numbers_and_angles_can_be_moved_and_only_so_many() -> None:
    with pytest.raises(PatchError, match="moves a number"):
        with_patch((), Patch("osc/a", "noise.mode"))
    with pytest.raises(ParameterError, match="no parameter"):
        with_patch((), Patch("osc/a", "nothing"))
    with pytest.raises(PatchError, match="256"):
        with_patch((PSI,) * MAX_PATCHES, PSI)


def test_an_edit_sets_them_and_adjusting_is_one_step() -> None:
    edit = SetPatches((PSI,))
    assert edit.apply(Session()).patches == (PSI,)
    assert not edit.is_nudge(Session())
    assert SetPatches((PSI,), ADJUST).is_nudge(Session())


def test_one_number_moves_a_source_with_the_shape_of_its_strengths() -> None:
    session = Session(mix=(Source(Latent(), (0.0, 0.4, 0.8), "a"), Source(Latent(), (0.0, 0.0), "b")))
    whole = parameter("mix/0/strength")
    assert whole.read(session) == 0.8
    assert whole.write(session, 0.4).mix[0].strengths == pytest.approx((0.0, 0.2, 0.4))
    assert parameter("mix/1/strength").write(session, 0.5).mix[1].strengths == (0.5, 0.5)
    assert parameter("mix/7/strength").write(session, 0.5) == session


def test_one_coordinate_of_the_plane_moves_alone() -> None:
    session = Session(position=Position(3.0, 4.0))
    assert parameter("position.x").write(session, 9.0).position == Position(9.0, 4.0)
    assert parameter("position.y").read(session) == 4.0


# -- files ----------------------------------------------------------------------------------------------------------


def test_patches_come_back_from_json_and_from_a_project(tmp_path: Path) -> None:
    assert patches_from_json(json.loads(json.dumps(patches_to_json((PSI, SUN))))) == (PSI, SUN)
    path = tmp_path / "a.loom"
    first, second = Session(patches=(PSI,)), Session(patches=(PSI, SUN))
    save_session(path, second, (KeptSession(first, "kept"),), [(Session(), "a"), (first, "b"), (second, "c")], 2)
    file = load_session_file(path)
    assert file.session == second
    assert [step.patches for step, _ in file.steps] == [(), (PSI,), (PSI, SUN)]
    assert file.kept[0].session.patches == ()


def test_a_table_that_steps_share_is_in_the_file_once_and_shared_again(tmp_path: Path) -> None:
    table = (PSI, SUN)
    steps = [(replace(GoToSeed(seed).apply(Session()), patches=table), "Walk") for seed in range(20)]
    save_session(tmp_path / "a.loom", steps[-1][0], (), steps, 19)
    with zipfile.ZipFile(tmp_path / "a.loom") as archive:
        assert len(json.loads(archive.read("session.json"))["patch_tables"]) == 1
    read = load_session_file(tmp_path / "a.loom")
    assert all(step.patches is read.session.patches for step, _ in read.steps)


def test_many_tables_cost_a_project_old_steps_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(track_pool, "SESSION_LIMITS", replace(SESSION_LIMITS, nbytes=20_000))
    steps = [(Session(patches=(replace(SUN, high=float(step)),)), "Patches") for step in range(300)]
    save_session(tmp_path / "a.loom", steps[-1][0], (), steps, len(steps) - 1)
    file = load_session_file(tmp_path / "a.loom")
    assert file.session == steps[-1][0]
    assert 10 < len(file.steps) < 300


@pytest.mark.parametrize(
    "change",
    [
        {"patch_tables": [[{"source": "x", "parameter": "noise.gain"}]]},
        {"patch_tables": [[{"source": "osc/x", "parameter": "noise.mode"}]]},
        {"patch_tables": [[{"source": "osc/x", "parameter": "noise.gain", "on": 1}]]},
        {"patch_tables": [[{"source": "osc/x", "parameter": "noise.gain", "low": "a"}]]},
        {"patch_tables": [[{}] * 257]},
        {"patch_tables": {}},
        {"patches": 0},
        {"patches": True, "patch_tables": [[]]},
        {"history": {"position": -1, "steps": [], "patches": [0]}},
    ],
)
def test_damaged_patches_are_refused_in_one_sentence(tmp_path: Path, change: dict[str, Any]) -> None:
    data = {"format": "latent-loom-session", "version": 1, **change}
    (tmp_path / "a.loom").write_text(json.dumps(data))
    with pytest.raises(SessionFileError):
        load_session_file(tmp_path / "a.loom")


def test_patches_that_could_not_be_read_back_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(LoomError):
        save_session(tmp_path / "a.loom", Session(patches=(Patch("osc/a", "noise.mode"),)))
    assert not (tmp_path / "a.loom").exists()


def test_a_still_has_no_patches_and_takes_those_of_a_project() -> None:
    project = Session(patches=(PSI,))
    assert as_still(project) == Session()
    assert in_project_of(GoToSeed(4).apply(Session()), project).patches == (PSI,)


def test_another_model_keeps_the_patches_of_what_it_has() -> None:
    facts = make_stylegan2(resolution=32, w_dim=8).facts
    lacks = Patch("osc/a", "slider/world/sun")
    fitted = adapt(Session(patches=(PSI, SUN, lacks), sliders=(Slider("sefa/1"),)), facts)
    assert fitted.session.patches == (PSI, SUN)
    assert "patches of parameters that it does not have were removed" in fitted.changes
    assert adapt(fitted.session, facts).session.patches is fitted.session.patches


def test_a_preset_with_a_number_that_no_float_holds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.patches.json"
    save_patches(path, (Patch("osc/1/x", "noise.gain", high=0.75),))
    path.write_text(path.read_text().replace("0.75", "1" + "0" * 400))
    with pytest.raises(SessionFileError, match="is not a controller preset"):
        load_patches(path)
