"""GIF, APNG and animated WebP. A segment is one frame, as a GIF or PNG file; joining holds one frame at a time.

APNG and WebP keep what is transparent; in a GIF it is white.
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.formats.picture_format import Size
from explorer_app.exporting.formats.png import encode_png
from explorer_app.exporting.formats.resize import over_white, resized
from explorer_app.exporting.video.animation_files import mark_webp_alpha, write_apng, write_gif
from explorer_app.exporting.video.video_format import VideoFormat
from gpu_backend import Frame

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

_FOREVER = 0
"""Number of repetitions: an animation is there to be looped."""
_GIF_UNIT_MS = 10
_TRUE_COLOURS = 256
_SAMPLES = 2048
"""Pixels that a palette of a GIF is made from: of all pixels it takes three times as long, for the same palette."""
_WEBP_METHOD = 2


class AnimationCodec:
    """Implements `SegmentCodec`. Parameters as of `VideoCodec`; odd sides are fine."""

    def __init__(self, form: VideoFormat, size: Size | None) -> None:
        self._form = form
        self._size = size

    @property
    def segment_ending(self) -> str:
        """What segment files end in: a GIF is put together from GIFs."""
        return ".gif" if self._form.codec == "gif" else ".png"

    def converted(self, frame: Frame) -> bytes:
        """Return a frame at the animation's size as a file."""
        is_gif = self._form.codec == "gif"
        keeps_alpha = frame.has_alpha and self._form.facts.keeps_alpha
        pixels = over_white(frame.pixels) if frame.has_alpha and not keeps_alpha else frame.pixels
        pixels = pixels if self._size is None else resized(pixels, self._size)
        return _gif(pixels) if is_gif else png_segment(pixels, has_alpha=keeps_alpha)

    def encoder(self) -> StillSegment:
        """Return an encoder for the next frame."""
        return StillSegment()

    def join(self, segments: Sequence[Path], total: int, target: Path, comment: str) -> None:
        """Put the animation together from its frames, in order."""
        from PIL import Image, ImageSequence

        durations = self._durations_ms(total)
        with target.open("w+b") as file:
            if self._form.codec == "gif":
                write_gif(segments, [duration // _GIF_UNIT_MS for duration in durations], comment, file)
            elif self._form.codec == "apng":
                write_apng(segments, durations, comment, file)
            else:
                from explorer_app.exporting.video.frame_files import FrameFiles

                frames = FrameFiles(segments)
                frames.save(
                    file,
                    "WEBP",
                    save_all=True,
                    duration=durations,
                    loop=_FOREVER,
                    quality=self._form.chosen_quality,
                    method=_WEBP_METHOD,
                    xmp=comment.encode("ascii"),
                )
                if frames.mode == "RGBA":
                    mark_webp_alpha(file)
        with Image.open(target) as written:
            if self._form.codec == "webp" and not getattr(written, "is_animated", False):
                return  # of equal frames a WebP is a still picture, which has no time
            shown_ms = sum(_shown_ms(frame) for frame in ImageSequence.Iterator(written))
        if abs(shown_ms - sum(durations)) > total:
            raise ExportError(
                f"The animation should take {sum(durations):,} ms, but came out with {shown_ms:,}; export it again."
            )

    def comment_of(self, path: Path) -> str | None:
        """Return the comment of an animation."""
        from PIL import Image

        try:
            with Image.open(path) as picture:
                found = picture.info.get({"gif": "comment", "apng": "Comment", "webp": "xmp"}[self._form.codec])
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            return None
        return found.decode("latin-1") if isinstance(found, bytes) else found

    def _durations_ms(self, total: int) -> list[int]:
        """Return how long each frame is shown; GIF counts in 10 ms. Rounding errors do not add up."""
        unit = _GIF_UNIT_MS if self._form.codec == "gif" else 1
        ends = [round(place * 1000 / self._form.fps / unit) for place in range(total + 1)]
        return [unit * (end - start) for start, end in itertools.pairwise(ends)]


def png_segment(pixels: NDArray[np.uint8], *, has_alpha: bool = False) -> bytes:
    """Return a PNG of (height, width, 4) B, G, R, X or, with alpha, B, G, R, A."""
    return encode_png(pixels, "", channels=(2, 1, 0, 3) if has_alpha else (2, 1, 0))


def _gif(pixels: NDArray[np.uint8]) -> bytes:
    """Return a GIF of one frame."""
    from PIL import Image

    height, width = pixels.shape[:2]
    picture = Image.frombuffer("RGB", (width, height), pixels.tobytes(), "raw", "BGRX", 0, 1)
    file = io.BytesIO()
    _paletted(picture).save(file, "GIF", optimize=False, interlace=0)
    return file.getvalue()


def _paletted(picture: Image.Image) -> Image.Image:
    """Return a picture in 256 colours of its own, dithered."""
    from PIL import Image

    step = max(1, math.isqrt(picture.width * picture.height // _SAMPLES))
    size = max(1, picture.width // step), max(1, picture.height // step)
    sample = picture.resize(size, Image.Resampling.NEAREST)
    # In two steps: Pillow dithers only to a palette that it is given.
    palette = sample.quantize(_TRUE_COLOURS, Image.Quantize.MEDIANCUT, kmeans=1)
    return picture.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG)


def _shown_ms(frame: Image.Image) -> int:
    if frame.format == "WEBP":
        frame.load()  # only then its time is known; of a PNG it is forgotten then
    return int(frame.info.get("duration", 0))


class StillSegment:
    """Implements `SegmentEncoder` for one frame, which `SegmentCodec.converted` returned as a file."""

    def __init__(self) -> None:
        self._data = b""

    def add(self, picture: bytes) -> None:
        """Take the frame."""
        self._data = picture

    def finish(self) -> bytes:
        """Return the file."""
        return self._data
