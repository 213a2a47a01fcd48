"""Sounds: decoding, resampling, analysis, its cache, where files are."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest

from explorer_app.audio import decoding
from explorer_app.audio.analysis import VERSION, Analysis, analyse
from explorer_app.audio.analysis_cache import analysis_of, envelope_of
from explorer_app.audio.decoding import (
    SoundError,
    SoundFacts,
    StereoReader,
    decoded,
    file_digest,
    sound_facts,
    write_wav,
)
from explorer_app.audio.sound_files import SoundFiles, envelopes_of, with_files, with_relative_paths
from explorer_app.audio.synthesis import RATE_HZ, stems
from explorer_app.session.patches import FEATURES, Patch
from explorer_app.session.session import Session
from explorer_app.session.tracks import NO_TIMELINE, Sound

RATE = 22_050


def clicks(path: Path, times: np.ndarray, seconds: float = 8.0) -> Path:
    """Write a burst of noise at each time."""
    samples = np.zeros((int(seconds * RATE), 1), np.float32)
    noise = np.random.default_rng(0).standard_normal(2000) * np.exp(-np.arange(2000) / 400) * 0.5
    for start in (times * RATE).astype(int):
        part = samples[start : start + 2000, 0]
        part += noise[: len(part)].astype(np.float32)
    write_wav(path, samples, RATE)
    return path


@pytest.fixture(scope="module")
def beat(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Analysis]:
    path = clicks(tmp_path_factory.mktemp("sounds") / "beat.wav", np.arange(0.31, 8.0, 0.5))
    return path, analyse(path)


def jumps(analysis: Analysis, feature: str) -> np.ndarray:
    values = analysis.envelopes[feature].astype(int)
    return np.flatnonzero(np.diff(values, prepend=0) > 8000) / 100


def test_tempo_beats_and_onsets_of_a_steady_beat_are_found_to_a_hundredth_of_a_second(
    beat: tuple[Path, Analysis],
) -> None:
    _, found = beat
    assert found.bpm == 120
    assert float(found.first_beat) == pytest.approx(0.31, abs=0.015)
    assert jumps(found, "onset") == pytest.approx(np.arange(0.31, 8.0, 0.5), abs=0.011)
    assert jumps(found, "beat") == pytest.approx(np.arange(0.31, 8.0, 0.5), abs=0.021)
    assert found.beats == pytest.approx(np.arange(0.31, 8.0, 0.5), abs=0.021)


def test_every_feature_has_a_hundred_values_a_second_between_0_and_its_own_greatest(
    beat: tuple[Path, Analysis],
) -> None:
    path, found = beat
    assert set(found.envelopes) == set(FEATURES)
    assert {len(values) for values in found.envelopes.values()} == {801}
    assert found.envelopes["rms"].max() == 65535
    assert found.seconds == sound_facts(path).seconds == 8.0
    assert found.peaks.shape == (801, 2)
    assert np.abs(found.peaks[0]).max() == 0
    assert found.peaks[32:36].max() > 30


def test_the_same_file_gives_the_same_values(beat: tuple[Path, Analysis]) -> None:
    path, found = beat
    again = analyse(path)
    assert all(np.array_equal(found.envelopes[name], again.envelopes[name]) for name in FEATURES)


def test_a_tone_is_in_its_band_alone(tmp_path: Path) -> None:
    t = np.arange(RATE) / RATE
    write_wav(tmp_path / "tone.wav", (0.5 * np.sin(2 * np.pi * 1000 * t)).astype(np.float32)[:, None], RATE)
    found = analyse(tmp_path / "tone.wav")
    means = [found.envelopes[f"band/{index}"][20:80].mean() / 65535 for index in range(8)]
    assert means[4] > 0.95  # 693..1520 Hz
    assert found.bpm == 0
    assert not found.envelopes["beat"].any()


def test_silence_is_0_everywhere(tmp_path: Path) -> None:
    write_wav(tmp_path / "none.wav", np.zeros((RATE, 1), np.float32), RATE)
    found = analyse(tmp_path / "none.wav")
    assert not any(values.any() for values in found.envelopes.values())


def test_a_sound_shorter_than_a_window_is_analysed(tmp_path: Path) -> None:
    write_wav(tmp_path / "short.wav", np.ones((10, 2), np.float32) * 0.5, 8000)
    assert len(analyse(tmp_path / "short.wav").envelopes["rms"]) == 1


def test_the_music_of_the_demo_has_its_tempo_and_is_repeatable() -> None:
    first, second = stems(2.0, seed=3), stems(2.0, seed=3)
    assert set(first) == {"drums", "bass", "pad"}
    for name, samples in first.items():
        assert np.array_equal(samples, second[name])
        assert 0.1 < np.abs(samples).max() < 1.0
        assert len(samples) == 2 * RATE_HZ


# -- decoding -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_wav_files_of_every_width_are_read(tmp_path: Path, width: int) -> None:
    import wave

    values = np.array([0, 2**30, -(2**31), 2**31 - 1], np.int64)
    raw = values >> (32 - 8 * width)
    data = b"".join(int(v + 128 if width == 1 else v).to_bytes(width, "little", signed=width > 1) for v in raw)
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((1, width, 8000, 0, "NONE", ""))
        file.writeframes(data)
    found = np.concatenate(list(decoded(tmp_path / "a.wav")))[:, 0]
    assert found == pytest.approx([0.0, 0.5, -1.0, 1.0], abs=0.01)


def test_flac_mp3_and_ogg_are_decoded_and_begin_where_the_wav_does(tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    samples = stems(1.0)["drums"]
    for suffix, codec, layout in (
        (".flac", "flac", "mono"),
        (".mp3", "libmp3lame", "mono"),
        (".ogg", "vorbis", "stereo"),
    ):
        path = tmp_path / f"drums{suffix}"
        with av.open(str(path), "w") as output:
            stream = output.add_stream(codec, rate=RATE_HZ, layout=layout, options={"strict": "experimental"})
            frame = av.AudioFrame.from_ndarray((samples * 32767).astype("<i2")[None, :], "s16", "mono")
            frame.sample_rate = RATE_HZ
            resampler = av.AudioResampler(stream.format.name, layout, RATE_HZ, stream.frame_size or None)
            for part in [*resampler.resample(frame), *resampler.resample(None)]:
                output.mux(stream.encode(part))
            output.mux(stream.encode(None))
        facts = sound_facts(path)
        assert (facts.kind, facts.rate_hz, facts.channels) == (suffix[1:], RATE_HZ, 1 if layout == "mono" else 2)
        found = np.concatenate(list(decoded(path)))[:, 0]
        late = int(np.argmax(np.abs(found) > 0.2)) - int(np.argmax(np.abs(samples) > 0.2))
        assert abs(late) / RATE_HZ < 0.055  # the delay of an MP3 encoder
        if suffix == ".flac":
            assert found == pytest.approx(samples[: len(found)], abs=1e-4)
            assert np.concatenate(list(decoded(path, 1000)))[:, 0] == pytest.approx(found[1000:])


def float_wav(path: Path, samples: np.ndarray, form: str = "<f4", tag: int = 3) -> Path:
    """Write samples of shape (frames, channels) as a WAV file of floats."""
    data, channels = samples.astype(form).tobytes(), samples.shape[1]
    size = np.dtype(form).itemsize
    head = struct.pack("<HHIIHH", tag, channels, RATE, RATE * channels * size, channels * size, 8 * size)
    chunks = b"fmt " + struct.pack("<I", len(head)) + head + b"data" + struct.pack("<I", len(data)) + data
    path.write_bytes(b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks)
    return path


@pytest.mark.parametrize("form", ["<f4", "<f8"])
def test_wav_files_of_floats_are_read_by_the_extra_and_refused_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    pytest.importorskip("miniaudio")
    samples = np.random.default_rng(1).uniform(-1.0, 1.0, (3000, 2)).astype(np.float32)
    path = float_wav(tmp_path / "mix.wav", samples, form)
    assert sound_facts(path) == SoundFacts("wav", RATE, 2, 3000)
    assert np.concatenate(list(decoded(path, 1000))) == pytest.approx(samples[1000:], abs=1e-6)
    monkeypatch.setattr(decoding, "can_decode_all", lambda: False)
    with pytest.raises(SoundError, match="latentloom"):
        sound_facts(path)


def test_a_tone_keeps_its_place_and_its_pitch_when_it_is_resampled(tmp_path: Path) -> None:
    t = np.arange(44_100) / 44_100
    write_wav(tmp_path / "tone.wav", (0.5 * np.sin(2 * np.pi * 440 * t)).astype(np.float32)[:, None], 44_100)
    reader = StereoReader(tmp_path / "tone.wav", 48_000)
    wanted = 0.5 * np.sin(2 * np.pi * 440 * np.arange(48_000) / 48_000)
    found = np.concatenate([reader.read(first, 4800) for first in range(0, 48_000, 4800)])
    assert found[100:-100, 0] == pytest.approx(wanted[100:-100], abs=2e-3)
    assert np.array_equal(found[:, 0], found[:, 1])
    assert np.array_equal(reader.read(20_000, 100), found[20_000:20_100])
    assert not reader.read(-5000, 4000).any()
    assert not reader.read(60_000, 100).any()


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "must be a WAV"),
        (b"hello, this is no sound", "must be a WAV"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", "damaged"),
        (b"RIFF\x24\x00\x00\x00WAVEJUNK\xff\xff\xff\x7f" + bytes(40), "damaged"),
        (b"fLaC" + bytes(100), "damaged"),
        (b"ID3" + bytes(100), "damaged|no sound"),
    ],
)
def test_a_file_without_sound_is_refused_with_a_sentence(tmp_path: Path, content: bytes, part: str) -> None:
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(SoundError, match=part):
        sound_facts(tmp_path / "a.wav")


def test_a_rate_that_no_converter_has_is_refused(tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", np.zeros((100, 1), np.float32), 4_000_000_000 // 2)
    with pytest.raises(SoundError, match="768,000 samples a second"):
        sound_facts(tmp_path / "a.wav")


def test_folders_large_files_and_long_sounds_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SoundError, match="folder"):
        sound_facts(tmp_path)
    with pytest.raises(SoundError, match="cannot be opened"):
        sound_facts(tmp_path / "none.wav")
    path = clicks(tmp_path / "a.wav", np.array([0.5]), 1.0)
    monkeypatch.setattr(decoding, "MAX_SECONDS", 0.5)
    with pytest.raises(SoundError, match="a day"):
        sound_facts(path)
    monkeypatch.setattr(decoding, "MAX_NBYTES", 1000)
    with pytest.raises(SoundError, match="cut it or compress"):
        sound_facts(path)


def test_without_the_extra_wav_is_read_and_the_others_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "can_decode_all", lambda: False)
    assert sound_facts(clicks(tmp_path / "a.wav", np.array([0.5]), 1.0)).kind == "wav"
    (tmp_path / "a.flac").write_bytes(b"fLaC" + bytes(100))
    with pytest.raises(SoundError, match=r"latentloom\[live\]"):
        sound_facts(tmp_path / "a.flac")


# -- cache and places -----------------------------------------------------------------------------------------------


def test_an_analysis_is_kept_by_content_and_read_again(tmp_path: Path, beat: tuple[Path, Analysis]) -> None:
    path, found = beat
    analysis_of(path, "a" * 64, folder=tmp_path)
    again = analysis_of(tmp_path / "gone.wav", "a" * 64, folder=tmp_path)
    assert all(np.array_equal(found.envelopes[name], again.envelopes[name]) for name in FEATURES)
    assert (again.bpm, again.first_beat, again.seconds) == (found.bpm, found.first_beat, found.seconds)
    assert np.array_equal(again.peaks, found.peaks)
    assert np.array_equal(again.beats, found.beats)


def test_a_damaged_cache_is_made_again(tmp_path: Path, beat: tuple[Path, Analysis]) -> None:
    path, _ = beat
    analysis_of(path, "a" * 64, folder=tmp_path)
    (kept,) = tmp_path.glob("*.npz")
    kept.write_bytes(b"PK" + bytes(50))
    assert analysis_of(path, "a" * 64, folder=tmp_path).bpm == 120
    assert kept.stat().st_size > 1000


def test_reading_can_be_stopped(beat: tuple[Path, Analysis]) -> None:
    with pytest.raises(SoundError, match="stopped"):
        analyse(beat[0], lambda: True)


def test_a_folder_of_stems_is_a_set_of_sounds_with_different_names(tmp_path: Path) -> None:
    (tmp_path / "stems").mkdir()
    for name in ("bass", "drums"):
        clicks(tmp_path / "stems" / f"{name}.wav", np.array([0.1]), 0.3)
    (tmp_path / "stems" / "notes.txt").write_text("no sound")
    timeline = with_files(NO_TIMELINE, [tmp_path / "stems", tmp_path / "stems" / "bass.wav"], SoundFiles(None))
    assert [sound.name for sound in timeline.sounds] == ["bass", "drums", "bass 2"]
    assert {sound.path for sound in timeline.sounds} == {"bass.wav", "drums.wav"}
    with pytest.raises(SoundError, match="There is no sound"):
        with_files(NO_TIMELINE, [], SoundFiles(None))
    (tmp_path / "models").mkdir()
    with pytest.raises(SoundError, match=r"There is no sound in models; .* Model > Training snapshots\.$"):
        with_files(NO_TIMELINE, [tmp_path / "models"], SoundFiles(None))


def test_a_sound_is_found_beside_the_project_and_where_it_was_last_seen(tmp_path: Path) -> None:
    project = tmp_path / "piece" / "piece.loom"
    (tmp_path / "piece" / "sounds").mkdir(parents=True)
    path = clicks(tmp_path / "piece" / "sounds" / "a.wav", np.array([0.1]), 0.3)
    files = SoundFiles(None)
    timeline = with_files(NO_TIMELINE, [path], files)
    assert timeline.sounds[0].path == "a.wav"
    saved = with_relative_paths(timeline, files, project)
    assert saved.sounds[0].path == "sounds/a.wav"
    assert SoundFiles(None).find(saved.sounds[0], project) == path
    assert files.find(saved.sounds[0]) == path
    with pytest.raises(SoundError, match=r"a\.wav was not found"):
        SoundFiles(None).find(saved.sounds[0])
    clicks(path, np.array([0.2]), 0.3)
    with pytest.raises(SoundError, match="not found"):
        SoundFiles(None).find(saved.sounds[0], project)


def test_the_envelopes_of_a_session_are_those_that_its_patches_need(tmp_path: Path) -> None:
    path = clicks(tmp_path / "a.wav", np.array([0.1]), 0.3)
    files = SoundFiles(None)
    timeline = with_files(NO_TIMELINE, [path], files)
    patches = (
        Patch("audio/a/rms", "truncation.psi"),
        Patch("audio/a/onset", "noise.gain", is_on=False),
        Patch("audio/gone/rms", "noise.gain"),
    )
    found = envelopes_of(Session(timeline=timeline, patches=patches), files)
    digest = timeline.sounds[0].digest
    assert list(found) == [(digest, "rms")]
    assert found[digest, "rms"] == envelope_of(analyse(path), digest, "rms")


def test_lists_of_places_hold_no_path_in_the_project(tmp_path: Path) -> None:
    path = clicks(tmp_path / "a.wav", np.array([0.1]), 0.3)
    sound = SoundFiles(tmp_path / "data").sound_of(path, "a")
    assert str(tmp_path) not in repr(sound)
    assert SoundFiles(tmp_path / "data").find(sound) == path


def test_a_sound_whose_path_is_too_long_for_a_file_is_missing(tmp_path: Path) -> None:
    sound = Sound("drums", "ab" * 32, "a" * 4000, 1.0)
    with pytest.raises(SoundError, match="was not found"):
        SoundFiles(None).find(sound, tmp_path / "evening.loom")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_place_of_a_sound_or_its_analysis_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SoundError, match="a pipe"):
        file_digest(tmp_path / "pipe")
    path = clicks(tmp_path / "a.wav", np.arange(0.25, 1.0, 0.5), 1.0)
    os.mkfifo(tmp_path / f"{'ab' * 32}-{VERSION}.npz")
    assert analysis_of(path, "ab" * 32, folder=tmp_path).seconds == pytest.approx(1.0, abs=0.1)
