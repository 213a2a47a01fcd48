"""A kernel recipe compiled to machine code of one architecture. Needs NVRTC, but no GPU and no driver."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from gpu_backend.cuda.errors import KernelError
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.quick_dataclass import dataclass

FLAGS = ("--std=c++17", "--ptxas-options=-v", "--no-cache")
"""What every kernel is compiled with, in the compiler's own words; part of a cached kernel's key."""

_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_ERROR = re.compile(r"\b(error|fatal)( #\S+)? ?:")
_MOST_CHARACTERS = 200
"""Of an error's line, which may quote a whole type."""


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """Machine code and what the assembler said about it.

    Attributes
    ----------
    registers
        A thread's.
    spill_nbytes
        Stores and loads of a thread that found no register.
    shared_nbytes
        A block's static shared memory.
    """

    cubin: bytes
    registers: int
    spill_nbytes: int
    shared_nbytes: int


@functools.cache
def compiler_version() -> str:
    """Version of NVRTC: ``"13.0"``.

    Raises
    ------
    KernelError
        If NVRTC is not there.
    """
    try:
        import cuda.bindings.nvrtc as nvrtc

        outcome, major, minor = nvrtc.nvrtcVersion()
    except Exception as error:
        raise KernelError("NVRTC was not found; install cuda-toolkit[nvrtc].", str(error)) from error
    if int(outcome):
        raise KernelError("NVRTC does not report its version; install cuda-toolkit[nvrtc] again.", str(outcome.name))
    return f"{major}.{minor}"


def compile_kernel(recipe: KernelRecipe, architecture: str) -> CompiledKernel:
    """Compile a kernel for an architecture, ``"sm_90a"``. Releases the GIL.

    Raises
    ------
    KernelError
        If the compiler refuses it; the phrase quotes its first error, the details its log.
    """
    version = compiler_version()
    cubin, log, failure = _run_nvrtc(recipe, architecture)
    if failure:
        details = f"{failure}\n{log}".strip()
        raise KernelError(
            f"The kernel {recipe.title} does not compile for {architecture} with NVRTC {version}; its plain "
            "counterpart takes its place.",
            details,
            f"it does not compile for {architecture}: {first_error(details)}",
        )
    return _with_report(cubin, log)


def first_error(log: str) -> str:
    """Return the first line of a log that reports an error; without one, the first line that is not empty."""
    lines = [" ".join(line.split()) for line in log.splitlines() if line.strip()]
    found = next((line for line in lines if _ERROR.search(line)), lines[0] if lines else "")
    return found if len(found) <= _MOST_CHARACTERS else f"{found[: _MOST_CHARACTERS - 3]}..."


def _run_nvrtc(recipe: KernelRecipe, architecture: str) -> tuple[bytes, str, str]:
    """Return machine code, what compiler and assembler said, and what went wrong."""
    # Imported here: a cached kernel needs no compiler.
    import cuda.bindings.nvrtc as nvrtc

    names = [name.encode() for name in recipe.headers]
    texts = [text.encode() for text in recipe.headers.values()]
    # Named, since the machine code would otherwise hold a name that differs from run to run.
    outcome, program = nvrtc.nvrtcCreateProgram(
        recipe.source.encode(), f"{recipe.stem}.cu".encode(), len(names), texts, names
    )
    if int(outcome):
        return b"", "", _named(outcome)
    try:
        flags = [f"-arch={architecture}".encode(), *(flag.encode() for flag in FLAGS)]
        (outcome,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
        failure = _named(outcome)
        log = _filled(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).decode("utf-8", "replace")
        cubin = b"" if failure else _filled(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        return cubin, _clean(log), failure or ("" if cubin else "NVRTC returned no machine code")
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _filled(program: Any, size_of: Callable[[Any], tuple[Any, int]], fill: Callable[[Any, bytes], tuple[Any]]) -> bytes:
    """Return the bytes of one of a program's outputs; empty if there is none, or NVRTC does not return it."""
    outcome, size = size_of(program)
    if int(outcome) or not size:
        return b""
    buffer = bytes(size)  # an output buffer, as cuda.bindings requires
    (outcome,) = fill(program, buffer)
    return b"" if int(outcome) else buffer


def _named(outcome: Any) -> str:
    """Return an outcome's number and name; empty for success."""
    return f"{int(outcome)}: {outcome.name}" if int(outcome) else ""


def _with_report(cubin: bytes, report: str) -> CompiledKernel:
    registers, shared = _REGISTERS.search(report), _SHARED.search(report)
    spills = sum(int(stores) + int(loads) for stores, loads in _SPILLS.findall(report))
    return CompiledKernel(
        cubin=cubin,
        registers=int(registers[1]) if registers else 0,
        spill_nbytes=spills,
        shared_nbytes=int(shared[1]) if shared else 0,
    )


def _clean(log: str) -> str:
    return log.replace("\0", "").strip()
