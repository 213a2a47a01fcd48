from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from gpu_backend.cuda.driver import probe as probe_module
from gpu_backend.cuda.driver.installed_system import FoundGpu
from gpu_backend.cuda.driver.probe import Gpu, Probe, compile_capability, probe_system

_KNOWN = (75, 80, 86, 89, 90, 100, 120)
_H200 = FoundGpu(0, "NVIDIA H200", (9, 0), 140 << 30, 132, 232448, 50 << 20, "GPU-0")


@dataclass
class FakeSystem:
    """Answers as it is told; an exception among the answers is raised."""

    outcome: str | Exception = "CUDA_SUCCESS"
    driver: str | Exception = "580.95.05"
    cuda: tuple[int, int] | Exception = (13, 0)
    compiler: tuple[tuple[int, int], tuple[int, ...]] | Exception = ((13, 0), _KNOWN)
    found: tuple[FoundGpu, ...] | Exception = (_H200,)
    calls: list[str] = field(default_factory=list)

    def initialise(self) -> str:
        return self._answer("initialise", self.outcome)

    def driver_version(self) -> str:
        return self._answer("driver_version", self.driver)

    def cuda_version(self) -> tuple[int, int]:
        return self._answer("cuda_version", self.cuda)

    def nvrtc(self) -> tuple[tuple[int, int], tuple[int, ...]]:
        return self._answer("nvrtc", self.compiler)

    def gpus(self) -> tuple[FoundGpu, ...]:
        return self._answer("gpus", self.found)

    def _answer(self, name: str, answer: Any) -> Any:
        self.calls.append(name)
        if isinstance(answer, Exception):
            raise answer
        return answer


def is_one_sentence(text: str) -> bool:
    return text.endswith(".") and ". " not in text and text.isprintable()


def ask(**answers: Any) -> Probe:
    return probe_system(FakeSystem(**answers), patience_s=5)


def test_a_gpu_is_described_with_what_kernels_are_compiled_for() -> None:
    found = ask()
    assert found.problem == ""
    assert (found.driver, found.nvrtc) == ("580.95.05", "13.0")
    (gpu,) = found.gpus
    assert (gpu.architecture, gpu.compile_architecture) == ("sm_90", "sm_90a")
    assert (gpu.multiprocessors, gpu.shared_nbytes_per_block_optin) == (132, 232448)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"outcome": ImportError("no module", name="cuda")}, ("cuda-bindings", "cuda is missing")),
        ({"outcome": RuntimeError("libcuda.so.1: cannot open")}, ("No NVIDIA driver", "580")),
        ({"outcome": "CUDA_ERROR_NO_DEVICE"}, ("580.95.05", "no GPU")),
        ({"cuda": (12, 8), "driver": "570.86"}, ("580 or newer", "570.86", "12.8", "update")),
        ({"cuda": (12, 8), "outcome": "CUDA_ERROR_UNKNOWN"}, ("580 or newer", "update")),
        ({"outcome": "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"}, ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "restart")),
        ({"compiler": RuntimeError("not found")}, ("NVRTC", "install")),
        ({"found": RuntimeError("CUDA_ERROR_UNKNOWN")}, ("CUDA_ERROR_UNKNOWN", "restart")),
        ({"found": ()}, ("no GPU",)),
        ({"found": (replace(_H200, name="Tesla V100", capability=(7, 0)),)}, ("Tesla V100", "sm_70", "sm_75")),
        ({"found": (replace(_H200, name="R200", capability=(13, 0)),)}, ("R200", "sm_130", "NVRTC 13.0", "update")),
    ],
)
def test_an_obstacle_is_named_in_one_sentence(answers: dict[str, Any], words: tuple[str, ...]) -> None:
    found = ask(**answers)
    assert found.gpus == ()
    assert is_one_sentence(found.problem), found.problem
    for word in words:
        assert word in found.problem


def test_nothing_that_needs_it_calls_a_driver_that_did_not_start() -> None:
    system = FakeSystem(outcome=RuntimeError("no driver"))
    probe_system(system, patience_s=5)
    assert system.calls == ["initialise"]


def test_an_unknown_driver_version_is_no_obstacle() -> None:
    found = ask(driver=RuntimeError("no NVML"))
    assert found.problem == ""
    assert found.driver == ""


def test_a_gpu_too_old_stands_back_behind_one_that_is_not() -> None:
    old = replace(_H200, index=0, capability=(6, 1))
    found = ask(found=(old, replace(_H200, index=1)))
    assert [gpu.index for gpu in found.gpus] == [1]
    assert found.problem == ""


def test_a_driver_that_never_answers_costs_a_wait_only() -> None:
    over = threading.Event()

    class Hanging(FakeSystem):
        def initialise(self) -> str:
            over.wait(30)
            return "CUDA_SUCCESS"

    found = probe_system(Hanging(), patience_s=0.05)
    over.set()
    assert found.gpus == ()
    assert is_one_sentence(found.problem)


def test_threads_that_ask_at_the_same_time_ask_the_driver_once(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, calls = threading.Barrier(4), []

    def probe_slowly(system: object, *, patience_s: float) -> Probe:
        calls.append(system)
        threading.Event().wait(0.05)
        return Probe((), "There is no driver.", "", "")

    def ask() -> Probe:
        at_once.wait()
        return probe_module.probe()

    monkeypatch.setattr(probe_module, "probe_system", probe_slowly)
    probe_module._probe_once.cache_clear()
    try:
        with ThreadPoolExecutor(4) as team:
            found = [future.result() for future in [team.submit(ask) for _ in range(4)]]
    finally:
        probe_module._probe_once.cache_clear()
    assert len(calls) == 1
    assert all(one is found[0] for one in found)


@pytest.mark.parametrize(
    ("capability", "compiled"),
    [((9, 0), (9, 0)), ((8, 7), (8, 6)), ((12, 1), (12, 0)), ((10, 3), (10, 0)), ((11, 0), None), ((7, 0), None)],
)
def test_kernels_are_compiled_for_the_nearest_architecture_of_the_family(
    capability: tuple[int, int], compiled: tuple[int, int] | None
) -> None:
    assert compile_capability(capability, _KNOWN) == compiled


@pytest.mark.gpu
def test_this_machines_gpu_is_whole(gpu: Gpu) -> None:
    assert gpu.memory_nbytes > 1 << 30
    assert gpu.multiprocessors > 0
    assert gpu.shared_nbytes_per_block_optin >= 64 << 10
    assert gpu.uuid.startswith("GPU-")
    assert gpu.threads_per_multiprocessor >= 1024
