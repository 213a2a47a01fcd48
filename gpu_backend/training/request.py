"""What to train, where to put it, and how that ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class TrainRequest:
    """What to train and where to put it.

    Attributes
    ----------
    given
        Options of `TrainOptions` that were asked for; the rest comes from the checkpoint, or is as usual.
    resume
        A checkpoint, or a folder whose newest is meant; None begins anew.
    """

    out: Path
    given: Mapping[str, Any] = field(default_factory=dict)
    resume: Path | None = None
    device: str = "auto"


@dataclass(frozen=True, slots=True)
class TrainOutcome:
    """How a training ended: the pictures seen, whether it was stopped before its end, and the newest snapshot.

    Of several processes, only the first writes snapshots; the others have None.
    """

    pictures_seen: int
    was_stopped: bool
    snapshot: Path | None
