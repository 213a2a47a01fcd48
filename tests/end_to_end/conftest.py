from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication

from tests.helpers.person import Person


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
