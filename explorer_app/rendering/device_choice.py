"""Which device a person wants, and how exact it should be: a value, no Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Precision = Literal["fp16", "fp32"]


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """A wish; what renders in the end, and why, is for the renderer to say.

    Attributes
    ----------
    device
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
    precision
        Of the activations on a GPU; the processor renders in fp32 whatever is wished.
    """

    device: str = "auto"
    precision: Precision = "fp16"

    @property
    def wants_gpu(self) -> bool:
        """Whether a GPU may render."""
        return self.device != "cpu"


PROCESSOR = DeviceChoice("cpu", "fp32")
"""What goes on when no GPU can."""
