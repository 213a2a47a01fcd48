"""OpenEXR (file layout of the OpenEXR documentation, version 2): 32-bit float scan lines, ZIP compression.

Values are linear light, as programs that read EXR expect: 0 is black and 1 the white of the 8-bit formats. The
network's output is not clamped, so values may exceed the range. The recipe is the header attribute "latentloom".
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO

from explorer_app.exporting.formats.deflate import deflate_fast
from explorer_app.exporting.formats.scan import PictureScan, RecipeError, recipe_text
from gpu_backend import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

SIGNATURE = b"\x76\x2f\x31\x01"

_ATTRIBUTE = b"latentloom"
_ZIP, _LINES_PER_CHUNK = 3, 16
_FLOAT, _INCREASING_Y = 2, 0
_NAME_LIMIT = 256
_MAX_ATTRIBUTES = 1000


def encode_exr(values: NDArray[np.float32], text: str, dpi: int | None = None) -> bytes:
    """Return an EXR file.

    Parameters
    ----------
    values
        (height, width, 3 or 4) float32 in sRGB encoding, nominally 0..1: R, G, B and perhaps A, which is linear.
    text
        The recipe: ASCII.
    dpi
        Pixels an inch, which the attribute xDensity says; None for none.
    """
    height, width, channels = values.shape
    linear = np.array(values, dtype="<f4")
    linear[..., :3] = _linear_light(linear[..., :3])
    order = [2, 1, 0] if channels == 3 else [3, 2, 1, 0]  # channels are stored by name: A, B, G, R
    planes = np.ascontiguousarray(linear[..., order].transpose(0, 2, 1))  # (height, channels, width)
    window = struct.pack("<iiii", 0, 0, width - 1, height - 1)
    names = "ABGR"[4 - channels :]
    listed = b"".join(name.encode() + b"\0" + struct.pack("<iB3xii", _FLOAT, 0, 1, 1) for name in names)
    attributes = (
        (b"channels", b"chlist", listed + b"\0"),
        (b"compression", b"compression", bytes([_ZIP])),
        (b"dataWindow", b"box2i", window),
        (b"displayWindow", b"box2i", window),
        (_ATTRIBUTE, b"string", text.encode("ascii")),
        (b"lineOrder", b"lineOrder", bytes([_INCREASING_Y])),
        (b"pixelAspectRatio", b"float", struct.pack("<f", 1.0)),
        (b"screenWindowCenter", b"v2f", struct.pack("<ff", 0.0, 0.0)),
        (b"screenWindowWidth", b"float", struct.pack("<f", 1.0)),
        *(() if dpi is None else ((b"xDensity", b"float", struct.pack("<f", dpi)),)),
    )
    head = SIGNATURE + struct.pack("<i", 2)
    head += b"".join(b"\0".join((name, kind, struct.pack("<i", len(data)))) + data for name, kind, data in attributes)
    head += b"\0"
    chunks = []
    for first in range(0, height, _LINES_PER_CHUNK):
        lines = planes[first : first + _LINES_PER_CHUNK].reshape(-1).view(np.uint8)
        packed = deflate_fast(_predicted(lines))
        data = packed if len(packed) < lines.nbytes else lines.tobytes()
        chunks.append(struct.pack("<ii", first, len(data)) + data)
    offsets = []
    position = len(head) + 8 * len(chunks)
    for chunk in chunks:
        offsets.append(position)
        position += len(chunk)
    return b"".join((head, struct.pack(f"<{len(offsets)}Q", *offsets), *chunks))


def scan_exr(file: BinaryIO, nbytes: int, max_text: int) -> PictureScan:
    """Implements `Scanner`: reads the header and the place of the last chunk, of files with one part and scan lines."""
    width = height = lines = 0
    text: str | None = None
    problem = ""
    position = 8
    for _ in range(_MAX_ATTRIBUTES):
        file.seek(position)
        head = file.read(2 * _NAME_LIMIT + 8)
        name, found_name, rest = head.partition(b"\0")
        kind, found_kind, rest = rest.partition(b"\0")
        if not name and found_name:
            position += 1
            break
        length = int.from_bytes(rest[:4], "little")
        start = position + len(name) + len(kind) + 6
        if not (found_name and found_kind) or len(rest) < 4 or start + length > nbytes:
            return PictureScan(width, height, text, False, problem)
        file.seek(start)
        if name == b"dataWindow" and length == 16:
            left, top, right, bottom = struct.unpack("<iiii", file.read(16))
            width, height = max(0, right - left + 1), max(0, bottom - top + 1)
        elif name == b"compression" and length == 1:
            lines = {0: 1, 2: 1, 3: 16}.get(file.read(1)[0], 0)
        elif name == _ATTRIBUTE and kind == b"string":
            try:
                text = recipe_text(file.read(min(length, max_text + 1)), max_text)
            except RecipeError as error:
                problem = str(error)
        position = start + length
    if not (width and height and lines):
        return PictureScan(width, height, text, False, problem)
    chunks = -(-height // lines)
    file.seek(min(position + 8 * (chunks - 1), nbytes))
    last = int.from_bytes(file.read(8), "little")
    file.seek(min(last + 4, nbytes))
    size = file.read(4)
    is_whole = len(size) == 4 and last + 8 + int.from_bytes(size, "little") == nbytes
    return PictureScan(width, height, text, is_whole, problem)


def _linear_light(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return sRGB values as linear light (IEC 61966-2-1); the curve is continued beyond 1 and mirrored below 0."""
    sizes = np.abs(values)
    curve = np.where(
        sizes <= 0.04045,
        sizes / np.float32(12.92),
        ((sizes + np.float32(0.055)) / np.float32(1.055)) ** np.float32(2.4),
    )
    return np.copysign(curve, values).astype(np.float32)


def _predicted(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return bytes as ZIP compression deflates them: even ones before odd ones, then differences plus 128."""
    halves = np.concatenate((data[0::2], data[1::2]))
    halves[1:] -= halves[:-1].copy()
    halves[1:] += 128
    return halves
