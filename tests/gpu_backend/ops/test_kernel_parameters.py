"""The structure of a kernel's parameters has what the compiler reads, and no kernel ignores a parameter."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from gpu_backend.cuda.compiling.compiler import compile_kernel
from gpu_backend.cuda.driver.arguments import sizes_of
from gpu_backend.gradients.gpu import kernels as gradient_kernels
from gpu_backend.ops import kernels
from gpu_backend.ops.kernels.parameters import declared_parameters, parameters_dtype
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.training import kernels as training_kernels
from tests.helpers.hand_kernels import hand_kernel
from tests.helpers.kernel_image import parameter_sizes

PACKAGES = (kernels, gradient_kernels, training_kernels)
SOURCES = sorted(path for package in PACKAGES for path in Path(str(package.__file__)).parent.glob("*.cu"))
EVERYTHING = dict.fromkeys(("USE_TMA", "HAS_SKIP", "HAS_RGB", "HAS_MOMENTS", "ADDS_PICTURE", "RGB"), "1") | {
    "SPLIT_K": "2"
}


def headers_of(path: Path) -> dict[str, str]:
    """Parts beside a source and those that all share."""
    folders = (path.parent, Path(str(kernels.__file__)).parent)
    return {part.name: part.read_text("utf-8") for folder in folders for part in folder.glob("parts/*.cuh")}


def passed_on(used: set[str], headers: dict[str, str]) -> set[str]:
    """Parameters that a kernel passes on by a macro X_ARGUMENTS, and that the part which defines it uses."""
    found: set[str] = set()
    for header in headers.values():
        text = header.replace("\\\n", " ")
        code = re.sub(r"^ *#define .*$", "", text, flags=re.MULTILINE)
        for name, arguments in re.findall(r"^#define (\w+_ARGUMENTS) (.*)$", text, flags=re.MULTILINE):
            if name in used:
                found |= set(re.findall(r"\w+", arguments)) & set(re.findall(r"\w+", code))
    return found


def pasted(text: str, body: str) -> set[str]:
    """Parameters that a body names by a macro of this file which joins a name and a number."""
    found: set[str] = set()
    defined = re.findall(r"^#define (\w+)\((\w+)\) (.*)$", text.replace("\\\n", " "), flags=re.MULTILINE)
    for macro, argument, code in defined:
        numbers = re.findall(rf"\b{argument}##(\d+)", code)
        found |= {name + number for name in re.findall(rf"\b{macro}\((\w+)\)", body) for number in numbers}
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_kernel_ignores_a_parameter(path: Path) -> None:
    text = path.read_text("utf-8")
    declared = declared_parameters(path.stem, text, headers_of(path), EVERYTHING)
    assert parameters_dtype(declared).names == tuple(name for _, name in declared)
    body = text[text.index('extern "C" __global__') :].partition(") {")[2]
    stand_in = r"^    .* = nullptr;$"  # names a parameter that a variant does not take
    used = set(re.findall(r"\w+", re.sub(stand_in, "", body, flags=re.MULTILINE)))
    used |= passed_on(used, headers_of(path)) | pasted(text, body)
    assert [name for _, name in declared if name not in used] == []


def test_the_compiler_knows_the_parameters_that_the_structure_has() -> None:
    source = """
    struct __align__(64) TensorMap { unsigned long long words[16]; };
    #define SOME_PARAMETERS \\
        float* __restrict__ y, \\
        unsigned count
    extern "C" __global__ void mixed(
        int first,
    #if USE_TMA
        const __grid_constant__ TensorMap map,
    #endif
    #if SPLIT_K > 1
        float* workspace,
    #endif
    #if !USE_TMA
        int unused,
    #endif
        float gain, SOME_PARAMETERS) { y[first] = gain * count + (float)map.words[3]; }
    """
    kernel = hand_kernel("mixed", source, (("USE_TMA", "1"), ("SPLIT_K", "1")))
    assert kernel.parameters.names == ("first", "map", "gain", "y", "count")
    assert sizes_of(kernel.parameters) == (4, 128, 4, 8, 4)
    for architecture in ("sm_75", "sm_90a"):
        assert parameter_sizes(compile_kernel(kernel, architecture).cubin) == sizes_of(kernel.parameters)


def test_a_real_kernels_machine_code_takes_what_its_structure_has() -> None:
    kernel = KernelRecipe("to_rgb", (("IMG_CHANNELS", "3"), ("TAPS", "4"), ("PIXELS", "1")))
    assert parameter_sizes(compile_kernel(kernel, "sm_80").cubin) == sizes_of(kernel.parameters)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("double x", "x has the type 'double'"),
        ("const bool is_there", "is_there has the type 'const bool'"),
        ("\n#if defined(A)\nint x\n#endif\n", "cannot depend on"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, message: str) -> None:
    source = f'extern "C" __global__ void odd({text}) {{ }}'
    with pytest.raises(ValueError, match=re.escape(message)):
        _ = hand_kernel("odd", source).parameters


def test_a_source_without_the_entry_point_is_refused() -> None:
    with pytest.raises(ValueError, match="has no entry point lost"):
        _ = hand_kernel("lost", 'extern "C" __global__ void found() {}').parameters


def test_a_kernel_without_parameters_has_an_empty_structure() -> None:
    assert KernelRecipe("empty").parameters == np.dtype([])
