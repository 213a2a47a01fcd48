"""A function or a script run in a process of its own: for what a test cannot survive, such as losing the GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_PATIENCE_S = 600.0
"""With a process that hangs, or that gets a tenth of a core."""
_RUN = """
import importlib, json, sys
module, name = sys.argv[1].split(":")
getattr(importlib.import_module(module), name)(*json.loads(sys.argv[2]))
"""


def run_alone(function: str, *arguments: Any, timeout_s: float = _PATIENCE_S) -> None:
    """Run ``"package.module:function"`` with arguments that JSON knows.

    Raises
    ------
    AssertionError
        If it fails, with what it printed.
    subprocess.TimeoutExpired
        If it hangs.
    """
    command = [sys.executable, "-c", _RUN, function, json.dumps(arguments)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def run_python(code: str, *, display: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script; without `display` it finds none. `environment` is added to that of the tests."""
    known = {name: value for name, value in os.environ.items() if display or not name.endswith("DISPLAY")}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=_ROOT,
        env={**known, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
