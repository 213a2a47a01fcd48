"""The place of a sequence: what its manifest says at each moment of a job."""

from __future__ import annotations

import pytest

from explorer_app.exporting.destination import Destination, sink_of
from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.manifest import FramesByDevice, read_manifest
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.exporting.sinks.frame_sink import FrameSink
from gpu_backend import Disk
from tests.helpers.sequence_exports import export

MADE_ON = (FramesByDevice("A GPU", (0, 1)),)


def opened(settings: SequenceSettings) -> tuple[Destination, FrameSink]:
    sink = sink_of(settings, Disk(), 1)
    destination = Destination(settings, sink, Disk())
    destination.open(lambda: None)
    return destination, sink


def test_a_manifest_is_announced_once_and_stays_unfinished_without_an_end(wanted: SequenceSettings) -> None:
    destination, sink = opened(wanted)
    assert not wanted.manifest_path.exists()
    destination.announce()
    assert destination.is_announced
    before = wanted.manifest_path.stat().st_mtime_ns
    destination.announce()
    sink.close(discard=True)
    destination.conclude(0, is_cancelled=False)
    assert wanted.manifest_path.stat().st_mtime_ns == before
    assert read_manifest(wanted.manifest_path).state == "unfinished"


def test_a_cancelled_job_says_so_if_it_was_announced(wanted: SequenceSettings) -> None:
    destination, sink = opened(wanted)
    sink.close(discard=True)
    destination.conclude(0, is_cancelled=True)
    assert not wanted.manifest_path.exists()
    destination.announce()
    destination.conclude(2, is_cancelled=True)
    manifest = read_manifest(wanted.manifest_path)
    assert (manifest.state, manifest.frames_written) == ("cancelled", 2)


def test_what_devices_made_is_kept_by_the_next_run(wanted: SequenceSettings) -> None:
    destination, sink = opened(wanted)
    destination.made_on = MADE_ON
    destination.announce()
    sink.close(discard=True)
    again, sink = opened(wanted)
    sink.close(discard=True)
    assert again.made_on == MADE_ON


def test_a_frame_that_is_gone_when_all_are_stored_is_an_error(wanted: SequenceSettings) -> None:
    export(wanted)
    destination, sink = opened(wanted)
    assert sink.resumable_from(0, lambda: False) is None
    sink.close(discard=False)
    destination.conclude(wanted.frame_count, is_cancelled=False)
    next(wanted.folder.glob("*.png")).unlink()
    with pytest.raises(ExportError):
        destination.conclude(wanted.frame_count, is_cancelled=False)
