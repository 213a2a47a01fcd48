"""Progress reports of a training."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TrainProgress:
    """A report. Losses are means since the previous report, NaN in between; `augment_p` is 0 without augmentation."""

    step: int
    kimg: float
    total_kimg: float
    images_per_s: float
    left_s: float
    loss_g: float
    loss_d: float
    augment_p: float

    def text(self) -> str:
        """Return the report on one line."""
        p = f", augmentation {self.augment_p:.3f}" if self.augment_p else ""
        losses = f"; loss G {self.loss_g:.3f}, D {self.loss_d:.3f}{p}" if math.isfinite(self.loss_d) else ""
        return (
            f"{self.kimg:,.1f} of {self.total_kimg:,.1f} kimg, {self.images_per_s:,.1f} images/s, "
            f"{duration(self.left_s)} left{losses}"
        )


def duration(seconds: float) -> str:
    """Format a duration for display."""
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24:,} days {hours % 24} h"
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
