import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_backend import device, device_process_nbytes
from gpu_backend.cuda.driver import nvml
from gpu_backend.errors import DeviceError


class FakeNvml:
    """A driver with one GPU, which this process and another one use."""

    def __init__(self, processes: list[Any]) -> None:
        self.processes = processes
        self.started = 0

    def nvmlInit(self) -> None:  # noqa: N802 - the library's name
        self.started += 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        if uuid != "GPU-1":
            raise LookupError
        return uuid

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.started -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 2 if self.started else 0

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle: int) -> bytes | str:  # noqa: N802
        return (b"NVIDIA T4", "NVIDIA H200")[handle]  # older bindings return bytes

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:  # noqa: N802
        return 12_500

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[Any]:  # noqa: N802
        return self.processes


@pytest.fixture(autouse=True)
def forgets_handles() -> None:
    nvml._handle.cache_clear()


def process(pid: int, nbytes: int | None) -> Any:
    return SimpleNamespace(pid=pid, usedGpuMemory=nbytes)


def test_the_memory_of_this_process_alone_is_counted_and_the_library_started_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = FakeNvml([process(1, 5), process(os.getpid(), 707)])
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    assert nvml.process_nbytes_on("GPU-1") == nvml.process_nbytes_on("GPU-1") == 707
    assert fake.started == 1
    assert nvml.process_nbytes_on("MIG-2") == 0


@pytest.mark.parametrize("processes", [[], [process(1, 5)], [process(os.getpid(), None)]])
def test_values_missing_from_the_driver_are_unknown(monkeypatch: pytest.MonkeyPatch, processes: list[Any]) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(processes))
    assert nvml.process_nbytes_on("GPU-1") == 0


def test_a_device_is_queried_by_its_uuid_and_the_processor_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(name: str) -> Any:
        if name == "cuda:7":
            raise DeviceError("There is none.")
        return None if name == "cpu" else SimpleNamespace(uuid="GPU-1")

    monkeypatch.setattr(device, "choose_gpu", chosen)
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml([process(os.getpid(), 707)]))
    assert [device_process_nbytes(name) for name in ("cuda:0", "cpu", "cuda:7")] == [707, 0, 0]


def test_gpus_are_named_in_the_drivers_order_and_the_library_is_stopped_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeNvml([])
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    assert nvml.gpu_names() == ("NVIDIA T4", "NVIDIA H200")
    assert fake.started == 0


def test_energy_is_in_joules_and_unknown_for_other_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml([]))
    assert nvml.joules_of("GPU-1") == 12.5
    assert nvml.joules_of("MIG-2") is None
