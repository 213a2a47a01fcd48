"""Blends of latents under masks on the CPU, against the reference and against what they should do."""

from functools import partial

import numpy as np
import pytest

from gpu_backend import MASK_SIDE, Bend, LocalEdits, MaskedBlend, PictureMask, Recipe, RowRange, StyleOffset, Tap
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.plan.edit_inputs import edit_inputs, mask_inputs
from gpu_backend.plan.tap_input import tap_input
from tests.gpu_backend.cpu.test_local_edits import FAMILIES, MODELS, plan_for, rows_of

ALL = PictureMask(bytes([255]) * MASK_SIDE**2)
TOP = PictureMask(bytes([255]) * (MASK_SIDE**2 // 2) + bytes(MASK_SIDE**2 // 2))
NOISE = np.random.default_rng(5).integers(0, 256, MASK_SIDE**2, np.uint8)

blend = partial(MaskedBlend, Recipe())


def picture(name: str, edits: LocalEdits, ws: np.ndarray, *, use_fused: bool = True, tap: str = "") -> np.ndarray:
    """The pictures of some rows of w, those of the blends' latents after them; of a tap its values."""
    model = MODELS[name]
    executor = CpuExecutor(model.weights, threads=2)
    plan = plan_for(model, edits, tap=tap, batch=len(ws) - len(edits.blends))
    samples = next(buffer.shape[0] for buffer in plan.buffers if buffer.name == "ws")
    inputs = {"ws": ws[:samples], **edit_inputs(plan, edits), **mask_inputs(plan, edits.blends)}
    outputs: tuple[str, ...] = ("image",)
    if tap:
        inputs["tap"], outputs = tap_input(Tap(tap, (1,))), ("pixels", "values")
    made = np.array(executor.bind(plan, use_fused=use_fused).run(inputs, outputs=outputs)[outputs[-1]])
    executor.close()
    return made


@FAMILIES
def test_blends_give_what_the_reference_gives(name: str) -> None:
    edits = LocalEdits(
        (Bend(list(MODELS[name].facts.layers)[1].name, "gain", 1.5, (0,)),),
        blends=(
            blend(PictureMask(NOISE.tobytes()), RowRange(1, None), 0.8),
            blend(TOP, RowRange(0, 3), 1.0, 0.2),
        ),
    )
    ws = rows_of(MODELS[name], 4)
    got, expected = picture(name, edits, ws), picture(name, edits, ws, use_fused=False)
    assert got.shape == expected.shape
    assert len(got) == 2
    np.testing.assert_allclose(got, expected, atol=2e-4 * np.abs(expected).max())
    assert np.abs(expected - picture(name, LocalEdits(edits.bends), ws[:2])).max() > 1e-2


@FAMILIES
@pytest.mark.parametrize("use_fused", [True, False])
def test_a_mask_of_all_is_the_second_picture_and_no_strength_the_first(name: str, use_fused: bool) -> None:
    ws = rows_of(MODELS[name], 2)
    first, second = picture(name, LocalEdits(), ws, use_fused=use_fused)
    (found,) = picture(name, LocalEdits(blends=(blend(ALL),)), ws, use_fused=use_fused)
    np.testing.assert_allclose(found, second, atol=1e-4 * np.abs(second).max())
    (found,) = picture(name, LocalEdits(blends=(blend(ALL, strength=0.0),)), ws, use_fused=use_fused)
    np.testing.assert_allclose(found, first, atol=1e-4 * np.abs(first).max())


@pytest.mark.parametrize("name", ["skip", "resnet", "T"])
def test_a_mask_of_the_upper_half_has_the_second_picture_at_the_top_and_the_first_at_the_bottom(name: str) -> None:
    ws = rows_of(MODELS[name], 2)
    first, second = picture(name, LocalEdits(), ws)
    (found,) = picture(name, LocalEdits(blends=(blend(TOP),)), ws)
    size = np.abs(first - second).max()
    assert np.abs(found - second)[0].max() < 0.05 * size
    assert np.abs(found - first)[-1].max() < 0.05 * size


@FAMILIES
def test_layers_after_the_last_blended_one_run_for_the_pictures_alone(name: str) -> None:
    model = MODELS[name]
    edits = LocalEdits(blends=(blend(ALL, RowRange(0, 2)), blend(ALL, RowRange(1, 1))))
    plan = plan_for(model, edits, batch=2)
    counts = [step.samples for step in plan.steps]
    assert counts == sorted(counts, reverse=True)
    assert set(counts) == {4, 2}
    ws = rows_of(model, 4)
    a, b = picture(name, edits, ws), picture(name, edits, ws, use_fused=False)
    np.testing.assert_allclose(a, b, atol=2e-4 * np.abs(b).max())


def test_coarse_rows_alone_give_the_shapes_of_the_second_in_the_rows_of_the_first() -> None:
    ws = rows_of(MODELS["skip"], 2)
    (found,) = picture("skip", LocalEdits(blends=(blend(ALL, RowRange(0, 1)),)), ws)
    mixed = np.concatenate((ws[1:, :2], ws[:1, 2:]), axis=1)
    np.testing.assert_allclose(found, picture("skip", LocalEdits(), mixed)[0], atol=1e-4)


def test_a_plan_without_a_blended_layer_runs_the_pictures_alone() -> None:
    last = MODELS["skip"].spec.num_ws - 1
    edits = LocalEdits(blends=(blend(ALL, RowRange(last, last)),))
    plan = plan_for(MODELS["skip"], edits, tap="b8.conv0")
    assert {step.samples for step in plan.steps} == {1}
    assert not mask_inputs(plan, edits.blends)


@pytest.mark.parametrize("name", ["skip", "AdaIN", "T"])
@pytest.mark.parametrize("use_fused", [True, False])
def test_a_layer_that_is_shown_is_shown_blended(name: str, use_fused: bool) -> None:
    ws = rows_of(MODELS[name], 2)
    edits = LocalEdits(blends=(blend(TOP),))
    for layer in (list(MODELS[name].facts.layers)[2].name, list(MODELS[name].facts.layers)[-1].name):
        shown = picture(name, edits, ws, tap=layer, use_fused=use_fused)
        first, second = (picture(name, LocalEdits(), one, tap=layer, use_fused=use_fused) for one in (ws[:1], ws[1:]))
        assert shown.shape == first.shape
        size = np.abs(first - second).max()
        assert np.abs(shown - second)[0, 0].max() < 0.6 * np.abs(first - second)[0, 0].max() + 0.05 * size


def test_layers_of_one_side_share_an_input() -> None:
    edits = LocalEdits(blends=(blend(TOP), blend(ALL)))
    plan = plan_for(MODELS["skip"], edits)
    assert set(mask_inputs(plan, edits.blends)) == {f"mask/{index}/{side}" for index in (0, 1) for side in (4, 8, 16)}


def test_bends_and_offsets_act_on_the_second_latent_too() -> None:
    ws = rows_of(MODELS["skip"], 2)
    changes = LocalEdits((Bend("b8.conv1", "move", 0.2),), (StyleOffset("b8.conv0", 0, 1.0),))
    second = picture("skip", changes, ws[1:])
    (found,) = picture("skip", LocalEdits(changes.bends, changes.style_offsets, (blend(ALL),)), ws)
    np.testing.assert_allclose(found, second[0], atol=1e-4)
