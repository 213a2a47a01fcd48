from pathlib import Path

import pytest

from explorer_app import assets
from gpu_backend import ModelFileError


def test_the_directions_beside_the_bundled_model_are_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assets, "_PLACES", (tmp_path,))
    (tmp_path / "hills.directions.safetensors").write_bytes(b"")
    with pytest.raises(ModelFileError, match="missing from this installation"):
        assets.bundled_model()
    (tmp_path / "hills.safetensors").write_bytes(b"")
    assert assets.bundled_model() == tmp_path / "hills.safetensors"
