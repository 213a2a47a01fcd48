"""Plans of StyleGAN3: inputs and outputs, steps, and what they cost beside published figures."""

import pytest

from gpu_backend.bench.random_model import random_model
from gpu_backend.bench.shapes import SHAPES
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import Plan, PlanKey
from gpu_backend.plan.stylegan3 import build_synthesis_plan
from tests.helpers.stylegan3 import R, StyleGAN3Options, make_spec, make_stylegan3


def shapes(plan: Plan, role: str) -> dict[str, tuple[int, ...]]:
    return {buffer.name: buffer.shape for buffer in plan.buffers if buffer.role == role}


def test_every_quantity_that_a_gesture_moves_is_an_input() -> None:
    plan = build_synthesis_plan(make_spec(StyleGAN3Options()), "id", batch=3)
    assert shapes(plan, "input") == {"ws": (3, 16, 8), "transform": (3, 3)}
    assert shapes(plan, "output") == {"image": (3, 16, 16, 3), "pixels": (3, 16, 16, 4), "flags": (3,)}
    assert plan == build_synthesis_plan(make_spec(StyleGAN3Options()), "id", batch=3)
    assert plan.key == PlanKey("id", "synthesis", 3, 16)


def test_a_tap_is_the_output_and_says_how_it_is_shown() -> None:
    plan = build_synthesis_plan(make_spec(StyleGAN3Options()), "id", tap="L1_36_6")
    assert shapes(plan, "input") == {"ws": (1, 16, 8), "transform": (3, 3), "tap": (5,)}
    assert shapes(plan, "output") == {
        "pixels": (1, 36, 36, 4),
        "flags": (1,),
        "statistics": (1, 4, 4),
        "values": (1, 36, 36),
    }
    assert plan.key == PlanKey("id", "synthesis", 1, 36, tap="L1_36_6")


def test_a_layer_is_a_convolution_and_an_activation_between_filters() -> None:
    spec = make_spec(StyleGAN3Options(num_layers=3, **R))
    plan = build_synthesis_plan(spec, "id")
    assert [(step.layer.removeprefix("synthesis."), step.op) for step in plan.steps] == [
        ("input", "fourier_features"),
        ("styles", "styles"),
        *((layer.name, op) for layer in spec.layers[:-1] for op in ("modulated_conv", "filtered_lrelu")),
        (spec.layers[-1].name, "to_rgb"),
        ("display", "to_display"),
    ]
    for step in plan.steps:
        for name in step.weights.values():
            assert name in make_stylegan3(num_layers=3, **R).weights


@pytest.mark.parametrize(
    ("name", "convolutions", "up", "down"),
    [
        ("t256", 105.4, 2.0, 2.0),
        ("r256", 45.9, 4.0, 13.9),
        ("t1024", 285.6, 10.8, 11.6),
        ("r1024", 125.2, 21.4, 76.9),
    ],
)
def test_costs_of_the_public_shapes(name: str, convolutions: float, up: float, down: float) -> None:
    """In 10^9 multiply-adds."""
    spec = random_model(SHAPES[name]).spec
    plan = build_plan(spec, PlanKey("id", "synthesis", 1, spec.resolution))
    products = sum(s.flops for s in plan.steps if s.op in ("modulated_conv", "to_rgb", "fourier_features")) / 2e9
    filters = sum(step.flops for step in plan.steps if step.op == "filtered_lrelu") / 2e9
    assert products == pytest.approx(convolutions, rel=0.005)
    assert filters == pytest.approx(up + down, rel=0.02)
    assert all(step.nbytes > 0 for step in plan.steps)
