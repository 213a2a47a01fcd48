"""Many kernels made ready at once: from the cache, or compiled on several threads. Needs no GPU and no driver."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from gpu_backend.cuda.compiling.compiler import CompiledKernel, compile_kernel
from gpu_backend.cuda.compiling.kernel_cache import KernelCache, kernel_key
from gpu_backend.cuda.errors import KernelError
from gpu_backend.errors import CancelledError
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.quick_dataclass import dataclass

_ASKED_EVERY_S = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Compilation:
    """Compiled kernels, and kernels that failed to compile."""

    kernels: Mapping[KernelRecipe, CompiledKernel]
    failures: Mapping[KernelRecipe, KernelError]


def compile_kernels(
    recipes: Iterable[KernelRecipe],
    architecture: str,
    *,
    progress: Callable[[int, int], None] | None = None,
    should_cancel: Callable[[], bool] | None = None,
    threads: int | None = None,
    cache: KernelCache | None = None,
) -> Compilation:
    """Return kernels for an architecture, and keep new ones in the cache, and why others do not compile.

    Parameters
    ----------
    progress
        Called on this thread with the kernels done and their number: at the beginning, then after each kernel.
    should_cancel
        Called every few hundredths of a second; once it says yes, what is being compiled is finished and kept, and
        nothing else is begun.
    threads
        None for one on each CPU core.
    cache
        None for the user's own.

    Raises
    ------
    CancelledError
        If `should_cancel` returned true.
    KernelError
        If NVRTC is missing: cached kernels are keyed by its version.
    """
    cache = cache or KernelCache()
    wanted = tuple(dict.fromkeys(recipes))
    keys = {recipe: kernel_key(recipe, architecture) for recipe in wanted}
    found = {recipe: cache.read(key) for recipe, key in keys.items()}
    kernels = {recipe: kernel for recipe, kernel in found.items() if kernel is not None}
    failures: dict[KernelRecipe, KernelError] = {}

    def compile_one(recipe: KernelRecipe) -> CompiledKernel:
        try:
            kernel = compile_kernel(recipe, architecture)
        except KernelError as error:
            cache.keep_failure(keys[recipe], error.phrase)
            raise
        cache.keep(keys[recipe], kernel)
        return kernel

    def tell() -> None:
        if progress is not None:
            progress(len(kernels) + len(failures), len(wanted))

    tell()
    missing = [recipe for recipe in wanted if recipe not in kernels]
    if not missing:
        return Compilation(kernels, failures)
    workers = min(threads or os.cpu_count() or 1, len(missing))
    with ThreadPoolExecutor(workers, thread_name_prefix="kernel compiler") as pool:
        running: dict[Future[CompiledKernel], KernelRecipe] = {
            pool.submit(compile_one, recipe): recipe for recipe in missing
        }
        try:
            while running:
                done, _ = wait(running, _ASKED_EVERY_S, FIRST_COMPLETED)
                for future in done:
                    recipe = running.pop(future)
                    try:
                        kernels[recipe] = future.result()
                    except KernelError as error:
                        failures[recipe] = error
                    tell()
                if should_cancel is not None and should_cancel():
                    raise CancelledError("Compiling was cancelled, because the kernels are no longer needed.")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return Compilation(kernels, failures)


def ready_count(recipes: Iterable[KernelRecipe], architecture: str, *, cache: KernelCache | None = None) -> int:
    """Return how many of these kernels need no compiling, each counted once."""
    cache = cache or KernelCache()
    return sum(cache.has(kernel_key(recipe, architecture)) for recipe in dict.fromkeys(recipes))
