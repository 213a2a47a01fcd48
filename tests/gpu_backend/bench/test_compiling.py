"""Waiting for kernels, measured. NVRTC compiles one of them; no GPU."""

import itertools

import pytest

from gpu_backend import device
from gpu_backend.bench import compiling
from gpu_backend.bench.compiling import measure_compiling
from gpu_backend.cuda.compiling.compilation import ready_count
from gpu_backend.cuda.driver.probe import Probe
from gpu_backend.ops.kernels.recipe import KernelRecipe
from tests.helpers.fake_gpu import FAKE_GPU
from tests.helpers.networks import make_stylegan2

MODEL = make_stylegan2()
EMPTY = KernelRecipe("empty")


def test_kernels_are_timed_without_those_that_the_person_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_probe", lambda: Probe((FAKE_GPU,), "", "580.1", "13.0"))
    monkeypatch.setattr(compiling, "recipes_of", lambda *_: (EMPTY,))
    moments = itertools.accumulate((0.0, 3.0, 1.0, 0.25))
    found = measure_compiling(MODEL, "cuda", "fp16", lambda: next(moments))
    assert found is not None
    assert (found.precision, found.kernels, found.cold_s, found.cached_s) == ("fp16", 1, 3.0, 0.25)
    assert found.threads >= 1
    assert ready_count([EMPTY], FAKE_GPU.compile_architecture) == 0, "the person's cache is not touched"


def test_the_processor_compiles_nothing() -> None:
    assert measure_compiling(MODEL, "cpu", "fp32") is None
