"""When each step of a start was reached: `latentloom --time-start` prints it.

Steps are marked on whatever thread reaches them; a mark costs about a microsecond, so they are always taken.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from gpu_backend import dataclass

INTERPRETER = "interpreter"
IMPORTS = "imports of the window"
APPLICATION = "QApplication"
BUILT = "window built"
SHOWN = "window shown"
PAINTED = "window and picture painted"
TORCH = "torch imported"
DRIVER = "driver started"
DEVICES = "devices found"
DEVICE_STARTED = "GPU started"
MODEL_READ = "model read"
RENDERER = "renderer ready"
LIVE_PICTURE = "first live picture shown"
FULL_PICTURE = "first full picture shown"

_PACKAGES = ("explorer_app", "gpu_backend")


@dataclass(frozen=True, slots=True)
class Mark:
    """A step that was reached.

    Attributes
    ----------
    wall_s
        Since the process began.
    cpu_s
        Of all threads of the process until then.
    thread
        Name of the thread that reached it.
    """

    step: str
    wall_s: float
    cpu_s: float
    thread: str


class StartTimes:
    """Takes each step once, the first time."""

    def __init__(self, began_s: float) -> None:
        self._began_s = began_s
        self._lock = threading.Lock()
        self._marks: dict[str, Mark] = {}

    @property
    def marks(self) -> tuple[Mark, ...]:
        """All marks, in the order in which the steps were reached."""
        with self._lock:
            return tuple(self._marks.values())

    def mark(self, step: str) -> None:
        """Mark a step as reached, unless it was before."""
        wall_s, cpu_s = time.monotonic() - self._began_s, time.process_time()
        with self._lock:
            self._marks.setdefault(step, Mark(step, wall_s, cpu_s, threading.current_thread().name))

    def table(self) -> str:
        """Return the steps as lines: wall and CPU time of the process until then, and the thread."""
        lines = [f"{'step':<28}{'wall s':>8}{'CPU s':>8}  thread"]
        for mark in self.marks:
            thread = "window" if mark.thread == "MainThread" else mark.thread
            lines.append(f"{mark.step:<28}{mark.wall_s:>8.2f}{mark.cpu_s:>8.2f}  {thread}")
        return "\n".join(lines)


def bytecode_note() -> str:
    """Return a sentence if modules of the program had to be compiled, as at every start from here; empty otherwise."""
    own = [module for name, module in sys.modules.items() if name.partition(".")[0] in _PACKAGES]
    cached = [module.__spec__.cached for module in own if module.__spec__ is not None]
    count = sum(path is not None and not os.path.exists(path) for path in cached)
    if not count:
        return ""
    return (
        f"Modules without bytecode: {count}. Compiling each takes about a millisecond, at every start until Python "
        "may write bytecode (PYTHONDONTWRITEBYTECODE forbids it) and can."
    )


def _process_start_s() -> float:
    """Return when this process began on the clock of `time.monotonic`.

    Linux reports it to a hundredth of a second. Elsewhere it is estimated by the CPU time spent until now.
    """
    now_s = time.monotonic()
    try:
        # Field 22 of stat(5), counted behind the name, which may hold blanks and brackets.
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        age_s = time.process_time()
    return now_s - age_s


_of_this_process = StartTimes(_process_start_s())
mark = _of_this_process.mark
table = _of_this_process.table
mark(INTERPRETER)
