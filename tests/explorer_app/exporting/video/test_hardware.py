"""Encoders in hardware: which are offered, and how they are asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.manifest import identity_of, manifest_bytes, manifest_of
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.exporting.video import hardware
from explorer_app.exporting.video.hardware import PIXEL_FORMATS, found_encoders, hardware_encoders, require_encoder
from explorer_app.exporting.video.libav import _encoder_of
from explorer_app.exporting.video.video_format import HARDWARE_ENCODERS, HARDWARE_LABELS, VideoFormat
from explorer_app.session.session import ModelReference
from gpu_backend import Latent, Point, Recipe, Truncation


@pytest.fixture(autouse=True)
def nothing_found_before() -> None:
    hardware_encoders.cache_clear()


def test_only_hardware_encoders_that_encode_are_offered() -> None:
    tried: list[tuple[str, str]] = []

    def encodes(name: str, pixel_format: str) -> bool:
        tried.append((name, pixel_format))
        return name == "hevc_nvenc"

    assert found_encoders(encodes) == {("h265", "nvenc")}
    assert ("h264_qsv", "nv12") in tried
    assert ("av1_nvenc", "yuv420p") in tried


def test_the_probe_distinguishes_an_encoder_that_works_from_one_that_does_not() -> None:
    assert hardware._encodes("libx264", "yuv420p")
    assert not hardware._encodes("no_such_encoder", "yuv420p")


def test_nothing_is_found_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "has_video_extra", lambda: False)
    assert hardware_encoders() == frozenset()


def test_an_encoder_that_is_not_here_is_refused_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "_encodes", lambda name, pixel_format: name == "h264_nvenc")
    require_encoder(VideoFormat("h264", hardware="nvenc"))
    with pytest.raises(
        ExportError, match=r"^Intel Quick Sync does not encode H\.264 on this machine; encode on the CPU"
    ):
        require_encoder(VideoFormat("h264", hardware="qsv"))


def test_a_codec_without_hardware_is_refused() -> None:
    with pytest.raises(ExportError, match="ProRes is not encoded by nvenc"):
        VideoFormat("prores", hardware="nvenc")


@pytest.mark.parametrize(("codec", "name"), list(HARDWARE_ENCODERS))
def test_every_encoder_has_a_name_a_pixel_format_and_a_quality(codec: str, name: str) -> None:
    form = VideoFormat(codec, hardware=name)  # type: ignore[arg-type]
    low, high = (_encoder_of(form.codec, quality, form.hardware) for quality in (20, 95))
    assert low.pixel_format in PIXEL_FORMATS.values()
    assert low.options != high.options
    assert form.hardware in HARDWARE_LABELS


def test_a_video_goes_on_with_its_own_encoder(tmp_path: Path) -> None:
    key = Keyframe(((Recipe(Latent(Point(((1, 1.0),))), Truncation(0.7)), 1.0),))
    model = ModelReference("", "m", "ab" * 32)
    video = VideoFormat("h264", hardware="nvenc")
    settings = SequenceSettings((key, key), tmp_path, "walk", model, "w-linear", 4, video=video)
    read = manifest_of(manifest_bytes(settings, "unfinished", None), settings.manifest_path).settings
    assert read.video is not None
    assert read.video.hardware == "nvenc"
    on_cpu = replace(settings, video=VideoFormat("h264"))
    assert identity_of(settings) != identity_of(on_cpu)
    assert not settings.makes_the_same_as(on_cpu)
