"""The training command, with progress output. torch is loaded only when training starts."""

from __future__ import annotations

import sys
from collections.abc import Callable

from gpu_backend.torch_import import torch_needed
from gpu_backend.training.options import WORLD, check_data
from gpu_backend.training.request import TrainOutcome, TrainRequest


def run_training(request: TrainRequest, say: Callable[[str], None], progress: Callable[[str], None]) -> TrainOutcome:
    """Run a training request; `say` receives notes, `progress` a progress line now and then.

    Raises
    ------
    LoomError
        If options, data, device, checkpoint or folder are invalid, or training diverges.
    """
    check_data(str(request.given.get("data", WORLD)))
    if "torch" not in sys.modules:  # takes seconds on a slow machine
        say("Loading PyTorch.")
    with torch_needed("Training"):
        from gpu_backend.training.loop import train

    return train(request, say, lambda report: progress(report.text()))
