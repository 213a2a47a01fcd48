"""Facts of a benchmark run: time, package versions and commit."""

from __future__ import annotations

import platform
import shlex
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

_PACKAGES = ("latentloom", "torch", "numpy", "cuda-bindings", "nvidia-cuda-nvrtc", "triton", "matplotlib")
_GIT_S = 5.0


def date_now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def find_versions() -> dict[str, str]:
    """Return the versions of the installed packages that matter for a benchmark."""
    found = {"python": platform.python_version(), "system": platform.platform()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def find_commit() -> str:
    """Return the checked-out commit, with "+" if files differ from it; empty outside a checkout."""
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return ""
    commit = _git(root, "rev-parse", "HEAD")
    return commit + "+" if commit and _git(root, "status", "--porcelain", "--untracked-files=no") else commit


def _git(root: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, timeout=_GIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def without_folders(command: str) -> str:
    """Return a command line in which an absolute path is its last name only: others read reports too."""
    return shlex.join(_without_folder(word) for word in shlex.split(command))


def _without_folder(word: str) -> str:
    option, is_option, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return f"{option}{is_option}{Path(value).name if Path(value).is_absolute() else value}"


def plots_problem() -> str:
    """Return why plots cannot be drawn; empty if they can."""
    if find_spec("matplotlib") is None:
        return "matplotlib is not installed (pip install 'latentloom[bench]')"
    return ""
