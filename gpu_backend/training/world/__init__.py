"""Landscapes without end, each from named factors and a seed, drawn in torch: pictures whose truth is known."""

from gpu_backend.training.world.factors import FACTORS, Factor, sample_factors
from gpu_backend.training.world.picture import draw

__all__ = ["FACTORS", "Factor", "draw", "sample_factors"]
