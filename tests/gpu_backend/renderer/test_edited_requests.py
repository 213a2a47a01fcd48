"""Requests with local edits: checked, rendered without new plans while amounts change, alone in a batch, on a GPU."""

import numpy as np
import pytest

from gpu_backend import Bend, LocalEdits, Model, Renderer, RequestError, StyleOffset
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
        (bent(Bend("b8.conv0", "melt", 1.0)), "must be one of gain"),  # type: ignore[arg-type]
        (bent(Bend("b8.conv0", "gain", 1.0, (999,))), "but channel 999 was requested"),
        (bent(Bend("b8.conv0", "gain", float("nan"))), "amount must be in"),
        (bent(Bend("b8.conv0", "move", 0.0, (), float("inf"))), "amount must be in"),
        (bent(Bend("b8.conv0", "scale", 0.0)), "must scale by"),
        (bent(*[Bend("b8.conv0", "gain", 1.0)] * 65), "may have 64 bends"),
        (LocalEdits(style_offsets=(StyleOffset("b8.skip", 0, 1.0),)), "has no style"),
        (LocalEdits(style_offsets=(StyleOffset("b8.conv0", -1, 1.0),)), "has the style channels 0 to"),
        (LocalEdits(style_offsets=(StyleOffset("b8.conv0", 0, float("nan")),)), "style offset must be in"),
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


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
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
    for edits in (LocalEdits(bends), LocalEdits((), offsets), LocalEdits(bends, offsets)):
        with Renderer(model, "cpu") as on_cpu, Renderer(model, "cuda", precision=precision) as on_gpu:  # type: ignore[arg-type]
            expected, found = (
                one.render(request_for(one, edits=edits, wants_image=True)).image for one in (on_cpu, on_gpu)
            )
        assert expected is not None
        assert found is not None
        off = np.abs(found - expected).max() / max(1.0, np.abs(expected).max())
        assert off <= (1e-3 if precision == "fp32" else 0.06)
