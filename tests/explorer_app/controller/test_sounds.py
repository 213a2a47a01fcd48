"""The timeline's sounds in the controller: read on a thread of their own, moving the picture, undone like any edit."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from explorer_app.audio.capture import Sink
from explorer_app.audio.decoding import write_wav
from explorer_app.audio.sound_files import with_relative_paths
from explorer_app.controller.sounds import Sounds
from explorer_app.messages import Level
from explorer_app.session.envelopes import sound_modulation
from explorer_app.session.patches import Patch
from explorer_app.session.resolve import resolve
from explorer_app.session.storage import load_session, save_session
from explorer_app.session.timeline.edits import SetTimeline
from explorer_app.session.timeline.evaluation import session_at
from explorer_app.session.tracks import Key, Sound, Timeline, Track
from gpu_backend import LoomError
from tests.helpers.controller_harness import Harness
from tests.helpers.patience import PATIENCE_MS

PSI = Patch("audio/burst/rms", "truncation.psi", 0.2, 0.9)


class FakePlayer:
    """Notes what is to be heard."""

    def __init__(self) -> None:
        self.calls: list[object] = []
        self.heard_s: float | None = None

    def start(self, timeline: Timeline, paths: Mapping[str, Path], start: Fraction) -> None:
        self.calls.append(("start", start, len(timeline.sounds), len(paths)))

    def stop(self) -> None:
        self.calls.append("stop")

    def elapsed_s(self) -> float | None:
        return self.heard_s


@pytest.fixture
def burst(tmp_path: Path) -> Path:
    """A second of silence, then a second of a tone."""
    t = np.arange(2 * 8000) / 8000
    write_wav(tmp_path / "burst.wav", (0.5 * np.sin(440 * t) * (t >= 1)).astype(np.float32)[:, None], 8000)
    return tmp_path / "burst.wav"


@pytest.fixture
def sounds(harness: Harness) -> Sounds:
    harness.start()
    found = harness.controller.sounds
    found._player = FakePlayer()  # type: ignore[assignment]
    return found


def add(harness: Harness, sounds: Sounds, path: Path) -> str:
    sounds.add([path])
    harness.until(lambda: harness.controller.editing.session.timeline.sounds)
    (sound,) = harness.controller.editing.session.timeline.sounds
    harness.until(lambda: sounds.analysis(sound.digest) is not None)
    return sound.digest


def test_the_level_of_a_patch_is_that_of_its_sound_at_the_playhead(
    harness: Harness, sounds: Sounds, burst: Path
) -> None:
    add(harness, sounds, burst)
    editing, playback = harness.controller.editing, harness.controller.playback
    assert sounds.level(PSI) is None, "no such patch acts"
    sounds.drive(PSI)
    playback.seek(Fraction(1, 2))
    assert sounds.level(PSI) == 0.0
    playback.seek(Fraction(3, 2))
    level = sounds.level(PSI)
    assert level is not None
    assert 0.0 < level <= 1.0
    assert editing.effective.truncation.psi == pytest.approx(0.2 + level * 0.7, abs=1e-4)


def test_a_sound_is_added_as_one_step_and_gives_an_empty_timeline_its_length(
    harness: Harness, sounds: Sounds, burst: Path
) -> None:
    add(harness, sounds, burst)
    editing = harness.controller.editing
    assert editing.history.undo_label == "Add sound"
    assert editing.session.timeline.end == 2
    editing.undo()
    assert editing.session.timeline.sounds == ()


def tones(folder: Path, *names: str) -> list[Path]:
    """Write a short sound of each name, none like another."""
    folder.mkdir()
    t = np.arange(800) / 8000
    for place, name in enumerate(names):
        write_wav(folder / name, np.sin((400 + 10 * len(folder.name) + place) * t).astype(np.float32)[:, None], 8000)
    return [folder / name for name in names]


def test_sounds_of_one_name_that_are_added_while_others_are_read_all_stay(
    harness: Harness, sounds: Sounds, tmp_path: Path
) -> None:
    sounds.add(tones(tmp_path / "a", "kick.wav"))
    sounds.add(tones(tmp_path / "bb", "kick.wav"))
    harness.until(lambda: harness.labels.count("Add sound") == 2)
    added = harness.controller.editing.session.timeline.sounds
    assert [sound.name for sound in added] == ["kick", "kick 2"]
    assert added[0].digest != added[1].digest


@pytest.mark.parametrize("when", ["while it is read", "before it is taken"])
def test_sounds_that_are_being_read_when_another_project_opens_are_dropped(
    harness: Harness, sounds: Sounds, tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = threading.Event()
    original = sounds._files.sound_of

    def sound_of(path: Path, name: str, **others: Any) -> Sound:
        if when == "before it is taken":
            return original(path, name)
        assert opened.wait(PATIENCE_MS / 1000)
        return original(path, name, **others)

    monkeypatch.setattr(sounds._files, "sound_of", sound_of)
    sounds.add(tones(tmp_path / "a", "kick.wav"))
    harness.controller.files.new_session()
    opened.set()
    harness.until(lambda: any("not added" in text for text in harness.said(Level.WARNING)))
    assert harness.controller.editing.session.timeline.sounds == ()
    monkeypatch.undo()
    sounds.add(tones(tmp_path / "b", "kick.wav"))
    harness.until(lambda: harness.controller.editing.session.timeline.sounds)


def test_sounds_that_a_project_lacks_are_not_told_in_the_next_one(
    harness: Harness, sounds: Sounds, burst: Path, tmp_path: Path
) -> None:
    add(harness, sounds, burst)
    editing = harness.controller.editing
    timeline = editing.session.timeline
    gone = replace(timeline.sounds[0], digest=64 * "0", path="gone.wav", name="gone")
    editing.edit(SetTimeline(replace(timeline, sounds=(*timeline.sounds, gone)), "Add"))
    harness.controller.files.new_session()
    harness.until(lambda: sounds.is_missing(gone.digest))
    assert harness.said(Level.WARNING) == []


def test_sounds_that_are_too_many_by_the_time_they_are_read_are_refused(
    harness: Harness, sounds: Sounds, tmp_path: Path
) -> None:
    first, second = (tones(tmp_path / folder, *(f"{n}.wav" for n in range(40))) for folder in ("a", "bb"))
    sounds.add(first)
    sounds.add(second)
    harness.until(lambda: any("64 sounds" in message.sentence for message in harness.messages.messages))
    assert len(harness.controller.editing.session.timeline.sounds) == 40, "a session with more could not be read again"


def test_the_picture_at_the_playhead_is_the_one_that_an_export_makes(
    harness: Harness, sounds: Sounds, burst: Path
) -> None:
    add(harness, sounds, burst)
    sounds.drive(PSI)
    editing, playback = harness.controller.editing, harness.controller.playback
    for t in (Fraction(1, 2), Fraction(3, 2)):
        playback.seek(t)
        modulation = sound_modulation(editing.session, sounds.envelopes_of(editing.session))
        assert editing.effective == session_at(editing.session, float(t), modulation)
        assert editing.effective.truncation.psi == pytest.approx(0.2 if t < 1 else 0.9, abs=0.05)
    assert editing.session.truncation.psi == 0.7, "the session that the user has set stays"
    assert resolve(editing.effective) != resolve(editing.session)
    editing.undo()
    assert editing.session.patches == ()


def test_while_sound_is_heard_the_playhead_follows_it_and_not_the_clock(
    harness: Harness, sounds: Sounds, burst: Path
) -> None:
    add(harness, sounds, burst)
    player = sounds._player
    assert isinstance(player, FakePlayer)
    playback = harness.controller.playback
    player.heard_s = 0.0
    playback.set_playing(True)
    assert player.calls[-1] == ("start", 0, 1, 1)
    harness.now_s += 5.0
    player.heard_s = 0.5
    playback._tick()
    assert playback.time == Fraction(1, 2)
    playback.seek(Fraction(1))
    assert player.calls[-1] == ("start", 1, 1, 1)
    playback.set_playing(False)
    assert player.calls[-1] == "stop"


def test_a_sound_that_is_muted_or_moved_while_it_plays_is_heard_from_there(
    harness: Harness, sounds: Sounds, burst: Path
) -> None:
    add(harness, sounds, burst)
    player = sounds._player
    assert isinstance(player, FakePlayer)
    harness.controller.playback.set_playing(True)
    before = len(player.calls)
    (sound,) = harness.controller.editing.session.timeline.sounds
    sounds.change(replace(sound, is_muted=True), "Mute sound")
    harness.until(lambda: len(player.calls) > before)
    harness.controller.playback.set_playing(False)


def test_a_sound_whose_file_is_gone_is_said_and_can_be_located(
    harness: Harness, sounds: Sounds, burst: Path, tmp_path: Path
) -> None:
    digest = add(harness, sounds, burst)
    other = tmp_path / "elsewhere.wav"
    burst.rename(other)
    fresh = Sounds(harness.controller.editing, harness.controller.playback, harness.messages, player=FakePlayer())  # type: ignore[arg-type]
    fresh._follow()
    harness.until(lambda: fresh.is_missing(digest))
    write_wav(tmp_path / "wrong.wav", np.ones((100, 1), np.float32), 8000)
    fresh.locate("burst", tmp_path / "wrong.wav")
    fresh.locate("burst", other)
    harness.until(lambda: fresh.analysis(digest) is not None)
    assert not fresh.is_missing(digest)
    said = [message.sentence for message in harness.messages.messages]
    assert any("burst.wav was not found" in text for text in said)
    assert any("wrong.wav is another file than the sound" in text for text in said)
    fresh.close()


def test_a_sound_that_was_missing_is_found_when_its_project_is_opened_again(
    harness: Harness, sounds: Sounds, burst: Path, tmp_path: Path
) -> None:
    add(harness, sounds, burst)
    project, editing = tmp_path / "piece.loom", harness.controller.editing
    timeline = with_relative_paths(editing.session.timeline, sounds._files, project)
    save_session(project, replace(editing.session, timeline=timeline))
    editing.undo()
    gone = burst.rename(tmp_path / "gone.wav")
    sounds._requested.clear()
    sounds._analyses.clear()
    harness.controller.files.open(project)
    digest = timeline.sounds[0].digest
    harness.until(lambda: sounds.is_missing(digest))
    gone.rename(burst)
    harness.controller.files.open(project)
    harness.until(lambda: sounds.analysis(digest) is not None)
    assert not sounds.is_missing(digest)


def test_sounds_of_a_project_that_are_gone_are_told_in_one_message(
    harness: Harness, sounds: Sounds, burst: Path, tmp_path: Path
) -> None:
    digest = add(harness, sounds, burst)
    timeline = harness.controller.editing.session.timeline
    gone = [replace(timeline.sounds[0], digest=2 * f"{n:032x}", path=f"{n}.wav", name=f"stem {n}") for n in range(3)]
    harness.controller.editing.edit(SetTimeline(replace(timeline, sounds=(*timeline.sounds, *gone)), "Add"))
    harness.until(lambda: any("3 sounds cannot be read" in text for text in harness.said(Level.WARNING)))
    (told,) = (message for message in harness.messages.messages if "sounds cannot be read" in message.sentence)
    assert [f"{n}.wav was not found" in told.details for n in range(3)] == 3 * [True]
    assert not sounds.is_missing(digest)


def test_the_tempo_of_a_sound_becomes_the_grid_and_one_without_a_beat_is_said(
    harness: Harness, sounds: Sounds, burst: Path
) -> None:
    digest = add(harness, sounds, burst)
    sounds.use_tempo("burst")
    assert "No steady beat" in harness.messages.messages[-1].sentence
    found = sounds.analysis(digest)
    assert found is not None
    sounds._analyses[digest] = replace(found, bpm=Fraction(97), first_beat=Fraction(1, 4))
    sounds.use_tempo("burst")
    timeline = harness.controller.editing.session.timeline
    assert (timeline.grid.bpm, timeline.grid.offset, timeline.snap) == (97, Fraction(1, 4), "beat")


def test_a_saved_project_says_where_its_sounds_are_as_seen_from_it(
    harness: Harness, sounds: Sounds, burst: Path, tmp_path: Path
) -> None:
    add(harness, sounds, burst)
    harness.controller.files.save_session(tmp_path.parent / "piece.loom")
    harness.until((tmp_path.parent / "piece.loom").exists)
    (sound,) = load_session(tmp_path.parent / "piece.loom").timeline.sounds
    assert sound.path == f"{tmp_path.name}/burst.wav"
    (tmp_path.parent / "piece.loom").unlink()


def test_a_file_without_sound_is_refused_with_a_sentence(harness: Harness, sounds: Sounds, tmp_path: Path) -> None:
    (tmp_path / "notes.wav").write_text("no sound at all")
    sounds.add([tmp_path / "notes.wav"])
    harness.until(lambda: harness.messages.messages)
    assert "must be a WAV" in harness.messages.messages[-1].sentence


def test_a_project_that_is_opened_shows_what_its_keys_say_at_the_playhead(harness: Harness, sounds: Sounds) -> None:
    editing = harness.controller.editing
    timeline = Timeline((Track("truncation.psi", (Key(Fraction(0), 0.3),)),))
    editing.restore(replace(editing.session, timeline=timeline), "Open project")
    assert editing.session.truncation.psi == 0.3


class FakeMicrophone:
    """A microphone that hears what a test says."""

    def __init__(self) -> None:
        self.sink: Sink | None = None
        self.is_closed = False

    def start(self, sink: Sink) -> None:
        self.sink = sink

    def close(self) -> None:
        self.is_closed = True


def test_a_microphone_that_is_switched_on_moves_what_its_patches_say(harness: Harness, sounds: Sounds) -> None:
    microphone = FakeMicrophone()
    inputs = harness.controller.live.inputs
    inputs._open_microphone = lambda: microphone
    assert inputs.set_on("input", True)
    sounds.drive(Patch("input/rms", "truncation.psi", 0.1, 0.9))
    assert microphone.sink is not None
    tone = 0.4 * np.sin(np.arange(4410) / 10)
    for part in np.split(tone.astype(np.float32), 10):
        microphone.sink.send(part.tobytes())
    assert inputs.state("input").received == 10
    editing = harness.controller.editing
    harness.until(lambda: editing.effective.truncation.psi > 0.8)
    assert editing.session.truncation.psi == 0.7
    inputs.set_on("input", False)
    assert microphone.is_closed
    assert not any(name.startswith("input/") for name in inputs.board.newest())


def test_without_a_microphone_the_switch_says_why(harness: Harness, sounds: Sounds) -> None:
    def none() -> FakeMicrophone:
        raise LoomError("No microphone or line input was found; plug one in and try again.")

    inputs = harness.controller.live.inputs
    inputs._open_microphone = none
    assert not inputs.set_on("input", True)
    assert "plug one in" in inputs.state("input").problem
