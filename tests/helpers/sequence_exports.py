"""A small sequence, and jobs that export it with a fake engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.sequence import SequenceSettings
from gpu_backend import Disk, Latent, Noise, Point, Recipe, RenderRequest, Truncation
from tests.helpers.fake_engine import FakeEngine

Folder = dict[str, bytes]

RANDOM = Noise("random", 3)


def key(seed: int, noise: Noise = RANDOM, transform: tuple[float, ...] | None = None) -> Keyframe:
    return Keyframe(((Recipe(Latent(Point(((seed, 1.0),))), Truncation(0.7)), 1.0),), noise, transform)


def export(
    settings: SequenceSettings, *, disk: Disk | None = None, threads: int = 2, stop_after: int = -1
) -> FakeEngine:
    """Drive a job to its end as whoever renders does; cancel after some frames if told so."""
    engine = FakeEngine()
    job = started(settings, disk=disk, threads=threads)
    while len(engine.requests) != stop_after and job.wait():
        job.deliver(engine.render(requested(job)))
    if len(engine.requests) == stop_after:
        job.stop(cancelled=True)
    assert job.join(30)
    if job.error is not None:
        raise job.error
    return engine


def started(settings: SequenceSettings, **options: Any) -> SequenceJob:
    job = SequenceJob(settings, **options)
    job.start()
    return job


def requested(job: SequenceJob) -> RenderRequest:
    """Wait for the next request of a job that has one."""
    assert job.wait()
    request = job.next_request()
    assert request is not None
    return request


def refuse(settings: SequenceSettings, words: str) -> None:
    """Expect a job to end before its first frame, with a sentence."""
    job = started(settings)
    with pytest.raises(ExportError, match=words):
        job.wait()
    assert job.join(30)


def content(folder: Path) -> Folder:
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}
