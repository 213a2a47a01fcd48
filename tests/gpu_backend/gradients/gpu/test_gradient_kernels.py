"""The kernels of drags and searches compile for every GPU that renders, and spill nothing. Needs no GPU."""

from pathlib import Path

import pytest

from gpu_backend.gradients.gpu.discriminator_kernels import kernels_of_discriminator
from gpu_backend.gradients.gpu.kernels import kernels_of_step
from tests.helpers.kernel_checks import ARCHITECTURES, assert_compiles, dealt

KERNELS = Path(__file__).parents[4] / "gpu_backend" / "gradients" / "gpu" / "kernels"
_MOST_THREADS = 512
_THREADS = {
    "gradient_patch_conv": 256,
    "gradient_up_adjoint": 256,
    "gradient_up_conv": 256,
    "gradient_conv": 128,
    "gradient_skip": 128,
    "gradient_activation": 256,
    "gradient_handles": 1024,
}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernels_compile_and_spill_nothing(architecture: str) -> None:
    heaviest, *others = dealt(kernels_of_step(4, architecture, with_skips=True), architecture)
    blocks = 1 if heaviest.stem == "gradient_patch_conv" else 2
    assert_compiles(
        heaviest, architecture, blocks * _THREADS[heaviest.stem], is_heavy=architecture in ("sm_75", "sm_80", "sm_90a")
    )
    for recipe in others:
        warpgroups = int(dict(recipe.defines).get("WARPGROUPS", 0))
        threads = 128 * warpgroups or _THREADS.get(recipe.stem, _MOST_THREADS)
        assert_compiles(recipe, architecture, threads, is_heavy=architecture == "sm_90a")


def test_every_source_and_every_part_is_used() -> None:
    recipes = {*kernels_of_step(4, "sm_90a", with_skips=True), *kernels_of_discriminator(4, 3, "sm_90a")}
    assert {recipe.stem for recipe in recipes} == {path.stem for path in KERNELS.glob("*.cu")}
    included = {name for recipe in recipes for name in recipe.headers}
    assert included >= {f"parts/{path.name}" for path in KERNELS.glob("parts/*.cuh")}
