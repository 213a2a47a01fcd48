"""How far pictures in a precision are from those in fp32."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpu_backend.bench.report import Accuracy
from gpu_backend.latent.plane import plane_point
from gpu_backend.plan.plan import Precision
from gpu_backend.recipe import Latent, Recipe, Truncation
from gpu_backend.renderer import Renderer
from gpu_backend.request import RenderRequest

PICTURES = 16
_PSI = 0.7


def measure_accuracy(open_renderer: Callable[[Precision], Renderer], precision: Precision) -> Accuracy:
    """Render the pictures of some seeds in a precision and in fp32, and compare the bytes."""
    found, exact = (_pictures(open_renderer, one) for one in (precision, "fp32"))
    largest = int(np.abs(found.astype(np.int16) - exact).max())
    if not largest:
        return Accuracy(precision, PICTURES, None, None, 0)
    least = min(psnr_db(one, other) for one, other in zip(found, exact, strict=True))
    return Accuracy(precision, PICTURES, psnr_db(found, exact), least, largest)


def psnr_db(found: NDArray[np.uint8], expected: NDArray[np.uint8]) -> float:
    """Return the peak signal-to-noise ratio of bytes in decibels; infinite where they are equal."""
    square = float(np.mean((found.astype(np.float64) - expected) ** 2))
    return 10.0 * math.log10(255.0**2 / square) if square else math.inf


def decibels(value: float) -> str:
    """Return a ratio as a cell of a table; empty for equal pictures."""
    return "" if math.isinf(value) else f"{value:.1f}"


def _pictures(open_renderer: Callable[[Precision], Renderer], precision: Precision) -> NDArray[np.uint8]:
    with contextlib.closing(open_renderer(precision)) as renderer:
        recipes = (Recipe(Latent(plane_point(seed, 0)), Truncation(psi=_PSI)) for seed in range(PICTURES))
        requests = (RenderRequest(model_id=renderer.facts.model_id, blend=((one, 1.0),)) for one in recipes)
        return np.stack([np.array(renderer.render(request).pixels[..., :3]) for request in requests])
