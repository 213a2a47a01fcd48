"""The place where a sequence is written: the sink of its frames, and the manifest that says how far it came.

Jobs call everything here on threads that may wait for a disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from explorer_app.exporting.claim import claim_place
from explorer_app.exporting.manifest import FramesByDevice, State, identity_of, manifest_bytes
from explorer_app.exporting.output_file import write_output
from explorer_app.exporting.sequence import SequencePlan, SequenceSettings, plan_sequence
from explorer_app.exporting.sinks.frame_sink import FrameSink
from explorer_app.exporting.sinks.picture_folder import PictureFolder
from explorer_app.exporting.video.hardware import require_encoder
from gpu_backend import Disk

if TYPE_CHECKING:
    from explorer_app.exporting.sinks.video_file import VideoFile
    from explorer_app.exporting.video.soundtrack import Soundtrack


class Destination:
    """Claims the place of a sequence before its first frame, and says in the manifest how its job ended.

    Attributes
    ----------
    made_on
        Which device made which frame, for the manifest: at first what an earlier run noted.
    is_announced
        Whether the manifest says that frames found later belong to it.
    """

    def __init__(self, settings: SequenceSettings, sink: FrameSink, disk: Disk) -> None:
        self._settings = settings
        self._sink = sink
        self._disk = disk
        self._written: bytes | None = None
        """The manifest as it was read or written last."""
        self.made_on: tuple[FramesByDevice, ...] = ()
        self.is_announced = False

    def open(self, changed: Callable[[], None]) -> SequencePlan:
        """Open the sink, and return the plan of its frames. `changed` as for `FrameSink.open`.

        Raises
        ------
        LoomError
            If an encoder is missing, the settings make no sequence, or something else is in the way.
        """
        require_video_parts(self._settings)
        plan = plan_sequence(self._settings)
        claim, manifest = claim_place(self._settings, self._disk)
        if manifest is not None:
            self._written, self.made_on = manifest.data, manifest.made_on
        self._sink.open(plan, claim, changed)
        return plan

    def announce(self) -> None:
        """Write the manifest, once, before the first frame is handed out."""
        if not self.is_announced:
            self._write("unfinished", None)
            self.is_announced = True

    def conclude(self, done: int, *, is_cancelled: bool) -> None:
        """Say in the manifest how a job ended whose sink is closed; "unfinished" stays of one that was stopped.

        Raises the error of the sink, ExportError if a stored frame is gone.
        """
        if self._sink.error is not None:
            raise self._sink.error
        if done == self._settings.frame_count:
            self._sink.check_whole()
            self._write("complete", done)
        elif is_cancelled and self.is_announced:
            self._write("cancelled", done)

    def _write(self, state: State, frames_written: int | None) -> None:
        data = manifest_bytes(self._settings, state, frames_written, self.made_on)
        if data != self._written:
            write_output(self._settings.manifest_path, data, self._disk)
            self._written = data


def soundtrack_of(settings: SequenceSettings) -> Soundtrack | None:
    """Return what is heard in a sequence; None if it is no video, or nothing is."""
    piece, video = settings.piece, settings.video
    if piece is None or video is None or video.fps != piece.fps or not piece.session.timeline.sounds:
        return None
    from explorer_app.exporting.video.soundtrack import Soundtrack

    seconds = piece.frame_count / piece.fps
    return Soundtrack.of(piece.session.timeline.sounds, piece.start, seconds, video)


def require_video_parts(settings: SequenceSettings) -> None:
    """Raise if a video's encoder or a sound of it is missing: before the first frame is rendered, not after the last.

    Raises
    ------
    LoomError
        Which of them, and what to do.
    """
    if settings.video is None:
        return
    require_encoder(settings.video)
    soundtrack = soundtrack_of(settings)
    if soundtrack is not None:
        soundtrack.paths()


def sink_of(settings: SequenceSettings, disk: Disk, threads: int) -> PictureFolder | VideoFile:
    """Return the sink of the settings. No file is looked at, and no encoder is loaded."""
    video, path = settings.video, settings.single_path
    if path is None:
        return PictureFolder(
            settings.folder,
            settings.name,
            settings.form,
            settings.size,
            disk=disk,
            threads=threads,
            file_names=settings.file_names,
        )
    # Imported when the first video or sheet is made: most starts make none.
    from explorer_app.exporting.sinks.video_file import VideoFile

    if video is None:
        from explorer_app.exporting.sheet_codec import SheetCodec

        return VideoFile(path, SheetCodec(settings), identity_of(settings), 1, disk=disk, threads=threads)
    from explorer_app.exporting.video.animation import AnimationCodec
    from explorer_app.exporting.video.libav import VideoCodec

    codec = (
        VideoCodec(video, settings.size, soundtrack_of(settings))
        if video.facts.needs_extra
        else AnimationCodec(video, settings.size)
    )
    return VideoFile(path, codec, identity_of(settings), video.segment_frames, disk=disk, threads=threads)
