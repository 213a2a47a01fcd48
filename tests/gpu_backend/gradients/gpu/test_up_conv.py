"""The transposed convolution for Hopper alone: its launches on the CPU, and the kernel on a GPU against torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend.cuda.compiling.compilation import compile_kernels
from gpu_backend.cuda.driver.arguments import Value
from gpu_backend.cuda.driver.interface import Driver, LoadedKernel
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.gradients.gpu.convs.choice import ConvChoice
from gpu_backend.gradients.gpu.convs.launch import ConvLaunch
from gpu_backend.gradients.gpu.kernels import UP_CLUSTERS, narrow_up_conv_kernel, up_conv_kernel
from gpu_backend.gradients.gpu.placed import PlacedConv
from gpu_backend.gradients.gpu.sequence import KernelSequence
from gpu_backend.ops.kernels.recipe import KernelRecipe
from tests.helpers.gradient_twins import TwinDriver, twin_kernels
from tests.helpers.placed_convs import placed_conv

CASES = {
    "many groups, a cluster of eight": (4, 512, 72, 1, 8),
    "three pixels, a cluster of eight": (3, 520, 136, 1, 8),
    "81 positions, a cluster of eight": (8, 512, 264, 1, 8),
    "odd side, a cluster of four, two samples": (5, 200, 40, 2, 4),
    "a cluster of three, two samples": (16, 136, 72, 2, 3),
    "a wide network's 16 x 16": (16, 512, 512, 1, 4),
    "last position alone, a cluster of two": (62, 72, 40, 1, 2),
    "last position alone, a cluster of three": (64, 136, 40, 1, 3),
    "last position alone, a cluster of two, two samples": (64, 136, 40, 2, 2),
    "last position alone, one block, two copies": (128, 72, 40, 1, 1),
    "one group, two samples, a copy of all 256 positions": (126, 8, 40, 2, 1),
    "one group, two samples, two copies": (131, 8, 40, 2, 1),
    "the largest side": (256, 8, 40, 1, 1),
    "32 channels of one pixel": (1, 8, 32, 1, 0),
    "32 channels, tiles that end with the picture, three samples": (27, 64, 32, 3, 0),
    "32 channels, tiles that reach beyond the picture, two samples": (13, 40, 32, 2, 0),
    "32 channels, more tiles than teams": (160, 64, 32, 1, 0),
    "64 channels from two groups, two samples": (138, 100, 64, 2, 0),
}
"""Side, channels read and written, samples, and blocks that share K on 132 multiprocessors; 0 for the kernel of few
channels."""


def layer_of(side: int, inputs: int, outputs: int) -> PlacedConv:
    """Return a layer with random weights, placed nowhere."""
    return placed_conv(side, inputs, outputs, is_up=True)


def launch_of(
    layer: PlacedConv, samples: int, multiprocessors: int = 132, driver: Driver | None = None
) -> tuple[ConvLaunch, int]:
    """Return the launch and the blocks that share K."""
    encode = (driver or TwinDriver().as_driver()).tensor_map
    choice = ConvChoice({up_conv_kernel(1)}, multiprocessors, encode)
    launch = choice.to_filter(layer, samples)
    assert launch is not None
    return launch, int(dict(launch.kernel.defines).get("CLUSTER", 0))


def check_results(driver: Driver, kernels: Mapping[KernelRecipe, LoadedKernel], name: str) -> None:
    """Compare the results of a case with torch in fp64, and what lies around them with what was there before."""
    side, inputs, outputs, samples, cluster = CASES[name]
    layer = layer_of(side, inputs, outputs)
    launch, found_cluster = launch_of(layer, samples, driver=driver)
    assert found_cluster == cluster
    x = np.random.default_rng(1).standard_normal((samples, side, side, layer.inputs)).astype(np.float16)
    whole, margin = 2 * side + 1, 512
    # Numbers around x would show in the results, and results out of place in the numbers around them.
    around = np.full(x.size + 2 * margin, np.nan, np.float16)
    around[margin : margin + x.size] = x.reshape(-1)
    results = np.full(samples * whole * whole * layer.outputs + 2 * margin, np.nan, np.float16)
    demod = np.random.default_rng(2).uniform(0.5, 2.0, (samples, layer.outputs + 3)).astype(np.float32)
    unit = 0.25 / math.sqrt(inputs)
    uploaded: list[np.ndarray[Any, Any]] = [around, layer.packed.forward, results, demod]
    addresses = [driver.reserve(array.nbytes) for array in uploaded]
    for address, array in zip(addresses, uploaded, strict=True):
        driver.upload(address, array)
    sequence = KernelSequence(driver, kernels)
    end: dict[str, Value] = {
        "demod": np.uint64(addresses[3]),
        "demod_count": demod.shape[1],
        "unit": unit,
    }
    launch.enqueue(sequence, addresses[0] + 2 * margin, addresses[1], addresses[2] + 2 * margin, end)
    driver.download(results, addresses[2])
    for address in addresses:
        driver.release(address)
    kernel = layer.packed.forward.astype(np.float64).reshape(3, 3, layer.outputs, layer.inputs)
    sums = torch.nn.functional.conv_transpose2d(
        torch.from_numpy(x.astype(np.float64)).permute(0, 3, 1, 2),
        torch.from_numpy(kernel).permute(3, 2, 0, 1),
        stride=2,
    )
    found = results[margin:-margin].reshape(samples, whole, whole, layer.outputs)
    wanted = unit * sums.permute(0, 2, 3, 1).numpy() * demod[:, None, None, : layer.outputs]
    error = np.abs(found - wanted)
    assert not np.isnan(found).any(), np.argwhere(np.isnan(found))[:8]
    worst = np.unravel_index(error.argmax(), error.shape)
    assert error.max() < 1e-3 * np.abs(wanted).max(), f"largest error at {worst}"
    assert np.isnan(results[:margin]).all()
    assert np.isnan(results[-margin:]).all()


@pytest.mark.parametrize("name", CASES)
def test_the_twin_has_the_results_of_torch(name: str) -> None:
    check_results(TwinDriver().as_driver(), twin_kernels(4, "sm_90a"), name)


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_the_kernel_has_the_results_of_torch(gpu: Gpu, name: str) -> None:
    from gpu_backend.cuda.driver.gpu_driver import GpuDriver

    if gpu.compile_architecture != "sm_90a":
        pytest.skip("the kernel is for Hopper")
    driver = GpuDriver(gpu.index)
    driver.enter()
    cluster = CASES[name][-1]
    recipe = up_conv_kernel(cluster) if cluster else narrow_up_conv_kernel(CASES[name][2] // 32)
    compiled = compile_kernels((recipe,), gpu.compile_architecture)
    assert not compiled.failures
    try:
        check_results(driver, {recipe: driver.load(compiled.kernels[recipe].cubin, recipe)}, name)
    finally:
        driver.close()


def test_tma_copies_successive_positions_with_a_column_and_rows_of_zeros() -> None:
    launch, _ = launch_of(layer_of(64, 136, 72), 2)
    pixels = launch.maps["x_map"]
    assert (pixels.extents, pixels.box) == ((136, 64, 64, 2), (64, 1, 200))
    assert pixels.bounds is not None
    first, (right, bottom) = pixels.bounds
    assert (first, right) == ((0, -2), 1)
    assert bottom >= 1
    assert (launch.arguments["run"], launch.arguments["runs"]) == (200, 1)
    launch, _ = launch_of(layer_of(128, 72, 40), 1)
    assert (launch.arguments["run"], launch.arguments["runs"]) == (136, 2)


@pytest.mark.parametrize("side", [1, 2, 3, 4, 7, 8, 16, 31, 32, 62, 64, 100, 126, 127, 128, 255, 256])
def test_runs_stay_within_rows_that_tma_can_address_and_blocks_within_shared_memory(side: int) -> None:
    launch, _ = launch_of(layer_of(side, 64, 40), 1)
    run, runs, tiles = (launch.arguments[key] for key in ("run", "runs", "tiles"))
    bounds = launch.maps["x_map"].bounds
    assert isinstance(run, int)
    assert isinstance(runs, int)
    assert isinstance(tiles, int)
    assert bounds is not None
    assert run <= 256
    assert runs * run >= 128 + side + 2
    (_, top), (_, bottom) = bounds
    last = 128 * (tiles - 1) + side + runs * run
    assert last <= (side + bottom - top) * (side + 1)
    assert bottom <= 127
    assert launch.shared_nbytes <= 227 << 10


def test_pairs_of_pixels_are_stored_together_but_for_the_last_of_a_row() -> None:
    launch, _ = launch_of(layer_of(512, 64, 32), 1)
    results = launch.maps["t_map"]
    assert (results.extents, results.box, results.row) == ((64, 512, 1025, 1), (64, 14, 18), 32 * 1025)
    assert launch.grid == (132, 1, 1)
    assert launch.arguments["all_tiles"] == 57 * 37


def test_blocks_of_32_channels_share_results_of_64() -> None:
    launch, _ = launch_of(layer_of(256, 128, 64), 1)
    results = launch.maps["t_map"]
    assert (results.extents, results.box, results.row) == ((64, 513, 513, 1), (32, 28, 18), 64 * 513)
    assert launch.grid == (66, 2, 1)
    assert launch.shared_nbytes <= 227 << 10


def test_sums_of_a_cluster_find_room_in_shared_memory() -> None:
    launch, cluster = launch_of(layer_of(4, 512, 512), 1)
    assert cluster == 8
    assert launch.shared_nbytes == 1024 + 4 * (4 * 128 * 72 + 64)
    alone, cluster = launch_of(layer_of(4, 64, 40), 1)
    assert cluster == 1
    assert alone.shared_nbytes == 1024 + 4 * 3 * 64 * 128 + 2 * 136 * 128


@pytest.mark.parametrize(
    ("side", "inputs", "outputs", "samples", "multiprocessors", "cluster"),
    [
        (4, 512, 512, 1, 132, 8),
        (8, 512, 512, 1, 132, 8),
        (16, 512, 512, 1, 132, 4),
        (32, 512, 512, 1, 132, 1),
        (64, 512, 256, 1, 132, 1),
        (32, 512, 256, 1, 132, 3),
        (64, 256, 128, 1, 132, 2),
        (8, 512, 512, 1, 64, 4),
        (8, 512, 512, 5, 132, 2),
        (4, 320, 64, 1, 132, 3),
        (4, 64, 64, 1, 132, 1),
        (4, 512, 512, 1, 1, 1),
    ],
)
def test_as_few_blocks_share_k_as_have_least_to_do_each_and_find_room_at_once(
    side: int, inputs: int, outputs: int, samples: int, multiprocessors: int, cluster: int
) -> None:
    launch, found = launch_of(layer_of(side, inputs, outputs), samples, multiprocessors)
    assert found == cluster
    assert found in UP_CLUSTERS
    assert launch.grid[2] == found
    assert launch.grid[0] * launch.grid[1] * found <= multiprocessors or found == 1
