"""The script that compares encoders."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpu_backend import RenderRequest
from tests.helpers.fake_engine import SIDE_PX, fake_frame
from tests.helpers.packaging_script import packaging_script


def test_every_encoder_gets_a_line_for_each_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = packaging_script("encoder_times")
    frame = replace(fake_frame(RenderRequest("ab" * 32)), image=np.zeros((SIDE_PX, SIDE_PX, 3), np.float32))
    monkeypatch.setattr(script, "rendered", lambda: [frame])
    monkeypatch.setattr(script, "SIDES", (8, SIDE_PX))
    script.main(tmp_path / "encoders.csv")
    with (tmp_path / "encoders.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [line["encoder"] for line in lines] == [*script.encoders()] * 2
    assert all(float(line["kilobytes"]) > 0 for line in lines)
