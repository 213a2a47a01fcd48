"""StyleGAN1's plans: what a hand moves, where pictures leave, and what they cost."""

import pytest

from gpu_backend.bench.random_model import random_model
from gpu_backend.bench.shapes import SHAPES
from gpu_backend.model.spec import StyleGAN1Spec
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import Plan, PlanKey
from gpu_backend.plan.stylegan1 import build_synthesis_plan
from tests.helpers.stylegan1 import make_spec1


def shapes(plan: Plan, role: str) -> dict[str, tuple[int, ...]]:
    return {buffer.name: buffer.shape for buffer in plan.buffers if buffer.role == role}


def test_inputs_and_outputs_are_those_of_other_families() -> None:
    plan = build_synthesis_plan(make_spec1(), "id", batch=3)
    assert shapes(plan, "input") == {"ws": (3, 6, 8), "noise_source": (4,), "noise_gain": (6,)}
    assert shapes(plan, "output") == {"image": (3, 16, 16, 3), "pixels": (3, 16, 16, 4), "flags": (3,)}
    assert plan.key == PlanKey("id", "synthesis", 3, 16)
    half = build_plan(make_spec1(), PlanKey("id", "synthesis", 3, 16, "fp16"))
    assert half.key.precision == "fp16"
    silent = build_synthesis_plan(make_spec1(use_noise=False), "id")
    assert shapes(silent, "input") == {"ws": (1, 6, 8)}


def test_the_full_network_runs_one_picture_and_a_draft_that_of_its_resolution() -> None:
    spec = make_spec1(resolution=64, channel_base=256)
    for resolution in (None, *spec.draft_resolutions):
        plan = build_synthesis_plan(spec, "id", resolution=resolution)
        side = resolution or 64
        assert plan.key.resolution == side
        assert [step.layer for step in plan.steps if step.op == "to_rgb"] == [f"synthesis.b{side}.torgb"]
        assert max(step.attributes.resolution for step in plan.steps if step.op.startswith("adain")) == side
        assert shapes(plan, "output")["image"] == (1, side, side, 3)
    with pytest.raises(ValueError, match=r"not 'b8\.torgb'"):
        build_synthesis_plan(make_spec1(pictures=(4,)), "id", resolution=8)


def test_a_tap_leaves_out_what_its_layer_does_not_need() -> None:
    spec = make_spec1()
    plan = build_plan(spec, PlanKey("id", "synthesis", 1, 8, tap="b8.conv1"))
    assert plan.key == PlanKey("id", "synthesis", 1, 8, tap="b8.conv1")
    assert [step.layer for step in plan.steps] == [
        "synthesis.styles",
        "synthesis.b4.input.const",
        "synthesis.b4.input",
        "synthesis.b4.conv1",
        "synthesis.b8.conv0",
        "synthesis.b8.conv1",
        "synthesis.display",
    ]
    assert "tap" in shapes(plan, "input")
    with pytest.raises(ValueError, match=r"not 'b8\.conv7'"):
        build_synthesis_plan(spec, "id", tap="b8.conv7")


def test_a_layer_s_scales_and_shifts_lie_side_by_side() -> None:
    plan = build_synthesis_plan(make_spec1(channels={4: 7, 8: 5}), "id")
    (styles,) = (step.attributes for step in plan.steps if step.op == "styles")
    places = [(slot.style_offset, slot.style_offset + slot.in_channels) for slot in styles.slots]
    assert places == [(0, 14), (14, 28), (28, 38), (38, 48), (48, 56), (56, 64)]
    assert shapes(plan, "intermediate")["styles"] == (1, 64)


def test_the_public_network_costs_what_its_layers_say() -> None:
    """Convolutions of 3 x 3, an up-convolution a quarter of one on its output's side; 22 GMAC at 1024."""
    spec = random_model(SHAPES["adain1024"]).spec
    assert isinstance(spec, StyleGAN1Spec)
    plan = build_synthesis_plan(spec, "id")
    convs = [layer for layer in spec.layers if layer.kind in ("conv", "up_conv")]
    products = sum(
        9 * layer.resolution**2 * layer.in_channels * layer.out_channels // (4 if layer.kind == "up_conv" else 1)
        for layer in convs
    )
    assert products == pytest.approx(22.2e9, rel=0.01)
    flops = sum(step.flops for step in plan.steps if step.op in ("adain_conv", "adain_up_conv"))
    assert 2 * products < flops < 2.1 * products
