"""Features of a discriminator by the twins of own kernels."""

from __future__ import annotations

from dataclasses import replace

import torch

from gpu_backend.cuda.driver.interface import LoadedKernel
from gpu_backend.gradients.gpu.discriminator_kernels import kernels_of_discriminator
from gpu_backend.gradients.gpu.features import GpuFeatures
from gpu_backend.gradients.gpu.packed_discriminator import pack_discriminator
from gpu_backend.gradients.picture_features import PictureFeatures
from gpu_backend.model.discriminator_file import DiscriminatorWeights
from tests.helpers.fake_gpu import FAKE_GPU
from tests.helpers.gradient_twins import TwinDriver


def twin_features(
    stored: DiscriminatorWeights,
    driver: TwinDriver | None = None,
    samples: int = 2,
    architecture: str = "sm_80",
    multiprocessors: int = 4,
) -> GpuFeatures:
    """Return features by twins on the processor."""
    colours = stored.tensors[f"b{stored.sides[0]}.fromrgb.weight"].shape[1]
    recipes = kernels_of_discriminator(4, colours, architecture)
    kernels = {recipe: LoadedKernel(recipe, None, recipe.stem, 0, 0, 0) for recipe in recipes}
    gpu = replace(FAKE_GPU, multiprocessors=multiprocessors)
    driver = driver or TwinDriver()
    packed = pack_discriminator(stored)
    in_torch = PictureFeatures.of_discriminator(stored, torch.zeros(1))
    return GpuFeatures(driver.as_driver(), kernels, packed, gpu, samples, torch.device("cpu"), in_torch)
