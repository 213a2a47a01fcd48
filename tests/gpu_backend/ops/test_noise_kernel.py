"""Noise inside convolution kernels: the stored picture, or the generator of `gpu_backend.ops.noise` by seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.conv_work import ConvWork
from gpu_backend.cuda.schedule import Address
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.noise import noise_picture
from tests.helpers.conv_cases import (
    FLAVOURS,
    H200,
    STRENGTH,
    ConvCase,
    Flavour,
    check_case,
    each,
    filter_taps,
    problem_of,
    run_built,
    site_of,
    step_of,
    weights_of,
)
from tests.helpers.gpu import target_of

TURNED = tuple(
    ConvCase(12, 24, 16, batch, noise=mode, fir=fir, half_turns=half_turns)
    for mode, half_turns in (("stored", 0.25), ("stored", 1.0), ("random", 0.5), ("random", -0.9))
    for batch in (1, 5)
    for fir in ((), filter_taps(4))
)
"""Noise of another phase."""

MODES = tuple(
    ConvCase(12, 24, 16, batch, noise=mode, fir=fir)
    for mode in ("stored", "random", "off", "none")
    for batch in (1, 5)
    for fir in ((), filter_taps(4))
)


@pytest.mark.gpu
@pytest.mark.parametrize(("flavour", "case"), each(MODES + TURNED))
def test_noise_of_every_mode_is_the_same_in_all_samples_and_channels(
    flavour: Flavour, case: ConvCase, gpu: Gpu
) -> None:
    check_case(flavour, case, target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize("side", [4, 64, 512])
@pytest.mark.parametrize("layer", [0, 16])
@pytest.mark.parametrize("seed", [0, 1, 2**32, 2**64 - 1])
def test_random_noise_is_that_of_the_processor_to_a_hundred_thousandth(
    seed: int, layer: int, side: int, gpu: Gpu
) -> None:
    case = ConvCase(8, 8, side, kernel=1, noise="random", act=BiasAct())
    problem = problem_of(case)
    inputs = problem.inputs | {
        "x": np.zeros_like(problem.inputs["x"]),
        "noise_source": np.array([1, seed & 0xFFFFFFFF, seed >> 32, 0], np.uint32),
        "noise_gain": np.ones(17, np.float32),
    }
    weights = problem.weights | {"b": np.zeros(8, np.float32), "strength": np.array(1.0, np.float32)}
    work = replace(ConvWork.of_step(step_of(case)), noise_index=layer)
    found = run_built(FLAVOURS["plain"].conv(work, site_of(case), weights, target_of(gpu)), inputs)["y_raw"]
    error = np.abs(found - noise_picture(seed, layer, side)[0][None, :, :, None]).max()
    assert error < 1e-5, f"off by {error}"


def test_a_layer_reads_its_own_gain_picture_and_strength() -> None:
    case = ConvCase(8, 8, 4)
    work = ConvWork.of_step(step_of(case))
    built = FLAVOURS["plain"].conv(work, site_of(case), weights_of(case), H200)
    names = ("noise", "noise_gain", "noise_source", "noise_strength", "noise_layer")
    noise, gain, source, strength, layer = (built.launches[0].arguments[name] for name in names)
    assert isinstance(noise, Address)
    assert isinstance(gain, Address)
    assert isinstance(source, Address)
    assert (noise.name, noise.kind) == ("flat/picture", "constant")
    assert (gain.name, gain.offset) == ("noise_gain", 4 * 2)
    assert (source.name, source.offset) == ("noise_source", 0)
    assert (strength, layer) == (np.float32(STRENGTH), 2)


def test_a_layer_without_noise_asks_for_none() -> None:
    case = ConvCase(8, 8, 4, noise="none")
    work = ConvWork.of_step(step_of(case))
    built = FLAVOURS["plain"].conv(work, site_of(case), weights_of(case), H200)
    names = ("noise", "noise_gain", "noise_source", "noise_strength")
    assert [built.launches[0].arguments[name] for name in names] == [None, None, None, np.float32(0.0)]
