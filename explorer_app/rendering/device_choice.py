"""The device and precision that a user chose: a value, no Qt."""

from __future__ import annotations

from typing import Literal, get_args

from gpu_backend import dataclass

Precision = Literal["fp16", "fp8", "tf32", "bf16x3", "fp32"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """A choice; `RendererLike.device` is the device that renders in the end, with the reason.

    Attributes
    ----------
    device
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
    precision
        On a GPU: fp16; fp8, which multiplies 8-bit numbers in large layers; tf32, which keeps activations in fp32 and
        multiplies 10 bits of their fraction; bf16x3, which multiplies 16 bits; or exact fp32. The CPU always renders
        in fp32.
    """

    device: str = "auto"
    precision: Precision = "fp16"

    @property
    def wants_gpu(self) -> bool:
        """Whether a GPU may render."""
        return self.device != "cpu"


def precision_of(text: str | None) -> Precision:
    """Return a precision by its name; the fast one for any other text."""
    return next((known for known in PRECISIONS if known == text), "fp16")


PROCESSOR = DeviceChoice("cpu", "fp32")
"""The fallback when no GPU can render."""
