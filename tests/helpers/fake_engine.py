"""An engine that paints a pattern derived from the request: equal requests give equal pixels."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from gpu_backend import Frame, FrameTimings, RenderRequest, request_to_json

SIDE_PX = 12


def fake_frame(request: RenderRequest, *, has_alpha: bool = False) -> Frame:
    """The frame for a request."""
    text = json.dumps(request_to_json(request), sort_keys=True)
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    pixels = np.random.default_rng(seed).integers(0, 256, (SIDE_PX, SIDE_PX, 4), dtype=np.uint8)
    if not has_alpha:
        pixels[..., 3] = 255
    pixels.setflags(write=False)
    image = None
    if request.wants_image:
        shown = pixels[..., [2, 1, 0, 3]] if has_alpha else pixels[..., 2::-1]
        image = (shown.astype(np.float32) - 128) / np.float32(127.5)
        image.setflags(write=False)
    return Frame(request, pixels, FrameTimings(0.0, 0.0, 0.0), has_alpha=has_alpha, image=image)


class FakeEngine:
    """Renders by `fake_frame` and counts the frames."""

    def __init__(self) -> None:
        self.requests: list[RenderRequest] = []

    def render(self, request: RenderRequest) -> Frame:
        """Render a request."""
        self.requests.append(request)
        return fake_frame(request)
