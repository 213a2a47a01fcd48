"""Procedural landscapes from named factors and a seed, drawn in torch: training pictures with known ground truth."""

from gpu_backend.training.world.factors import FACTORS, Factor, sample_factors
from gpu_backend.training.world.picture import draw

__all__ = ["FACTORS", "Factor", "draw", "sample_factors"]
