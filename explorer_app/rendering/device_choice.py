"""The device and precision that a user chose: a value, no Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Precision = Literal["fp16", "fp32"]


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """A choice; `RendererLike.device` is the device that renders in the end, with the reason.

    Attributes
    ----------
    device
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
    precision
        Of the activations on a GPU; the CPU always renders in fp32.
    """

    device: str = "auto"
    precision: Precision = "fp16"

    @property
    def wants_gpu(self) -> bool:
        """Whether a GPU may render."""
        return self.device != "cpu"


PROCESSOR = DeviceChoice("cpu", "fp32")
"""The fallback when no GPU can render."""
