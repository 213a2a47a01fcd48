"""Convolutions whose epilogue is not fused: the products, then passes over memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork
from gpu_backend.cuda.launches.epilogue_passes import epilogue_passes, without_epilogue
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.running.self_check import doubtful_recipes
from gpu_backend.cuda.schedule import Built, Schedule
from gpu_backend.cuda.tiles.target import Target, portable_without_epilogues
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from tests.gpu_backend.cuda.running.test_self_check import judged
from tests.helpers.conv_cases import FLAVOURS, H200, ConvCase, Flavour, Weights, check_case, filter_taps, fused
from tests.helpers.gpu import target_of
from tests.helpers.networks import make_stylegan2

CASES = (
    ConvCase(40, 24, 36, batch=3, rgb=3),
    ConvCase(24, 67, 34, fir=filter_taps(4), noise="random", rgb=4),
    ConvCase(33, 20, 14, batch=2, skip=filter_taps(4), half_turns=0.25),
    ConvCase(16, 8, 9, act=replace(BiasAct.of_layer("tanh"), clamp=0.5), noise="off", rgb=1, is_stored=False),
    ConvCase(8, 136, 20, kernel=1, noise="none", is_styled=False),
)
HALF_CASES = [replace(case, half=True) for case in CASES]


def build(work: ConvWork, site: ConvSite, weights: Weights, target: Target) -> Built:
    """Build a convolution on tensor cores, and the passes behind it."""
    return Built.joined((fused(*without_epilogue(work, site), weights, target), epilogue_passes(work, site, weights)))


def build_plain(work: ConvWork, site: ConvSite, weights: Weights, target: Target) -> Built:
    """Build the plain convolution, and the passes behind it."""
    make = FLAVOURS["plain"].up_conv if work.is_up else FLAVOURS["plain"].conv
    return Built.joined((make(*without_epilogue(work, site), weights, target), epilogue_passes(work, site, weights)))


@pytest.mark.gpu
@pytest.mark.parametrize("case", [*HALF_CASES, CASES[0]], ids=str)
def test_products_and_passes_equal_the_reference(case: ConvCase, gpu: Gpu) -> None:
    check_case(Flavour(build, build, (), (), FLAVOURS["fused"].tolerance), case, target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize("case", [HALF_CASES[0], CASES[2]], ids=str)
def test_so_do_plain_products(case: ConvCase, gpu: Gpu) -> None:
    tolerance = {False: 2e-5, True: 2e-3}
    check_case(Flavour(build_plain, build_plain, (), (), tolerance), case, target_of(gpu))


def schedules(architecture: str) -> tuple[Schedule, Schedule]:
    """A network in fp16 without fused epilogues: with tensor cores, and plain."""
    model = make_stylegan2(channel_max=16, architecture=architecture)
    plan = build_synthesis_plan(model.spec, "model", precision="fp16")
    target = portable_without_epilogues(H200)
    return lower(plan, model.weights, target), lower(plan, model.weights, target, everything_plain=True)


def test_each_part_of_an_epilogue_is_a_launch() -> None:
    found, _ = schedules("skip")
    labels = [launch.label for launch in found.launches if launch.layer.startswith("synthesis.b8")]
    assert labels == [
        "modulated_up_conv", "noise_pass", "activation_pass", "style_pass",
        "modulated_conv", "noise_pass", "activation_pass", "style_pass",
        "plain_to_rgb", "to_rgb",
    ]  # fmt: skip
    convs = [launch for launch in found.launches if launch.label in ("modulated_conv", "modulated_up_conv")]
    assert {dict(launch.recipe.defines)["ACTIVATION"] for launch in convs} == {"0"}
    unused = ("bias", "noise", "next_style", "y_raw")
    assert [launch.arguments[name] for launch in convs for name in unused] == [None] * len(convs) * len(unused)


@pytest.mark.parametrize("architecture", ["skip", "resnet", "orig"])
def test_products_are_checked_by_plain_ones(architecture: str) -> None:
    found, plain = schedules(architecture)
    doubtful = doubtful_recipes(found, plain)
    assert {recipe.stem for recipe in doubtful} == {"modulated_conv", "modulated_up_conv"}
    assert judged(found, plain, doubtful) == dict.fromkeys(doubtful, "")
    assert all(judged(found, plain, doubtful, offset=0.5).values())
