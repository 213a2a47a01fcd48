"""Videos with the sound of a timeline: in time, to the end, and the same bytes again."""

from __future__ import annotations

import hashlib
import importlib.util
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from explorer_app.audio.decoding import SoundError, write_wav
from explorer_app.audio.mixing import MIX_HZ, Mixer
from explorer_app.audio.sound_files import SoundFiles, envelopes_of, with_files
from explorer_app.exporting.destination import soundtrack_of
from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.manifest import manifest_bytes, read_manifest
from explorer_app.exporting.sequence import Piece, SequenceSettings, plan_sequence
from explorer_app.exporting.video.video_format import VideoFormat
from explorer_app.session.patches import Patch
from explorer_app.session.session import ModelReference, Session
from explorer_app.session.tracks import NO_TIMELINE
from tests.helpers.fake_engine import fake_frame
from tests.helpers.farm import PATIENCE_S, FakeFarm, running, small_model

needs_av = pytest.mark.skipif(importlib.util.find_spec("av") is None, reason="PyAV is not installed; pip install av")
CLICK_S = 1.25


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    """A file of 3 s with a burst of a tone at 1.25 s, at another rate than a video's."""
    t = np.arange(3 * 44_100) / 44_100
    burst = 0.8 * np.sin(2 * np.pi * 1000 * t) * (t >= CLICK_S) * (t < CLICK_S + 0.2)
    write_wav(tmp_path / "burst.wav", burst.astype(np.float32)[:, None], 44_100)
    return tmp_path / "burst.wav"


def session_with(sound: Path) -> Session:
    timeline = with_files(NO_TIMELINE, [sound], SoundFiles.of_this_user())
    return Session(timeline=timeline, patches=(Patch("audio/burst/rms", "truncation.psi", 0.2, 0.9),))


def settings_for(
    folder: Path, session: Session, video: VideoFormat | None, start: Fraction = Fraction(1)
) -> SequenceSettings:
    envelopes = envelopes_of(session, SoundFiles.of_this_user())
    piece = Piece.of(session, Fraction(10), start, Fraction(3), envelopes)
    return SequenceSettings((), folder, "piece", ModelReference("", "m", "ab" * 32), video=video, piece=piece)


def export(settings: SequenceSettings) -> bytes:
    job = SequenceJob(settings, threads=1)
    job.start()
    try:
        while job.wait():
            request = job.next_request()
            assert request is not None
            job.deliver(replace(fake_frame(request), pixels=np.full((64, 64, 4), 90, np.uint8)))
    finally:
        job.stop(cancelled=False)
        assert job.join(60)
    assert job.error is None
    assert settings.single_path is not None
    return settings.single_path.read_bytes()


def heard(path: Path) -> np.ndarray:
    """Return the sound of a video as a player has it, at 48 kHz: each sample at its own time."""
    import av

    result = np.zeros(4 * MIX_HZ, np.float32)
    with av.open(str(path)) as container:
        resampler = av.AudioResampler("flt", "mono", MIX_HZ)
        for frame in container.decode(audio=0):
            assert frame.time is not None
            first = round(frame.time * MIX_HZ)
            for part in resampler.resample(frame):
                samples = part.to_ndarray()[0]
                samples = samples[max(0, -first) :]
                result[max(0, first) : max(0, first) + len(samples)] = samples
    return result


@needs_av
@pytest.mark.parametrize(("codec", "ending"), [("h264", ".mp4"), ("vp9", ".webm"), ("prores", ".mov")])
def test_the_sound_of_a_video_begins_where_the_stretch_does_and_ends_with_it(
    tmp_path: Path, sound: Path, codec: str, ending: str
) -> None:
    session = session_with(sound)
    video = VideoFormat(codec, ending, Fraction(10))  # type: ignore[arg-type]
    settings = settings_for(tmp_path, session, video)
    data = export(settings)
    assert settings.single_path is not None
    samples = np.abs(heard(settings.single_path))
    begins = int(np.argmax(samples > 0.3)) / MIX_HZ
    assert begins == pytest.approx(CLICK_S - 1.0, abs=0.005)  # less than 20 ms, as for lip sync
    ends = int(np.flatnonzero(samples > 0.3)[-1]) / MIX_HZ
    assert ends == pytest.approx(CLICK_S - 0.8, abs=0.005)
    again = settings_for(tmp_path / "again", session, video)
    again.folder.mkdir()
    assert hashlib.sha256(export(again)).digest() == hashlib.sha256(data).digest()


def test_the_pictures_of_an_export_are_those_that_the_sound_makes_frame_by_frame(tmp_path: Path, sound: Path) -> None:
    plan = plan_sequence(settings_for(tmp_path, session_with(sound), None))
    values = [plan.request(index).blend[0][0].truncation.psi for index in range(20)]
    assert values[0] == pytest.approx(0.2, abs=0.01)
    assert values[3] == pytest.approx(0.9, abs=0.03)
    assert values[10] == pytest.approx(0.2, abs=0.01)


def test_a_manifest_holds_the_envelopes_so_that_the_file_is_not_needed_to_go_on(tmp_path: Path, sound: Path) -> None:
    settings = settings_for(tmp_path, session_with(sound), None)
    path = settings.manifest_path
    path.write_bytes(manifest_bytes(settings, "unfinished", None))
    sound.unlink()
    read = read_manifest(path).settings
    assert read.makes_the_same_as(settings)
    assert read.piece is not None
    assert settings.piece is not None
    assert read.piece.envelopes == settings.piece.envelopes
    assert read.piece.session.patches == settings.piece.session.patches
    assert plan_sequence(read).request(3) == plan_sequence(settings).request(3)


def test_a_patch_whose_sound_is_not_read_yet_refuses_the_export(sound: Path) -> None:
    with pytest.raises(ExportError, match="“burst” moves the picture"):
        Piece.of(session_with(sound), Fraction(10), Fraction(0), Fraction(1))


@needs_av
def test_a_missing_sound_ends_the_export_before_its_first_frame(tmp_path: Path, sound: Path) -> None:
    settings = settings_for(tmp_path, session_with(sound), VideoFormat("h264", fps=Fraction(10)))
    sound.unlink()
    job = SequenceJob(settings, threads=1)
    job.start()
    with pytest.raises(SoundError, match="was not found"):
        job.wait()
    assert job.join(60)


@needs_av
def test_a_missing_sound_ends_a_farms_export_before_it_asks_the_farm(tmp_path: Path, sound: Path) -> None:
    settings = settings_for(tmp_path / "out", session_with(sound), VideoFormat("h264", fps=Fraction(10)))
    sound.unlink()
    with closing(FakeFarm()) as farm:
        job = farm.job(settings, small_model(tmp_path)[1])
        with running(job), pytest.raises(SoundError, match="was not found"):
            job.wait(PATIENCE_S)
        assert farm.connections == 0


def test_muted_sounds_and_those_outside_of_the_stretch_are_not_heard(tmp_path: Path, sound: Path) -> None:
    session = session_with(sound)
    video = VideoFormat("h264", fps=Fraction(10))
    assert soundtrack_of(settings_for(tmp_path, session, video)) is not None
    assert soundtrack_of(settings_for(tmp_path, session, None)) is None
    assert soundtrack_of(settings_for(tmp_path, session, VideoFormat("webp", fps=Fraction(10)))) is None
    (burst,) = session.timeline.sounds
    for other in (replace(burst, is_muted=True), replace(burst, start=Fraction(5)), replace(burst, start=Fraction(-2))):
        moved = replace(session, timeline=replace(session.timeline, sounds=(other,)))
        assert soundtrack_of(settings_for(tmp_path, moved, video)) is None


def test_sounds_are_mixed_where_they_stand_and_as_loud_as_they_are_set(sound: Path) -> None:
    (burst,) = session_with(sound).timeline.sounds
    two = (replace(burst, start=Fraction(1, 2), gain_db=-6.0206), replace(burst, name="b", is_muted=True))
    mixer = Mixer(two, {burst.digest: sound})
    quiet, loud = mixer.read(0, int(1.7 * MIX_HZ)), mixer.read(int(1.8 * MIX_HZ), 4800)
    assert np.abs(quiet).max() == 0.0
    assert np.abs(loud).max() == pytest.approx(0.4, abs=0.01)
