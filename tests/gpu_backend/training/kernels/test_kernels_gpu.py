"""Kernels beside the plain passes, on a GPU: all forms, types and odd sizes."""

import itertools

import pytest
import torch
from torch import Tensor

from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.training.kernels import act as kernels
from gpu_backend.training.kernels.filters import run_filter
from gpu_backend.training.kernels.launcher import can_launch, kernels_problem
from gpu_backend.training.networks import act_passes as plain
from gpu_backend.training.networks.filters import DOUBLE, HALVE, SMOOTH_DOWN, SMOOTH_UP, filtered_plainly

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

ACTS = (BiasAct.of_layer("lrelu", 0.7, 1.2), BiasAct(), BiasAct(clamp=0.8))
TYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
SHAPES = pytest.mark.parametrize(
    "shape", [(2, 8, 5, 7), (3, 24, 9, 4), (2, 3, 6, 5), (2, 512, 4, 4), (8, 64, 64, 64), (1, 64, 256, 256)], ids=str
)


def picture(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return torch.randn(shape, device="cuda").to(dtype).contiguous(memory_format=torch.channels_last)


def expect_same(came: tuple[Tensor | None, ...], expected: tuple[Tensor | None, ...], what: object) -> None:
    for index, (ours, theirs) in enumerate(zip(came, expected, strict=True)):
        if theirs is None:
            assert ours is None, (what, index)
            continue
        assert ours is not None, (what, index)
        distance = (ours.double() - theirs.double()).norm() / theirs.double().norm().clamp(min=1e-6)
        limit = 1e-4 if ours.dtype == torch.float32 else 4e-3
        assert distance < limit, (what, index, distance.item())


def test_they_are_ready() -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        assert kernels_problem(0, dtype) == ""
        assert can_launch(picture((1, 8, 4, 4), dtype))


@TYPES
@SHAPES
def test_passes_are_the_plain_ones(dtype: torch.dtype, shape: tuple[int, int, int, int]) -> None:
    batch, channels, height, width = shape
    torch.manual_seed(0)
    x, dy, ddx = (picture(shape, dtype) for _ in range(3))
    scale, dds, bias = (
        torch.randn(size, device="cuda") for size in ((batch, channels), (batch, channels), (channels,))
    )
    noise, strength = torch.randn(batch, 1, height, width, device="cuda").to(dtype), torch.tensor(0.3, device="cuda")
    both = (False, True)
    for act, has_scale, has_noise, has_bias in itertools.product(ACTS, both, both, both):
        s, b = scale if has_scale else None, bias if has_bias else None
        n, r = (noise, strength) if has_noise else (None, None)
        form = (act, has_scale, has_noise, has_bias)
        y = plain.layer(x, s, n, r, b, act)
        expect_same((kernels.layer(x, s, n, r, b, act),), (y,), form)
        at, beside = None if act == BiasAct() else y, x if has_scale else None
        for wants_weights in (False, True):
            wanted = (has_scale, has_noise and wants_weights, has_bias and wants_weights)
            arguments = (dy, beside, at, s, n, act, wanted)
            expect_same(kernels.gradients(*arguments), plain.gradients(*arguments), (form, wanted))
        for first, second in ((ddx, dds), (ddx, None), (None, dds)):
            if second is not None and not has_scale:
                continue
            came = kernels.second_gradients(dy, beside, at, s, act, first, second)
            expected = plain.second_gradients(dy, beside, at, s, n, act, first, second, None, None)
            expect_same(came, expected, (form, first is not None, second is not None))


@TYPES
@SHAPES
def test_filters_are_the_plain_ones(dtype: torch.dtype, shape: tuple[int, int, int, int]) -> None:
    even = (*shape[:2], shape[2] // 2 * 2, shape[3] // 2 * 2)
    for by in (DOUBLE, HALVE, SMOOTH_UP, SMOOTH_DOWN, DOUBLE.back, HALVE.back):
        x = picture(even if by.kind == "down" else shape, dtype)
        came = run_filter(x, by.kind, by.pad, by.gain)
        expect_same((came,), (filtered_plainly(x, by),), by)
