"""README and ARCHITECTURE name files, folders, classes and layers; each of them is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from explorer_app.rendering.tasks.task import Priority

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


def words_of_the_code() -> set[str]:
    packages = (ROOT / name for name in ("gpu_backend", "explorer_app"))
    sources = (path for package in packages for path in package.rglob("*") if path.suffix in (".py", ".cu", ".cuh"))
    return {word for path in sources for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}


def test_every_class_and_function_that_architecture_names_is_in_the_code() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    ticked = (name for name in _TICKS.findall(_FENCE.sub("", text)) if not name.endswith(_ENDINGS))
    called = (name for name in ticked if re.fullmatch(r"[A-Za-z_]+(\.[a-z_]+)?(\(\))?", name) and "KEY" not in name)
    drawn = (word for fence in _FENCE.findall(text) for word in re.findall(r"\b[A-Z][a-z]+[A-Z]\w+", fence))
    found = {word for name in (*called, *drawn) for word in re.findall(r"\w+", name)}
    assert {"RenderTask", "KeptPictures", "submit_batch"} <= found
    assert sorted(found - words_of_the_code()) == []


def layers_in_contract(name: str) -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return next(list(contract["layers"]) for contract in contracts if contract["name"] == name)


def test_architecture_shows_the_layers_of_the_contracts() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    _, *lines = text.split("## Layers")[1].split("```")[1].strip("\n").splitlines()
    pairs = [re.fullmatch(r"  (\S.*?)?(?:\s{3,}(\S.*))?", line) for line in lines]
    shown = [[pair.group(side) for pair in pairs if pair is not None and pair.group(side)] for side in (1, 2)]
    assert shown == [layers_in_contract("Layers of the backend"), layers_in_contract("Layers of the app")]


def test_architecture_lists_the_tasks_of_the_render_thread_in_their_order() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([A-Z_]+(?:, [A-Z_]+)*) \|", text, re.MULTILINE)
    assert [name for row in rows for name in row.split(", ")] == [priority.name for priority in Priority]
