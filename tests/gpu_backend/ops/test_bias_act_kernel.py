"""Activations, gains and clamps at the end of convolution kernels."""

from __future__ import annotations

import pytest

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.conv_arguments import ACTIVATION_NUMBERS
from gpu_backend.cuda.launches.conv_work import ConvWork
from gpu_backend.cuda.launches.plain_convs import plain_modulated_conv
from gpu_backend.model.spec import ACTIVATION_GAINS, Activation
from gpu_backend.ops.bias_act import BiasAct
from tests.helpers.conv_cases import (
    H200,
    ConvCase,
    Flavour,
    check_case,
    each,
    filter_taps,
    site_of,
    step_of,
    weights_of,
)
from tests.helpers.gpu import target_of
from tests.helpers.kernel_checks import assert_compiles

ACTIVATIONS = tuple(
    ConvCase(12, 24, 8, 2, act=BiasAct.of_layer(activation, gain, clamp))
    for activation in ACTIVATION_GAINS
    for gain, clamp in ((1.0, None), (0.7071, 0.75))
)
CLAMPED = (
    ConvCase(12, 24, 16, act=BiasAct("lrelu", 1.4142, 0.5), skip=filter_taps(4)),
    ConvCase(12, 24, 16, act=BiasAct("lrelu", 1.4142, 0.5), fir=filter_taps(4)),
    ConvCase(12, 24, 16, act=BiasAct("lrelu", 1.4142, 256.0), fir=filter_taps(4), noise="random"),
)


@pytest.mark.gpu
@pytest.mark.parametrize(("flavour", "case"), each(ACTIVATIONS))
def test_every_activation_gives_the_reference(flavour: Flavour, case: ConvCase, gpu: Gpu) -> None:
    check_case(flavour, case, target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize(("flavour", "case"), each(CLAMPED))
def test_the_clamp_comes_after_the_gain_and_before_the_skip(flavour: Flavour, case: ConvCase, gpu: Gpu) -> None:
    check_case(flavour, case, target_of(gpu))


def test_every_activation_has_its_number() -> None:
    assert list(ACTIVATION_NUMBERS) == list(ACTIVATION_GAINS)


@pytest.mark.parametrize("activation", ACTIVATION_NUMBERS)
def test_every_activation_compiles_without_a_spill(activation: Activation) -> None:
    case = ConvCase(8, 8, 4, act=BiasAct(activation))
    work = ConvWork.of_step(step_of(case))
    (launch,) = plain_modulated_conv(work, site_of(case), weights_of(case), H200).launches
    assert_compiles(launch.recipe, "sm_75", launch.block[0], is_heavy=activation == "softplus")
