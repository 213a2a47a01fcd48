"""Encoders in hardware, offered where FFmpeg has them and a tiny video comes out of them.

That a library lists an encoder says nothing: PyAV's wheels list NVENC everywhere, and an H100 has none.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from typing import Any

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.video.video_format import (
    HARDWARE_ENCODERS,
    HARDWARE_LABELS,
    INSTALL_COMMAND,
    CodecName,
    HardwareName,
    VideoFormat,
    has_video_extra,
)

PIXEL_FORMATS: dict[HardwareName, str] = {"nvenc": "yuv420p", "videotoolbox": "nv12", "qsv": "nv12"}

_PROBE_WIDTH, _PROBE_HEIGHT, _PROBE_FRAMES = 320, 192, 3
"""Larger than the smallest picture of every hardware encoder: NVENC takes AV1 from 192 lines on."""


@functools.cache
def hardware_encoders() -> frozenset[tuple[CodecName, HardwareName]]:
    """Return the codecs that hardware of this machine encodes. The first call may take a second: drivers are loaded."""
    return found_encoders(_encodes) if has_video_extra() else frozenset()


def found_encoders(encodes: Callable[[str, str], bool]) -> frozenset[tuple[CodecName, HardwareName]]:
    """Return the codecs for which `encodes`, given FFmpeg's names of the encoder and of the pixel format, is true."""
    return frozenset(
        (codec, hardware)
        for (codec, hardware), name in HARDWARE_ENCODERS.items()
        if encodes(name, PIXEL_FORMATS[hardware])
    )


def _encodes(name: str, pixel_format: str) -> bool:
    """Return whether a few frames come out of an encoder as packets."""
    import av
    import numpy as np

    target = io.BytesIO()
    try:
        with av.open(target, "w", format="mp4") as container:
            stream: Any = container.add_stream(name, rate=30)
            stream.width, stream.height, stream.pix_fmt = _PROBE_WIDTH, _PROBE_HEIGHT, pixel_format
            grey = np.full((_PROBE_HEIGHT, _PROBE_WIDTH, 3), 128, np.uint8)
            packets = []
            for number in range(_PROBE_FRAMES):
                frame = av.VideoFrame.from_ndarray(grey, format="rgb24").reformat(format=pixel_format)
                frame.pts = number
                packets += stream.encode(frame)
            packets += stream.encode(None)
            for packet in packets:
                container.mux(packet)
    except Exception:  # a driver that is missing, too old, busy, or hardware without this codec: each raises another
        return False
    return len(packets) >= _PROBE_FRAMES


def require_encoder(form: VideoFormat) -> None:
    """Raise ExportError with what helps if PyAV or the hardware that is to encode is needed and not there."""
    if form.facts.needs_extra and not has_video_extra():
        raise ExportError(
            f"{form.facts.label} needs PyAV, which is not installed and brings encoders under the GPL; "
            f"add it with: {INSTALL_COMMAND}"
        )
    if form.hardware is None:
        return
    if (form.codec, form.hardware) not in hardware_encoders():
        raise ExportError(
            f"{HARDWARE_LABELS[form.hardware]} does not encode {form.facts.label} on this machine; encode on the CPU."
        )
