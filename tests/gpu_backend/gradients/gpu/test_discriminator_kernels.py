"""The kernels of a discriminator's features compile for every GPU that renders, and spill nothing. Needs no GPU."""

import pytest

from gpu_backend.gradients.gpu.discriminator_kernels import own_kernels_of_discriminator
from tests.helpers.kernel_checks import ARCHITECTURES, assert_compiles, dealt

_THREADS = {
    "discriminator_rgb": 256,
    "discriminator_rgb_adjoint": 256,
    "discriminator_filter_adjoint": 512,
    "discriminator_skip": 512,
    "gradient_narrow_up_adjoint": 512,
    "gradient_patch_conv": 256,
    "gradient_up_adjoint": 256,
}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernels_compile_and_spill_nothing(architecture: str) -> None:
    recipes = own_kernels_of_discriminator(4, 3, architecture)
    for recipe in dealt(recipes, architecture):
        blocks = 2 if recipe.stem == "discriminator_conv" else int(dict(recipe.defines).get("WARPGROUPS", 1))
        is_heavy = architecture in ("sm_75", "sm_80", "sm_90a")
        assert_compiles(recipe, architecture, blocks * _THREADS.get(recipe.stem, 128), is_heavy=is_heavy)
