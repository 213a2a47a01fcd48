"""Request and result of a training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class TrainRequest:
    """Request for a training.

    Attributes
    ----------
    given
        Given options of `TrainOptions`; the others come from the checkpoint or are defaults.
    resume
        A checkpoint, or a folder whose newest one is used; None starts a new training.
    """

    out: Path
    given: Mapping[str, Any] = field(default_factory=dict)
    resume: Path | None = None
    device: str = "auto"


@dataclass(frozen=True, slots=True)
class TrainOutcome:
    """Result of a training: the pictures seen, whether it was stopped early, and the newest snapshot.

    Of several processes, only the first writes snapshots; the others have None. `stop_signal` is the number of the
    signal that stopped this process, or 0.
    """

    pictures_seen: int
    was_stopped: bool
    snapshot: Path | None
    stop_signal: int = 0
