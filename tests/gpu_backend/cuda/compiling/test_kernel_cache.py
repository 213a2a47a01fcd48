from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from gpu_backend.cuda.compiling.compiler import CompiledKernel
from gpu_backend.cuda.compiling.kernel_cache import KernelCache, cache_folder, kernel_key
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.whole_file import part_name
from tests.helpers.failing_disk import dead_part
from tests.helpers.hand_kernels import hand_kernel

_KERNEL = CompiledKernel(b"\x7fELF\n machine code", registers=40, spill_nbytes=0, shared_nbytes=128)


def _recipe(text: str = "text", define: str = "1") -> KernelRecipe:
    return hand_kernel("stem", text, (("HALF", define),))


@pytest.fixture
def cache(tmp_path: Path) -> KernelCache:
    return KernelCache(tmp_path / "kernels")


def test_a_kernel_comes_back_as_it_was_kept(cache: KernelCache) -> None:
    key = kernel_key(_recipe(), "sm_80")
    assert not cache.has(key)
    assert cache.read(key) is None
    cache.keep(key, _KERNEL)
    assert cache.has(key)
    assert cache.read(key) == _KERNEL


def test_the_key_distinguishes_source_macros_and_architecture() -> None:
    keys = {
        kernel_key(_recipe(), "sm_80"),
        kernel_key(_recipe(), "sm_90"),
        kernel_key(_recipe("other"), "sm_80"),
        kernel_key(_recipe(define="0"), "sm_80"),
    }
    assert len(keys) == 4
    assert kernel_key(_recipe(), "sm_80") in keys


def test_why_a_kernel_did_not_compile_is_known_until_it_does(cache: KernelCache) -> None:
    key = kernel_key(_recipe(), "sm_80")
    assert cache.failure(key) == ""
    cache.keep_failure(key, "it is broken")
    cache.keep_failure(key, "it does not compile: \u201cé\u201d\nat all")
    assert cache.failure(key) == "it does not compile: \u201cé\u201d at all"
    assert not cache.has(key)
    assert cache.read(key) is None
    cache.keep(key, _KERNEL)
    assert cache.failure(key) == ""
    assert [path.name for path in cache.folder.iterdir()] == [f"{key}.kernel"]


@pytest.mark.parametrize("content", [b"x" * 5000, b"", b" \n"])
def test_a_reason_that_is_invalid_counts_as_missing(cache: KernelCache, content: bytes) -> None:
    key = kernel_key(_recipe(), "sm_80")
    cache.keep_failure(key, "it is broken")
    (path,) = cache.folder.iterdir()
    path.write_bytes(content)
    assert cache.failure(key) == ""


def test_old_reasons_go_with_old_kernels(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path, most_nbytes=1500)
    keys = [kernel_key(_recipe(str(number)), "sm_80") for number in range(2)]
    cache.keep_failure(keys[0], "x" * 600)
    os.utime(tmp_path / f"{keys[0]}.failure", (1000, 1000))
    cache.keep(keys[1], replace(_KERNEL, cubin=bytes(1000)))
    assert cache.failure(keys[0]) == ""
    assert cache.has(keys[1])


@pytest.mark.parametrize("length", [0, 5, 30, 90, -1])
def test_a_file_that_is_not_whole_counts_as_missing_and_is_rewritten(cache: KernelCache, length: int) -> None:
    key = kernel_key(_recipe(), "sm_80")
    cache.keep(key, _KERNEL)
    (path,) = cache.folder.iterdir()
    path.write_bytes(path.read_bytes()[:length])
    assert cache.read(key) is None
    cache.keep(key, _KERNEL)
    assert cache.read(key) == _KERNEL


def test_a_byte_that_turned_counts_as_missing(cache: KernelCache) -> None:
    key = kernel_key(_recipe(), "sm_80")
    cache.keep(key, _KERNEL)
    (path,) = cache.folder.iterdir()
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    assert cache.read(key) is None


def test_a_kernel_under_the_name_of_another_counts_as_missing(cache: KernelCache) -> None:
    one, other = kernel_key(_recipe(), "sm_80"), kernel_key(_recipe(), "sm_90")
    cache.keep(one, _KERNEL)
    (cache.folder / f"{one}.kernel").rename(cache.folder / f"{other}.kernel")
    assert cache.read(other) is None


def test_kernels_that_were_not_used_for_longest_go_first(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path, most_nbytes=4500)
    kernel = replace(_KERNEL, cubin=bytes(1000))
    keys = [kernel_key(_recipe(str(number)), "sm_80") for number in range(4)]
    for age, key in enumerate(keys[:3]):
        cache.keep(key, kernel)
        os.utime(tmp_path / f"{key}.kernel", (1000 + age, 1000 + age))
    assert cache.read(keys[0]) is not None
    cache.keep(keys[3], kernel)
    assert [cache.has(key) for key in keys] == [True, False, True, True]


def test_files_of_others_stay_and_leftovers_of_dead_programs_go(cache: KernelCache) -> None:
    cache.folder.mkdir()
    key = kernel_key(_recipe(), "sm_80")
    foreign = cache.folder / "notes.txt"
    live = cache.folder / part_name(f"{key}.kernel", os.getppid())
    dead = cache.folder / dead_part(f"{key}.kernel")
    for path in (foreign, live, dead):
        path.write_bytes(b"x")
    os.utime(foreign, (1000, 1000))
    cache.keep(key, _KERNEL)
    assert foreign.exists()
    assert live.exists()
    assert not dead.exists()


def test_a_folder_that_cannot_be_made_stops_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    cache = KernelCache(blocked / "kernels")
    key = kernel_key(_recipe(), "sm_80")
    cache.keep(key, _KERNEL)
    cache.keep_failure(key, "it is broken")
    assert cache.read(key) is None
    assert cache.failure(key) == ""


def test_the_usual_folder_is_the_persons_own_and_is_not_made_before_it_is_needed(empty_cache: Path) -> None:
    assert KernelCache().folder == cache_folder() / "kernels"
    assert empty_cache in KernelCache().folder.parents
    assert not KernelCache().folder.exists()
