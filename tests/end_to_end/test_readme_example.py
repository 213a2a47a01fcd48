"""The README's lines for people who script do what they say."""

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


def first_python_block(text: str) -> str:
    found = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found is not None, "README.md shows the front door in a python block"
    return found.group(1)


def test_the_readmes_python_lines_run_on_the_bundled_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = first_python_block((ROOT / "README.md").read_text(encoding="utf-8"))
    assert 5 <= len([line for line in block.splitlines() if line.strip()]) <= 12
    shutil.copytree(ROOT / "assets" / "models", tmp_path / "assets" / "models")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(block, "README.md", "exec"), names)
    facts = names["renderer"].facts
    assert names["ws"].shape == (1, facts.num_ws, facts.w_dim)
    assert names["images"].shape == (1, facts.img_channels, facts.resolution, facts.resolution)
    assert next(iter(names["layers"])) == "synthesis.b4.conv1"
    assert names["pixels"].shape == (facts.resolution, facts.resolution, 3)
    assert np.ptp(names["pixels"]) > 0, "the picture shows something"
