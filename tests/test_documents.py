"""README and ARCHITECTURE name files and folders; each of them is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLACES = (ROOT, ROOT / "gpu_backend", ROOT / "explorer_app")
"""A page may leave out the package that it speaks of."""

MADE = tuple(line for line in (ROOT / ".gitignore").read_text(encoding="utf-8").split() if line.endswith("/"))
"""What the program makes in the clone, and nobody commits."""

_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s#]+)")
_TICKS = re.compile(r"`([^`\s]+)`")
_PATH = re.compile(r"(?<![\w./:-])(?:[\w.-]+/)+(?:[\w.-]*\w)?")
_ENDINGS = (".py", ".sh", ".md", ".toml")


def named(page: str) -> set[str]:
    """Return the paths that a page names: in links, in backticks, and in drawings and listings between fences."""
    text = (ROOT / page).read_text(encoding="utf-8")
    fences = "\n".join(_FENCE.findall(text))
    prose = _FENCE.sub("", text)
    names = {name for name in _LINK.findall(prose) if "://" not in name}
    names |= {name for name in _TICKS.findall(prose) if "/" in name or name.endswith(_ENDINGS)}
    return names | set(_PATH.findall(fences))


def is_there(name: str) -> bool:
    """Return whether a path is in the repository; NAME stands for any name."""
    return any(next(place.glob(name.rstrip("/").replace("NAME", "*")), None) is not None for place in PLACES)


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md"])
def test_every_file_that_a_page_names_is_there(page: str) -> None:
    gone = sorted(name for name in named(page) if not name.startswith(MADE) and not is_there(name))
    assert gone == []


def test_names_are_found_in_links_in_words_and_in_drawings() -> None:
    assert {"assets/pictures/window.png", "assets/models/README.md", "LICENSE", "latentloom-demo/"} <= named(
        "README.md"
    )
    assert "assets/models/loom-landscapes-256.safetensors" in named("README.md")
    found = named("ARCHITECTURE.md")
    assert {"rendering/mailbox.py", "model/", "window/canvas/canvas.py", "ops/NAME.py", "tests/helpers"} <= found
    assert not is_there("rendering/gone.py")
