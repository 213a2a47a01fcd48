"""A model that has been read: arrays on the host, a spec, and what the file said about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from gpu_backend.model.draft_file import Readouts
from gpu_backend.model.model_facts import ModelFacts
from gpu_backend.model.named_directions import NamedDirections
from gpu_backend.model.spec import NetworkSpec
from gpu_backend.quick_dataclass import dataclass

Weights = Mapping[str, NDArray[np.float32]]
"""Official state-dict name (``"synthesis.b8.conv0.weight"``) to a contiguous float32 array."""


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Spec, weights and facts of one file, and what lies beside it: directions (or None) and draft readouts.

    `file_warnings` are those of the facts' warnings that are about the file itself, not about what lies beside it.
    """

    spec: NetworkSpec
    weights: Weights
    facts: ModelFacts
    directions: NamedDirections | None = None
    readouts: Readouts = field(default_factory=dict)
    file_warnings: tuple[str, ...] = ()

    @property
    def mean_w(self) -> NDArray[np.float32]:
        """The average of w, (w_dim,): over all classes where the model has one of each."""
        average = self.weights["mapping.w_avg"]
        return average if average.ndim == 1 else average.mean(axis=0)
