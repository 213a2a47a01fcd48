"""The program is killed at some of the file operations of everything that it writes; the script itself tries all."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "packaging" / "kill_check.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_nothing_is_lost_and_no_part_stays_when_the_program_is_killed_while_it_writes() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", SCRIPT, "--every", "11"],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^(.*?) +(\d+) +(\d+) +(\d+)  (.*)$", done.stdout, re.M)
    assert {row[0] for row in rows} >= {"autosave", "settings", "session", "picture", "export", "animation", "convert"}
    assert all(int(row[1]) > 0 and row[4] == "whole, no parts left" for row in rows), done.stdout
