"""Whether there is a driver is known without importing what speaks to it."""

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import pytest

from gpu_backend import driver_library
from gpu_backend.cuda.driver import installed_system
from gpu_backend.cuda.driver.installed_system import InstalledSystem
from tests.helpers.own_process import run_python


def test_a_library_that_cannot_be_loaded_means_that_there_is_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_library, "_LIBRARY", "libno-such-driver.so.1")
    driver_library.driver_is_installed.cache_clear()
    try:
        assert not driver_library.driver_is_installed()
    finally:
        driver_library.driver_is_installed.cache_clear()


def test_a_library_that_can_be_loaded_means_that_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: name)
    driver_library.driver_is_installed.cache_clear()
    try:
        assert driver_library.driver_is_installed()
    finally:
        driver_library.driver_is_installed.cache_clear()


def test_without_a_driver_nothing_of_cuda_is_imported_to_find_devices() -> None:
    done = run_python("""
        import sys
        from gpu_backend import driver_library
        driver_library._LIBRARY = "libno-such-driver.so.1"
        import gpu_backend
        (processor,) = gpu_backend.find_devices()
        assert not [name for name in sys.modules if name.startswith(("cuda.bindings.", "cuda.pathfinder", "pynvml"))]
        print(processor.reason)
    """)
    assert "no NVIDIA driver was found" in done.stdout, done.stderr


def test_a_missing_package_is_reported_where_there_is_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed_system, "driver_is_installed", lambda: True)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    monkeypatch.delitem(sys.modules, "cuda.bindings.driver", raising=False)
    with pytest.raises(ModuleNotFoundError):
        InstalledSystem().initialise()


def test_without_a_driver_packages_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed_system, "driver_is_installed", lambda: False)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)  # as while torch is imported
    with pytest.raises(RuntimeError, match="not installed"):
        InstalledSystem().initialise()


class FakeLibrary:
    """The driver's library: records what is called, and fails where it is told to."""

    def __init__(self, failing: str = "") -> None:
        self.called: list[tuple[str, int]] = []
        self._failing = failing

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            number = arguments[-1]
            self.called.append((name, number if isinstance(number, int) else number.value))
            return int(name == self._failing)

        return call


@pytest.mark.parametrize(
    ("device", "failing", "called", "is_there"),
    [
        ("auto", "", [("cuInit", 0), ("cuDeviceGet", 0), ("cuDevicePrimaryCtxRetain", 0)], True),
        ("cuda:3", "", [("cuInit", 0), ("cuDeviceGet", 3), ("cuDevicePrimaryCtxRetain", 0)], True),
        ("auto", "cuInit", [("cuInit", 0)], False),
        ("cuda:1", "cuDeviceGet", [("cuInit", 0), ("cuDeviceGet", 1)], False),
        ("cpu", "", [], False),
    ],
)
def test_the_driver_is_started_with_a_context_on_the_chosen_gpu(
    monkeypatch: pytest.MonkeyPatch, device: str, failing: str, called: list[tuple[str, int]], is_there: bool
) -> None:
    library = FakeLibrary(failing)
    monkeypatch.setattr(driver_library, "driver_is_installed", lambda: True)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    assert driver_library.preload_driver(device) is is_there
    assert library.called == called


def test_without_a_driver_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_library, "driver_is_installed", lambda: False)
    assert not driver_library.preload_driver("cuda")
