"""The script that takes the README's first picture goes through with it."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, in a hurry."""
    spec = importlib.util.spec_from_file_location("window_picture", ROOT / "packaging" / "window_picture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.syspath_prepend(str(ROOT))
    spec.loader.exec_module(module)
    steps = list(module.tour(14))
    values = {"tour": lambda rows: steps[:1] + steps[-1:], "WALK_STEPS": 2, "STEP_S": 0.0, "THUMBNAILS_S": 0.0}
    for name, value in values.items():
        monkeypatch.setattr(module, name, value)
    return module


def test_a_picture_of_the_window_is_taken_in_the_light_with_an_error_said(
    script: ModuleType, qapp: QApplication, quiet_qt: None, tmp_path: Path
) -> None:
    target = tmp_path / "pictures" / "window.png"
    script.take_picture(qapp, target, mode="light", workspace="measure", state="error")
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    with Image.open(target) as taken, Image.open(ROOT / "assets" / "pictures" / "window.png") as shown:
        assert taken.size == shown.size == (script.WIDTH_PX, script.HEIGHT_PX)
        corner = taken.convert("L").getpixel((0, 0))
        assert isinstance(corner, int)
        assert corner > 128, "light"
        colours = taken.convert("RGB").getcolors(1 << 21)
        assert colours is not None
        assert len(colours) > 1000, "there is something in it"
