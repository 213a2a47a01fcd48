"""Measure picture encoders on frames of the bundled model: ``python packaging/encoder_times.py [file.csv]``.

Each encoder takes the same sixteen frames, at 256 x 256 and scaled to 1024 x 1024, on one core; the least CPU time of
several rounds counts, in which the encoders take turns. Sizes are compared with Pillow's PNG at level 1.
"""

from __future__ import annotations

import csv
import io
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from PIL import Image  # noqa: E402

from explorer_app.assets import bundled_model  # noqa: E402
from explorer_app.exporting.formats.codecs import encode_frame  # noqa: E402
from explorer_app.exporting.formats.picture_format import PictureFormat  # noqa: E402
from gpu_backend import Frame, Latent, Point, Recipe, RenderRequest, Truncation, open_renderer  # noqa: E402

SEEDS = range(16)
SIDES = (256, 1024)
ROUNDS = 5
BASELINE = "Pillow PNG level 1"
TEXT = "{}"

Encode = Callable[[Frame, int], bytes]


def rendered() -> list[Frame]:
    """Render the frames."""
    path = bundled_model()
    assert path is not None
    with open_renderer(path, "cpu") as renderer:
        return [
            renderer.render(
                RenderRequest(
                    renderer.facts.model_id,
                    ((Recipe(Latent(Point(((seed, 1.0),))), Truncation(0.7)), 1.0),),
                    wants_image=True,
                )
            )
            for seed in SEEDS
        ]


def by_pillow(level: int) -> Encode:
    """Return Pillow's PNG encoder, as exports used it."""

    def encode(frame: Frame, side: int) -> bytes:
        target = io.BytesIO()
        Image.fromarray(frame.to_rgb()).save(target, "PNG", compress_level=level)
        return target.getvalue()

    return encode


def by_product(form: PictureFormat) -> Encode:
    """Return an encoder of the exports."""
    return lambda frame, side: encode_frame(frame, TEXT, form)


def encoders() -> dict[str, Encode]:
    """Return what is compared."""
    return {
        BASELINE: by_pillow(1),
        "Pillow PNG level 4": by_pillow(4),
        "PNG fast": by_product(PictureFormat()),
        "PNG small": by_product(PictureFormat("png", None, "small")),
        "PNG 16 bit": by_product(PictureFormat("png16")),
        "JPEG 95": by_product(PictureFormat("jpeg")),
        "WebP 90": by_product(PictureFormat("webp")),
        "TIFF": by_product(PictureFormat("tiff")),
        "EXR": by_product(PictureFormat("exr")),
    }


def scaled(frame: Frame, side: int) -> Frame:
    """Return a frame at another size, floats included."""
    from dataclasses import replace

    from explorer_app.exporting.formats.resize import resized

    assert frame.image is not None
    image: NDArray[np.float32] = resized(frame.image, (side, side))
    return replace(frame, pixels=np.ascontiguousarray(resized(frame.pixels, (side, side))), image=image)


def measured(frames: list[Frame], side: int) -> dict[str, tuple[float, float]]:
    """Return least milliseconds of CPU time and mean bytes a frame, by encoder."""
    best: dict[str, tuple[float, float]] = {}
    for _ in range(ROUNDS):
        for name, encode in encoders().items():
            start_s = time.thread_time()
            nbytes = sum(len(encode(frame, side)) for frame in frames) / len(frames)
            ms = (time.thread_time() - start_s) / len(frames) * 1e3
            best[name] = (min(ms, best.get(name, (ms, 0.0))[0]), nbytes)
    return best


def main(target: Path) -> None:
    """Measure and write a line an encoder and size."""
    frames = rendered()
    with target.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("side_px", "encoder", "cpu_ms", "mb_a_second", "kilobytes", "size_against_pillow_level_1"))
        for side in SIDES:
            figures = measured([scaled(frame, side) for frame in frames], side)
            for name, (ms, nbytes) in figures.items():
                speed = side * side * 3 / ms / 1e3
                share = nbytes / figures[BASELINE][1]
                table.writerow((side, name, f"{ms:.2f}", f"{speed:.0f}", f"{nbytes / 1e3:.1f}", f"{share:.3f}"))
    sys.stdout.write(f"{target.read_text()}{platform.machine()}, one core\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "assets" / "results" / "encoders.csv")
