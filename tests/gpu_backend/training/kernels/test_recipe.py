"""The trainer's kernels compile everywhere and spill nothing. Needs no GPU."""

from pathlib import Path

import pytest
import torch

from gpu_backend.training.kernels.recipe import THREADS, training_kernel, usual_kernels, vector_of
from tests.helpers.kernel_checks import ARCHITECTURES, assert_compiles, dealt

KERNELS = Path(__file__).parents[4] / "gpu_backend" / "training" / "kernels"
USUAL = tuple(dict.fromkeys(recipe for dtype in (torch.bfloat16, torch.float16) for recipe in usual_kernels(dtype)))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernels_compile_and_spill_nothing(architecture: str) -> None:
    heaviest, *others = dealt(USUAL, architecture)
    assert_compiles(heaviest, architecture, THREADS, is_heavy=architecture in ("sm_75", "sm_90a"))
    for recipe in others:
        assert_compiles(recipe, architecture, THREADS)


def test_every_source_and_every_part_is_used() -> None:
    assert {recipe.stem for recipe in USUAL} == {path.stem for path in KERNELS.glob("*.cu")}
    included = {name for recipe in USUAL for name in recipe.headers}
    assert included == {f"parts/{path.name}" for path in KERNELS.glob("parts/*.cuh")}


def test_macros_make_another_kernel() -> None:
    first, second = (training_kernel("filtered", torch.float32, 4, KIND=0, PAD=pad, ROWS=8) for pad in (1, 2))
    assert first != second
    assert "#define PAD 2\n" in second.source
    assert "struct Elements" in second.headers["parts/elements.cuh"]


def test_a_thread_takes_sixteen_bytes_of_channels_or_one_channel() -> None:
    assert vector_of(torch.bfloat16, 64) == 8
    assert vector_of(torch.float32, 64) == 4
    assert vector_of(torch.float32, 3) == 1
    assert vector_of(torch.bfloat16, 2052) == 0, "too many for a block"
    assert vector_of(torch.float64, 64) == 0
