from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpu_backend.cuda.compiling import compilation
from gpu_backend.cuda.compiling.compilation import Compilation, compile_kernels, ready_count
from gpu_backend.cuda.compiling.kernel_cache import KernelCache, kernel_key
from gpu_backend.errors import CancelledError
from tests.helpers.hand_kernels import hand_kernel
from tests.helpers.own_process import run_alone

_FILL = 'extern "C" __global__ void fill(float* y) { y[threadIdx.x] = VALUE; }'
_RECIPES = tuple(hand_kernel("fill", _FILL, (("VALUE", str(value)),)) for value in range(4))
_BROKEN = hand_kernel("broken", 'extern "C" __global__ void broken() { unheard_of(); }')


@pytest.fixture
def cache(tmp_path: Path) -> KernelCache:
    return KernelCache(tmp_path / "kernels")


def test_kernels_are_compiled_once_and_then_found(cache: KernelCache, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    first = compile_kernels(_RECIPES, "sm_80", threads=2, cache=cache, progress=lambda *now: told.append(now))
    assert told == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    assert ready_count((*_RECIPES, *_RECIPES), "sm_80", cache=cache) == 4
    assert ready_count(_RECIPES, "sm_90a", cache=cache) == 0

    monkeypatch.setattr(compilation, "compile_kernel", None)
    told.clear()
    again = compile_kernels(_RECIPES, "sm_80", cache=cache, progress=lambda *now: told.append(now))
    assert told == [(4, 4)]
    assert again.kernels == first.kernels


def test_a_kernel_that_does_not_compile_is_distinguished_from_the_others(cache: KernelCache) -> None:
    told: list[tuple[int, int]] = []
    compiled = compile_kernels((_BROKEN, _RECIPES[0]), "sm_80", cache=cache, progress=lambda *now: told.append(now))
    assert set(compiled.kernels) == {_RECIPES[0]}
    assert set(compiled.failures) == {_BROKEN}
    assert told[-1] == (2, 2)
    assert cache.failure(kernel_key(_BROKEN, "sm_80")) == compiled.failures[_BROKEN].phrase
    assert cache.failure(kernel_key(_RECIPES[0], "sm_80")) == ""
    assert ready_count((_BROKEN, _RECIPES[0]), "sm_80", cache=cache) == 1


def test_compiling_can_be_cancelled_and_what_was_done_stays(cache: KernelCache) -> None:
    done: list[int] = []
    with pytest.raises(CancelledError):
        compile_kernels(
            _RECIPES,
            "sm_80",
            threads=1,
            cache=cache,
            progress=lambda now, total: done.append(now),
            should_cancel=lambda: done[-1] > 0,
        )
    assert 1 <= ready_count(_RECIPES, "sm_80", cache=cache) <= 3


def test_the_same_kernel_requested_twice_is_one(cache: KernelCache) -> None:
    told: list[tuple[int, int]] = []
    compile_kernels((_RECIPES[0], _RECIPES[0]), "sm_80", cache=cache, progress=lambda *now: told.append(now))
    assert told[-1] == (1, 1)


def _compile_on_many_threads(folder: str) -> None:
    """Let threads ask for the same kernels at the same moment, in a process where nothing is imported yet."""
    start = threading.Barrier(4)

    def work() -> Compilation:
        start.wait()
        return compile_kernels(_RECIPES, "sm_80", threads=2, cache=KernelCache(Path(folder)))

    with ThreadPoolExecutor(4) as team:
        done = [future.result() for future in [team.submit(work) for _ in range(4)]]
    assert all(compiled.kernels == done[0].kernels and not compiled.failures for compiled in done)


def test_threads_and_processes_may_compile_the_same_kernels_at_once(cache: KernelCache) -> None:
    name = "tests.gpu_backend.cuda.compiling.test_compilation:_compile_on_many_threads"
    with ThreadPoolExecutor(2) as team:
        for process in [team.submit(run_alone, name, str(cache.folder)) for _ in range(2)]:
            process.result()
    assert ready_count(_RECIPES, "sm_80", cache=cache) == len(list(cache.folder.iterdir())) == len(_RECIPES)
    assert all(cache.read(kernel_key(recipe, "sm_80")) for recipe in _RECIPES)
