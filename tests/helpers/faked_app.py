"""The program with a renderer that needs no torch, for tests of the rest in a process of its own."""

from __future__ import annotations

from typing import Any

import explorer_app.app
from tests.helpers.fake_renderer import Engine


class FakedApp(explorer_app.app.App):
    """Renders landscapes synchronously, on the CPU."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **{**settings, "backend": Engine()})
