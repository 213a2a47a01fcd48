"""Which device renders, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from gpu_backend.errors import DeviceError
from gpu_backend.model.model import Model
from gpu_backend.plan.executor import Executor

DeviceName = Literal["auto", "cpu", "cuda"]


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What the window says about the device.

    Attributes
    ----------
    name
        ``"CPU"``.
    precision
        Of the activations: ``"fp32"``.
    reason
        One sentence: why this device.
    """

    name: str
    precision: str
    reason: str


def check_device(device: str) -> None:
    """Raise DeviceError, with a sentence, if this version cannot render on a device of that name."""
    if device not in get_args(DeviceName):
        raise DeviceError(f"The device must be one of {', '.join(get_args(DeviceName))}, but {device!r} came.")
    if device == "cuda":
        raise DeviceError("A CUDA device was asked for, but this version renders on the CPU; choose auto or cpu.")


def make_executor(model: Model) -> Executor:
    """Return an executor for a model's plans."""
    # Imported here: torch takes a second to load, which opening a window or reading a file need not wait for.
    from gpu_backend.cpu.executor import CpuExecutor

    return CpuExecutor(model.weights)


def facts_of(executor: Executor) -> DeviceFacts:
    """Return what to say about an executor."""
    return DeviceFacts(
        name=executor.device_name,
        precision=executor.precision,
        reason=f"{executor.device_name}: this version renders on the processor.",
    )
