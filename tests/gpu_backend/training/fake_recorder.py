"""What captures work, made of Python: a replay runs the work and puts its metrics where they were before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpu_backend.training.replay import Noted


class FakeRecorder:
    """Notes what happens in `events`; like graphs that share memory, a replay spoils the metrics of all others."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self._metrics: list[Noted] = []
        self._is_beside = False

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Note that work may come."""
        self._is_beside = True
        yield
        self._is_beside = False

    def record(self, work: Callable[[], Noted]) -> tuple[Callable[[], None], Noted]:
        """Do nothing but note it."""
        assert self._is_beside
        name = getattr(work, "__name__", "work").strip("_")
        self.events.append(f"capture {name}")
        metrics: Noted = {}
        self._metrics.append(metrics)

        def replay() -> None:
            assert self._is_beside
            self.events.append(f"replay {name}")
            for noted in self._metrics:
                for value in noted.values():
                    value.fill_(math.nan)
            for key, value in work().items():
                metrics.setdefault(key, value.clone()).copy_(value)

        return replay, metrics
