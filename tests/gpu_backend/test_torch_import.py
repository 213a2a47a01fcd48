"""What an installation without torch, or with a torch that does not load, is told."""

from __future__ import annotations

import sys

import pytest

from gpu_backend import TorchError
from gpu_backend.device import make_executor
from gpu_backend.diagnosis import diagnose
from gpu_backend.torch_import import torch_needed, torch_problem
from tests.helpers.networks import make_stylegan2
from tests.helpers.own_process import run_python


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which torch cannot be imported."""
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "gpu_backend.cpu.executor", raising=False)


def test_the_cpu_says_what_to_install(no_torch: None) -> None:
    with pytest.raises(
        TorchError, match=r"^Rendering on the CPU needs torch, which is not installed; install it with: "
    ):
        make_executor(make_stylegan2(), "cpu")
    assert diagnose().cpu_problem.startswith("Rendering on the CPU needs torch")


def test_where_torch_is_installed_nothing_is_reported() -> None:
    assert torch_problem("This") == ""


@pytest.mark.parametrize(
    ("error", "kind", "part"),
    [
        (ImportError("libtorch_cpu.so: undefined symbol: x", name="torch._C"), TorchError, "undefined symbol"),
        (OSError("[WinError 126] Error loading torch_cpu.dll"), TorchError, "install it again"),
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), MemoryError, "map segment"),
        (ImportError("No module named 'numpy'", name="numpy"), ImportError, "numpy"),
    ],
)
def test_a_torch_that_does_not_load_is_distinguished(error: Exception, kind: type[Exception], part: str) -> None:
    with pytest.raises(kind, match=part) as raised, torch_needed("This"):
        raise error
    assert type(raised.value) is kind


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells the address space of a process")
def test_torch_is_not_loaded_where_its_libraries_would_abort_the_process() -> None:
    done = run_python("""
        import resource, sys
        from gpu_backend.torch_import import torch_needed
        resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
        try:
            with torch_needed("This"):
                import torch
        except MemoryError as error:
            print("torch" in sys.modules, error)
    """)
    assert done.stdout.startswith("False torch needs "), done.stderr
