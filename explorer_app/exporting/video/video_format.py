"""The formats that a sequence can be written in as one file, and the choices that each of them has."""

from __future__ import annotations

import importlib.util
import math
from fractions import Fraction
from pathlib import Path
from typing import Literal

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.formats.picture_format import MAX_WEBP_SIDE_PX
from gpu_backend import dataclass

CodecName = Literal["av1", "vp9", "prores", "prores4444", "h264", "h265", "gif", "apng", "webp"]

HardwareName = Literal["nvenc", "videotoolbox", "qsv"]

HARDWARE_LABELS: dict[HardwareName, str] = {
    "nvenc": "NVIDIA NVENC",
    "videotoolbox": "Apple VideoToolbox",
    "qsv": "Intel Quick Sync",
}

HARDWARE_ENCODERS: dict[tuple[CodecName, HardwareName], str] = {
    ("h264", "nvenc"): "h264_nvenc",
    ("h265", "nvenc"): "hevc_nvenc",
    ("av1", "nvenc"): "av1_nvenc",
    ("h264", "videotoolbox"): "h264_videotoolbox",
    ("h265", "videotoolbox"): "hevc_videotoolbox",
    ("h264", "qsv"): "h264_qsv",
    ("h265", "qsv"): "hevc_qsv",
    ("av1", "qsv"): "av1_qsv",
}
"""FFmpeg's names; `hardware.hardware_encoders` says which of them this machine has."""

INSTALL_COMMAND = "pip install av"
"""Adds PyAV, as the extra `video` does. Its wheels bundle x264 and x265, which are GPL."""

MIN_FPS, MAX_FPS = Fraction(1), Fraction(240)


def exact_rate(fps: Fraction) -> Fraction:
    """Return frames per second as written with few digits exactly: 23.976 and 29.97 are 24000/1001 and 30000/1001."""
    broadcast = Fraction(round(fps * 1001 / 1000) * 1000, 1001)
    return broadcast if fps.denominator != 1 and abs(fps - broadcast) < Fraction(1, 1000) else fps


@dataclass(frozen=True, slots=True)
class CodecFacts:
    """What is fixed for a codec.

    Attributes
    ----------
    label, about
        For people: the name, and when to choose it.
    endings
        What its files may end in; the first is the usual one.
    default_quality
        1 to 100; None if there is no choice.
    needs_extra
        PyAV encodes it; Pillow encodes the others.
    max_fps
        Of GIF: players slow down frames that are shorter than 20 ms.
    max_side_px
        Longest side of a frame that is found out only when the file is complete; None if its encoder says it at once.
    keeps_alpha
        Whether transparent parts of pictures stay transparent; they are white otherwise.
    """

    label: str
    about: str
    endings: tuple[str, ...]
    default_quality: int | None
    needs_extra: bool
    max_fps: Fraction = MAX_FPS
    max_side_px: int | None = None
    keeps_alpha: bool = False


CODECS: dict[CodecName, CodecFacts] = {
    "av1": CodecFacts("AV1", "The smallest files, for browsers of today.", (".webm", ".mp4"), 80, True),
    "vp9": CodecFacts("VP9", "Small files, for every browser.", (".webm",), 80, True, keeps_alpha=True),
    "prores": CodecFacts("ProRes", "10 bits, for editing programs; large files.", (".mov",), 80, True),
    "prores4444": CodecFacts(
        "ProRes 4444",
        "10 bits, colour of every pixel, and transparency, for compositing; very large files.",
        (".mov",),
        80,
        True,
        keeps_alpha=True,
    ),
    "h264": CodecFacts("H.264", "Plays everywhere, on televisions too.", (".mp4",), 80, True),
    "h265": CodecFacts("H.265", "Smaller than H.264, for devices that play it.", (".mp4",), 80, True),
    "gif": CodecFacts("GIF", "256 colours, for chats.", (".gif",), None, False, Fraction(50)),
    "apng": CodecFacts("APNG", "An exact animation; large files.", (".apng",), None, False, keeps_alpha=True),
    "webp": CodecFacts(
        "Animated WebP",
        "A small animation for web pages.",
        (".webp",),
        80,
        False,
        max_side_px=MAX_WEBP_SIDE_PX,
        keeps_alpha=True,
    ),
}
"""In the order in which they are offered; the first with an ending is what that ending means, but for ``.mp4``."""

VIDEO_ENDINGS = tuple(dict.fromkeys(ending for facts in CODECS.values() for ending in facts.endings))


@dataclass(frozen=True, slots=True)
class VideoFormat:
    """How a sequence is written as one file.

    Attributes
    ----------
    ending
        One of the codec's; empty for its usual one.
    fps
        Frames a second.
    quality
        1 to 100; None for the codec's usual one.
    hardware
        Encode in hardware: faster, larger files of the same quality. None encodes on the CPU. A video that was stopped
        continues with the same encoder, because segments of different encoders cannot be joined.
    """

    codec: CodecName
    ending: str = ""
    fps: Fraction = Fraction(30)
    quality: int | None = None
    hardware: HardwareName | None = None

    def __post_init__(self) -> None:
        if self.codec not in CODECS:
            raise ExportError(f"A video's codec is one of {', '.join(CODECS)}, but is {str(self.codec)[:20]!r}.")
        facts = self.facts
        if self.ending and self.ending not in facts.endings:
            raise ExportError(f"{facts.label} goes into {' or '.join(facts.endings)} files, not {self.ending[:20]}.")
        if not MIN_FPS <= self.fps <= facts.max_fps:
            raise ExportError(f"{facts.label} takes {MIN_FPS} to {facts.max_fps} fps, not {self.fps}.")
        if self.quality is not None and facts.default_quality is None:
            raise ExportError(f"{facts.label} has no quality to choose; leave the quality out.")
        if self.quality is not None and not 1 <= self.quality <= 100:
            raise ExportError(f"A quality must be 1 to 100, not {self.quality}.")
        if self.hardware is not None and (self.codec, self.hardware) not in HARDWARE_ENCODERS:
            raise ExportError(f"{facts.label} is not encoded by {str(self.hardware)[:20]}; leave the encoder out.")

    @property
    def facts(self) -> CodecFacts:
        """What is fixed for the codec."""
        return CODECS[self.codec]

    @property
    def file_ending(self) -> str:
        """What the file name ends in, with the dot."""
        return self.ending or self.facts.endings[0]

    @property
    def chosen_quality(self) -> int:
        """The quality, or the codec's usual one; 0 for a codec without."""
        return self.facts.default_quality or 0 if self.quality is None else self.quality

    @property
    def normal(self) -> VideoFormat:
        """The same with everything said: formats that agree here give equal files."""
        return VideoFormat(self.codec, self.file_ending, self.fps, self.chosen_quality or None, self.hardware)

    @property
    def carries_sound(self) -> bool:
        """Whether the file has a soundtrack; animations have none."""
        return self.facts.needs_extra

    @property
    def segment_frames(self) -> int:
        """Frames of a segment: about two seconds, which is what a kill costs at most."""
        return max(1, math.ceil(2 * self.fps)) if self.facts.needs_extra else 1


def video_format_of_path(
    path: Path,
    *,
    codec: CodecName | None = None,
    fps: Fraction = Fraction(30),
    quality: int | None = None,
    hardware: HardwareName | None = None,
) -> VideoFormat:
    """Return the format of a file name, by its suffix; ``.mp4`` means H.264 unless a codec is named.

    Raises
    ------
    ExportError
        If nothing has that ending, or the codec does not go into such a file.
    """
    ending = path.suffix.lower()
    if codec is None:
        codec = "h264" if ending == ".mp4" else next((name for name, f in CODECS.items() if ending in f.endings), None)
    if codec is None:
        raise ExportError(
            f"{path.name} should end in one of {', '.join(VIDEO_ENDINGS)}, which says the format; choose another name."
        )
    return VideoFormat(codec, ending, fps, quality, hardware)


def has_video_extra() -> bool:
    """Return whether PyAV is installed."""
    return importlib.util.find_spec("av") is not None
