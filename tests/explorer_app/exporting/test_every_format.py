"""Sequences in every format: what a stop, a kill or a full disk leaves, and that the same export goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.formats.picture_format import FORMATS, FormatName, PictureFormat
from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.session.session import ModelReference
from gpu_backend import Disk, Latent, Point, Recipe
from tests.helpers.failing_disk import FullDisk, MortalDisk, PowerCutError
from tests.helpers.fake_engine import fake_frame


def key(seed: int) -> Keyframe:
    return Keyframe(((Recipe(Latent(Point(((seed, 1.0),)))), 1.0),))


def export(settings: SequenceSettings, *, disk: Disk | None = None, stop_after: int = -1) -> None:
    """Drive a job to its end; cancel it after some frames if told so."""
    job = SequenceJob(settings, disk=disk, threads=1)
    job.start()
    count = 0
    while count != stop_after and job.wait():
        request = job.next_request()
        assert request is not None
        job.deliver(fake_frame(request))
        count += 1
    if count == stop_after:
        job.stop(cancelled=True)
    assert job.join(30)
    if job.error is not None:
        raise job.error


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("end", ["stopped", "killed", "disk full"])
def test_no_format_is_broken_by_a_stop_a_kill_or_a_full_disk(tmp_path: Path, name: FormatName, end: str) -> None:
    keys = (key(1), key(2), key(3))
    model = ModelReference("", "m", "ab" * 32)
    settings = SequenceSettings(keys, tmp_path / "out", "walk", model, frames_per_step=2, form=PictureFormat(name))
    whole = replace(settings, folder=tmp_path / "whole")
    export(whole)
    if end == "stopped":
        export(settings, stop_after=2)
    elif end == "killed":
        with pytest.raises(PowerCutError):
            export(settings, disk=MortalDisk(6))
    else:
        with pytest.raises(ExportError, match=r"^The disk is full"):
            export(settings, disk=FullDisk(3))
    left = files(settings.folder)
    for file, data in left.items():
        if file.endswith(settings.form.ending):
            assert data == files(whole.folder)[file], "a file under its name is whole"
    export(settings)
    assert files(settings.folder) == files(whole.folder)
