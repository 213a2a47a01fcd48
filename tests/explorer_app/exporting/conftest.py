"""A sequence to export, and its files as an undisturbed run leaves them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.session.session import ModelReference
from tests.helpers.sequence_exports import Folder, content, export, key


@pytest.fixture
def wanted(tmp_path: Path) -> SequenceSettings:
    return SequenceSettings(
        keys=(key(1), key(2), key(3)),
        folder=tmp_path / "out",
        name="walk",
        model=ModelReference("/models/m.pkl", "m", "ab" * 32),
        kind="w-cubic",
        frames_per_step=2,
    )


@pytest.fixture
def undisturbed(wanted: SequenceSettings, tmp_path: Path) -> Folder:
    export(replace(wanted, folder=tmp_path / "undisturbed"))
    return content(tmp_path / "undisturbed")
