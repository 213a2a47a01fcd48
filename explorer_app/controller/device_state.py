"""The state of the devices, as the window shows it."""

from __future__ import annotations

from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.renderer_like import PROCESSOR_ID, DeviceLike, MemoryLike
from gpu_backend import dataclass


@dataclass(frozen=True, slots=True)
class Compiling:
    """Progress of compiling kernels for the chosen GPU, or of checking them there."""

    done: int
    total: int
    is_checking: bool = False

    @property
    def doing(self) -> str:
        """What is done, with the number of kernels: "compiling 14 kernels"."""
        verb = "checking" if self.is_checking else "compiling"
        return f"{verb} {'1 kernel' if self.total == 1 else f'{self.total} kernels'}"


@dataclass(frozen=True, slots=True)
class DeviceState:
    """The state of all devices.

    Attributes
    ----------
    choice
        What the user chose.
    devices
        All devices; empty until they have been looked for.
    device
        The device that renders now; None before a model is open.
    memory
        Memory that it uses.
    compiling
        Kernels that are being compiled or checked meanwhile.
    problem
        Why the chosen GPU does not render, in one sentence; empty if it does or none is chosen.
    """

    choice: DeviceChoice = DeviceChoice()
    devices: tuple[DeviceLike, ...] = ()
    device: DeviceLike | None = None
    memory: MemoryLike | None = None
    compiling: Compiling | None = None
    problem: str = ""

    @property
    def gpus(self) -> tuple[DeviceLike, ...]:
        """The GPUs that can be chosen."""
        return tuple(device for device in self.devices if device.id != PROCESSOR_ID)

    @property
    def is_on_gpu(self) -> bool:
        """Whether a GPU renders now."""
        return self.device is not None and self.device.id != PROCESSOR_ID

    @property
    def why_no_gpu(self) -> str:
        """Why no GPU can be chosen, in one sentence; empty if one can, or devices were not looked for yet."""
        processor = next((device for device in self.devices if device.id == PROCESSOR_ID), None)
        if processor is None or self.gpus:
            return ""
        why = processor.reason.removeprefix(f"{processor.name}: ")
        return f"{why[:1].upper()}{why[1:]}"

    @property
    def is_gpu_out_of_use(self) -> bool:
        """Whether a GPU driver is installed but no GPU can be used."""
        return bool(self.why_no_gpu) and any(device.driver for device in self.devices)

    @property
    def can_try_again(self) -> bool:
        """Whether a chosen GPU failed."""
        return bool(self.problem) and self.choice.wants_gpu

    @property
    def reason(self) -> str:
        """Why this device, in one sentence; empty before a model is open."""
        if self.device is None:
            return ""
        if self.compiling is not None:
            total = self.compiling.total
            kernels = "a kernel is" if total == 1 else f"{total} kernels are"
            done = "checked on" if self.compiling.is_checking else "compiled for"
            return f"Until {kernels} {done} {self._chosen_name}, {self.renders_meanwhile} renders."
        return self.problem or self.device.reason

    @property
    def renders_meanwhile(self) -> str:
        """What renders while kernels are compiled for the chosen GPU, as words of a sentence."""
        if self.device is None or not self.is_on_gpu:
            return "the CPU"
        return f"{self.device.name} ({self.device.precision})"

    @property
    def _chosen_name(self) -> str:
        named = [device.name for device in self.gpus if device.id == self.choice.device]
        return next(iter([*named, *(device.name for device in self.gpus)]), "the GPU")
