"""Whether there is a driver is known without importing what speaks to it."""

import ctypes
import sys

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


def test_a_missing_package_is_told_where_there_is_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
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
