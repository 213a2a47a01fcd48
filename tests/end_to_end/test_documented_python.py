"""The programs of the pages in docs/ run as they are written."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gpu_backend import read_latent, write_safetensors
from tests.helpers.networks import make_stylegan2

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the model and the photo that the pages name."""
    write_safetensors(make_stylegan2(resolution=128, channel_base=512, channel_max=4), tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").rename(tmp_path / "model.pkl")  # the content of a file decides its type
    pixels = np.random.default_rng(0).integers(0, 255, (40, 50, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names_after(page: str) -> dict[str, Any]:
    """Run the Python blocks of a page one after the other, and return what they name."""
    names: dict[str, Any] = {"__name__": "documented"}
    blocks = re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    return names


def test_the_page_for_python_programs(folder: Path) -> None:
    names = names_after("python.md")
    assert names["pixels"].shape == (128, 128, 3)
    np.testing.assert_allclose(names["same_rows"], names["rows"], atol=1e-5)
    assert names["video"].shape == (12, 128, 128, 3)
    assert len({step.tobytes() for step in names["steps"]}) == 5, "a direction changes the picture"
    assert names["images"].shape == (2, 3, 128, 128)
    assert next(iter(names["statistics"])) == "synthesis.b4.conv1"
    assert names["values"].shape == (128, 128)
    assert names["bent"].pixels.tobytes() != names["frame"].pixels.tobytes()
    assert read_latent(folder / "photo.npz") == names["found"]
    assert names["again"].shape == (1, 3, 128, 128)


@pytest.mark.usefixtures("folder")
def test_the_drag_of_the_page_about_editing() -> None:
    names = names_after("editing.md")
    assert names["latent"].to_array().shape == names["rows"].shape
    assert not np.array_equal(names["latent"].to_array(), names["rows"])
