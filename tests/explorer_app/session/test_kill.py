"""A program that is killed at any line of a write: the former file or the new one is there, whole."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, sys, tempfile
from dataclasses import replace
from pathlib import Path

from explorer_app.session.history import KeptSession
from explorer_app.session.session import Position, Session
from explorer_app.session.storage import load_session_file, save_session
from gpu_backend import whole_file


def save(folder, x):
    session = Session(position=Position(x, 0.0))
    save_session(folder / "session.loom", session, (KeptSession(session, "kept"),), ((session, "Walk"),), 0)


def die_at_line(number):
    left = [number]

    def trace(frame, event, _):
        if frame.f_code.co_filename != whole_file.__file__:
            return None
        if event == "line":
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)


def in_child(task):
    child = os.fork()
    if child == 0:
        task()
        os._exit(0)
    return os.waitpid(child, 0)[1]


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    save(folder, 0.0)
    former, seen, lines = 0.0, set(), 0
    while True:
        new = former + 1.0

        def killed():
            whole_file._swept.clear()
            die_at_line(lines)
            save(folder, new)

        status = in_child(killed)
        found = load_session_file(folder / "session.loom")
        x = found.session.position.x
        assert x in (former, new), (lines, x)
        assert found.kept[0].session == found.steps[0][0] == found.session
        seen.add(x == new)
        former = x
        if not os.WIFSIGNALED(status):
            break
        lines += 1

    def clean():
        whole_file._swept.clear()
        save(folder, 5.0)

    assert in_child(clean) == 0
    assert [path.name for path in folder.iterdir()] == ["session.loom"], list(folder.iterdir())
    print(lines, sorted(seen))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="this system cannot fork")
def test_a_program_killed_at_any_line_of_a_write_leaves_a_whole_session_and_no_parts() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    lines, seen = done.stdout.split(" ", 1)
    assert int(lines) > 20
    assert seen.strip() == "[False, True]"
