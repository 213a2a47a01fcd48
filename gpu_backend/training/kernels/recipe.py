"""Kernel recipes of the trainer, and the variants that a training of our networks uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from gpu_backend.ops.kernels.recipe import KernelRecipe

THREADS = 256
"""Threads of a block."""

TYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}
_VECTORS = {torch.float32: 4, torch.float16: 8, torch.bfloat16: 8}


@dataclass(frozen=True, slots=True)
class TrainingKernel(KernelRecipe):
    """A kernel of the trainer."""

    @property
    def package(self) -> str:
        """The package of the trainer's kernels."""
        return __package__ or ""


def training_kernel(stem: str, dtype: torch.dtype, vector: int, **macros: int) -> TrainingKernel:
    """Return a kernel for tensors of a type; a thread processes `vector` neighbouring channels."""
    return TrainingKernel.of(stem, TYPE=TYPES[dtype], V=vector, **macros)


def vector_of(dtype: torch.dtype, channels: int) -> int:
    """Return how many neighbouring channels a thread processes; 0 if no kernel supports the tensor."""
    whole = _VECTORS.get(dtype, 0)
    vector = whole if whole and channels % whole == 0 else 1
    return vector if whole and channels // vector <= THREADS else 0


def usual_kernels(dtype: torch.dtype) -> Iterator[TrainingKernel]:
    """Yield the kernels of a training in a precision: features in that precision, pictures and last layers float32."""
    for kind, vector in dict.fromkeys(((dtype, _VECTORS[dtype]), (torch.float32, 4), (torch.float32, 1))):
        for scale, noise, bias, sloped in ((1, 0, 0, 0), (1, 1, 1, 1), (0, 0, 1, 1)):
            yield training_kernel("scaled_act", kind, vector, SCALE=scale, NOISE=noise, BIAS=bias, SLOPED=sloped)
        for scale, sloped, *sums in (
            (1, 0, 1, 0, 0),
            (1, 1, 1, 1, 1),
            (1, 1, 1, 0, 0),
            (0, 1, 0, 0, 1),
            (0, 1, 0, 0, 0),
        ):
            names = dict(zip(("SUM_X", "SUM_NOISE", "SUM_ONE"), sums, strict=True))
            yield training_kernel("scaled_act_gradients", kind, vector, SCALE=scale, SLOPED=sloped, **names)
        for scale, sloped, from_dx, from_ds in ((1, 1, 1, 1), (1, 0, 1, 1), (1, 0, 0, 1), (0, 1, 1, 0)):
            given = {"FROM_DX": from_dx, "FROM_DS": from_ds}
            yield training_kernel("scaled_act_second", kind, vector, SCALE=scale, SLOPED=sloped, **given)
        for number, pad in ((0, 1), (0, 2), (1, 1), (2, 1)):
            yield filter_kernel(kind, vector, number, pad)


def filter_kernel(dtype: torch.dtype, vector: int, kind: int, pad: int) -> TrainingKernel:
    """Return the filter of a kind: 0 for the same size, 1 for half, 2 for twice the side."""
    return training_kernel("filtered", dtype, vector, KIND=kind, PAD=pad, ROWS=FILTER_ROWS[kind])


FILTER_ROWS = (8, 4, 8)
"""Rows of a thread, by kind."""
