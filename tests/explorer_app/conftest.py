"""Every test of the app."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication

from tests.helpers.patience import PatientQtBot


@pytest.fixture
def qtbot(qapp: QApplication, request: pytest.FixtureRequest) -> PatientQtBot:
    return PatientQtBot(request)
