"""What tests of the backend share."""

from __future__ import annotations

import os

import pytest

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
