"""Real compilations: NVRTC needs no GPU."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_backend.cuda.compiling.compiler import compile_kernel, compiler_version, first_error
from gpu_backend.cuda.errors import KernelError
from gpu_backend.ops.kernels import kernel_source
from gpu_backend.ops.kernels.recipe import KernelRecipe
from tests.helpers.hand_kernels import hand_kernel

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120")

_STAGED = """
extern "C" __global__ void staged(float* y, const float* x) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[63 - threadIdx.x];
}
"""

_SPILLING = """
extern "C" __global__ void __launch_bounds__(1024) spilling(float* y) {
    float v[120];
    #pragma unroll
    for (int i = 0; i < 120; i++) v[i] = y[i * 1024 + threadIdx.x];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 120; i++) y[i * 1024 + threadIdx.x] = v[i] * v[119 - i];
}
"""


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_kernel_is_machine_code_of_every_architecture(architecture: str) -> None:
    kernel = compile_kernel(hand_kernel("staged", _STAGED), architecture)
    assert kernel.cubin.startswith(b"\x7fELF")
    assert 0 < kernel.registers < 64
    assert kernel.shared_nbytes == 256
    assert kernel.spill_nbytes == 0


def test_a_compilation_without_machine_code_is_a_failure_that_no_cache_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    import cuda.bindings.nvrtc as nvrtc

    outcome = nvrtc.nvrtcResult.NVRTC_ERROR_OUT_OF_MEMORY
    monkeypatch.setattr(nvrtc, "nvrtcGetCUBIN", lambda program, buffer: (outcome,))
    with pytest.raises(KernelError, match="does not compile") as refused:
        compile_kernel(hand_kernel("staged", _STAGED), "sm_80")
    assert "no machine code" in refused.value.details


def test_spilled_registers_are_counted() -> None:
    kernel = compile_kernel(hand_kernel("spilling", _SPILLING), "sm_80")
    assert kernel.registers == 64
    assert kernel.spill_nbytes > 0


def test_the_same_recipe_gives_the_same_bytes() -> None:
    first, second = (compile_kernel(hand_kernel("staged", _STAGED), "sm_80") for _ in range(2))
    assert first.cubin == second.cubin


def test_a_kernel_that_does_not_compile_is_named_and_its_log_is_kept() -> None:
    with pytest.raises(KernelError) as caught:
        compile_kernel(hand_kernel("broken", 'extern "C" __global__ void broken() { unheard_of(); }'), "sm_90a")
    assert "broken" in caught.value.sentence
    assert "sm_90a" in caught.value.sentence
    assert "\n" not in caught.value.sentence
    assert "unheard_of" in caught.value.details
    why = 'it does not compile for sm_90a: broken.cu(1): error: identifier "unheard_of" is undefined'
    assert caught.value.phrase == why


def test_an_error_in_a_part_names_the_part_and_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = KernelRecipe("to_rgb", (("IMG_CHANNELS", "3"), ("TAPS", "4"), ("PIXELS", "1")))
    lines = recipe.headers["parts/bytes.cuh"].splitlines()
    broken = {**recipe.headers, "parts/bytes.cuh": "\n".join([*lines, "unheard_of();"])}
    monkeypatch.setattr(KernelRecipe, "headers", broken)
    with pytest.raises(KernelError) as caught:
        compile_kernel(recipe, "sm_80")
    assert f"parts/bytes.cuh({len(lines) + 1}): error" in caught.value.phrase


def test_an_error_in_a_kernel_names_its_own_line() -> None:
    recipe = KernelRecipe("to_rgb", (("PIXELS", "1"), ("TAPS", "4")))
    with pytest.raises(KernelError) as caught:
        compile_kernel(recipe, "sm_80")
    found = re.search(r"to_rgb\.cu\((\d+)\): error", caught.value.phrase)
    assert found is not None
    assert "IMG_CHANNELS" in kernel_source("to_rgb").text.splitlines()[int(found[1]) - 1]


def test_errors_of_the_assembler_are_reported_too() -> None:
    source = 'extern "C" __global__ void big(float* y) { __shared__ float s[40000]; s[threadIdx.x] = *y; *y = s[7]; }'
    with pytest.raises(KernelError) as caught:
        compile_kernel(hand_kernel("big", source), "sm_80")
    assert re.match(
        r"it does not compile for sm_80: ptxas error : Entry function 'big' uses too much shared data",
        caught.value.phrase,
    )


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("", ""),
        ("6: NVRTC_ERROR_OUT_OF_MEMORY\n\nmore", "6: NVRTC_ERROR_OUT_OF_MEMORY"),
        ("a.cu(1): warning: an error\na.cu(2): catastrophic error #5: no", "a.cu(2): catastrophic error #5: no"),
        ("ptxas info : errors\nptxas fatal   : Memory", "ptxas fatal : Memory"),
        ("x: error: " + "y" * 400, "x: error: " + "y" * 187 + "..."),
    ],
)
def test_the_first_error_of_a_log_is_one_short_line(log: str, line: str) -> None:
    assert first_error(log) == line


def test_an_architecture_that_the_compiler_does_not_know_is_an_error_of_the_kernel() -> None:
    with pytest.raises(KernelError, match="sm_70"):
        compile_kernel(hand_kernel("staged", _STAGED), "sm_70")


def test_the_compiler_reports_its_version() -> None:
    major, minor = compiler_version().split(".")
    assert int(major) >= 13
    assert minor.isdigit()


def test_the_first_kernels_of_a_process_may_be_compiled_on_many_threads() -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from gpu_backend.cuda.compiling.compiler import compile_kernel\n"
        "from gpu_backend.ops.kernels.recipe import KernelRecipe\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    done = list(pool.map(lambda _: compile_kernel(KernelRecipe('empty'), 'sm_80'), range(8)))\n"
        "assert all(kernel.cubin == done[0].cubin for kernel in done)\n"
    )
    root = Path(__file__).parents[4]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
