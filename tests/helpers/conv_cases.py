"""One convolution kernel against the reference: a case gives the problem, a flavour builds the launches.

Regions that a kernel must not look at, and gaps between the numbers of its layer and those of others, hold NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork, KeptSecond, RgbPart, SkipPicture
from gpu_backend.cuda.launches.fused_convs import conv_geometry, fused_conv
from gpu_backend.cuda.launches.plain_convs import plain_modulated_conv, plain_modulated_up_conv
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.schedule import Built, Region
from gpu_backend.cuda.tiles.table import TileTable
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.kernels.e4m3 import (
    ACTIVATION_SCALE,
    WEIGHT_SCALE,
    from_e4m3,
    padded_channels,
    rounded,
    to_e4m3,
)
from gpu_backend.ops.modulated_conv import ModulatedConv
from gpu_backend.ops.modulated_up_conv import ModulatedUpConv
from gpu_backend.ops.noise import noise_picture, turned
from gpu_backend.plan.plan import Step
from gpu_backend.reference.blend_samples import enlarged
from gpu_backend.reference.modulated_conv import modulated_conv
from gpu_backend.reference.modulated_up_conv import modulated_up_conv
from gpu_backend.reference.upfirdn import double
from tests.helpers.gpu import run_launches
from tests.helpers.kernel_checks import accepted

Weights = dict[str, NDArray[np.float32]]
H200 = Target("sm_90a", 132, 232448, TileTable("sm_90a", 132))
"""For tests that only build."""
SEED = 0x1234_5678_9ABC_DEF0
STRENGTH, NOISE_GAIN, NOISE_INDEX = 0.4, 1.5, 2
BF16X3_TOLERANCE = 3e-5
"""Largest error of fused kernels in bf16x3 relative to the largest value."""
_GAP = 8


class Builder(Protocol):
    """Signature of a flavour's builders."""

    def __call__(self, work: ConvWork, site: ConvSite, weights: Weights, target: Target, /) -> Built: ...


@dataclass(frozen=True)
class Flavour:
    """Builders of one kind of kernel, and its largest error relative to the largest value."""

    conv: Builder
    up_conv: Builder
    kernels: tuple[int, ...]
    up_kernels: tuple[int, ...]
    tolerance: dict[bool, float]
    """By `half`; fused kernels without it multiply in tf32."""

    def runs(self, case: ConvCase) -> bool:
        """Whether the flavour has a kernel for the case."""
        return case.kernel in (self.up_kernels if case.fir else self.kernels) and case.half in self.tolerance


def fused(work: ConvWork, site: ConvSite, weights: Weights, target: Target) -> Built:
    """Build a fused convolution with the tile that the table gives its shape."""
    return fused_conv(work, site, weights, accepted(conv_geometry(work, site, target)))


ODD = (1, 3, 5, 7)
FLAVOURS = {
    "plain": Flavour(plain_modulated_conv, plain_modulated_up_conv, ODD, ODD, {False: 2e-5, True: 1e-3}),
    "fused": Flavour(fused, fused, (1, 3), (3,), {False: 2e-3, True: 4e-3}),
}
"""Name -> flavour. All tests of convolutions run for each."""


@dataclass(frozen=True)
class ConvCase:
    """The problem; `side` is the output's, `fir` the filter of an up-convolution, `rgb` the channels of a picture."""

    cin: int
    cout: int
    side: int
    batch: int = 1
    kernel: int = 3
    fir: tuple[float, ...] = ()
    act: BiasAct = field(default_factory=lambda: BiasAct.of_layer("lrelu"))
    noise: str = "stored"
    half_turns: float = 0.0
    skip: tuple[float, ...] = ()
    rgb: int = 0
    is_stored: bool = True
    is_styled: bool = True
    padding: int | None = None
    blend: int = 0
    """Side of the mask of a second latent; 0 without one."""
    half: bool = False
    fp8: Literal["", "x", "y", "xy"] = ""
    """What is e4m3: x and the weights, y, or both; y_raw is not stored beside a y of e4m3."""
    bf16x3: bool = False
    """Without `half`: fused kernels multiply bf16x3 instead of tf32."""

    def __str__(self) -> str:
        """Return a test's id."""
        parts = [
            f"{self.cin}to{self.cout}",
            f"{self.side}x{self.side}x{self.batch}",
            f"k{self.kernel}" if self.kernel != 3 else "",
            f"fir{len(self.fir)}" if self.fir else "",
            self.act.activation if self.act.activation != "lrelu" else "",
            f"clamp{self.act.clamp}" if self.act.clamp else "",
            self.noise if self.noise != "stored" else "",
            f"turned{self.half_turns:g}" if self.half_turns else "",
            f"skip{len(self.skip)}" if self.skip else "",
            f"rgb{self.rgb}" if self.rgb else "",
            f"blend{self.blend}" if self.blend else "",
            "" if self.is_stored else "only-rgb",
            "" if self.is_styled else "unstyled",
            "" if self.padding is None else f"pad{self.padding}",
            "fp16" if self.half else "bf16x3" if self.bf16x3 else "fp32",
            f"{self.fp8}-in-fp8" if self.fp8 else "",
        ]
        return "-".join(part for part in parts if part)


def each(cases: Iterable[ConvCase]) -> list[Any]:
    """Parameters (flavour, case) of a test: each case in fp32 and fp16, for each flavour that has a kernel for it."""
    listed = [replace(case, half=half) for half in (False, True) for case in cases]
    return [
        pytest.param(flavour, case, id=f"{name}-{case}")
        for name, flavour in FLAVOURS.items()
        for case in listed
        if flavour.runs(case)
    ]


def filter_taps(count: int) -> tuple[float, ...]:
    """An asymmetric filter, which reveals a reversed one; its sum is 1."""
    taps = np.arange(1.0, count + 1.0) ** 1.5
    return tuple(float(tap) for tap in taps / taps.sum())


def step_of(case: ConvCase) -> Step:
    """The step of a plan for a case."""
    noise_index = -1 if case.noise == "none" else NOISE_INDEX
    weights = {"weight": "w", "bias": "b"}
    if noise_index >= 0:
        weights |= {"noise_strength": "strength", "noise_const": "picture"}
    common = (case.cin, case.cout, case.kernel, case.side, 0, 0, noise_index, case.act)
    if case.fir:
        return Step("synthesis.b.conv0", "modulated_up_conv", ModulatedUpConv(*common, case.fir), (), (), weights)
    return Step("synthesis.b.conv1", "modulated_conv", ModulatedConv(*common, case.padding), (), (), weights)


def site_of(case: ConvCase, exponent: int = 0) -> ConvSite:
    """The site of the case's convolution; `problem_of` makes the regions with these names."""
    cout = pad8(case.cout)
    return ConvSite(
        batch=case.batch,
        half=case.half,
        x="x",
        demod_offset=_GAP,
        demod_stride=_GAP + cout,
        style_stride=_GAP + 2 * cout,
        y="y" if case.is_stored else None,
        next_style_offset=_GAP if case.is_styled else None,
        y_raw="y_raw" if case.is_stored and "y" not in case.fp8 else None,
        skip=SkipPicture("skip", 0.5, case.skip) if case.skip else None,
        rgb=RgbPart("synthesis.b.torgb", "rgb", case.rgb, _GAP + cout, "parts") if case.rgb else None,
        blend=KeptSecond("second", 1, "mask", case.blend) if case.blend else None,
        weight_exponent=exponent,
        reads_fp8="x" in case.fp8,
        stores_fp8="y" in case.fp8,
        is_bf16x3=case.bf16x3,
    )


@dataclass(frozen=True)
class Problem:
    """Arrays of a case: the model's weights, the regions that are read, and the expected outputs."""

    weights: Weights
    inputs: dict[str, NDArray[Any]]
    exponent: int
    expected: dict[str, NDArray[np.float64]]
    """``y_raw`` and ``y`` (batch, side, side, channels), ``rgb`` (batch, side, side, channels of the picture)."""
    largest: dict[str, float]
    """The largest absolute value before the clamp; rounding errors are relative to it."""


def _generator_of(case: ConvCase) -> np.random.Generator:
    return np.random.default_rng(case.cin * 1000 + case.cout * 10 + case.batch)


def weights_of(case: ConvCase) -> Weights:
    """Return the weights of `problem_of`, without the answer, which takes a third of a second."""
    return _random_weights(case, _generator_of(case))


def _random_weights(case: ConvCase, random: np.random.Generator) -> Weights:
    weights: Weights = {
        "w": random.standard_normal((case.cout, case.cin, case.kernel, case.kernel), np.float32) * np.float32(3.0),
        "b": random.standard_normal(case.cout, np.float32),
        "strength": np.array(STRENGTH, np.float32),
        "picture": random.standard_normal((case.side, case.side), np.float32),
        "rgb": random.standard_normal((max(case.rgb, 1), case.cout, 1, 1), np.float32),
    }
    if case.noise == "off":
        weights["picture"][:] = np.nan
    return weights


def problem_of(case: ConvCase) -> Problem:
    """Make random inputs and compute the answer in double precision from the stored regions."""
    random = _generator_of(case)
    weights = _random_weights(case, random)
    dtype = np.float16 if case.half else np.float32
    side_in = ConvWork.of_step(step_of(case)).side_in
    cout = pad8(case.cout)
    exponent = int(np.floor(np.log2(np.abs(weights["w"]).max()))) if case.half else 0
    x_channels = padded_channels(case.cin) if "x" in case.fp8 else pad8(case.cin)
    x = np.zeros((case.batch, side_in, side_in, x_channels), dtype)
    x[..., : case.cin] = random.standard_normal((*x.shape[:3], case.cin))
    if "x" in case.fp8:
        x = to_e4m3(x * np.float32(ACTIVATION_SCALE))
    demod = np.full((case.batch, _GAP + cout), np.nan, np.float32)
    demod[:, _GAP:] = 0.0
    fan_in = case.cin * case.kernel**2 * 9.0
    demod[:, _GAP : _GAP + case.cout] = random.uniform(0.5, 1.5, (case.batch, case.cout)) / np.sqrt(fan_in)
    styles = np.full((case.batch, _GAP + 2 * cout), np.nan, np.float32)
    styles[:, _GAP:] = 0.0
    for start in (_GAP, _GAP + cout):
        styles[:, start : start + case.cout] = random.standard_normal((case.batch, case.cout))
    gains = np.full(NOISE_INDEX + 1, np.nan, np.float32)
    gains[NOISE_INDEX] = 0.0 if case.noise == "off" else NOISE_GAIN
    is_random, phase = int(case.noise == "random"), np.array(case.half_turns, np.float32).view(np.uint32)
    inputs: dict[str, NDArray[Any]] = {
        "x": x,
        "demod": demod * np.float32(2.0**exponent),
        "styles": styles,
        "noise_gain": gains,
        "noise_source": np.array([is_random, SEED & 0xFFFFFFFF, SEED >> 32, int(phase)], np.uint32),
    }
    if case.skip:
        low = np.zeros((case.batch, case.side // 2, case.side // 2, cout), dtype)
        low[..., : case.cout] = random.standard_normal((*low.shape[:3], case.cout))
        inputs["skip"] = low
    if case.blend:  # the sample before is that of another blend
        second = np.full((2, case.side, case.side, cout), np.nan, dtype)
        second[1] = 0.0
        second[1, ..., : case.cout] = random.standard_normal((case.side, case.side, case.cout))
        mask = random.uniform(0.0, 1.0, (case.blend, case.blend)).astype(np.float32)
        mask[: case.blend // 2], mask[0, 0] = np.round(mask[: case.blend // 2]), 0.5
        inputs |= {"second": second, "mask": mask}
    free = replace(case, act=replace(case.act, clamp=None))
    expected, unclamped = (_expected(one, weights, inputs, demod, styles, exponent) for one in (case, free))
    largest = {name: float(np.abs(array).max()) for name, array in unclamped.items()}
    return Problem(weights, inputs, exponent, expected, largest)


def _expected(
    case: ConvCase,
    weights: Weights,
    inputs: dict[str, NDArray[Any]],
    demod: NDArray[np.float32],
    styles: NDArray[np.float32],
    exponent: int,
) -> dict[str, NDArray[np.float64]]:
    def real(array: NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, np.float64))

    cout = pad8(case.cout)
    given, weight = inputs["x"], weights["w"]
    if "x" in case.fp8:
        given = from_e4m3(given) / ACTIVATION_SCALE
        weight = rounded(weight * np.float32(2.0**-exponent)) * np.float32(2.0**exponent / WEIGHT_SCALE)
    x = real(given[..., : case.cin]).permute(0, 3, 1, 2)
    picture = {
        "stored": weights["picture"],
        "random": noise_picture(SEED, NOISE_INDEX, case.side)[0],
    }.get(case.noise, np.zeros((case.side, case.side), np.float32))
    picture = turned(picture, case.half_turns) if case.half_turns else picture
    noise = None if case.noise == "none" else real(picture * STRENGTH * NOISE_GAIN)[None].expand(case.batch, -1, -1)
    layer = (
        x,
        real(weight),
        real(weights["b"]),
        torch.ones(case.batch, case.cin, dtype=torch.float64),
        real(demod[:, _GAP : _GAP + case.cout]),
        noise,
        case.act,
    )
    v = modulated_up_conv(*layer, case.fir) if case.fir else modulated_conv(*layer, case.padding)
    if case.skip:
        v = v + double(real(inputs["skip"][..., : case.cout]).permute(0, 3, 1, 2), case.skip) * 0.5
    if case.blend:
        second = real(inputs["second"][1, ..., : case.cout]).permute(2, 0, 1)
        v = torch.lerp(v, second.expand_as(v), enlarged(real(inputs["mask"]), case.side))
    raw = v.permute(0, 2, 3, 1).numpy()
    style = styles[:, None, None, _GAP : _GAP + case.cout] if case.is_styled else 1.0
    rgb_style = styles[:, _GAP + cout : _GAP + cout + case.cout].astype(np.float64)
    rgb_weight = weights["rgb"].reshape(-1, case.cout).astype(np.float64)
    rgb = np.einsum("bhwo,bo,io->bhwi", raw, rgb_style, rgb_weight, optimize=True)
    return {"y_raw": raw, "y": raw * style, "rgb": rgb}


def check_case(
    flavour: Flavour,
    case: ConvCase,
    target: Target,
    run: Callable[..., dict[str, NDArray[Any]]] = run_launches,
) -> None:
    """Run a case twice on the same memory and compare all outputs."""
    problem = problem_of(case)
    work = ConvWork.of_step(step_of(case))
    build = flavour.up_conv if case.fir else flavour.conv
    built = build(work, site_of(case, problem.exponent), problem.weights, target)
    found = run_built(built, problem.inputs, run)
    for name, array in problem.inputs.items():
        assert found[name].tobytes() == array.tobytes(), f"the kernel wrote to {name}"
    outputs: dict[str, NDArray[Any]] = {}
    if case.is_stored:
        outputs |= {name: found[name][..., : case.cout] for name in ("y", "y_raw") if name in found}
        if case.is_styled:
            assert not found["y"][..., case.cout :].any(), "padding of y does not hold zeros"
    if case.rgb:
        outputs["rgb"] = found["parts"].sum(axis=0, dtype=np.float64)
    if "y" in case.fp8:
        outputs["y"] = without_rounding(outputs["y"], problem.expected["y"])
    errors = {name: error_of(array, problem.expected[name], problem.largest[name]) for name, array in outputs.items()}
    recipe = built.launches[0].recipe
    worst = max(errors.values())
    tolerance = BF16X3_TOLERANCE if case.bf16x3 else flavour.tolerance[case.half]
    assert worst < tolerance, f"{errors} with {recipe.title}"


def without_rounding(stored: NDArray[np.int8], expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return stored numbers of e4m3, without what rounding takes: half of the last of three bits of fraction."""
    found = from_e4m3(stored) / ACTIVATION_SCALE
    rounding = np.maximum(np.abs(expected) * 2.0**-4, 2.0**-10 / ACTIVATION_SCALE)
    return expected + np.sign(found - expected) * np.maximum(np.abs(found - expected) - rounding, 0.0)


def run_built(
    built: Built, inputs: dict[str, NDArray[Any]], run: Callable[..., dict[str, NDArray[Any]]] = run_launches
) -> dict[str, NDArray[Any]]:
    """Run a builder's launches twice over regions made for its inputs; return all regions."""
    declared = {item.name for item in built.regions}
    read = tuple(
        Region(name, array.shape, str(array.dtype), "scratch") for name, array in inputs.items() if name not in declared
    )
    return run(built.launches, (*read, *built.regions), built.constants, inputs, runs=2)


def error_of(found: NDArray[Any], expected: NDArray[np.float64], largest: float | None = None) -> float:
    """Return the largest difference relative to the largest expected value, or to the one given.

    Infinite if something is not finite.
    """
    if found.shape != expected.shape or not np.isfinite(found).all():
        return float("inf")
    largest = float(np.abs(expected).max()) if largest is None else largest
    return float(np.abs(found - expected).max() / max(largest, 1e-30))
