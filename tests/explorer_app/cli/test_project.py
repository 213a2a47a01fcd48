"""``latentloom render --project``."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from explorer_app.audio.decoding import write_wav
from explorer_app.audio.sound_files import SoundFiles, envelopes_of, with_files, with_relative_paths
from explorer_app.audio.synthesis import RATE_HZ, stems
from explorer_app.exporting.manifest import manifest_bytes, read_manifest
from explorer_app.exporting.picture import read_picture
from explorer_app.exporting.sequence import Piece, SequenceSettings, plan_sequence
from explorer_app.session.edited_latent import TakeEditedRows, recipe_before
from explorer_app.session.edits import GoToSeed
from explorer_app.session.envelopes import sound_modulation
from explorer_app.session.local_edits import LayerBend
from explorer_app.session.patches import Patch
from explorer_app.session.resolve import resolve
from explorer_app.session.session import ModelReference, Session
from explorer_app.session.storage import save_session
from explorer_app.session.timeline.edits import with_key, with_state
from explorer_app.session.timeline.evaluation import keyed_at, session_at
from explorer_app.session.timeline.noise_loop import with_noise_loop
from explorer_app.session.tracks import WALK, Timeline, Track
from gpu_backend import inspect_model, stored_latent
from tests.helpers.command import Command


def piece(network: Path) -> Session:
    """Return a session whose timeline goes from seed 1 to seed 2 in 2 s, at 4 frames a second, with a walk."""
    facts = inspect_model(network)
    session = Session(model=ModelReference(name=facts.name, model_id=facts.model_id))
    timeline = Timeline((Track(WALK, radius=0.2, period=Fraction(2)),), fps=Fraction(4), end=Fraction(2))
    for seed, t in ((1, 0), (2, 2)):
        timeline = with_state(timeline, GoToSeed(seed).apply(session), Fraction(t))
    timeline = with_key(with_key(timeline, "truncation.psi", Fraction(0), 0.4), "truncation.psi", Fraction(2), 1.0)
    return replace(session, timeline=timeline)


def test_a_project_becomes_a_sequence_of_what_its_timeline_shows(
    command: Command, networks: Path, tmp_path: Path
) -> None:
    network = networks / "plain.safetensors"
    session = piece(network)
    save_session(tmp_path / "piece.loom", session)
    words = ("render", "--project", tmp_path / "piece.loom", "--network", network, "--outdir", tmp_path / "out")
    outcome = command(*words)
    assert (outcome.status, outcome.out) == (0, ""), outcome.err
    pictures = sorted((tmp_path / "out").glob("*.png"))
    assert [path.name for path in pictures] == [f"piece_{n:05d}.png" for n in range(8)]
    for n, path in enumerate(pictures):
        assert read_picture(path).request == resolve(session_at(session, n / 4))
    outcome = command(*words, "--fps", "2", "--start", "0.5", "--end", "1.5", "--name", "half")
    assert outcome.status == 0, outcome.err
    halves = sorted((tmp_path / "out").glob("half_*.png"))
    assert [read_picture(path).request for path in halves] == [resolve(session_at(session, t)) for t in (0.5, 1.0)]


def test_a_project_rendered_with_another_network_warns_that_its_pictures_differ(
    command: Command, networks: Path, tmp_path: Path
) -> None:
    session = piece(networks / "plain.safetensors")
    save_session(tmp_path / "piece.loom", session)
    words = ("render", "--project", tmp_path / "piece.loom", "--end", "0.25", "--network")
    outcome = command(*words, networks / "other.safetensors", "--outdir", tmp_path / "other")
    assert outcome.status == 0, outcome.err
    assert f"was made with plain (SHA-256 {session.model.model_id[:12]}…), not with other: the pictures" in outcome.err
    assert "was made with" not in command(*words, networks / "plain.safetensors", "--outdir", tmp_path / "own").err


def test_where_the_playhead_stood_makes_no_difference_to_a_piece(networks: Path, tmp_path: Path) -> None:
    session = piece(networks / "plain.safetensors")
    moved = keyed_at(session, 1.3)
    assert moved != session
    made = [Piece.of(item, Fraction(30), Fraction(0), Fraction(2)) for item in (session, moved)]
    assert made[0] == made[1]


def test_a_project_becomes_an_animation(command: Command, networks: Path, tmp_path: Path) -> None:
    network = networks / "plain.safetensors"
    save_session(tmp_path / "piece.loom", piece(network))
    video = tmp_path / "loop.gif"
    outcome = command("render", "--project", tmp_path / "piece.loom", "--network", network, "--video", video)
    assert outcome.status == 0, outcome.err
    settings = read_manifest(tmp_path / "loop.manifest.json").settings
    assert settings.frame_count == 8
    assert settings.video is not None
    assert settings.video.fps == 4


def test_a_piece_that_was_stopped_goes_on_by_its_manifest(command: Command, networks: Path, tmp_path: Path) -> None:
    network, out = networks / "plain.safetensors", tmp_path / "out"
    save_session(tmp_path / "piece.loom", piece(network))
    command("render", "--project", tmp_path / "piece.loom", "--network", network, "--outdir", out)
    whole = {path.name: path.read_bytes() for path in out.iterdir()}
    (out / "piece_00003.png").unlink()
    outcome = command("render", "--resume", out / "piece.manifest.json", "--network", network)
    assert "frames exist already" in outcome.err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == whole


def test_a_manifest_holds_the_whole_piece(networks: Path, tmp_path: Path) -> None:
    session = piece(networks / "plain.safetensors")
    made = Piece.of(session, Fraction(24000, 1001), Fraction(1, 3), Fraction(2))
    settings = SequenceSettings((), tmp_path, "piece", session.model, piece=made)
    settings.manifest_path.write_bytes(manifest_bytes(settings, "unfinished", None))
    again = read_manifest(settings.manifest_path).settings
    assert again == settings
    assert again.makes_the_same_as(settings)
    frames = plan_sequence(again)
    assert len(frames) == settings.frame_count == 40
    assert frames.request(39) == plan_sequence(settings).request(39)
    other = replace(settings, piece=Piece.of(session, Fraction(24), Fraction(1, 3), Fraction(2)))
    assert not other.makes_the_same_as(settings)


def test_how_a_timeline_plays_and_snaps_makes_no_other_sequence(networks: Path, tmp_path: Path) -> None:
    session = piece(networks / "plain.safetensors")
    other = replace(session, timeline=replace(session.timeline, snap="off", is_looping=False))
    first, second = (
        SequenceSettings(
            (), tmp_path, "piece", session.model, piece=Piece.of(item, Fraction(4), Fraction(0), Fraction(2))
        )
        for item in (session, other)
    )
    assert first.makes_the_same_as(second)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("--project p.loom --seeds 1 --outdir out", "--seeds and --project cannot be given together"),
        ("--project p.loom --path cubic --outdir out", "--path cannot be given with --project"),
        ("--project p.loom --trunc 1 --outdir out", "--trunc cannot be given with it"),
        ("--project p.loom --frames 3 --outdir out", "--frames belongs to a sequence"),
        ("--seeds 1 --start 2 --outdir out", "--start belongs to a project"),
        ("--project p.loom --start x --outdir out", "seconds like 12 or 1.5"),
    ],
)
def test_options_that_a_project_excludes_are_refused(command: Command, words: str, part: str) -> None:
    outcome = command("render", *words.split())
    assert outcome.status == 2
    assert part in outcome.sentence


def test_a_project_without_a_timeline_and_a_piece_without_length_are_refused(
    command: Command, networks: Path, tmp_path: Path
) -> None:
    network = networks / "plain.safetensors"
    save_session(tmp_path / "still.loom", Session())
    words = ("--network", network, "--outdir", tmp_path / "out")
    assert "Nothing moves" in command("render", "--project", tmp_path / "still.loom", *words).sentence
    save_session(tmp_path / "piece.loom", piece(network))
    outcome = command("render", "--project", tmp_path / "piece.loom", "--start", "3", *words)
    assert outcome.sentence == "--start should be before 2 s, where the timeline ends, but is 3 s."
    outcome = command("render", "--project", tmp_path / "piece.loom", "--start", "1", "--end", "0.5", *words)
    assert outcome.sentence == "--end should be after --start, 1 s, but is 0.5 s."
    outcome = command("render", "--project", tmp_path / "piece.loom", "--start", "2", "--end", "3", *words)
    assert outcome.status == 0
    assert "Warning: The timeline of piece.loom ends at 2 s, before --end.\n" in outcome.err
    outcome = command("render", "--project", tmp_path / "piece.loom", "--fps", "0", *words)
    assert "--fps should be above 0" in outcome.sentence


def piece_of_everything(network: Path, timeline: Timeline) -> Session:
    """Return a session that a drum, an arc from an edited latent, a walk, noise, a slider and a bend move."""
    facts = inspect_model(network)
    session = Session(
        model=ModelReference(name=facts.name, model_id=facts.model_id),
        bends=(LayerBend(1, facts.layers[2].name, "gain", 3.0, (1, 4)),),
    )
    rows = stored_latent(np.random.default_rng(3).normal(size=(facts.num_ws, facts.w_dim)).astype(np.float32))
    edited = TakeEditedRows(recipe_before(session, rows), rows).apply(session)
    for state, t in ((edited, 0), (GoToSeed(2).apply(session), Fraction(1, 2)), (GoToSeed(7).apply(session), 1)):
        timeline = with_state(timeline, state, Fraction(t))
    (states,) = timeline.tracks
    timeline = replace(timeline, tracks=(replace(states, way="w-slerp"), Track(WALK, radius=0.2, period=Fraction(1))))
    timeline = with_noise_loop(timeline)
    for t, amount in ((0, 0.0), (1, 2.0)):
        timeline = with_key(timeline, "slider/axis/1", Fraction(t), amount)
        timeline = with_key(timeline, "bend/1/gain", Fraction(t), 1.0 + amount)
    patches = (
        Patch("audio/drums/onset", "truncation.psi", 0.2, 1.0),
        Patch("audio/drums/rms", "noise.mode/number", 1.0, 2.0),
    )
    return replace(session, timeline=timeline, patches=patches)


def test_a_project_that_sound_moves_gives_the_same_frames_twice_and_those_that_the_window_exports(
    command: Command, networks: Path, tmp_path: Path
) -> None:
    network = networks / "plain.safetensors"
    (tmp_path / "sounds").mkdir()
    write_wav(tmp_path / "sounds" / "drums.wav", stems(1.0)["drums"][:, None], RATE_HZ)
    files = SoundFiles(None)
    timeline = with_files(Timeline(fps=Fraction(4), end=Fraction(1)), [tmp_path / "sounds"], files)
    timeline = with_relative_paths(timeline, files, tmp_path / "piece.loom")
    session = piece_of_everything(network, timeline)
    save_session(tmp_path / "piece.loom", session)
    words = ("render", "--project", tmp_path / "piece.loom", "--network", network, "--outdir")
    for name in ("one", "two"):
        outcome = command(*words, tmp_path / name)
        assert outcome.status == 0, outcome.err
    first, second = ({path.name: path.read_bytes() for path in (tmp_path / n).iterdir()} for n in ("one", "two"))
    assert first == second
    sound = sound_modulation(session, envelopes_of(session, files))
    shown = [read_picture(path).request for path in sorted((tmp_path / "one").glob("*.png"))]
    assert shown == [resolve(session_at(session, n / 4, sound)) for n in range(4)]
    assert len(set(shown)) > 2
    (tmp_path / "sounds" / "drums.wav").unlink()
    assert "drums.wav was not found" in command(*words, tmp_path / "three").sentence
