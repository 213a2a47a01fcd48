"""A kernel recipe compiled to machine code of one architecture. Needs NVRTC, but no GPU and no driver."""

from __future__ import annotations

import functools
import io
import re
import threading
from dataclasses import dataclass

from gpu_backend.cuda.errors import KernelError
from gpu_backend.ops.kernels.recipe import KernelRecipe

FLAGS = ("-std=c++17", "-Xptxas=-v", "-no-cache")
"""What every kernel is compiled with, in the compiler's own words; part of a cached kernel's key."""

_importing = threading.Lock()
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
        raise KernelError("NVRTC does not tell its version; install cuda-toolkit[nvrtc] again.", str(outcome.name))
    return f"{major}.{minor}"


def compile_kernel(recipe: KernelRecipe, architecture: str) -> CompiledKernel:
    """Compile a kernel for an architecture, ``"sm_90a"``. Other threads go on meanwhile.

    Raises
    ------
    KernelError
        If the compiler refuses it; its first error stands in the phrase, its log in the details.
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
    """Return the first line of a log that tells an error; where none does, the first line that is not empty."""
    lines = [" ".join(line.split()) for line in log.splitlines() if line.strip()]
    found = next((line for line in lines if _ERROR.search(line)), lines[0] if lines else "")
    return found if len(found) <= _MOST_CHARACTERS else f"{found[: _MOST_CHARACTERS - 3]}..."


def _run_nvrtc(recipe: KernelRecipe, architecture: str) -> tuple[bytes, str, str]:
    """Return machine code, what the assembler said, and what went wrong.

    No exception gets out: its traceback would hold the Program, and one that only the cyclic collector finds complains
    on standard error (cuda-core 1.2).
    """
    # Imported here: compiling is the only thing that needs it, and a cached kernel needs no compiling. One thread at a
    # time: another one would find the package half imported (cuda-core 1.2).
    with _importing:
        from cuda.core import Program, ProgramOptions  # type: ignore[attr-defined] # its names are made at run time

    # Without a name of our own the object code would hold a random path, and differ at each compilation.
    # The driver's own cache would give machine code without a word on registers; there is one of ours.
    options = ProgramOptions(
        arch=architecture, std="c++17", name=f"{recipe.stem}.cu", ptxas_options=["-v"], no_cache=True
    )
    log = io.StringIO()
    cubin, failure = b"", ""
    program = Program(recipe.source, "c++", options)
    try:
        cubin = bytes(program.compile("cubin", logs=log).code)
    except Exception as error:
        failure = _clean(str(error)) or type(error).__name__
    finally:
        program.close()
    return cubin, _clean(log.getvalue()), failure


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
