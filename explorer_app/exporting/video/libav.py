"""Video by PyAV (FFmpeg): the extra `video`.

Colours are BT.709 in limited range, which is what players assume of video, and tagged so. x264's output depends on the
number of its threads, so that is fixed; AV1, VP9 and ProRes give equal bytes for any number. So does x265 from 128 px
on. Below, the B-frames of one in twenty segments showed wrong pictures (with one thread too), so small
pictures have none.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.formats.picture_format import Size
from explorer_app.exporting.formats.resize import over_white, resized
from explorer_app.exporting.video.hardware import PIXEL_FORMATS
from explorer_app.exporting.video.soundtrack import SoundEncoder, Soundtrack
from explorer_app.exporting.video.video_format import HARDWARE_ENCODERS, CodecName, HardwareName, VideoFormat
from gpu_backend import Frame, dataclass

if TYPE_CHECKING:
    import av

_BT709 = 1
"""Code of the primaries, the transfer curve and the matrix (ITU-T H.273)."""
_LIMITED, _FULL = 1, 2
"""FFmpeg's codes of ranges: 16 to 235 for luma, and 0 to 255."""

_X264_THREADS = 8
_X265_LEAST_PX = 128
"""Shortest side with B-frames."""
_BITEXACT = {"fflags": "+bitexact"}
_CONTAINERS = {".mp4": "mp4", ".webm": "webm", ".mov": "mov"}
_PRORES_PROFILES = ((90, 3), (60, 2), (30, 1), (0, 0))
"""From this quality on: 3 is HQ, 2 standard, 1 LT, 0 proxy."""
_PRORES_4444_PROFILES = ((90, 5), (0, 4))
"""From this quality on: 5 is 4444 XQ, 4 is 4444."""
_ALPHA_MODE = "alpha_mode"
"""What the track of a WebM with transparency says; players show it opaque otherwise."""
_WITH_ALPHA = {"yuv420p": "yuva420p", "yuv444p10le": "yuva444p10le"}
"""Pixel format of an encoder that keeps alpha -> the one for frames that have it."""


@dataclass(frozen=True, slots=True)
class _Encoder:
    name: str
    pixel_format: str
    options: Mapping[str, str]


def _encoder_of(codec: CodecName, quality: int, hardware: HardwareName | None = None) -> _Encoder:
    """Return FFmpeg's encoder and options. Constant quality: the scale is 0 to 51, or 0 to 63 for AV1 and VP9."""
    if hardware is not None:
        return _Encoder(
            HARDWARE_ENCODERS[codec, hardware], PIXEL_FORMATS[hardware], _hardware_options(codec, quality, hardware)
        )
    if codec == "h264":
        options = {"crf": _scaled(quality, 44, 0.32), "preset": "veryfast", "threads": str(_X264_THREADS)}
        return _Encoder("libx264", "yuv420p", options)
    if codec == "h265":
        options = {"crf": _scaled(quality, 46, 0.32), "preset": "veryfast", "x265-params": "log-level=error"}
        return _Encoder("libx265", "yuv420p", options)
    if codec == "av1":
        return _Encoder("libsvtav1", "yuv420p", {"crf": _scaled(quality, 63, 0.45), "preset": "9"})
    if codec == "vp9":
        speed = {"deadline": "good", "cpu-used": "4", "row-mt": "1"}
        return _Encoder("libvpx-vp9", "yuv420p", {"crf": _scaled(quality, 63, 0.45), "b": "0", **speed})
    is_4444 = codec == "prores4444"
    profiles = _PRORES_4444_PROFILES if is_4444 else _PRORES_PROFILES
    profile = next(profile for least, profile in profiles if quality >= least)
    return _Encoder("prores_ks", "yuv444p10le" if is_4444 else "yuv422p10le", {"profile": str(profile)})


def _hardware_options(codec: CodecName, quality: int, hardware: HardwareName) -> dict[str, str]:
    """Return options for constant quality, whose name and scale each maker chose: 0 to 51, or 1 to 100 for Apple's."""
    if hardware == "nvenc":
        return {"preset": "p5", "rc": "vbr", "cq": _scaled(quality, 46, 0.32), "b": "0"}
    if hardware == "qsv":
        return {"preset": "medium", "global_quality": _scaled(quality, 46, 0.32)}
    # Intel Macs have no constant quality, so the bit rate is set to about that of x264 at 1024 x 1024, 30 fps.
    return {"b": str(round(1e6 * 2 ** ((quality - 50) / 10))), "allow_sw": "0"}


def _scaled(quality: int, worst: float, slope: float) -> str:
    return str(round(worst - slope * quality))


def even_size(size: Size) -> Size:
    """Return a size without odd sides, since chroma has half of the samples: the last row or column is left out."""
    return max(2, size[0] - size[0] % 2), max(2, size[1] - size[1] % 2)


class VideoCodec:
    """Implements `SegmentCodec` for AV1, VP9, ProRes, H.264 and H.265.

    VP9 (as a second picture beside each) and ProRes 4444 keep the alpha of frames, which is not multiplied in.

    Parameters
    ----------
    size
        Width and height of the video, or None for the size of the frames; odd sides lose a row or a column.
    soundtrack
        What is heard; None for a silent video.
    """

    def __init__(self, form: VideoFormat, size: Size | None, soundtrack: Soundtrack | None = None) -> None:
        os.environ.setdefault("SVT_LOG", "0")  # SVT-AV1 prints to stderr otherwise, also when a video is stopped
        self._form = form
        self._size = size
        self._soundtrack = soundtrack
        self._encoder = _encoder_of(form.codec, form.chosen_quality, form.hardware)
        self._of_thread = threading.local()
        """`reformatter`: FFmpeg's context of conversions. To make one takes longer than to convert a small picture."""
        self.segment_ending = form.file_ending

    def converted(self, frame: Frame) -> av.VideoFrame:
        """Return a frame in the encoder's pixel format."""
        import av
        from av.video.reformatter import VideoReformatter

        reformatter = getattr(self._of_thread, "reformatter", None)
        if reformatter is None:
            reformatter = self._of_thread.reformatter = VideoReformatter()
        keeps_alpha = frame.has_alpha and self._form.facts.keeps_alpha
        pixels = over_white(frame.pixels) if frame.has_alpha and not keeps_alpha else frame.pixels
        pixels = resized(pixels, even_size(self._size or (frame.width, frame.height)))
        pixel_format = self._encoder.pixel_format
        converted = reformatter.reformat(
            av.VideoFrame.from_numpy_buffer(pixels, format="bgra"),  # a copy would take longer than converting
            format=_WITH_ALPHA[pixel_format] if keeps_alpha else pixel_format,
            src_colorspace=_BT709,
            dst_colorspace=_BT709,
            src_color_range=_FULL,
            dst_color_range=_LIMITED,
            interpolation="BICUBIC",
        )
        converted.color_primaries = _BT709
        converted.color_trc = _BT709
        return converted

    def encoder(self) -> VideoSegment:
        """Return an encoder for the next segment."""
        return VideoSegment(self._encoder, self._form)

    def join(self, segments: Sequence[Path], total: int, target: Path, comment: str) -> None:
        """Copy the packets of segments into one file, and encode the sound; `target` may have any ending."""
        import av

        step = 1 / self._form.fps
        options = {**_BITEXACT, "movflags": "+faststart"} if self._form.file_ending != ".webm" else _BITEXACT
        container = _CONTAINERS[self._form.file_ending]
        with av.open(str(target), "w", format=container, options=options) as output:
            output.metadata["comment"] = comment
            stream = sound = None
            for place, path in enumerate(segments):
                start = place * self._form.segment_frames
                with av.open(str(path)) as segment:
                    source = segment.streams.video[0]
                    if stream is None:
                        stream = output.add_stream_from_template(source, opaque=True)  # no encoder is looked for
                        stream.time_base = step
                        if self._form.file_ending == ".mov":  # else all are called ProRes HQ
                            stream.codec_context.codec_tag = source.codec_context.codec_tag
                        if _ALPHA_MODE in source.metadata:
                            stream.metadata[_ALPHA_MODE] = source.metadata[_ALPHA_MODE]
                        # Without it, programs guess the rate of a WebM from times that are rounded to 1 ms.
                        stream.codec_context.framerate = self._form.fps
                        if self._soundtrack is not None:
                            sound = SoundEncoder(self._soundtrack, output, self._form.file_ending)
                    for packet in segment.demux(source):
                        if packet.dts is None or packet.pts is None:
                            continue  # the end of the segment
                        base = Fraction(packet.time_base)
                        packet.pts = start + round(packet.pts * base / step)
                        packet.dts = start + round(packet.dts * base / step)
                        packet.duration = 1
                        packet.time_base = step
                        packet.stream = stream
                        if sound is not None:
                            sound.encode_until((packet.pts + 1) * step)
                        output.mux(packet)
            if sound is not None:
                sound.finish()
        found = _packet_count(target)
        if found != total:
            raise ExportError(f"The video should have {total:,} frames, but came out with {found:,}; export it again.")

    def comment_of(self, path: Path) -> str | None:
        """Return the comment of a video file."""
        import av

        try:
            with av.open(str(path)) as container:
                metadata = {key.lower(): value for key, value in container.metadata.items()}
        except (OSError, ValueError, av.FFmpegError):
            return None
        return metadata.get("comment")


class VideoSegment:
    """Implements `SegmentEncoder`: a separate file, whose first frame is a key frame at time 0."""

    def __init__(self, encoder: _Encoder, form: VideoFormat) -> None:
        self._encoder = encoder
        self._form = form
        self._target = io.BytesIO()
        self._count = 0
        self._container: Any = None
        self._stream: Any = None

    def add(self, picture: av.VideoFrame) -> None:
        """Encode the next frame."""
        if self._container is None:
            self._open(picture)
        picture.pts = self._count
        picture.time_base = 1 / self._form.fps
        self._count += 1
        for packet in self._stream.encode(picture):
            self._container.mux(packet)

    def finish(self) -> bytes:
        """Return the segment as a file."""
        for packet in self._stream.encode(None):
            if self._count <= 2:
                packet.dts = packet.pts  # x265 leaves it unset if there is nothing to reorder
            self._container.mux(packet)
        self._container.close()
        return self._target.getvalue()

    def _open(self, picture: av.VideoFrame) -> None:
        import av

        container = _CONTAINERS[self._form.file_ending]
        self._container = av.open(self._target, "w", format=container, options=dict(_BITEXACT))
        stream: Any = self._container.add_stream(self._encoder.name, rate=self._form.fps)
        stream.width, stream.height, stream.pix_fmt = picture.width, picture.height, picture.format.name
        stream.options = dict(self._encoder.options)
        if self._encoder.name == "libx265" and min(picture.width, picture.height) < _X265_LEAST_PX:
            stream.options = {**stream.options, "x265-params": f"{stream.options['x265-params']}:bframes=0"}
        context = stream.codec_context
        context.time_base = 1 / self._form.fps
        context.color_range, context.colorspace = _LIMITED, _BT709
        context.color_primaries, context.color_trc = _BT709, _BT709
        context.flags |= av.codec.context.Flags.bitexact
        self._stream = stream


def _packet_count(path: Path) -> int:
    import av

    with av.open(str(path)) as container:
        return sum(packet.dts is not None for packet in container.demux(container.streams.video[0]))
