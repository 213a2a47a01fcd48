"""What the compiler reports of the kernels that tests compile, kept in ``tests/data/kernels.json`` by content.

A kernel's key covers its source, what that includes, flags, architecture and the compiler's version. So a kernel in the
file was compiled as it is now, and compiling it again would show nothing new. A kernel that changed, or another
compiler, finds no entry and is compiled.

``KEEP_KERNELS=1``, in one process, adds what it compiles to the file; delete the file first to drop what no test uses
any more. ``EVERY_KERNEL=1`` reads no entry.
"""

from __future__ import annotations

import functools
import json
import os
from dataclasses import astuple, dataclass
from pathlib import Path

import cuda.bindings.nvrtc as nvrtc

from gpu_backend.cuda.compiling.compiler import compile_kernel
from gpu_backend.cuda.compiling.kernel_cache import kernel_key
from gpu_backend.ops.kernels.recipe import KernelRecipe

FILE = Path(__file__).parents[1] / "data" / "kernels.json"
EVERY = os.environ.get("EVERY_KERNEL") == "1"
KEEP = os.environ.get("KEEP_KERNELS") == "1"

_ACCEPTED: tuple[()] = ()
"""Entry of a kernel that only the frontend has seen."""


@dataclass(frozen=True, slots=True)
class KernelStatistics:
    """Registers a thread, bytes of static shared memory a block, bytes of spill stores and loads a thread."""

    registers: int
    shared_nbytes: int
    spill_nbytes: int


@functools.cache
def kept() -> dict[str, tuple[int, ...]]:
    """Entries of the file by key; none with ``EVERY_KERNEL=1``."""
    if EVERY or not FILE.is_file():
        return {}
    return {key: tuple(entry) for key, entry in json.loads(FILE.read_text("utf-8")).items()}


def key_of(recipe: KernelRecipe, architecture: str) -> str:
    """Half of the digest of everything that the compiler's output depends on."""
    return kernel_key(recipe, architecture)[:32]


def statistics_of(recipe: KernelRecipe, architecture: str) -> KernelStatistics:
    """Return what the compiler reports of a kernel, which is compiled unless the file has it.

    Raises
    ------
    KernelError
        If it does not compile.
    """
    key = key_of(recipe, architecture)
    if entry := kept().get(key):
        return KernelStatistics(*entry)
    found = compiled_now(recipe, architecture)
    _keep(key, astuple(found))
    return found


def compiled_now(recipe: KernelRecipe, architecture: str) -> KernelStatistics:
    """Compile a kernel, whatever the file has. Raises KernelError."""
    kernel = compile_kernel(recipe, architecture)
    return KernelStatistics(kernel.registers, kernel.shared_nbytes, kernel.spill_nbytes)


def frontend_log(recipe: KernelRecipe, architecture: str) -> str:
    """Return why the compiler's frontend refuses a kernel: syntax, types, static assertions. Empty if it does not.

    Intermediate code for the linker is all that it makes: a fifteenth of what machine code costs.
    """
    key = key_of(recipe, architecture)
    if key in kept():
        return ""
    headers = recipe.headers
    names, texts = [name.encode() for name in headers], [text.encode() for text in headers.values()]
    _, program = nvrtc.nvrtcCreateProgram(
        recipe.source.encode(), f"{recipe.stem}.cu".encode(), len(names), texts, names
    )
    flags = [f"-arch={architecture}".encode(), b"--std=c++17", b"--no-cache", b"-dlto"]
    (outcome,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = bytes(size)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(program)
    if int(outcome):
        return log.decode("utf-8", "replace") or str(outcome)
    _keep(key, _ACCEPTED)
    return ""


def _keep(key: str, entry: tuple[int, ...]) -> None:
    """Add an entry to the file, where that is asked for."""
    if KEEP:
        entries = kept()
        entries[key] = entry
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(entries[key])}" for key in sorted(entries))
        FILE.write_text(f"{{\n{lines}\n}}\n", "utf-8")
