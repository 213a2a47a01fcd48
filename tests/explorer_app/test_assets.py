from pathlib import Path

import pytest

from explorer_app import assets
from gpu_backend import ModelFileError


def test_the_directions_beside_the_bundled_model_are_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assets, "_PLACES", (tmp_path,))
    models = tmp_path / "models"
    models.mkdir()
    (models / "hills.directions.safetensors").write_bytes(b"")
    with pytest.raises(ModelFileError, match="missing from this installation"):
        assets.bundled_model()
    (models / "hills.safetensors").write_bytes(b"")
    assert assets.bundled_model() == models / "hills.safetensors"


def test_the_fonts_come_with_their_licence() -> None:
    files = assets.font_files()
    assert [path.name for path in files] == ["InterLoom-Regular.ttf", "InterLoom-SemiBold.ttf"]
    assert "SIL OPEN FONT LICENSE" in (files[0].parent / "OFL.txt").read_text(encoding="utf-8")


def test_an_installation_without_fonts_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "_PLACES", (tmp_path,))
    assert assets.font_files() == ()
