from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication

from gpu_backend import write_safetensors
from tests.helpers.networks import make_stylegan2
from tests.helpers.person import Person


@pytest.fixture(scope="session")
def small_network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a network of 32 x 32, for tests that ask how the program ends and not what it shows."""
    path = tmp_path_factory.mktemp("networks") / "small.safetensors"
    write_safetensors(make_stylegan2(resolution=32, seed=3), path)
    return path


@pytest.fixture
def sit_down(qapp: QApplication, tmp_path: Path, qtbot: Any, quiet_qt: None) -> Iterator[Callable[..., Person]]:
    """Makes people at the real program, each with the files that the one before left."""
    people: list[Person] = []

    def make(**parts: Any) -> Person:
        people.append(Person(qapp, tmp_path / "person", qtbot, **parts))
        return people[-1]

    yield make
    for person in people:
        person.close()
