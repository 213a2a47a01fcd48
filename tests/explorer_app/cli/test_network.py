"""The network that a command renders with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from explorer_app.cli import network
from explorer_app.cli.console import Console
from explorer_app.session.direction_files import DirectionFiles
from gpu_backend import DirectionSearch, Model, RowRange
from gpu_backend.training.directions.search import find_directions
from tests.helpers.fake_renderer import fake_model


def test_directions_that_a_person_found_in_the_window_are_there_in_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, own = tmp_path / "cats.pkl", tmp_path / "own"
    model = fake_model(path)
    search = DirectionSearch("sefa", "mine", RowRange(0, 2), 2)
    found = find_directions(search, SimpleNamespace(facts=model.facts, model=model))
    DirectionFiles(own, bundled=path).add(model.facts, found)
    monkeypatch.setattr(DirectionFiles, "default_folder", staticmethod(lambda: own))
    monkeypatch.setattr(network, "read_model", lambda path, progress: fake_model(path))
    read = network.read_network(path, Console())
    assert read.facts.named_directions == ("mine/0", "mine/1")


def test_reading_a_network_reports_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_model(path: Path, progress: Callable[[int, int], None]) -> Model:
        for done, total in ((0, 0), (1, 3), (3, 3)):
            progress(done, total)
        return fake_model(path)

    said: list[str] = []
    console = Console()
    monkeypatch.setattr(console, "status", said.append)
    monkeypatch.setattr(network, "read_model", read_model)
    network.read_network(tmp_path / "cats.pkl", console)
    assert said == ["Reading cats.pkl: 0 %", "Reading cats.pkl: 33 %", "Reading cats.pkl: 100 %"]
