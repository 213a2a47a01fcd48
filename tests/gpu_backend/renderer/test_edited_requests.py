"""Requests with local edits: checked, rendered without new plans while amounts change, alone in a batch, on a GPU."""

from dataclasses import replace

import numpy as np
import pytest

from gpu_backend import (
    MASK_SIDE,
    MAX_BLENDS,
    Bend,
    CancelledError,
    Latent,
    LocalEdits,
    MaskedBlend,
    Model,
    PictureMask,
    Point,
    Recipe,
    Renderer,
    RequestError,
    RowRange,
    StoredLatent,
    StyleOffset,
    Tap,
)
from gpu_backend.ops.kernels import kernel_source
from gpu_backend.plan.edit_inputs import bendable_layers, style_lengths
from tests.helpers.fake_executor import FakeExecutor
from tests.helpers.networks import make_stylegan2
from tests.helpers.requests import request_for
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import R, make_stylegan3

MODELS: dict[str, Model] = {
    "skip": make_stylegan2(resolution=16),
    "resnet": make_stylegan2(resolution=16, architecture="resnet"),
    "AdaIN": make_stylegan1(resolution=16),
    "T": make_stylegan3(num_layers=5),
    "R": make_stylegan3(num_layers=5, **R),
}


TOP = PictureMask(bytes([255]) * (MASK_SIDE**2 // 2) + bytes(MASK_SIDE**2 // 2))
SEVEN = Recipe(Latent(Point(((7, 1.0),))))


def blended(*blends: MaskedBlend) -> LocalEdits:
    return LocalEdits(blends=blends)


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer(MODELS["skip"], executor=FakeExecutor())


def bent(*bends: Bend) -> LocalEdits:
    return LocalEdits(bends)


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        (bent(Bend("b99.conv0", "gain", 1.0)), "cannot be bent"),
        (bent(Bend("b8.torgb", "gain", 1.0)), "cannot be bent"),
        (bent(Bend("synthesis.b8.conv0", "gain", 1.0)), "named without 'synthesis.': 'b8.conv0', not 'synthesis.b8"),
        (bent(Bend("b8.conv0", "melt", 1.0)), "must be one of gain"),  # type: ignore[arg-type]
        (bent(Bend("b8.conv0", "gain", 1.0, (999,))), "but channel 999 was requested"),
        (bent(Bend("b8.conv0", "gain", float("nan"))), "amount must be in"),
        (bent(Bend("b8.conv0", "move", 0.0, (), float("inf"))), "amount must be in"),
        (bent(Bend("b8.conv0", "scale", 0.0)), "must scale by"),
        (bent(*[Bend("b8.conv0", "gain", 1.0)] * 65), "may have 64 bends"),
        (LocalEdits(style_offsets=(StyleOffset("b8.skip", 0, 1.0),)), "has no style"),
        (LocalEdits(style_offsets=(StyleOffset("b8.conv0", -1, 1.0),)), "has the style channels 0 to"),
        (LocalEdits(style_offsets=(StyleOffset("b8.conv0", 0, float("nan")),)), "style offset must be in"),
        (blended(MaskedBlend(SEVEN, TOP, RowRange(99))), "acts on rows of w in 0.."),
        (blended(MaskedBlend(SEVEN, TOP, RowRange(2, 1))), "but on 2..1 here"),
        (blended(MaskedBlend(SEVEN, TOP, strength=1.5)), "strength must be in 0..1"),
        (blended(MaskedBlend(SEVEN, TOP, softness=float("nan"))), "soft edge must be in 0..1"),
        (blended(*[MaskedBlend(SEVEN, TOP)] * 4), "may have 3 blends"),
        (blended(MaskedBlend(Recipe(Latent(StoredLatent(bytes(8), 1, 2))), TOP)), "stored latent"),
    ],
)
def test_edits_that_do_not_fit_are_refused_with_a_sentence(renderer: Renderer, edits: LocalEdits, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        renderer.render(request_for(renderer, edits=edits))


def test_dragging_an_amount_binds_one_plan() -> None:
    executor = FakeExecutor()
    renderer = Renderer(MODELS["skip"], executor=executor)
    before = len(executor.bound)
    for amount in (-1.0, 0.0, 0.5, 1.0, 2.0):
        edits = LocalEdits((Bend("b8.conv0", "gain", amount),), (StyleOffset("b4.conv1", 0, amount),))
        renderer.render(request_for(renderer, edits=edits))
    assert len(executor.bound) == before + 1
    assert {"bend/b8.conv0", "style_offsets"} <= executor.runs("synthesis")[-1].inputs


def test_bends_and_style_offsets_are_copied_only_when_they_change() -> None:
    executor = FakeExecutor()
    renderer = Renderer(MODELS["skip"], executor=executor)
    bend, offset, blend = Bend("b8.conv0", "gain", 0.5), StyleOffset("b4.conv1", 0, 0.5), MaskedBlend(SEVEN, TOP)
    first = LocalEdits((bend,), (offset,), (blend,))
    for edits in (
        first,
        LocalEdits((bend,), (offset,), (blend,)),
        replace(first, blends=(replace(blend, strength=0.5),)),
    ):
        renderer.render(request_for(renderer, edits=edits))
    other = replace(first, style_offsets=(replace(offset, amount=0.6),))
    for _ in range(2):
        renderer.render(request_for(renderer, edits=other))
    runs = executor.runs("synthesis")
    assert ["bend/b8.conv0" in run.inputs for run in runs] == [True, False, False, True, False]
    assert ["style_offsets" in run.inputs for run in runs] == [True, False, False, True, False]
    assert [run.uses_kept for run in runs] == [False, True, True, False, True]


def test_edits_of_a_failed_run_are_copied_again() -> None:
    executor = FakeExecutor()
    renderer = Renderer(MODELS["skip"], executor=executor)
    edits = [bent(Bend("b8.conv0", "gain", amount)) for amount in (0.5, 1.5)]
    renderer.render(request_for(renderer, edits=edits[0]))
    with pytest.raises(CancelledError):
        renderer.render(request_for(renderer, edits=edits[1]), should_cancel=lambda: True)
    renderer.render(request_for(renderer, edits=edits[0]))
    assert all("bend/b8.conv0" in run.inputs for run in executor.runs("synthesis"))


def test_a_drag_of_a_blend_binds_one_plan_and_copies_masks_only_when_they_change() -> None:
    executor = FakeExecutor()
    renderer = Renderer(MODELS["skip"], executor=executor)
    before = len(executor.bound)
    for strength in (1.0, 1.0, 0.5):
        for seed in (1, 2):
            edits = blended(MaskedBlend(SEVEN, TOP, strength=strength))
            renderer.render(request_for(renderer, Latent(Point(((seed, 1.0),))), edits=edits))
    assert len(executor.bound) == before + 1
    copied = ["mask/0/16" in run.inputs for run in executor.runs("synthesis")]
    assert copied == [True, False, False, False, True, False]


def test_a_batch_of_blended_pictures_runs_the_second_latent_once() -> None:
    executor = FakeExecutor()
    renderer = Renderer(MODELS["skip"], executor=executor)
    edits = blended(MaskedBlend(SEVEN, TOP))
    latents = [Latent(Point(((seed, 1.0),))) for seed in range(8)]
    frames = renderer.render_batch([request_for(renderer, latent, edits=edits) for latent in latents])
    assert [run.key.batch for run in executor.runs("synthesis")] == [8]
    assert [executor.bound[-1].held[name].shape[0] for name in ("ws", "second_ws")] == [8, 1]
    assert len(frames) == 8


def test_pictures_with_other_edits_are_not_one_batch() -> None:
    executor = FakeExecutor()
    renderer = Renderer(MODELS["skip"], executor=executor)
    edits = [bent(Bend("b8.conv0", "gain", amount)) for amount in (0.0, 1.0)]
    renderer.render_batch([request_for(renderer, edits=one) for one in edits for _ in range(8)])
    assert [run.key.batch for run in executor.runs("synthesis")] == [8, 8]


def test_a_gain_of_one_is_the_picture_without_edits_to_the_byte() -> None:
    with Renderer(MODELS["skip"], "cpu") as renderer:
        plain = renderer.render(request_for(renderer))
        at_rest = renderer.render(request_for(renderer, edits=bent(Bend("b8.conv0", "gain", 1.0))))
        changed = renderer.render(request_for(renderer, edits=bent(Bend("b8.conv0", "gain", -3.0))))
    assert at_rest.pixels.tobytes() == plain.pixels.tobytes() != changed.pixels.tobytes()


def test_a_layer_is_shown_without_blends() -> None:
    executor = FakeExecutor()
    renderer = Renderer(MODELS["skip"], executor=executor)
    renderer.render(request_for(renderer, edits=blended(MaskedBlend(SEVEN, TOP)), tap=Tap("b8.conv0")))
    renderer.render(request_for(renderer, tap=Tap("b8.conv0")))
    first, second = executor.runs("synthesis")[-2:]
    assert first.key == second.key
    assert executor.bound[-1].held["ws"].shape[0] == 1


def test_kernels_of_blends_take_as_many_masks_as_a_picture_may_have() -> None:
    header = kernel_source("blend_samples").headers["parts/masks.cuh"]
    assert f"MASKS = {MAX_BLENDS}" in header


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("precision", ["fp32", "bf16x3", "tf32", "fp16"])
def test_a_gpu_edits_as_the_cpu_does(name: str, precision: str) -> None:
    model = MODELS[name]
    layers, styled = list(bendable_layers(model.spec)), list(style_lengths(model.spec).items())
    bends = (
        Bend(layers[0], "turn", 30.0, (0, 1)),
        Bend(layers[1], "move", 0.2, (0, 2), -0.3),
        Bend(layers[1], "scale", 0.7, (1,)),
        Bend(layers[-1], "threshold", 0.1),
        Bend(layers[-1], "gain", 1.5, (0, 3)),
    )
    offsets = tuple(StyleOffset(layer, length - 1, 0.3) for layer, length in styled)
    blends = (MaskedBlend(SEVEN, TOP, RowRange(0, 3), 0.9, 0.3), MaskedBlend(SEVEN, TOP, RowRange(2), 0.7))
    for edits in (
        LocalEdits(bends),
        LocalEdits((), offsets),
        LocalEdits(bends, offsets),
        LocalEdits((), (), blends[:1]),
        LocalEdits(bends, offsets, blends),
    ):
        with Renderer(model, "cpu") as on_cpu, Renderer(model, "cuda", precision=precision) as on_gpu:  # type: ignore[arg-type]
            expected, found = (
                one.render(request_for(one, edits=edits, wants_image=True)).image for one in (on_cpu, on_gpu)
            )
        assert expected is not None
        assert found is not None
        off = np.abs(found - expected).max() / max(1.0, np.abs(expected).max())
        # In fp16 a few activations are rounded across a threshold, which cuts them off or not.
        assert off <= (1e-3 if precision in ("fp32", "bf16x3") else 0.1)


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", MODELS)
def test_a_gpu_blends_batches_as_the_cpu_does(name: str) -> None:
    model = MODELS[name]
    edits = blended(MaskedBlend(SEVEN, TOP, RowRange(0, 3), 1.0, 0.2), MaskedBlend(SEVEN, TOP, RowRange(1)))
    latents = [Latent(Point(((seed, 1.0),))) for seed in range(8)]
    with Renderer(model, "cpu") as on_cpu, Renderer(model, "cuda") as on_gpu:
        expected, found = (
            one.render_batch([request_for(one, latent, edits=edits) for latent in latents]) for one in (on_cpu, on_gpu)
        )
        for a, b in zip(expected, found, strict=True):
            assert np.abs(a.pixels.astype(int) - b.pixels).max() <= 12
