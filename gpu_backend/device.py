"""Selection of the device that renders, with the reason for the choice.

Device names: ``"auto"`` is the first usable GPU, else the CPU; ``"cuda"`` the first usable GPU; ``"cuda:1"`` the GPU of
that number; ``"cpu"`` the CPU. `gpu_backend.cuda.driver.probe` looks for GPUs once. Other CUDA modules are imported
only if it finds one.
"""

from __future__ import annotations

import contextlib
import platform
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from gpu_backend.errors import DeviceError
from gpu_backend.model.draft_file import draft_weights
from gpu_backend.model.model import Model
from gpu_backend.ops.kernels.e4m3 import NEEDS, multiplies_e4m3
from gpu_backend.plan.executor import Executor
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.fusion import multiplies_fp8
from gpu_backend.plan.plan import PlanKey, Precision
from gpu_backend.quick_dataclass import dataclass
from gpu_backend.torch_import import torch_needed

if TYPE_CHECKING:
    from gpu_backend.cuda.driver.probe import Gpu, Probe

CPU_ID = "cpu"
_NAMES = re.compile(r"auto|cpu|cuda(:[0-9]{1,3})?")
_ARTICLES = ("A", "No", "The")


@dataclass(frozen=True, slots=True)
class Roofline:
    """Roofline of a GPU: its peak rates.

    Attributes
    ----------
    copy_bytes_per_s
        Memory bandwidth of a copy, bytes read plus bytes written per second.
    matrix_flop_per_s
        Floating-point operations per second of the tensor cores, at the precision in use.
    is_measured
        Measured on this GPU; otherwise computed from device attributes.
    """

    copy_bytes_per_s: float
    matrix_flop_per_s: float
    is_measured: bool


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """Description of a device for display.

    Attributes
    ----------
    name
        ``"CPU"``, ``"NVIDIA H200"``.
    precision
        ``"fp16"``, ``"fp8"`` (fp16, but some layers multiply e4m3), ``"tf32"`` (fp32 activations, of which tensor
        cores multiply 10 bits of fraction), ``"bf16x3"`` (16 bits) or ``"fp32"``.
    reason
        One sentence: why this device.
    id
        Name that selects it: ``"cpu"``, ``"cuda:0"``.
    architecture, driver
        ``"sm_90"``, ``"580.95.05"``; empty for the CPU (but see `find_devices`).
    memory_nbytes, multiprocessors
        0 for the CPU.
    roofline
        None if unknown.
    """

    name: str
    precision: Precision
    reason: str
    id: str = CPU_ID
    architecture: str = ""
    driver: str = ""
    memory_nbytes: int = 0
    multiprocessors: int = 0
    roofline: Roofline | None = None


def find_devices() -> tuple[DeviceFacts, ...]:
    """Return the available devices: the usable GPUs in the driver's order, then the CPU.

    Without a usable GPU, the CPU's `reason` says why, and its `driver` is the installed NVIDIA driver, if any.
    """
    found = _probe()
    gpus = tuple(_gpu_facts(gpu, found.driver, "fp16", f"{gpu.name}: it can run the kernels.") for gpu in found.gpus)
    if gpus:
        return (*gpus, _cpu_facts("it is always available."))
    return (replace(_cpu_facts(_after_colon(found.problem)), driver=found.driver),)


def check_device(device: str, precision: str = "fp16") -> None:
    """Check the names of a device and a precision.

    Raises
    ------
    DeviceError
        If there is no device or no precision of that name.
    TypeError
        If the device is not a name.
    """
    if precision not in get_args(Precision):
        raise DeviceError(f"The precision must be one of {', '.join(get_args(Precision))}, not {precision[:40]!r}.")
    choose_gpu(device)


def choose_gpu(device: str) -> Gpu | None:
    """Return the GPU of a device name, None for the CPU.

    Raises
    ------
    DeviceError
        If the name is invalid, or there is no such GPU.
    TypeError
        If it is not a name, such as the number of a GPU.
    """
    given: object = device
    if not isinstance(given, str):
        raise TypeError(f"A device is a name like 'auto', 'cpu' or 'cuda:1', not {given!r:.40}.")
    if not _NAMES.fullmatch(device):
        raise DeviceError(f"The device must be one of auto, cpu, cuda, cuda:0, cuda:1, ..., not {device[:40]!r}.")
    if device == CPU_ID:
        return None
    found = _probe()
    if not found.gpus:
        if device == "auto":
            return None
        raise DeviceError(f"A GPU was requested, but none can be used: {_after_colon(found.problem)}")
    from gpu_backend.cuda.driver.probe import gpu_called

    return gpu_called(found.gpus, device)


def make_executor(model: Model, device: str = "auto", precision: Precision = "fp16") -> tuple[Executor, DeviceFacts]:
    """Return an executor for a model's plans, and the facts of its device.

    Parameters
    ----------
    device
        See the module docstring. With ``"auto"``, a GPU that cannot be initialised is replaced by the CPU, and the
        reason says so.
    precision
        Of the activations on a GPU; the CPU always computes in single precision. fp16 takes the place of fp8 where
        `usable_precision` says so.

    Raises
    ------
    DeviceError
        If there is no such device or precision, or the device cannot be initialised.
    """
    check_device(device, precision)
    gpu = choose_gpu(device)
    if gpu is None:
        return _cpu_executor(model), _cpu_facts("it was chosen." if device == CPU_ID else _why_no_gpu())
    usable, why = usable_precision(model, gpu, precision)
    try:
        executor = _cuda_executor(model, gpu.index, usable)
    except DeviceError as error:
        if device != "auto":
            raise
        return cpu_instead(model, error)
    reason = "it is the first GPU that can run the kernels." if device in ("auto", "cuda") else "it was chosen."
    if why:
        reason = f"{reason.rstrip('.')}, in {usable}: {why}."
    return executor, _gpu_facts(gpu, _probe().driver, usable, f"{gpu.name}: {reason}")


def usable_precision(model: Model, gpu: Gpu, precision: Precision) -> tuple[Precision, str]:
    """Return the precision that a GPU renders a model in, and why it is another one; empty if it is not.

    fp8 is for GPUs that have kernels for it, and networks that have layers for it: StyleGAN2s and 3s of 64 x 64 and
    more.
    """
    if precision != "fp8":
        return precision, ""
    if not multiplies_e4m3(gpu.compile_architecture):
        return "fp16", NEEDS
    key = PlanKey(model.facts.model_id, "synthesis", 1, model.spec.resolution, precision)
    if not multiplies_fp8(build_plan(model.spec, key)):
        return "fp16", "this network has no layers for fp8"
    return precision, ""


def device_process_nbytes(device: str) -> int:
    """Return the memory that this process holds on a GPU, in bytes; 0 for the CPU and if unknown.

    Unlike `MemoryFacts` it includes the driver's context, kernels and libraries. Never raises.
    """
    try:
        gpu = choose_gpu(device)
    except DeviceError:
        return 0
    if gpu is None:
        return 0
    from gpu_backend.cuda.driver.nvml import process_nbytes_on

    return process_nbytes_on(gpu.uuid)


def device_joules(device: str) -> float | None:
    """Return the energy that a GPU used since its driver was loaded, in joules; None for the CPU and if unknown.

    The counter moves every 20 to 100 ms. Never raises.
    """
    with contextlib.suppress(DeviceError):
        gpu = choose_gpu(device)
        if gpu is not None:
            from gpu_backend.cuda.driver.nvml import joules_of

            return joules_of(gpu.uuid)
    return None


def keep_roofline(device: str, copy_bytes_per_s: float, flop_per_s: Mapping[str, float]) -> None:
    """Record measured rates of a device, operations per second by precision; `find_devices` returns them from now."""
    gpu = choose_gpu(device)
    if gpu is not None:
        from gpu_backend.cuda.timing.roofline import keep_measured_rates

        keep_measured_rates(gpu, copy_bytes_per_s, flop_per_s)


def cpu_instead(model: Model, error: DeviceError) -> tuple[Executor, DeviceFacts]:
    """Return the CPU executor after a GPU has failed; the reason describes the failure."""
    return _cpu_executor(model), _cpu_facts(_after_colon(error.sentence))


def facts_of(executor: Executor) -> DeviceFacts:
    """Return the facts of a custom executor."""
    name = executor.device_name
    return DeviceFacts(name, executor.precision, f"{name}: it was chosen.", CPU_ID if name == "CPU" else "cuda:0")


def processor_name() -> str:
    """Return the name of the processor from the system; Python's `platform` gives little on Linux."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cuda_executor(model: Model, index: int, precision: Precision) -> Executor:
    # Imported here, because these modules may call the driver.
    from gpu_backend.cuda.executor import CudaExecutor

    return CudaExecutor(model, index, precision)


def _cpu_executor(model: Model) -> Executor:
    # Imported here, because torch takes a second to load, and neither the window nor reading a file needs it.
    with torch_needed("Rendering on the CPU"):
        from gpu_backend.cpu.executor import CpuExecutor

    return CpuExecutor({**model.weights, **draft_weights(model.readouts, model.weights)})


def _probe() -> Probe:
    from gpu_backend.cuda.driver.probe import probe

    return probe()


def _why_no_gpu() -> str:
    return _after_colon(_probe().problem)


def _cpu_facts(reason: str) -> DeviceFacts:
    return DeviceFacts("CPU", "fp32", f"CPU: {reason}")


def _gpu_facts(gpu: Gpu, driver: str, precision: Precision, reason: str) -> DeviceFacts:
    return DeviceFacts(
        name=gpu.name,
        precision=precision,
        reason=reason,
        id=gpu.id,
        architecture=gpu.architecture,
        driver=driver,
        memory_nbytes=gpu.memory_nbytes,
        multiprocessors=gpu.multiprocessors,
        roofline=_roofline_of(gpu, precision),
    )


def _roofline_of(gpu: Gpu, precision: Precision) -> Roofline | None:
    from gpu_backend.cuda.timing.roofline import measured_rates, theoretical_rates

    measured = measured_rates(gpu, precision)
    rates = measured or theoretical_rates(gpu, precision)
    return None if rates is None else Roofline(*rates, is_measured=measured is not None)


def _after_colon(sentence: str) -> str:
    """Return a sentence for use after a colon: with a lower-case first letter where it is not a name."""
    first = sentence.split(" ", 1)[0]
    return sentence[:1].lower() + sentence[1:] if first in _ARTICLES else sentence
