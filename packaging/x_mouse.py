"""Moves the pointer of an X server through XTEST: ``x_mouse.py RATE SECONDS RADIUS X Y``, in px of the screen.

A process of its own, as the server treats its events like those of a device. It presses the left button at (X, Y),
drags in a circle with RATE moves a second, and releases the button. It prints a line when it begins to move, and at the
end the number of moves. Needs libX11 and libXtst.
"""

from __future__ import annotations

import ctypes
import math
import sys
import time
from collections.abc import Sequence

LIBRARIES = "libX11.so.6", "libXtst.so.6"
SETTLE_S = 0.5
"""From the press to the first move: what the press alone sets off is over."""
MOVING = "moving"


def place(radius: float, passed_s: float) -> tuple[float, float]:
    """Return the place of the pointer after a time in seconds, right and down from where it was pressed."""
    angle = 2.0 * math.pi * passed_s
    return radius * math.sin(angle), radius * (1.0 - math.cos(angle))


def main(words: Sequence[str]) -> None:
    """Drag as the command line says."""
    rate, seconds, radius, x, y = (float(word) for word in words)
    x11, test = (ctypes.CDLL(name) for name in LIBRARIES)
    x11.XOpenDisplay.restype = ctypes.c_void_p
    display = ctypes.c_void_p(x11.XOpenDisplay(None))
    if not display:
        raise SystemExit("There is no X server.")

    def move(right: float, down: float) -> None:
        test.XTestFakeMotionEvent(display, -1, round(x + right), round(y + down), ctypes.c_ulong(0))
        x11.XFlush(display)

    def press(is_down: bool) -> None:
        test.XTestFakeButtonEvent(display, 1, int(is_down), ctypes.c_ulong(0))
        x11.XFlush(display)

    move(0.0, 0.0)
    press(True)
    time.sleep(SETTLE_S)
    _say(MOVING)
    start_s = time.perf_counter()
    count = 0
    while (passed_s := time.perf_counter() - start_s) < seconds:
        count += 1
        move(*place(radius, passed_s))
        time.sleep(max(0.0, start_s + count / rate - time.perf_counter()))
    press(False)
    _say(str(count))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
