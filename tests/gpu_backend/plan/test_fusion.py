"""Which steps of a plan become one kernel, without a GPU."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from gpu_backend.model.spec import Architecture, NetworkSpec
from gpu_backend.plan import fusion
from gpu_backend.plan.edit_inputs import bendable_layers
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.fusion import FusedStep, fuse, kept_regions, multiplies_fp8
from gpu_backend.plan.plan import Plan, PlanEdits, PlanKey
from gpu_backend.recipe import RowRange
from tests.helpers.networks import NetworkOptions, make_spec
from tests.helpers.stylegan1 import make_spec1
from tests.helpers.stylegan3 import R, StyleGAN3Options, make_spec as make_spec3

SPECS: dict[str, NetworkSpec] = {
    "skip": make_spec(NetworkOptions(32)),
    "resnet": make_spec(NetworkOptions(32, architecture="resnet")),
    "orig": make_spec(NetworkOptions(32, architecture="orig")),
    "AdaIN": make_spec1(resolution=32),
    "T": make_spec3(StyleGAN3Options(32)),
    "R": make_spec3(StyleGAN3Options(32, **R)),
}
FAMILIES = pytest.mark.parametrize("family", SPECS)


def plan_of(family: str, part: str = "synthesis", tap: str = "") -> Plan:
    spec = SPECS[family]
    return build_plan(spec, PlanKey("model", part, 1, 0 if tap else spec.resolution, "fp16", tap))  # type: ignore[arg-type]


def fused(family: str, layer: str, op: str = "", tap: str = "") -> FusedStep:
    found = [step for step in fuse(plan_of(family, tap=tap)) if step.main.layer == f"synthesis.{layer}"]
    return next(step for step in found if op in ("", step.main.op))


@FAMILIES
@pytest.mark.parametrize("part", ["mapping", "synthesis"])
def test_every_step_of_a_plan_is_computed_once(family: str, part: str) -> None:
    plan = plan_of(family, part)
    computed = Counter(id(step) for item in fuse(plan) for step in (item.main, *item.absorbed))
    assert computed == Counter(id(step) for step in plan.steps)


@FAMILIES
def test_a_bent_layer_is_stored_without_a_style_and_what_is_bent_takes_its_place(family: str) -> None:
    spec = SPECS[family]
    edits = PlanEdits(tuple(sorted(bendable_layers(spec))), shifts_styles=True)
    plan = build_plan(spec, PlanKey("model", "synthesis", 1, spec.resolution, "fp16", edits=edits))
    steps = fuse(plan)
    computed = Counter(id(step) for item in steps for step in (item.main, *item.absorbed))
    assert computed == Counter(id(step) for step in plan.steps)
    stored = {step.y: step for step in steps if step.y is not None}
    bends = [step for step in steps if step.main.op == "bend_channels"]
    assert len(bends) == len(edits.bent)
    assert all(stored[step.x].next_style is None and stored[step.x].to_rgb is None for step in bends)
    products = [step.to_rgb.layer for step in steps if step.to_rgb is not None]
    assert products == [step.layer for step in plan.steps if step.op == "to_rgb"]


@FAMILIES
def test_every_layer_that_is_shown_is_stored(family: str) -> None:
    for layer in SPECS[family].layers:
        steps = fuse(plan_of(family, tap=layer.name))
        shown = next(step for step in steps if step.main.op == "tap_display")
        plain = {step.main.outputs[0] for step in steps if step.is_shown and step.main.op == "skip_conv"}
        assert shown.x in {step.y for step in steps} | plain


@FAMILIES
def test_the_products_of_every_torgb_are_computed_once(family: str) -> None:
    plan = plan_of(family)
    computed = [step.to_rgb.layer for step in fuse(plan) if step.to_rgb is not None]
    assert computed == [step.layer for step in plan.steps if step.op == "to_rgb"]


def test_a_convolution_takes_in_noise_the_next_style_and_torgb() -> None:
    assert str(fused("skip", "b16.conv1")) == (
        "synthesis.b16.conv1: modulated_conv + noise 4 + style of synthesis.b32.conv0"
        " + products of synthesis.b16.torgb -> b16.conv1"
    )


def test_the_last_convolution_stores_nothing_but_torgb_products() -> None:
    last = fused("skip", "b32.conv1")
    assert (last.y, last.y_raw) == (None, None)
    assert last.to_rgb is not None
    assert fused("skip", "b32.conv1", tap="b32.conv1").y == "b32.conv1"


def test_a_picture_before_the_last_is_added_up_beside_the_next_up_convolution() -> None:
    step = fused("skip", "b16.conv0")
    assert step.picture is not None
    assert step.picture.layer == "synthesis.b8.torgb"
    assert step.picture in step.absorbed
    assert str(step).endswith("picture of synthesis.b8.torgb -> b16.conv0")
    assert fused("skip", "b4.conv1").picture is None
    assert all(item.picture is None for family in ("resnet", "AdaIN", "T") for item in fuse(plan_of(family)))


def test_the_end_of_a_resnet_block_adds_the_skip_and_stores_both_outputs() -> None:
    end = fused("resnet", "b16.conv1")
    assert end.skip is not None
    assert end.skip.op == "skip_conv"
    assert (end.y, end.y_raw) == ("b16.sum", "b16.sum/raw")
    assert [step.op for step in end.absorbed] == ["add"]
    assert fused("resnet", "b16.skip").x == "b8.sum/raw"


def test_a_stylegan1_convolution_accumulates_moments_and_its_last_layer_is_not_stored() -> None:
    conv, last = fused("AdaIN", "b16.conv1"), fused("AdaIN", "b32.conv1")
    assert conv.moments
    assert conv.to_rgb is None
    assert last.moments
    assert last.y is None
    assert last.to_rgb is not None
    assert str(fused("AdaIN", "b4.input")) == "synthesis.b4.input: adain_input + noise 0 + constant -> b4.input"


def test_a_normalisation_is_folded_into_the_convolution_that_alone_reads_a_large_layer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fusion, "LEAST_FOLDED_SIDE", 16)
    steps = fuse(plan_of("AdaIN"))
    folded = {step.main.layer: step.folds_into.main.layer for step in steps if step.folds_into is not None}
    assert folded == {f"synthesis.b{side}.conv0": f"synthesis.b{side}.conv1" for side in (16, 32)}
    assert "normalisation + weights of synthesis.b32.conv1" in str(fused("AdaIN", "b32.conv0"))
    assert fused("AdaIN", "b32.conv0", tap="b32.conv0").folds_into is None
    edits = PlanEdits(tuple(sorted(bendable_layers(SPECS["AdaIN"]))))
    for changes in ({"batch": 2}, {"precision": "tf32"}, {"edits": edits}):
        key = replace(plan_of("AdaIN").key, **changes)
        assert all(step.folds_into is None for step in fuse(build_plan(SPECS["AdaIN"], key)))


@pytest.mark.parametrize("family", ["T", "R"])
def test_a_stylegan3_style_is_taken_in_by_the_filtered_activation_before_it(family: str) -> None:
    layers = [step for step in fuse(plan_of(family)) if step.main.op == "filtered_lrelu"]
    convolutions = [step for step in fuse(plan_of(family)) if step.main.op == "modulated_conv"]
    assert all(step.next_style is None for step in convolutions)
    for step, following in zip(layers, convolutions[1:], strict=False):
        assert step.next_style is not None
        assert step.next_style.layer == following.main.layer


def test_the_constant_is_made_with_the_styles_and_the_display_with_the_last_torgb() -> None:
    steps = fuse(plan_of("skip"))
    assert [step.op for step in steps[0].absorbed] == ["constant"]
    assert [step.op for step in steps[-1].absorbed] == ["to_display"]


def test_fused_steps_are_frozen_and_equal_plans_have_equal_ones() -> None:
    assert fuse(plan_of("resnet")) == fuse(plan_of("resnet"))
    with pytest.raises(FrozenInstanceError):
        fuse(plan_of("skip"))[0].x = ""  # type: ignore[misc]


@FAMILIES
def test_blended_samples_take_the_place_of_the_layer_before_and_pictures_that_of_the_display(family: str) -> None:
    spec = SPECS[family]
    edits = PlanEdits(blends=(RowRange(), RowRange(1, 2)))
    plan = build_plan(spec, PlanKey("model", "synthesis", 1, spec.resolution, "fp16", edits=edits))
    steps = fuse(plan)
    computed = Counter(id(step) for item in steps for step in (item.main, *item.absorbed))
    assert computed == Counter(id(step) for step in plan.steps)
    stored = {step.y: step for step in steps if step.y is not None}
    blends = [step for step in steps if step.main.op == "blend_samples"]
    between = [step for step in blends if not step.main.attributes.is_picture]
    assert all(stored[step.x].next_style is None and stored[step.x].to_rgb is None for step in between)
    assert all(step.picture is None for step in steps), "no picture waits for the next up-convolution"
    products = [step.to_rgb.layer for step in steps if step.to_rgb is not None]
    assert products == [step.layer for step in plan.steps if step.op == "to_rgb"]
    display = next(step for step in steps if any(one.op == "to_display" for one in step.absorbed))
    assert display.main.op == ("to_rgb" if family == "AdaIN" else "blend_samples")


@FAMILIES
def test_kept_second_latents_are_stored_without_a_style_and_each_part_is_fused_by_itself(family: str) -> None:
    spec = SPECS[family]
    edits = PlanEdits(blends=(RowRange(), RowRange(1, 2)), keeps_second=True)
    plan = build_plan(spec, PlanKey("model", "synthesis", 1, spec.resolution, "fp16", edits=edits))
    steps = fuse(plan)
    computed = Counter(id(step) for item in steps for step in (item.main, *item.absorbed))
    assert computed == Counter(id(step) for step in plan.steps)
    first = {id(step) for step in plan.steps[: plan.kept_steps]}
    in_first = [id(step.main) in first for step in steps]
    assert in_first == sorted(in_first, reverse=True)
    written = {
        name for step, is_first in zip(steps, in_first, strict=True) if is_first for name in (step.y, step.y_raw)
    }
    pictures = {step.main.outputs[0] for step in steps if step.main.op == "to_rgb"}
    beside = {step.picture.outputs[0] for step in steps if step.picture is not None}
    assert kept_regions(plan) <= written | pictures | beside
    assert len(kept_regions(plan)) == sum(buffer.role == "kept" for buffer in plan.buffers)
    alone = build_plan(spec, PlanKey("model", "synthesis", 1, spec.resolution, "fp16"))
    assert not kept_regions(alone)


@pytest.mark.parametrize("family", ["skip", "resnet"])
def test_a_layer_may_take_in_the_blend_with_one_kept_latent_and_its_style_and_products(family: str) -> None:
    spec = SPECS[family]
    edits = PlanEdits(blends=(RowRange(), RowRange(1, 2)), keeps_second=True)
    plan = build_plan(spec, PlanKey("model", "synthesis", 1, spec.resolution, "fp8", edits=edits))
    steps = fuse(plan)
    taken = {id(step.blended.blend): step.blended for step in steps if step.blended is not None}
    pairs = [(before, step) for before, step in itertools.pairwise(steps) if step.main.op == "blend_samples" and step.x]
    blends = [(before, step) for before, step in pairs if step.main.attributes.reads_kept]
    assert {len(step.main.attributes.blends) for _, step in blends} == {1, 2}
    for before, step in blends:
        is_taken = id(step.main) in taken
        assert is_taken == (len(step.main.attributes.blends) == 1)
        if not is_taken:
            continue
        whole = taken[id(step.main)]
        assert whole is before.blended
        assert whole.main is before.main
        assert (whole.x, whole.y) == (before.x, step.y)
        assert whole.next_style is step.next_style
        assert step.main in whole.absorbed
        assert set(step.absorbed) <= set(whole.absorbed)
        assert not whole.stores_fp8
        if step.main.attributes.is_picture:
            assert whole.to_rgb is before.to_rgb
        else:
            assert whole.to_rgb is step.to_rgb
            readers = {one.op for one in plan.steps if step.main.outputs[0] in one.inputs}
            assert (whole.y_raw is not None) == ("skip_conv" in readers)
            assert "perhaps the blend" in str(before)


def fp8_steps(plan: Plan) -> dict[str, str]:
    """Layers that store e4m3, and the layer that reads it."""
    return {
        step.main.layer: step.next_style.layer
        for step in fuse(plan)
        if step.stores_fp8 and step.next_style is not None and "e4m3" in str(step)
    }


@pytest.mark.parametrize("architecture", ["skip", "resnet", "orig"])
def test_in_fp8_plans_up_convolutions_from_64_on_store_e4m3_for_the_convolution_after_them(
    architecture: Architecture,
) -> None:
    spec = make_spec(NetworkOptions(128, architecture=architecture, channel_base=2048, channel_max=32))
    plan = build_plan(spec, PlanKey("model", "synthesis", 1, 128, "fp8"))
    assert fp8_steps(plan) == {f"synthesis.b{side}.conv0": f"synthesis.b{side}.conv1" for side in (64, 128)}
    assert multiplies_fp8(plan)
    assert not fp8_steps(build_plan(spec, PlanKey("model", "synthesis", 1, 128, "fp16")))
    drafts = [side for side in spec.draft_resolutions if side < 64]
    assert not any(multiplies_fp8(build_plan(spec, PlanKey("model", "synthesis", 1, side, "fp8"))) for side in drafts)


def reading_fp8(plan: Plan) -> dict[str, str]:
    """Layers that store e4m3 for an up-convolution, and that one, where a GPU has kernels for it."""
    stored = [step for step in fuse(plan, up_convs_read_fp8=True) if step.stores_fp8]
    readers = [(step.main.layer, step.next_style) for step in stored if step.main.op == "modulated_conv"]
    return {layer: reader.layer for layer, reader in readers if reader is not None}


@pytest.mark.parametrize("architecture", ["skip", "orig", "resnet"])
def test_wide_up_convolutions_read_e4m3_where_a_gpu_has_kernels_for_that(architecture: Architecture) -> None:
    spec = make_spec(NetworkOptions(128, architecture=architecture, channel_base=128 * 64, channel_max=256))
    plan = build_plan(spec, PlanKey("model", "synthesis", 1, 128, "fp8"))
    # A resnet's skip reads the output before the style, too.
    wide = {"synthesis.b32.conv1": "synthesis.b64.conv0", "synthesis.b64.conv1": "synthesis.b128.conv0"}
    assert reading_fp8(plan) == ({} if architecture == "resnet" else wide)
    assert not reading_fp8(build_plan(spec, PlanKey("model", "synthesis", 1, 128, "fp16")))
    assert all(step.y_raw is None for step in fuse(plan, up_convs_read_fp8=True) if step.stores_fp8)
    products = [step.to_rgb is not None for step in fuse(plan, up_convs_read_fp8=True) if step.stores_fp8]
    assert any(products) == (architecture == "skip")


def test_an_up_convolution_that_stores_fp16_reads_fp16() -> None:
    spec = make_spec(NetworkOptions(64, channel_base=64 * 64, channel_max=256))
    assert reading_fp8(build_plan(spec, PlanKey("model", "synthesis", 1, 64, "fp8")))
    assert not reading_fp8(build_plan(spec, PlanKey("model", "synthesis", 1, 0, "fp8", "b64.conv0")))
    narrow = make_spec(NetworkOptions(64, channel_base=64 * 48, channel_max=256))
    assert not reading_fp8(build_plan(narrow, PlanKey("model", "synthesis", 1, 64, "fp8")))


def test_an_output_that_another_step_reads_too_stays_fp16() -> None:
    spec = make_spec(NetworkOptions(64, channel_base=2048, channel_max=32))
    shown = build_plan(spec, PlanKey("model", "synthesis", 1, 0, "fp8", "b64.conv0"))
    assert not multiplies_fp8(shown)
    edits = PlanEdits(tuple(sorted(bendable_layers(spec))))
    assert not multiplies_fp8(build_plan(spec, PlanKey("model", "synthesis", 1, 64, "fp8", edits=edits)))


def test_channels_that_leave_pixels_unaligned_stay_fp16() -> None:
    spec = make_spec(NetworkOptions(64, channel_base=64 * 24, channel_max=24))
    assert not multiplies_fp8(build_plan(spec, PlanKey("model", "synthesis", 1, 64, "fp8")))


@pytest.mark.parametrize("changes", [{}, R], ids=["T", "R"])
def test_in_fp8_plans_filtered_activations_from_64_on_store_e4m3_for_the_next_layer(changes: dict[str, Any]) -> None:
    spec = make_spec3(replace(StyleGAN3Options(64), **changes))
    plan = build_plan(spec, PlanKey("model", "synthesis", 1, 64, "fp8"))
    convolutions = [layer for layer in spec.layers if layer.kind == "conv"]
    expected = {
        f"synthesis.{layer.name}": f"synthesis.{following.name}"
        for layer, following in itertools.pairwise(convolutions)
        if layer.out_size >= 64
    }
    assert len(expected) >= 3
    assert fp8_steps(plan) == expected
    assert not fp8_steps(build_plan(spec, PlanKey("model", "synthesis", 1, 64, "fp16")))


@pytest.mark.parametrize(("channels", "kernel", "has_fp8"), [(1024, 3, True), (1016, 3, False), (1024, 1, False)])
def test_small_layers_of_a_stylegan3_multiply_e4m3_where_sums_are_long(
    channels: int, kernel: int, has_fp8: bool
) -> None:
    spec = make_spec3(StyleGAN3Options(16, channel_base=16 * channels, channel_max=channels, kernel=kernel))
    plan = build_plan(spec, PlanKey("model", "synthesis", 1, 16, "fp8"))
    assert multiplies_fp8(plan) == has_fp8


def test_an_output_of_a_stylegan3_that_another_step_reads_too_stays_fp16() -> None:
    spec = make_spec3(StyleGAN3Options(64))
    assert multiplies_fp8(build_plan(spec, PlanKey("model", "synthesis", 1, 64, "fp8")))
    edits = PlanEdits(tuple(sorted(bendable_layers(spec))))
    assert not multiplies_fp8(build_plan(spec, PlanKey("model", "synthesis", 1, 64, "fp8", edits=edits)))


@pytest.mark.parametrize("family", ["AdaIN", "T", "R"])
def test_small_networks_and_a_stylegan1_have_no_layers_for_fp8(family: str) -> None:
    spec = SPECS[family]
    assert not multiplies_fp8(build_plan(spec, PlanKey("model", "synthesis", 1, spec.resolution, "fp8")))


def test_the_normalisation_before_the_last_torgb_may_show_its_picture() -> None:
    steps = fuse(plan_of("AdaIN"))
    (before,) = [step for step in steps if step.shows is not None]
    assert before.main.layer == "synthesis.b32.conv1"
    assert before.shows == replace(steps[-1], to_rgb=None)
    assert [step.op for step in steps[-1].absorbed] == ["to_display"]
    assert all(step.shows is None for step in fuse(plan_of("AdaIN", tap="b32.conv1")))
