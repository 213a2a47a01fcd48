"""Plans are frozen, deterministic data with the inputs and outputs that their builders promise."""

import dataclasses

import pytest

from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.fully_connected import FullyConnected
from gpu_backend.plan.builder import PlanBuilder
from gpu_backend.plan.mapping import build_mapping_plan
from gpu_backend.plan.plan import Plan, PlanKey
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from tests.helpers.networks import NetworkOptions, make_spec
from tests.helpers.stylegan_xl import StyleGANXLOptions, make_spec_xl


def shapes(plan: Plan, role: str) -> dict[str, tuple[int, ...]]:
    return {buffer.name: buffer.shape for buffer in plan.buffers if buffer.role == role}


def test_building_twice_gives_equal_plans() -> None:
    spec = make_spec(NetworkOptions(resolution=64, architecture="resnet"))
    assert build_synthesis_plan(spec, "id", batch=2) == build_synthesis_plan(spec, "id", batch=2)
    assert build_mapping_plan(spec, "id") == build_mapping_plan(spec, "id")


def test_keys_are_hashable_and_tell_plans_apart() -> None:
    spec = make_spec(NetworkOptions(resolution=32))
    keys = {
        build_synthesis_plan(spec, "id").key,
        build_synthesis_plan(spec, "id", batch=2).key,
        build_synthesis_plan(spec, "id", resolution=16).key,
        build_synthesis_plan(spec, "other").key,
        build_synthesis_plan(spec, "id", precision="fp16").key,
        build_mapping_plan(spec, "id").key,
        build_mapping_plan(spec, "id", precision="fp16").key,
    }
    assert len(keys) == 7
    assert build_synthesis_plan(spec, "id", resolution=32).key == build_synthesis_plan(spec, "id").key
    assert build_synthesis_plan(spec, "id").key == PlanKey("id", "synthesis", 1, 32)


def test_every_quantity_that_a_gesture_moves_is_an_input() -> None:
    spec = make_spec(NetworkOptions(resolution=16, w_dim=8))
    plan = build_synthesis_plan(spec, "id", batch=3)
    assert shapes(plan, "input") == {
        "ws": (3, 6, 8),
        "noise_source": (4,),
        "noise_gain": (5,),
    }
    assert shapes(plan, "output") == {"image": (3, 16, 16, 3), "pixels": (3, 16, 16, 4), "flags": (3,)}
    assert {field.name for field in dataclasses.fields(PlanKey)} == {
        "model_id",
        "part",
        "batch",
        "resolution",
        "precision",
        "tap",
        "edits",
    }


def test_a_plan_for_half_precision_keeps_activations_in_it_and_nothing_else() -> None:
    spec = make_spec(NetworkOptions(architecture="resnet"))
    plan = build_synthesis_plan(spec, "id", precision="fp16")
    halves = {buffer.name for buffer in plan.buffers if buffer.dtype == "float16"}
    others = {buffer.name for buffer in plan.buffers if buffer.dtype == "float32"}
    layers = {layer.name for layer in spec.layers if layer.kind != "to_rgb"}
    assert halves == layers | {"b4.const", "b8.sum", "b16.sum"}
    assert others == {"ws", "noise_gain", "styles", "demod", "image"}
    assert {buffer.dtype for buffer in build_mapping_plan(spec, "id", precision="fp16").buffers} == {"float32"}


def test_a_network_without_noise_has_no_noise_inputs() -> None:
    spec = make_spec(NetworkOptions(use_noise=False))
    assert list(shapes(build_synthesis_plan(spec, "id"), "input")) == ["ws"]


def test_a_conditional_mapping_takes_labels() -> None:
    spec = make_spec(NetworkOptions(c_dim=3, z_dim=7, mapping_widths=(5, 9), embed_dim=4))
    plan = build_mapping_plan(spec, "id", batch=2)
    assert shapes(plan, "input") == {"z": (2, 7), "c": (2, 3)}
    assert shapes(plan, "output") == {"w": (2, 9)}
    assert [step.layer for step in plan.steps] == [
        "mapping.normalize",
        "mapping.embed",
        "mapping.embed.normalize",
        "mapping.concat",
        "mapping.fc0",
        "mapping.fc1",
    ]


def test_a_table_of_classes_is_looked_into_before_a_layer_with_an_activation() -> None:
    spec = make_spec_xl(StyleGANXLOptions())
    plan = build_mapping_plan(spec, "id", batch=2)
    assert shapes(plan, "input") == {"z": (2, 6), "c": (2, 4)}
    assert [(step.layer, step.op) for step in plan.steps[1:4]] == [
        ("mapping.embed", "embedding"),
        ("mapping.embed_proj", "fully_connected"),
        ("mapping.embed.normalize", "normalize_2nd_moment"),
    ]
    assert plan.steps[2].attributes == FullyConnected(10, 6, 1.0, BiasAct.of_layer("lrelu"))
    assert shapes(build_mapping_plan(make_spec_xl(StyleGANXLOptions(c_dim=0)), "id"), "input") == {"z": (1, 6)}


def test_a_joined_label_is_normalised_with_z() -> None:
    plan = build_mapping_plan(make_spec(NetworkOptions(c_dim=3, joins_label=True)), "id")
    assert [step.layer for step in plan.steps][:3] == ["mapping.embed", "mapping.concat", "mapping.normalize"]
    assert [step.layer for step in plan.steps].count("mapping.normalize") == 1


def test_an_early_exit_leaves_out_the_layers_above() -> None:
    spec = make_spec(NetworkOptions(resolution=64))
    full, early = build_synthesis_plan(spec, "id"), build_synthesis_plan(spec, "id", resolution=16)
    assert shapes(early, "output") == {"image": (1, 16, 16, 3), "pixels": (1, 16, 16, 4), "flags": (1,)}
    layers = [step.layer for step in early.steps][:-1]
    assert layers == [step.layer for step in full.steps][: len(layers)]
    assert (shapes(early, "input")["noise_gain"], shapes(full, "input")["noise_gain"]) == ((5,), (9,))
    assert sum(step.flops for step in early.steps) < sum(step.flops for step in full.steps)


@pytest.mark.parametrize(("architecture", "resolution"), [("resnet", 16), ("orig", 16), ("skip", 24), ("skip", 64)])
def test_a_resolution_without_a_picture_is_refused(architecture: str, resolution: int) -> None:
    spec = make_spec(NetworkOptions(resolution=32, architecture=architecture))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"not of {resolution}"):
        build_synthesis_plan(spec, "id", resolution=resolution)


def test_costs_of_the_published_256_network() -> None:
    """14.90 GMAC by the transposed form with its 0.07 of FIR counted by taps that meet a sample once an axis."""
    spec = make_spec(NetworkOptions(resolution=256, channel_base=16384, channel_max=512, w_dim=512))
    plan = build_synthesis_plan(spec, "id")
    convolutions = sum(step.attributes.flops(1) for step in plan.steps if step.op == "modulated_conv")
    assert convolutions == pytest.approx(2 * 10.4e9, rel=0.02)
    assert sum(step.flops for step in plan.steps) == pytest.approx(2 * 14.97e9, rel=0.01)
    assert all(step.nbytes > 0 for step in plan.steps)


def test_a_name_is_declared_once_and_before_its_use() -> None:
    plan = PlanBuilder(PlanKey("id", "synthesis", 1))
    plan.buffer("x", (1,), "input")
    with pytest.raises(ValueError, match="already"):
        plan.buffer("x", (1,), "input")
    with pytest.raises(ValueError, match="unknown buffer"):
        plan.step("layer", "add", None, ("x", "y"), ("z",))
