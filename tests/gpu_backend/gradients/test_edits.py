"""Local edits of differentiable networks, against the renderer's pictures and finite differences in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend import (
    MASK_SIDE,
    NO_EDITS,
    Bend,
    DragOptimizer,
    DragSettings,
    Handle,
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
    StyleOffset,
    Truncation,
)
from gpu_backend.gradients.latents import latent_statistics
from gpu_backend.gradients.network import DifferentiableNetwork, differentiable_network
from gpu_backend.plan.edit_inputs import bendable_layers, style_lengths
from tests.helpers.networks import make_stylegan2
from tests.helpers.requests import request_for
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import R, make_stylegan3
from tests.helpers.stylegan_xl import make_stylegan_xl

MODELS: dict[str, Model] = {
    "skip": make_stylegan2(resolution=16),
    "resnet": make_stylegan2(resolution=16, architecture="resnet"),
    "orig": make_stylegan2(resolution=16, architecture="orig", c_dim=3),
    "AdaIN": make_stylegan1(resolution=16),
    "T": make_stylegan3(num_layers=5),
    "R": make_stylegan3(num_layers=5, **R),
    "XL": make_stylegan_xl(),
}
FAMILIES = pytest.mark.parametrize("name", MODELS)
LEFT = PictureMask((bytes([255]) * (MASK_SIDE // 2) + bytes(MASK_SIDE // 2)) * MASK_SIDE)
TOP = PictureMask(bytes([255]) * (MASK_SIDE**2 // 2) + bytes(MASK_SIDE**2 // 2))


BENT = {"skip": "b8.conv0", "resnet": "b8.conv0", "AdaIN": "b8.conv0", "T": "L1_36_6"}


def seed(number: int) -> Recipe:
    return Recipe(Latent(Point(((number, 1.0),))), Truncation(0.7))


def every_edit(model: Model) -> LocalEdits:
    """Each kind of bend on another layer, offsets of the first, a middle and the last style, and two blends."""
    layers = list(bendable_layers(model.spec))
    amounts = {"gain": 1.5, "ablate": 0.5, "threshold": 0.1, "move": 0.2, "turn": 30.0, "scale": 1.5}
    bends = [
        Bend(layers[place % len(layers)], kind, amount, (), 0.1 if kind == "move" else 0.0)  # type: ignore[arg-type]
        for place, (kind, amount) in enumerate(amounts.items())
    ]
    bends.append(Bend(layers[1], "turn", -40.0, (0, 1)))
    styled = list(style_lengths(model.spec).items())
    chosen = (styled[0], styled[len(styled) // 2], styled[-1], styled[-1])
    offsets = tuple(StyleOffset(layer, length - 1, 0.5) for layer, length in chosen)
    second = seed(7)
    if model.spec.mapping.c_dim:
        second = replace(second, latent=replace(second.latent, classes=((2, 1.0),)))
    blends = (MaskedBlend(second, TOP, softness=0.2), MaskedBlend(seed(9), LEFT, RowRange(1, 2), 0.6))
    return LocalEdits(tuple(bends), offsets, blends)


def rendered(model: Model, edits: LocalEdits) -> tuple[Tensor, NDArray[np.float32]]:
    """Rows of w (1, num_ws, w_dim) and the renderer's picture, (height, width, channels)."""
    with Renderer(model, "cpu") as renderer:
        request = request_for(renderer, edits=edits, wants_image=True)
        image = renderer.render(request).image
        assert image is not None
        return torch.from_numpy(renderer.rows_of(request.blend))[None], image


@FAMILIES
def test_the_picture_with_every_edit_is_that_of_the_renderer(name: str) -> None:
    model = MODELS[name]
    edits = every_edit(model)
    rows, image = rendered(model, edits)
    network = differentiable_network(model)
    for _ in range(2):  # the second time with activations of the second latents that are known
        edited = network.edited(edits)
        found = edited.picture(rows)[0].permute(1, 2, 0).numpy()
        np.testing.assert_allclose(found, image, atol=1e-4 * max(1.0, float(np.abs(image).max())))
    plain = network.picture(rows)[0].permute(1, 2, 0).numpy()
    assert np.abs(plain - image).max() > 0.05 * np.abs(image).max(), "the edits change the picture"


@FAMILIES
def test_gradients_with_every_edit_are_those_of_finite_differences_in_double_precision(name: str) -> None:
    model = MODELS[name]
    network = differentiable_network(model, dtype=torch.float64).edited(every_edit(model))
    generator = np.random.default_rng(3)
    rows = torch.from_numpy(generator.standard_normal((1, model.spec.num_ws, model.spec.w_dim)))
    block = network.blocks[-1]
    weights = torch.from_numpy(generator.standard_normal(tuple(network.features(rows, block).shape)))

    def value(at: Tensor) -> Tensor:
        return (network.features(at, block) * weights).sum() + network.picture(at).square().sum()

    free = rows.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(value(free), free)
    for _ in range(2):
        way = torch.from_numpy(generator.standard_normal(tuple(rows.shape)))
        # Small, since thresholds and leaky ReLUs have kinks.
        difference = (value(rows + 1e-7 * way) - value(rows - 1e-7 * way)) / 2e-7
        assert float((gradient * way).sum()) == pytest.approx(float(difference), rel=1e-4)


def test_a_batch_has_the_edits_in_each_picture() -> None:
    network = differentiable_network(MODELS["skip"]).edited(every_edit(MODELS["skip"]))
    rows = network.tensor(np.random.default_rng(1).standard_normal((3, network.spec.num_ws, network.spec.w_dim), "f4"))
    alone = torch.cat([network.picture(one[None]) for one in rows])
    torch.testing.assert_close(network.picture(rows), alone, atol=1e-5, rtol=1e-4)


def test_a_picture_under_a_full_blend_has_no_gradient() -> None:
    whole = PictureMask(bytes([255]) * MASK_SIDE**2)
    network = differentiable_network(MODELS["skip"]).edited(LocalEdits(blends=(MaskedBlend(seed(7), whole),)))
    free = network.mean_w.expand(1, network.spec.num_ws, -1).clone().requires_grad_()
    (gradient,) = torch.autograd.grad(network.picture(free).square().sum(), free)
    assert not gradient.any()


@pytest.mark.parametrize("name", ["skip", "AdaIN", "T"])
def test_a_handle_on_the_second_picture_of_a_blend_does_not_pull(name: str) -> None:
    network = differentiable_network(MODELS[name])
    rows = np.random.default_rng(2).standard_normal((network.spec.num_ws, network.spec.w_dim), np.float32)
    handles = [Handle((4.0, 3.0), (8.0, 3.0)), Handle((4.0, 12.0), (8.0, 12.0))]

    statistics = latent_statistics(network, count=64)

    def covered(blend: MaskedBlend) -> list[bool]:
        edited = network.edited(LocalEdits(blends=(blend,)))
        settings = DragSettings(block=network.blocks[-1])
        sides = MODELS[name].facts.row_resolutions
        drag = DragOptimizer(edited, statistics, rows, sides, handles, settings)
        return [state.is_covered for state in drag.report.handles]

    assert covered(MaskedBlend(seed(7), TOP)) == [True, False]
    assert covered(MaskedBlend(seed(7), TOP, strength=0.5)) == [False, False]
    assert covered(MaskedBlend(seed(7), TOP, RowRange(0, 0))) == [False, False], "later layers are the picture's own"


@pytest.mark.parametrize("name", ["skip", "resnet", "AdaIN", "T"])
def test_a_network_of_a_blend_is_the_same_picture_as_a_function_of_the_second_latent(name: str) -> None:
    network = differentiable_network(MODELS[name])
    edits = LocalEdits(
        (Bend(BENT[name], "gain", 1.5),), (), (MaskedBlend(seed(7), TOP), MaskedBlend(seed(9), LEFT, strength=0.5))
    )
    rows = np.random.default_rng(2).standard_normal((network.spec.num_ws, network.spec.w_dim), np.float32)
    edited = network.edited(edits)
    with torch.no_grad():
        wanted = edited.picture(edited.tensor(rows)[None])
        for place in range(2):
            second, start = edited.of_blend(place, rows)
            for _ in range(2):  # the other second latent's activations are kept after the first
                torch.testing.assert_close(second.picture(second.tensor(start)[None]), wanted)
            several = second.tensor(np.stack([start, rows, start]))
            alone = torch.cat([second.features(one[None], second.blocks[-1]) for one in several])
            torch.testing.assert_close(second.features(several, second.blocks[-1]), alone, atol=1e-4, rtol=1e-4)
    free = second.tensor(start)[None].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(second.features(free, second.blocks[-1])[..., :3].square().sum(), free)
    assert gradient.any()


def test_there_is_no_network_of_a_blend_that_is_not_there() -> None:
    network = differentiable_network(MODELS["skip"])
    rows = np.zeros((network.spec.num_ws, network.spec.w_dim), np.float32)
    edited = network.edited(LocalEdits(blends=(MaskedBlend(seed(7), TOP),)))
    for found, place in ((network, 0), (edited, 1), (edited, -1)):
        with pytest.raises(RequestError, match="none at place"):
            found.of_blend(place, rows)


def test_a_drag_of_a_blend_moves_what_its_second_picture_shows_and_refuses_the_rest() -> None:
    network = differentiable_network(MODELS["skip"])
    rows = np.random.default_rng(2).standard_normal((network.spec.num_ws, network.spec.w_dim), np.float32)
    edited = network.edited(LocalEdits(blends=(MaskedBlend(seed(7), TOP),)))
    handles = [Handle((4.0, 3.0), (6.0, 3.0)), Handle((4.0, 12.0), (6.0, 12.0))]
    settings = DragSettings(block=network.blocks[-1], blend=0)
    sides = MODELS["skip"].facts.row_resolutions
    drag = DragOptimizer(edited, latent_statistics(network, count=64), rows, sides, handles, settings)
    start = drag.rows
    _, second = edited.of_blend(0, rows)
    np.testing.assert_array_equal(start, second)
    assert [state.is_covered for state in drag.report.handles] == [False, True]
    for _ in range(4):
        drag.step()
    assert drag.report.step
    assert not np.array_equal(drag.rows, start)


def test_edits_at_rest_leave_the_network_as_it_is() -> None:
    network = differentiable_network(MODELS["skip"])
    network.own_kernels = kernels = object()  # type: ignore[assignment]
    resting = LocalEdits(
        (Bend("b8.conv0", "gain", 1.0), Bend("b8.conv0", "move", 0.0)),
        (StyleOffset("b8.conv0", 0, 0.0),),
        (MaskedBlend(seed(7), TOP, strength=0.0),),
    )
    assert network.edited(resting).edits == NO_EDITS
    assert network.edited(resting).own_kernels is kernels
    assert network.edited(LocalEdits((Bend("b8.conv0", "gain", 2.0),))).own_kernels is None
    assert network.own_kernels is kernels


def test_pictures_and_features_begin_where_most_channels_were_moved_last() -> None:
    model = make_stylegan2(resolution=32)
    network = differentiable_network(model)

    def with_bend(bend: Bend) -> DifferentiableNetwork:
        return network.edited(LocalEdits((bend,)))

    assert with_bend(Bend("b16.conv0", "turn", 20.0)).picture_resolutions == (16, 32)
    assert with_bend(Bend("b32.conv0", "turn", 20.0)).moved_side == 0, "the picture of 16 stays where it is"
    whole = differentiable_network(make_stylegan2(resolution=32, architecture="resnet"))
    assert whole.edited(LocalEdits((Bend("b32.conv0", "turn", 20.0),))).moved_side == 32
    few = tuple(range(bendable_layers(model.spec)["b16.conv0"] // 2))
    assert with_bend(Bend("b16.conv0", "turn", 20.0, few)).moved_side == 0
    assert with_bend(Bend("b16.conv0", "gain", 2.0)).picture_resolutions == network.picture_resolutions


def test_edits_that_do_not_fit_the_model_are_refused() -> None:
    with pytest.raises(RequestError, match="cannot be bent"):
        differentiable_network(MODELS["skip"]).edited(LocalEdits((Bend("b99.conv0", "gain", 2.0),)))
