"""Gradients by own kernels' twins on the CPU, and by the kernels on a GPU, against torch in fp64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend.cuda.driver.arguments import PackedArguments
from gpu_backend.cuda.driver.interface import Driver, LoadedKernel
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.gradients.gpu.convs import choice
from gpu_backend.gradients.gpu.kernels import kernels_of_step
from gpu_backend.gradients.gpu.network import GpuNetwork, RowUpdate
from gpu_backend.gradients.gpu.packed_network import pack_network
from gpu_backend.gradients.network import DifferentiableNetwork, differentiable_network
from gpu_backend.gradients.picture_loss import PictureLoss
from gpu_backend.model.model import Model
from gpu_backend.model.spec import Architecture, StyleGAN2Spec
from gpu_backend.ops.kernels.recipe import KernelRecipe
from tests.helpers.golden import CASES, Golden
from tests.helpers.gradient_gpu import loaded_kernels
from tests.helpers.gradient_twins import TwinDriver, twin_kernels
from tests.helpers.networks import make_stylegan2

WIDE: dict[str, Any] = {"channel_max": 32, "channel_base": 512}
"""Wide enough that the sign of one activation, turned by rounding, does not show."""
PATCHED: dict[str, Any] = {"channels": {4: 16, 8: 16, 16: 70, 32: 130, 64: 42}}
"""More than 32 channels from 32 x 32 on: one more than a tile's, and numbers that tiles do not divide."""
MANY: dict[str, Any] = {"channels": {4: 520, 8: 300, 16: 264, 32: 500, 64: 72}}
"""So many that eight blocks share the only tile of 4 x 4, and four that of 8 x 8 and 16 x 16."""
LARGE: dict[str, Any] = {"resolution": 128, "channels": {4: 16, 8: 16, 16: 72, 32: 264, 64: 136, 128: 72}}
"""Two blocks share a tile of the up-convolution to 128 x 128, whose last position is alone, and three one before it."""
NARROW: dict[str, Any] = {"channels": {4: 16, 8: 16, 16: 72, 32: 64, 64: 32}}
"""So few that the kernels for 32 channels do the last up-convolution and its adjoint."""
WIDER = {"64 x 64": (PATCHED, 132), "64 x 64, a small device": (PATCHED, 1), "many channels": (MANY, 132)} | {
    "many channels, a smaller device": (MANY, 40),
    "64 x 64, resnet": ({"architecture": "resnet"} | PATCHED, 132),
    "many channels, resnet": ({"architecture": "resnet"} | MANY, 132),
    "128 x 128": (LARGE, 132),
    "64 x 64, 32 channels": (NARROW, 132),
    "64 x 64, 32 channels, resnet": ({"architecture": "resnet"} | NARROW, 132),
}
"""Networks, and multiprocessors: with one, K has no slices, and a thread filters many rows."""
UGLY: dict[str, dict[str, Any]] = {
    "odd channels": {"channels": {4: 36, 8: 28, 16: 25}},
    "clamp": {"conv_clamp": 2.0} | WIDE,
    "lopsided filter": {"fir": (1, 2, 5, 1)} | WIDE,
    "five taps": {"fir": (1, 4, 6, 4, 1)} | WIDE,
    "orig": {"architecture": "orig"} | WIDE,
    "no noise": {"use_noise": False} | WIDE,
    "two taps, wide w": {"fir": (1, 1), "w_dim": 40} | WIDE,
    "resnet": {"architecture": "resnet"} | WIDE,
    "resnet, odd channels": {"architecture": "resnet", "channels": {4: 36, 8: 28, 16: 25}, "conv_clamp": 2.0},
    "resnet, lopsided filter": {"architecture": "resnet", "fir": (1, 2, 5, 1)} | WIDE,
    "resnet, five taps": {"architecture": "resnet", "fir": (1, 4, 6, 4, 1)} | WIDE,
}


def model_named(name: str) -> Model:
    """Return an ugly model, one whose convolutions are Hopper's own, or a golden one."""
    if name in WIDER:
        return make_stylegan2(**({"resolution": 64} | WIDER[name][0]))
    return make_stylegan2(**UGLY[name]) if name in UGLY else Golden(name).model


def network_on(
    driver: Driver,
    kernels: Mapping[KernelRecipe, LoadedKernel],
    network: DifferentiableNetwork,
    model: Model,
    side: int,
    multiprocessors: int = 132,
    **samples: int,
) -> GpuNetwork:
    noise = {name: picture[0].float().numpy() for name, picture in network.noise.items()}
    spec = model.spec
    assert isinstance(spec, StyleGAN2Spec)
    return GpuNetwork(driver, kernels, pack_network(spec, model.weights, noise, side), multiprocessors, **samples)


def gradient_of_a_drag(features: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Return the gradient of a drag's loss: a patch is compared with its neighbour, the whole with features before."""
    side = features.shape[-1]
    gradient = 0.3 * (features - before).sign() / features[0].numel()
    at = slice(side // 2, side // 2 + 3)
    there = features[:, :, at, side // 2 + 1 : side // 2 + 4]
    gradient[:, :, at, at] += (there - features[:, :, at, at]).sign() / (9 * features.shape[1])
    return gradient


def agreement(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Return the least cosine of rows (rows, w_dim), and the largest error of their lengths; rows of zeros agree."""
    cosines, errors = [], []
    for mine, theirs in zip(found, wanted, strict=True):
        size, own_size = float(np.linalg.norm(theirs)), float(np.linalg.norm(mine))
        if size == 0.0:
            assert not mine.any()
            continue
        cosines.append(float(mine @ theirs) / size / max(own_size, 1e-30))
        errors.append(abs(own_size / size - 1.0))
    return min(cosines), max(errors)


def usual(agreements: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the medians: of some latents, rounding turns the sign of an activation that counts much in so few."""
    cosine, error = np.median(agreements, 0)
    return float(cosine), float(error)


def compared(
    own: GpuNetwork, driver: Driver, network: DifferentiableNetwork, block: int
) -> tuple[float, tuple[float, float]]:
    """Return the features' largest error, and how gradients of a drag's loss agree usually."""
    spec, errors, agreements = own.spec, [], []
    for seed in range(5):
        generator = np.random.default_rng(seed)
        ws = (network.mean_w.numpy() + 0.5 * generator.standard_normal((spec.num_ws, spec.w_dim))).astype(np.float32)
        driver.upload(own.ws, ws)
        own.forward(block)
        address, used, channels = own.features(block)
        features = np.empty((block, block, channels), np.float16)
        driver.download(features, address)
        free = torch.from_numpy(ws).to(network.dtype)[None].requires_grad_()
        wanted = network.features(free, block)
        before = network.features(0.97 * free.detach() + 0.03 * network.mean_w, block)
        gradient = gradient_of_a_drag(wanted.detach(), before.detach())
        (rows,) = torch.autograd.grad((wanted * gradient).sum(), free)
        unit = float(gradient.abs().max()) / 16
        whole = np.zeros((block, block, channels), np.float16)
        whole[..., :used] = gradient[0].permute(1, 2, 0).numpy() / unit
        place = driver.reserve(whole.nbytes)
        driver.upload(place, whole)
        own.backward(block, place, unit=unit)
        found = np.empty((spec.num_ws, spec.w_dim), np.float32)
        driver.download(found, own.ws_gradient)
        driver.release(place)
        agreements.append(agreement(found, rows[0].numpy()))
        expected = wanted[0].detach().permute(1, 2, 0).numpy()
        errors.append(float(np.abs(features[..., :used] - expected).max() / np.abs(expected).max()))
    return max(errors), usual(agreements)


@pytest.mark.parametrize("name", UGLY)
def test_the_twins_have_the_features_and_the_gradient_of_torch(name: str) -> None:
    model = make_stylegan2(**UGLY[name])
    network = differentiable_network(model, dtype=torch.float64)
    driver = TwinDriver()
    kernels = twin_kernels(len(model.spec.resample_filter))
    own = network_on(driver.as_driver(), kernels, network, model, 16)
    error, (cosine, lengths) = compared(own, driver.as_driver(), network, 16)
    assert error < 5e-3
    assert cosine > 0.999
    assert lengths < 0.05
    own.close()
    assert not driver.memory, "everything is freed"


def checked_runs(
    own: GpuNetwork,
    driver: TwinDriver,
    network: DifferentiableNetwork,
    side: int,
    samples: int = 1,
    *,
    of_picture: bool,
) -> int:
    """Compare twins with torch, through a block or a picture; return how often they ran."""
    if of_picture:
        error, (cosine, lengths) = compared_pictures(own, driver.as_driver(), network, side, samples)
    else:
        error, (cosine, lengths) = compared(own, driver.as_driver(), network, side)
    assert error < 5e-3
    assert cosine > 0.999
    assert lengths < 0.05
    return 1 if of_picture else 5


@pytest.mark.parametrize("of_picture", [False, True])
def test_hoppers_convolutions_compute_the_wide_layers_without_upsampling(of_picture: bool) -> None:
    model = make_stylegan2(resolution=64, **PATCHED)
    network = differentiable_network(model, dtype=torch.float64)
    driver = TwinDriver()
    own = network_on(driver.as_driver(), twin_kernels(4, "sm_90a"), network, model, 64)
    runs = checked_runs(own, driver, network, 64, of_picture=of_picture)
    assert driver.launched.count("gradient_patch_conv") == 2 * 2 * runs, "at 32 and 64, forward and backward"
    assert driver.launched.count("gradient_up_adjoint") == runs, "from 64 to 32"
    assert driver.launched.count("gradient_up_conv") == 3 * runs, "from 8 to 16, 32 and 64"
    assert driver.launched.count("gradient_reduce") == runs, "at 8 x 8, from few channels; the others leave one slice"
    assert driver.launched.count("gradient_conv") == (4 + 6) * runs
    assert driver.launched.count("gradient_layer") == 8 * runs, "one ends in its convolution"
    assert driver.launched.count("gradient_activation") == (9 if of_picture else 8) * runs, "of ten, two in adjoints"


@pytest.mark.parametrize("architecture", ["skip", "resnet"])
@pytest.mark.parametrize("of_picture", [False, True])
def test_hoppers_convolutions_of_few_channels_leave_fp16_results(of_picture: bool, architecture: str) -> None:
    model = make_stylegan2(resolution=64, architecture=architecture, **NARROW)
    network = differentiable_network(model, dtype=torch.float64)
    driver = TwinDriver()
    own = network_on(driver.as_driver(), twin_kernels(4, "sm_90a"), network, model, 64)
    runs = checked_runs(own, driver, network, 64, of_picture=of_picture)
    launches = [(recipe.stem, dict(recipe.defines)) for recipe in driver.recipes]
    halves = [macros["RGB"] for stem, macros in launches if stem == "gradient_activation" and macros["HALF_G"] == "1"]
    has_rgb = of_picture and architecture == "skip"
    assert halves == ([str(int(has_rgb))] if of_picture else ["0", "0"]) * runs
    assert driver.launched.count("gradient_narrow_up_conv") == runs
    assert driver.launched.count("gradient_narrow_up_adjoint") == runs


@pytest.mark.parametrize("of_picture", [False, True])
def test_wide_pictures_of_few_channels_are_streamed(of_picture: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_LEAST_STREAMED", 32**2)
    model = make_stylegan2(resolution=64, channels={4: 16, 8: 16, 16: 70, 32: 60, 64: 30})
    network = differentiable_network(model, dtype=torch.float64)
    driver = TwinDriver()
    own = network_on(driver.as_driver(), twin_kernels(4, "sm_90a"), network, model, 64)
    runs = checked_runs(own, driver, network, 64, of_picture=of_picture)
    assert driver.launched.count("gradient_streaming_conv") == 4 * runs, "at 32 and 64, forward and backward"
    ways_back = [recipe for recipe in driver.recipes if dict(recipe.defines).get("WAY_BACK") == "1"]
    assert len(ways_back) == 2 * runs, "through the up-convolutions before them"


@pytest.mark.parametrize("of_picture", [False, True])
def test_hoppers_convolutions_leave_the_ends_of_a_resnets_blocks_to_its_skips(of_picture: bool) -> None:
    model = make_stylegan2(resolution=32, architecture="resnet", channels={4: 520, 8: 300, 16: 72, 32: 130})
    network = differentiable_network(model, dtype=torch.float64)
    driver = TwinDriver()
    own = network_on(driver.as_driver(), twin_kernels(4, "sm_90a"), network, model, 32)
    runs = checked_runs(own, driver, network, 32, of_picture=of_picture)
    launches = [(recipe.stem, dict(recipe.defines)) for recipe in driver.recipes]
    assert driver.launched.count("gradient_skip") == driver.launched.count("gradient_skip_adjoint") == 3 * runs
    assert not [stem for stem, macros in launches if stem == "gradient_up_adjoint" and macros["WAY_BACK"] == "1"]
    assert [stem for stem, macros in launches if stem == "gradient_patch_conv" and macros["WAY_BACK"] == "1"]
    joined = sum(stem == "gradient_activation" and macros["SKIP"] == "1" for stem, macros in launches)
    assert joined == 4 * runs, "the last layers of all blocks, of which the first has no skip of its own"


@pytest.mark.parametrize("of_picture", [False, True])
def test_blocks_that_share_a_small_picture_end_its_layers_on_hopper(of_picture: bool) -> None:
    model = make_stylegan2(resolution=16, channels={4: 520, 8: 264, 16: 72})
    network = differentiable_network(model, dtype=torch.float64)
    driver = TwinDriver()
    own = network_on(driver.as_driver(), twin_kernels(4, "sm_90a"), network, model, 16, samples=2)
    for samples in (2, 1) if of_picture else (1,):
        driver.launched.clear()
        checked_runs(own, driver, network, 16, samples, of_picture=of_picture)
        convs = sum(entry in ("gradient_patch_conv", "gradient_up_adjoint") for entry in driver.launched)
        # Forward two, backward three: 72 channels are too few slices. One of them would go back through toRGB, too.
        assert convs == (0 if samples == 2 else 4 if of_picture else 5 * 5)


def test_two_blocks_end_a_narrow_tile_where_wide_ones_would_leave_multiprocessors_idle() -> None:
    model = make_stylegan2(resolution=32, channels={4: 16, 8: 16, 16: 16, 32: 280})
    network = differentiable_network(model, dtype=torch.float64)
    driver = TwinDriver()
    own = network_on(driver.as_driver(), twin_kernels(4, "sm_90a"), network, model, 32, multiprocessors=72)
    runs = checked_runs(own, driver, network, 32, of_picture=False)
    tiles = [dict(recipe.defines) for recipe in driver.recipes if recipe.stem == "gradient_patch_conv"]
    assert len(tiles) == 2 * runs, "forward and backward"
    assert {(macros["COLUMNS"], macros["CLUSTER"]) for macros in tiles} == {("32", "2")}


@pytest.mark.parametrize(("architecture", "most"), [("sm_75", 64 << 10), ("sm_80", 99 << 10), ("sm_90a", 227 << 10)])
def test_no_block_takes_more_shared_memory_than_a_gpu_of_the_architecture_has(architecture: str, most: int) -> None:
    class Counting(TwinDriver):
        largest = 0

        def launch(
            self, kernel: LoadedKernel, grid: Any, block: Any, shared: int, arguments: PackedArguments, **order: Any
        ) -> None:
            self.largest = max(self.largest, shared)

    model = make_stylegan2(resolution=64, **PATCHED)
    network = differentiable_network(model)
    driver = Counting()
    own = network_on(driver.as_driver(), twin_kernels(4, architecture), network, model, 64)
    own.forward(64)
    own.backward(64, own.picture(64), of_picture=True)
    assert 0 < driver.largest <= most


def test_a_thread_filters_few_rows_where_all_blocks_run_at_once() -> None:
    model = make_stylegan2(resolution=32, channels={4: 16, 8: 16, 16: 72, 32: 40})
    network = differentiable_network(model, dtype=torch.float64)
    driver = TwinDriver()
    own = network_on(driver.as_driver(), twin_kernels(4), network, model, 32, multiprocessors=1)
    error, (cosine, lengths) = compared(own, driver.as_driver(), network, 32)
    assert error < 5e-3
    assert cosine > 0.999
    assert lengths < 0.05
    filters = [
        grid[0] for recipe, grid in zip(driver.recipes, driver.grids, strict=True) if recipe.stem == "gradient_filter"
    ]
    assert filters == 5 * [4, 4, 1], "strips of 11, 6 and 2 rows at 32, 16 and 8"


@pytest.mark.parametrize(("architecture", "of_picture"), [("skip", False), ("skip", True), ("resnet", False)])
def test_kernels_may_start_early_after_another_kernel_alone(architecture: Architecture, of_picture: bool) -> None:
    model = make_stylegan2(architecture=architecture, **WIDE)
    network = differentiable_network(model, dtype=torch.float64)
    driver = TwinDriver()
    own = network_on(driver.as_driver(), twin_kernels(4), network, model, 16)
    gradient = driver.reserve(4 * 16 * 16 * 64)
    driver.zero(gradient, 4 * 16 * 16 * 64)
    own.forward(16)
    if of_picture:
        own.picture(16)
    assert driver.follow == [False, *[True] * (len(driver.launched) - 1)]
    first = len(driver.launched)
    own.backward(16, gradient, of_picture=of_picture)
    assert driver.follow[first:] == [False, *[True] * (len(driver.launched) - first - 1)]


def test_every_kernel_waits_for_the_one_before_it_by_itself() -> None:
    assert all(recipe.waits_by_itself for recipe in kernels_of_step(4, "sm_90a", with_skips=True))


@pytest.mark.parametrize("architecture", ["skip", "resnet"])
def test_an_earlier_block_runs_the_layers_up_to_it_alone(architecture: Architecture) -> None:
    model = make_stylegan2(architecture=architecture, **WIDE)
    network = differentiable_network(model, dtype=torch.float64)
    driver = TwinDriver()
    own = network_on(driver.as_driver(), twin_kernels(4), network, model, 16)
    error, (cosine, lengths) = compared(own, driver.as_driver(), network, 8)
    assert error < 5e-3
    assert cosine > 0.999
    assert lengths < 0.05
    assert driver.launched.count("gradient_layer") == 5 * 3
    skips = 5 if architecture == "resnet" else 0
    assert driver.launched.count("gradient_skip") == driver.launched.count("gradient_skip_adjoint") == skips


def test_only_a_picture_needs_the_styles_of_its_to_rgb_layers() -> None:
    model = make_stylegan2(**WIDE)
    driver = TwinDriver()
    own = network_on(driver.as_driver(), twin_kernels(4), differentiable_network(model), model, 16)
    own.forward(8)
    own.picture(8)
    launches = zip(driver.launched, driver.grids, strict=True)
    assert [grid[1] for entry, grid in launches if entry == "gradient_styles"] == [3, 2], "layers of each launch"


@pytest.mark.parametrize(("architecture", "cluster"), [("sm_80", "1"), ("sm_90a", "8")])
def test_a_way_back_with_an_update_changes_rows_in_place_of_their_gradient(architecture: str, cluster: str) -> None:
    model = make_stylegan2(**WIDE)
    network = differentiable_network(model)
    driver = TwinDriver()
    own = network_on(driver.as_driver(), twin_kernels(4, architecture), network, model, 16)
    ws = np.random.default_rng(3).standard_normal((model.spec.num_ws, model.spec.w_dim)).astype(np.float32)
    found, gradient = np.empty_like(ws), np.full((16, 16, own.features(16)[2]), 0.25, np.float16)
    place = driver.reserve(gradient.nbytes)
    driver.upload(place, gradient)
    driver.upload(own.ws, ws)
    own.forward(16)
    own.backward(16, place, unit=0.5)
    driver.download(found, own.ws_gradient)
    rows = slice(1, 4)
    arrays = {
        "start": ws,
        "deviation": np.full(ws.shape[1], 2.0, np.float32),
        **{name: np.zeros_like(ws[rows]) for name in ("mean", "shift")},
        **{name: np.zeros(3, np.float32) for name in ("square", "count")},
    }
    state = {name: np.uint64(array.ctypes.data) for name, array in arrays.items()}
    driver.upload(own.ws_gradient, np.full_like(ws, 7.0))
    own.backward(16, place, unit=0.5, update=RowUpdate(rows, {**state, "rate": 0.1}))
    moved, kept = np.empty_like(ws), np.empty_like(ws)
    driver.download(moved, own.ws)
    driver.download(kept, own.ws_gradient)
    assert (kept == 7.0).all()
    assert np.array_equal(moved[[0, *range(4, len(ws))]], ws[[0, *range(4, len(ws))]])
    # The first step has the direction of the gradient, and the rate as root of its mean square, in deviations.
    wanted = found[rows] * 2.0
    wanted *= -0.1 / np.sqrt((wanted**2).mean(1, keepdims=True))
    assert (moved - ws)[rows] / 2.0 == pytest.approx(wanted, rel=1e-3, abs=1e-5)
    assert {dict(recipe.defines)["CLUSTER"] for recipe in driver.recipes if recipe.stem == "gradient_rows"} == {cluster}


@pytest.mark.parametrize("architecture", ["skip", "orig", "resnet"])
def test_the_twins_have_the_pictures_of_torch(architecture: Architecture) -> None:
    model = make_stylegan2(architecture=architecture)
    network = differentiable_network(model, dtype=torch.float64)
    driver = TwinDriver()
    own = network_on(driver.as_driver(), twin_kernels(4), network, model, 16)
    ws = np.tile(model.mean_w, (model.spec.num_ws, 1))
    driver.upload(own.ws, ws)
    for side in network.picture_resolutions:
        own.forward(side)
        found = np.empty((1, 3, side, side), np.float32)
        driver.download(found, own.picture(side))
        wanted = network.picture(torch.from_numpy(ws).double()[None], side).detach().numpy()
        assert found == pytest.approx(wanted, abs=5e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*CASES, *UGLY, *WIDER])
def test_the_kernels_have_the_gradient_of_torch_in_every_row(gpu: Gpu, name: str) -> None:
    from gpu_backend.cuda.driver.gpu_driver import GpuDriver

    model = model_named(name)
    assert isinstance(model.spec, StyleGAN2Spec)
    network = differentiable_network(model, dtype=torch.float64)
    driver = GpuDriver(gpu.index)
    driver.enter()
    kernels = loaded_kernels(driver, gpu, len(model.spec.resample_filter))
    side = model.spec.resolution
    own = network_on(driver, kernels, network, model, side, WIDER[name][1] if name in WIDER else 132)
    error, (cosine, lengths) = compared(own, driver, network, side)
    own.close()
    driver.close()
    assert error < 5e-3
    print(name, cosine, lengths)  # noqa: T201 - kept with the test's result
    assert cosine > 0.999
    assert lengths < 0.05


def compared_pictures(
    own: GpuNetwork, driver: Driver, network: DifferentiableNetwork, side: int, samples: int
) -> tuple[float, tuple[float, float]]:
    """Return the pictures' largest error, and how gradients of a search's loss agree usually."""
    spec, generator = own.spec, np.random.default_rng(1)
    ws = (network.mean_w.numpy() + 0.5 * generator.standard_normal((samples, spec.num_ws, spec.w_dim))).astype("f4")
    free = torch.from_numpy(ws).to(network.dtype).requires_grad_()
    picture = network.picture(free, side)
    near = network.picture(0.9 * free.detach() + 0.1 * network.mean_w, side).detach()
    (gradient,) = torch.autograd.grad(PictureLoss(near)(picture).sum(), picture, retain_graph=True)
    (rows,) = torch.autograd.grad(picture, free, gradient)
    factor = gradient.numpy().astype("f4")
    driver.upload(own.ws, ws)
    own.forward(side, samples)
    pictures = np.empty_like(factor)
    driver.download(pictures, own.picture(side, samples))
    place = driver.reserve(factor.nbytes)
    driver.upload(place, factor)
    own.backward(side, place, samples, of_picture=True, unit=float(np.abs(factor).max()) / 16)
    found = np.empty_like(ws)
    driver.download(found, own.ws_gradient)
    driver.release(place)
    expected = picture.detach().numpy()
    agreements = [agreement(mine, theirs) for mine, theirs in zip(found, rows.numpy(), strict=True)]
    return float(np.abs(pictures - expected).max() / np.abs(expected).max()), usual(agreements)


@pytest.mark.parametrize("name", UGLY)
def test_the_twins_have_the_gradient_of_torch_through_pictures(name: str) -> None:
    model = make_stylegan2(**UGLY[name])
    network = differentiable_network(model, dtype=torch.float64)
    driver = TwinDriver()
    kernels = twin_kernels(len(model.spec.resample_filter))
    own = network_on(driver.as_driver(), kernels, network, model, 16, samples=5)
    error, (cosine, lengths) = compared_pictures(own, driver.as_driver(), network, 16, 5)
    assert error < 5e-3
    assert cosine > 0.999
    assert lengths < 0.05
    own.close()
    assert not driver.memory, "everything is freed"


def test_samples_that_share_a_run_do_not_depend_on_each_other() -> None:
    model = make_stylegan2(**WIDE)
    network = differentiable_network(model)
    driver = TwinDriver()
    own = network_on(driver.as_driver(), twin_kernels(4), network, model, 16, samples=3, few_side=8, more_samples=5)
    shape = 5, model.spec.num_ws, model.spec.w_dim
    ws = np.random.default_rng(4).standard_normal(shape).astype(np.float32)

    def found(rows: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        driver.upload(own.ws, np.ascontiguousarray(rows))
        own.forward(8, len(rows))
        pictures = np.empty((len(rows), 3, 8, 8), np.float32)
        address = own.picture(8, len(rows))
        driver.download(pictures, address)
        own.backward(8, address, len(rows), of_picture=True, unit=1 / 16)
        gradients = np.empty_like(rows)
        driver.download(gradients, own.ws_gradient)
        return pictures, gradients

    together = found(ws)
    for number in range(5):
        for all_of_them, alone in zip(together, found(ws[number : number + 1]), strict=True):
            np.testing.assert_allclose(all_of_them[number], alone[0], rtol=0.02, atol=1e-2 * np.abs(alone).max())
    with pytest.raises(ValueError, match="room for 3 samples"):
        own.forward(16, 4)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*CASES, *UGLY, *WIDER])
def test_the_kernels_have_the_gradient_of_torch_through_pictures(gpu: Gpu, name: str) -> None:
    from gpu_backend.cuda.driver.gpu_driver import GpuDriver

    model = model_named(name)
    assert isinstance(model.spec, StyleGAN2Spec)
    network = differentiable_network(model, dtype=torch.float64)
    driver = GpuDriver(gpu.index)
    driver.enter()
    kernels = loaded_kernels(driver, gpu, len(model.spec.resample_filter))
    side = model.spec.resolution
    own = network_on(driver, kernels, network, model, side, WIDER[name][1] if name in WIDER else 132, samples=5)
    error, (cosine, lengths) = compared_pictures(own, driver, network, side, 5)
    own.close()
    driver.close()
    print(name, cosine, lengths)  # noqa: T201 - kept with the test's result
    assert error < 5e-3
    assert cosine > 0.999
    assert lengths < 0.05


@pytest.mark.gpu
@pytest.mark.parametrize(
    "name", ["clamp", "odd channels", "five taps", "resnet, odd channels", "64 x 64", "many channels"]
)
def test_the_kernels_for_turing_have_the_gradient_of_torch(gpu: Gpu, name: str) -> None:
    from gpu_backend.cuda.driver.gpu_driver import GpuDriver

    model = model_named(name)
    assert isinstance(model.spec, StyleGAN2Spec)
    network = differentiable_network(model, dtype=torch.float64)
    driver = GpuDriver(gpu.index)
    driver.enter()
    kernels = loaded_kernels(driver, gpu, len(model.spec.resample_filter), of_turing=True)
    side = model.spec.resolution
    own = network_on(driver, kernels, network, model, side, 40, samples=5)
    of_features = compared(own, driver, network, side)
    of_pictures = compared_pictures(own, driver, network, side, 5)
    own.close()
    driver.close()
    for error, (cosine, lengths) in (of_features, of_pictures):
        assert error < 5e-3
        assert cosine > 0.999
        assert lengths < 0.05
