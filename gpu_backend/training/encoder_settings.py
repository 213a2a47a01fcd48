"""Settings and reports of the training of an encoder: plain values, which need no torch."""

from __future__ import annotations

from dataclasses import dataclass

MAX_STEPS = 1_000_000


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """How long to train: steps, and the seed of samples, masks and weights."""

    steps: int = 3000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class EncoderReport:
    """State of a training.

    Attributes
    ----------
    step, steps
        Finished steps of all.
    pictures
        Rendered pictures.
    error
        Of w on pictures that are not trained on: 1 is that of the mean of w. NaN until it is measured.
    share
        Progress of this run, 0..1; the first pictures and the scales are a tenth of it each.
    is_done
        Nothing is left to do.
    probes, most_probes
        Finished backward passes of all that measure the scales of searches, after the last step; 0 before.
    """

    step: int
    steps: int
    pictures: int
    error: float
    share: float
    is_done: bool = False
    probes: int = 0
    most_probes: int = 0
