"""Which GPUs this process can use, and in one sentence why not.

Everything that would call the driver checks here first: some driver calls never return where there is no driver. The
answer is found once. A separate thread calls the driver, so that a driver that never answers costs a wait and not the
program.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from gpu_backend.cuda.driver.installed_system import FoundGpu, InstalledSystem, MultiprocessorLimits
from gpu_backend.errors import DeviceError
from gpu_backend.quick_dataclass import dataclass

_NEEDED_CUDA = (13, 0)
_NEEDED_DRIVER = "580"
_OLDEST = (7, 5)
_PATIENCE_S = 30.0
_SUCCESS = "CUDA_SUCCESS"

_Answer = TypeVar("_Answer")

_asking = threading.Lock()


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that can run our kernels.

    Attributes
    ----------
    index
        The driver's number for it.
    architecture
        Compute capability: ``"sm_90"``.
    compile_architecture
        What kernels are compiled for: ``"sm_90a"`` where the architecture has architecture-specific instructions.
    shared_nbytes_per_block_optin
        Largest shared memory of a block that opts in.
    uuid
        As the driver's own tools write it: ``"GPU-..."``.
    clock_khz, memory_clock_khz, memory_bus_bits
        Maximum clocks and width of the memory bus; 0 where the driver does not report them.
    limits
        What a multiprocessor has for its blocks; None if unknown.
    """

    index: int
    name: str
    architecture: str
    compile_architecture: str
    memory_nbytes: int
    multiprocessors: int
    shared_nbytes_per_block_optin: int
    l2_nbytes: int
    uuid: str
    threads_per_multiprocessor: int = 2048
    clock_khz: int = 0
    memory_clock_khz: int = 0
    memory_bus_bits: int = 0
    limits: MultiprocessorLimits | None = None

    @property
    def id(self) -> str:
        """Device id: ``"cuda:0"``."""
        return f"cuda:{self.index}"


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found. `problem` is one sentence, empty if there is a GPU to use.

    `driver` and `nvrtc` are versions, empty where unknown: ``"580.95.05"``, ``"13.0"``. NVRTC's is unknown, too, where
    the driver did not start.
    """

    gpus: tuple[Gpu, ...]
    problem: str
    driver: str
    nvrtc: str


class System(Protocol):
    """Requests to the probe. Neither the driver nor NVRTC is queried if the driver did not start."""

    def initialise(self) -> str:
        """Start the driver; return its word for how that went, ``"CUDA_SUCCESS"`` if well.

        Raises
        ------
        ImportError
            If a package is missing.
        Exception
            Of any kind if there is no driver.
        """
        ...

    def driver_version(self) -> str:
        """Version of the installed driver; empty if unknown."""
        ...

    def cuda_version(self) -> tuple[int, int]:
        """Newest CUDA that the driver runs."""
        ...

    def nvrtc(self) -> tuple[tuple[int, int], tuple[int, ...]]:
        """Version of NVRTC and the architectures that it compiles for; an exception of any kind if it is not there."""
        ...

    def gpus(self) -> tuple[FoundGpu, ...]:
        """All GPUs."""
        ...


def probe() -> Probe:
    """Return what this machine has. Calls the driver at the first call only, from however many threads."""
    with _asking:
        return _probe_once()


@functools.cache
def _probe_once() -> Probe:
    return probe_system(InstalledSystem(), patience_s=_PATIENCE_S)


def probe_system(system: System, *, patience_s: float) -> Probe:
    """Query a system, waiting no longer than `patience_s`."""
    answers: list[Probe] = []
    thread = threading.Thread(target=lambda: answers.append(_ask(system)), name="gpu probe", daemon=True)
    thread.start()
    thread.join(patience_s)
    if answers:
        return answers[0]
    problem = f"The NVIDIA driver did not answer within {patience_s:.0f} s; restart the computer."
    return Probe((), problem, "", "")


def _ask(system: System) -> Probe:
    driver = nvrtc = ""

    def none(problem: str) -> Probe:
        return Probe((), problem, driver, nvrtc)

    try:
        outcome = system.initialise()
    except ImportError as error:
        return none(f"The GPU needs the package cuda-bindings, but {error.name or error} is missing.")
    except Exception:
        return none("No NVIDIA driver was found; install driver 580 or newer to use an NVIDIA GPU.")
    driver = _quietly(system.driver_version, "")
    called = f"driver {driver}" if driver else "driver"
    if outcome == "CUDA_ERROR_NO_DEVICE":
        return none(f"The NVIDIA {called} is installed, but it shows no GPU to this program.")
    cuda = _quietly(system.cuda_version, None)
    if cuda is not None and cuda < _NEEDED_CUDA:
        return none(
            f"CUDA {_NEEDED_CUDA[0]} needs NVIDIA driver {_NEEDED_DRIVER} or newer, but the installed {called} knows "
            f"CUDA {cuda[0]}.{cuda[1]}; update the driver."
        )
    if outcome != _SUCCESS:
        return none(f"The NVIDIA {called} did not start ({outcome}); restart the computer or update the driver.")
    compiler = _quietly(system.nvrtc, None)
    if compiler is None:
        return none("NVRTC, which compiles the GPU's kernels, was not found; install cuda-toolkit[nvrtc].")
    nvrtc = f"{compiler[0][0]}.{compiler[0][1]}"
    try:
        found = system.gpus()
    except Exception as error:
        return none(f"The NVIDIA {called} does not describe its GPUs ({error}); restart the computer.")
    gpus = tuple(gpu for gpu in (_usable(item, compiler[1]) for item in found) if gpu is not None)
    return Probe(gpus, "" if gpus else _why_unusable(found, nvrtc, called), driver, nvrtc)


def gpu_called(gpus: Sequence[Gpu], name: str) -> Gpu:
    """Return the GPU that a device name selects, of at least one.

    Parameters
    ----------
    name
        ``"cuda:1"``; ``"auto"`` and ``"cuda"`` are the first.

    Raises
    ------
    DeviceError
        If there is no GPU of that name; the sentence lists the available ones.
    """
    if name in ("auto", "cuda"):
        return gpus[0]
    for gpu in gpus:
        if name == gpu.id:
            return gpu
    there_are = ", ".join(f"{gpu.id} ({gpu.name})" for gpu in gpus)
    raise DeviceError(f"The GPU must be one of {there_are}, but {name} was requested.")


def compile_capability(capability: tuple[int, int], known: tuple[int, ...]) -> tuple[int, int] | None:
    """Return what to compile for: the GPU's own number, or the nearest below of its family; None if there is none.

    Machine code runs on later GPUs of the same major number.
    """
    major, minor = capability
    fitting = [number for number in known if number // 10 == major and number % 10 <= minor]
    return divmod(max(fitting), 10) if fitting else None


def _usable(found: FoundGpu, known: tuple[int, ...]) -> Gpu | None:
    if found.capability < _OLDEST:
        return None
    compiled = compile_capability(found.capability, known)
    if compiled is None:
        return None
    name = _architecture(compiled)
    return Gpu(
        index=found.index,
        name=found.name,
        architecture=_architecture(found.capability),
        compile_architecture=compile_architecture(name),
        memory_nbytes=found.memory_nbytes,
        multiprocessors=found.multiprocessors,
        shared_nbytes_per_block_optin=found.shared_nbytes_per_block_optin,
        l2_nbytes=found.l2_nbytes,
        uuid=found.uuid,
        threads_per_multiprocessor=found.threads_per_multiprocessor,
        clock_khz=found.clock_khz,
        memory_clock_khz=found.memory_clock_khz,
        memory_bus_bits=found.memory_bus_bits,
        limits=found.limits,
    )


def compile_architecture(architecture: str) -> str:
    """Return what kernels are compiled for on an architecture: ``"sm_90a"`` for ``"sm_90"``."""
    return "sm_90a" if architecture == "sm_90" else architecture


def _why_unusable(found: tuple[FoundGpu, ...], nvrtc: str, called: str) -> str:
    if not found:
        return f"The NVIDIA {called} is installed, but it shows no GPU to this program."
    best = max(found, key=lambda gpu: gpu.capability)
    if best.capability < _OLDEST:
        return (
            f"A GPU of architecture {_architecture(_OLDEST)} (Turing, 2018) or newer is needed, but {best.name} is "
            f"{_architecture(best.capability)}."
        )
    return (
        f"{best.name} has the architecture {_architecture(best.capability)}, which NVRTC {nvrtc} does not know; update "
        "nvidia-cuda-nvrtc."
    )


def _architecture(capability: tuple[int, int]) -> str:
    return f"sm_{capability[0]}{capability[1]}"


def _quietly(ask: Callable[[], _Answer], otherwise: _Answer) -> _Answer:
    with contextlib.suppress(Exception):
        return ask()
    return otherwise
