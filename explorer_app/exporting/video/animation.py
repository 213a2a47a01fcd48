"""GIF, APNG and animated WebP by Pillow. A segment is one frame, as a PNG file; joining encodes the animation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.formats.picture_format import Size
from explorer_app.exporting.formats.png import encode_png
from explorer_app.exporting.formats.resize import over_white, resized
from explorer_app.exporting.video.video_format import VideoFormat
from gpu_backend import Frame

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

_FOREVER = 0
"""Number of repetitions: an animation is there to be looped."""
_TRUE_COLOURS = 256
_SAMPLES = 2048
"""Pixels that a palette of a GIF is made from: of all pixels it takes three times as long, for the same palette."""
_WEBP_METHOD = 2


class AnimationCodec:
    """Implements `SegmentCodec`. Parameters as of `VideoCodec`; odd sides are fine."""

    segment_ending = ".png"

    def __init__(self, form: VideoFormat, size: Size | None) -> None:
        self._form = form
        self._size = size

    def converted(self, frame: Frame) -> NDArray[np.uint8]:
        """Return a frame's pixels at the animation's size, (height, width, 4) B, G, R, X."""
        pixels = over_white(frame.pixels) if frame.has_alpha else frame.pixels
        return pixels if self._size is None else resized(pixels, self._size)

    def encoder(self) -> StillSegment:
        """Return an encoder for the next frame."""
        return StillSegment()

    def join(self, segments: Sequence[Path], total: int, target: Path, comment: str) -> None:
        """Encode the animation from its frames, in order."""
        from PIL import Image, ImageSequence
        from PIL.PngImagePlugin import PngInfo

        options: dict[str, Any] = {"duration": self._durations_ms(total), "loop": _FOREVER}
        if self._form.codec == "gif":
            options |= {"comment": comment.encode("ascii"), "optimize": False, "disposal": 1}
        elif self._form.codec == "apng":
            note = PngInfo()
            note.add_text("Comment", comment)
            # The default image is the first frame; frames that are equal are kept apart.
            options |= {"pnginfo": note, "default_image": False, "compress_level": 4}
        else:
            options |= {"quality": self._form.chosen_quality, "method": _WEBP_METHOD, "xmp": comment.encode("ascii")}
        kind = {"gif": "GIF", "apng": "PNG", "webp": "WEBP"}[self._form.codec]
        with target.open("wb") as file:
            self._frame(segments[0]).save(
                file,
                kind,
                save_all=True,
                append_images=_ReplayedPictures(partial(map, self._frame, segments[1:])),
                **options,
            )
        with Image.open(target) as written:
            shown_ms = sum(_shown_ms(frame) for frame in ImageSequence.Iterator(written))
        if abs(shown_ms - sum(options["duration"])) > total:
            raise ExportError(
                f"The animation should take {sum(options['duration']):,} ms, but came out with {shown_ms:,}; "
                "export it again."
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
        unit = 10 if self._form.codec == "gif" else 1
        ends = [round(place * 1000 / self._form.fps / unit) for place in range(total + 1)]
        return [unit * (end - start) for start, end in itertools.pairwise(ends)]

    def _frame(self, path: Path) -> Image.Image:
        from PIL import Image

        with Image.open(path) as picture:
            shown = picture.convert("RGB")
        return _paletted(shown) if self._form.codec == "gif" else shown


def _paletted(picture: Image.Image) -> Image.Image:
    """Return a picture in 256 colours of its own, dithered."""
    from PIL import Image

    step = max(1, math.isqrt(picture.width * picture.height // _SAMPLES))
    size = max(1, picture.width // step), max(1, picture.height // step)
    sample = picture.resize(size, Image.Resampling.NEAREST)
    # In two steps: Pillow dithers only to a palette that it is given.
    palette = sample.quantize(_TRUE_COLOURS, Image.Quantize.MEDIANCUT, kmeans=1)
    return picture.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG)


class _ReplayedPictures:
    """Pictures that are read again whenever Pillow goes through them, which it does twice for APNG."""

    def __init__(self, make: Callable[[], Iterator[Image.Image]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Image.Image]:
        return self._make()


def _shown_ms(frame: Image.Image) -> int:
    if frame.format == "WEBP":
        frame.load()  # only then its time is known; of a PNG it is forgotten then
    return int(frame.info.get("duration", 0))


class StillSegment:
    """Implements `SegmentEncoder` for one frame."""

    def __init__(self) -> None:
        self._data = b""

    def add(self, picture: NDArray[np.uint8]) -> None:
        """Encode the frame."""
        self._data = encode_png(picture, "", channels=(2, 1, 0))

    def finish(self) -> bytes:
        """Return the PNG."""
        return self._data
