"""Kill the window while a timeline is edited, and measure what is lost: ``python packaging/kill_window.py``.

A child process opens the window with a state folder of its own and a renderer that answers at once, moves a key of the
timeline ten times a second, and prints the number of each edit. After a while it is killed by SIGKILL. The next start
must find the timeline whole; printed is how much of the last edits is lost. Fails if that is more than 2 s. Without a
display, run it with ``QT_QPA_PLATFORM=offscreen``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import cast

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

sys.path.insert(0, str(Path(__file__).resolve().parent))

from hand_benchmark import InstantBackend, _reader, _until

from explorer_app.app import App, Places
from explorer_app.controller.autosave import Autosave
from explorer_app.controller.file_worker import FileWorker
from explorer_app.messages import MessageLog
from explorer_app.rendering.backend import BackendLike
from explorer_app.session.timeline.edits import SetTimeline, with_key
from explorer_app.session.tracks import Timeline

MOST_LOST_S = 2.0
_EDIT_MS = 100
_PATH = "noise.gain"


def edit_until_killed(folder: Path) -> None:
    """Open the window on a state folder, edit its timeline, and print the number of each edit."""
    qt = QApplication(sys.argv[:1])
    gate = threading.Event()
    gate.set()
    backend = cast("BackendLike", InstantBackend(gate))
    app = App(qt, MessageLog(), Places(None, folder), read=_reader(256), backend=backend)
    app.start()
    _until(qt, lambda: app.window.canvas.frame is not None)
    count = 0

    def edit() -> None:
        nonlocal count
        count += 1
        timeline = app.controller.editing.session.timeline
        made = with_key(with_key(timeline, _PATH, Fraction(0), 1.0), _PATH, Fraction(1), count / 1e4)
        app.controller.editing.edit(SetTimeline(made, "Move key"))
        sys.stdout.write(f"{count}\n")
        sys.stdout.flush()

    timer = QTimer()
    timer.timeout.connect(edit)
    timer.start(_EDIT_MS)
    qt.exec()


def newest_edit(folder: Path) -> int:
    """Return the number of the newest edit that a start finds in a state folder, 0 if there is none."""
    messages = MessageLog()
    worker = FileWorker(messages)
    saver = Autosave(folder, worker, messages)
    try:
        session = saver.load()
    finally:
        saver.close()
        worker.close()
    track = (Timeline() if session is None else session.timeline).track(_PATH)
    return 0 if track is None else round(1e4 * float(track.keys[-1].value))


def lost_s(folder: Path, seconds: float) -> float:
    """Let a child edit for a time, kill it, and return how old the newest edit that is left was at that moment."""
    words = [sys.executable, str(Path(__file__)), "--child", str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        times: dict[int, float] = {0: float("inf")}
        for line in child.stdout:
            times[int(line)] = time.monotonic()
            times[0] = min(times[0], times[int(line)])
            if times[int(line)] - times[0] >= seconds:
                break
        killed_s = time.monotonic()
        child.kill()
    newest = newest_edit(folder)
    following = times.get(newest + 1, killed_s)  # the first edit that is lost
    return killed_s - following


def main(words: Sequence[str] | None = None) -> int:
    """Kill as often as the command line says, and print what each time lost."""
    parser = argparse.ArgumentParser(description="Kill the window while a timeline is edited.")
    parser.add_argument("--times", type=int, default=5, help="how often (5)")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.child is not None:
        edit_until_killed(arguments.child)
        return 0
    most = 0.0
    with tempfile.TemporaryDirectory(prefix="kill-window-") as name:
        for turn in range(arguments.times):
            folder = Path(name) / str(turn)
            lost = lost_s(folder, 3.0 + 0.37 * turn)
            most = max(most, lost)
            sys.stdout.write(f"killed while editing: {lost:.2f} s of edits lost\n")
    sys.stdout.write(f"at most {most:.2f} s; {'good' if most <= MOST_LOST_S else f'more than {MOST_LOST_S:g} s'}\n")
    return int(most > MOST_LOST_S)


if __name__ == "__main__":
    sys.exit(main())
