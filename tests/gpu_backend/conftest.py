"""What tests of the backend share."""

from __future__ import annotations

import os

import pytest

from gpu_backend.cuda.compiling.kernel_cache import KernelCache
from gpu_backend.cuda.driver.probe import Gpu, probe


@pytest.fixture(scope="session")
def gpu() -> Gpu:
    """The first GPU. Without one the test is skipped with the reason; REQUIRE_GPU=1 lets it fail instead."""
    found = probe()
    if found.gpus:
        return found.gpus[0]
    if os.environ.get("REQUIRE_GPU") == "1":
        pytest.fail(f"REQUIRE_GPU=1, but: {found.problem}")
    pytest.skip(found.problem)


@pytest.fixture(scope="session")
def compiled_before(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> KernelCache:
    """Kernels that earlier runs of the tests compiled, by the hash of source, options, architecture and compiler."""
    kept = request.config.pluginmanager.hasplugin("cacheprovider")
    return KernelCache(request.config.cache.mkdir("kernels") if kept else tmp_path_factory.mktemp("kernels"))
