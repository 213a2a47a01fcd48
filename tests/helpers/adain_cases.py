"""StyleGAN1's layers kernel by kernel against the reference: a case says what is asked for, a flavour who builds it.

Regions that a kernel must not look at, and gaps between a layer's numbers and those of others, hold NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from gpu_backend.cuda.launches.adain import AdainSite, adain_launches, constant_input
from gpu_backend.cuda.launches.built import Built
from gpu_backend.cuda.launches.conv_arguments import region
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork, RgbPart
from gpu_backend.cuda.launches.weight_exponent import weight_exponent
from gpu_backend.cuda.schedule import Address
from gpu_backend.cuda.style_layout import pad8
from gpu_backend.cuda.target import Target
from gpu_backend.ops.adain import weight_gain
from gpu_backend.ops.adain_conv import AdainConv
from gpu_backend.ops.adain_input import AdainInput
from gpu_backend.ops.adain_up_conv import BLUR, AdainUpConv, blurred_ones
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.noise import noise_picture
from gpu_backend.ops.to_rgb import UNSTYLED
from gpu_backend.plan.plan import Step
from gpu_backend.reference.adain import adain
from tests.helpers.conv_cases import FLAVOURS, NOISE_GAIN, NOISE_INDEX, SEED, Weights, error_of, run_built
from tests.helpers.gpu import run_launches

TOLERANCE = {"plain": {False: 2e-5, True: 1e-3}, "fused": {True: 1e-3}}
"""Of the normalisation: the largest error as a share of the largest number, by flavour and `half`."""

EPSILON = 1e-8
_GAP = 8


@dataclass(frozen=True)
class AdainCase:
    """What is normalised: `offset` is added to all that the convolution gave, whose deviation is `deviation`."""

    channels: int
    side: int
    batch: int = 1
    noise: str = "stored"
    act: BiasAct = field(default_factory=lambda: BiasAct("lrelu"))
    blurs_bias: bool = False
    is_shared: bool = False
    rgb: int = 0
    offset: float = 0.0
    deviation: float = 1.0
    half: bool = False

    def __str__(self) -> str:
        """Return a test's id."""
        parts = [
            f"{self.channels}x{self.side}x{self.batch}",
            self.act.activation if self.act.activation != "lrelu" else "",
            self.noise if self.noise != "stored" else "",
            "blurred" if self.blurs_bias else "",
            "shared" if self.is_shared else "",
            f"rgb{self.rgb}" if self.rgb else "",
            f"about{self.offset}" if self.offset else "",
            "fp16" if self.half else "fp32",
        ]
        return "-".join(part for part in parts if part)

    @property
    def step(self) -> Step:
        """The step of a plan."""
        index = -1 if self.noise == "none" else NOISE_INDEX
        place = (self.channels, self.side, 0, index, self.act, EPSILON)
        weights = {"bias": "b"} | ({} if index < 0 else {"noise_strength": "strength", "noise_const": "picture"})
        if self.is_shared:
            return Step("synthesis.b.input", "adain_input", AdainInput(*place), ("const",), ("y",), weights)
        if self.blurs_bias:
            settings = AdainUpConv(8, *place, self.blurs_bias)
            return Step("synthesis.b.conv0", "adain_up_conv", settings, ("",), ("y",), weights)
        return Step("synthesis.b.conv1", "adain_conv", AdainConv(8, *place), ("",), ("y",), weights)


def build(flavour: str, case: AdainCase, weights: Weights, target: Target) -> Built:
    """Build a case's launches."""
    pixels = constant_input("const", weights, half=case.half)
    site = AdainSite(
        batch=case.batch,
        half=case.half,
        x=Address(pixels.key, "constant") if case.is_shared else region("x"),
        is_shared=case.is_shared,
        y="y",
        style_offset=_GAP,
        style_stride=2 * _GAP + 2 * case.channels,
        rgb=RgbPart("synthesis.b.torgb", "rgb", case.rgb, UNSTYLED, "parts") if case.rgb else None,
    )
    made = adain_launches(case.step, site, weights, target, {}, is_plain=flavour == "plain")
    return Built.joined((Built((), (pixels,)), made)) if case.is_shared else made


def check_adain_case(
    flavour: str, case: AdainCase, target: Target, run: Callable[..., dict[str, NDArray[Any]]] = run_launches
) -> None:
    """Run a case twice on the same memory and compare what comes out with the formula in double precision."""
    random = np.random.default_rng(case.channels * 1000 + case.side)
    cout, side = pad8(case.channels), case.side
    dtype = np.float16 if case.half else np.float32
    weights: Weights = {
        "b": random.standard_normal(case.channels, np.float32) * np.float32(0.5 * case.deviation),
        "strength": random.standard_normal(case.channels, np.float32) * np.float32(0.3 * case.deviation),
        "picture": random.standard_normal((side, side), np.float32),
        "rgb": random.standard_normal((max(case.rgb, 1), case.channels, 1, 1), np.float32),
        "const": random.standard_normal((case.channels, side, side), np.float32).astype(dtype).astype(np.float32),
    }
    x = np.zeros((case.batch, side, side, cout), dtype)
    x[..., : case.channels] = case.offset + case.deviation * random.standard_normal((*x.shape[:3], case.channels))
    if case.is_shared:
        x = np.broadcast_to(weights["const"].transpose(1, 2, 0), (case.batch, side, side, case.channels))
    if case.noise == "off":
        weights["picture"][:] = np.nan
    styles = np.full((case.batch, 2 * _GAP + 2 * case.channels), np.nan, np.float32)
    styles[:, _GAP:-_GAP] = random.standard_normal((case.batch, 2 * case.channels))
    gains = np.full(NOISE_INDEX + 1, np.nan, np.float32)
    gains[NOISE_INDEX] = 0.0 if case.noise == "off" else NOISE_GAIN
    source = np.array([case.noise == "random", SEED & 0xFFFFFFFF, SEED >> 32, 0], np.uint32)
    inputs = {"styles": styles, "noise_gain": gains, "noise_source": source} | ({} if case.is_shared else {"x": x})
    expected = _expected(case, weights, x, styles)
    found = run_built(build(flavour, case, weights, target), inputs, run)
    for name, array in inputs.items():
        assert found[name].tobytes() == array.tobytes(), f"a kernel wrote to {name}"
    errors = []
    if "y" in found:
        assert not found["y"][..., case.channels :].any(), "padding of y does not hold zeros"
        errors.append(error_of(found["y"][..., : case.channels], expected))
    if "parts" in found:
        weight = weights["rgb"].reshape(-1, case.channels).astype(np.float64) / np.sqrt(case.channels)
        errors.append(error_of(found["parts"].sum(axis=0, dtype=np.float64), expected @ weight.T))
    assert errors
    assert max(errors) < TOLERANCE[flavour][case.half], errors


def _expected(case: AdainCase, weights: Weights, x: NDArray[Any], styles: NDArray[np.float32]) -> NDArray[np.float64]:
    def real(array: NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, np.float64))

    picture = {"stored": weights["picture"], "random": noise_picture(SEED, NOISE_INDEX, case.side)[0]}.get(case.noise)
    noise = None
    if picture is not None:
        noise = real(picture * NOISE_GAIN) * real(weights["strength"])[None, :, None, None]
    share = np.ones((case.side, case.side))
    if case.blurs_bias:
        share = blurred_ones(case.side)[:, None] * blurred_ones(case.side)
    biased = real(x[..., : case.channels]).permute(0, 3, 1, 2) + real(weights["b"])[:, None, None] * real(share)
    answer = adain(biased, None, noise, case.act, real(styles[:, _GAP:-_GAP]), EPSILON)
    return np.asarray(answer.permute(0, 2, 3, 1).numpy(), np.float64)


@dataclass(frozen=True)
class RawCase:
    """A convolution before its normalisation; `side` is the output's."""

    cin: int
    cout: int
    side: int
    is_up: bool = True
    batch: int = 1
    half: bool = False

    def __str__(self) -> str:
        """Return a test's id."""
        kind = "up" if self.is_up else "conv"
        return f"{kind}-{self.cin}to{self.cout}-{self.side}x{self.batch}-{'fp16' if self.half else 'fp32'}"

    @property
    def step(self) -> Step:
        """The step of a plan."""
        place = (self.cin, self.cout, self.side, 0, -1, BiasAct("lrelu"), EPSILON)
        if self.is_up:
            return Step("synthesis.b.conv0", "adain_up_conv", AdainUpConv(*place), (), (), {"weight": "w"})
        return Step("synthesis.b.conv1", "adain_conv", AdainConv(*place), (), (), {"weight": "w"})


def check_raw_case(
    flavour: str, case: RawCase, target: Target, run: Callable[..., dict[str, NDArray[Any]]] = run_launches
) -> None:
    """Run a convolution and compare with the formula; a border that is wrong is off by far more than rounding."""
    random = np.random.default_rng(case.cin * 1000 + case.cout)
    weight = random.standard_normal((case.cout, case.cin, 3, 3), np.float32) * np.float32(3.0)
    side_in = case.side // 2 if case.is_up else case.side
    x = np.zeros((case.batch, side_in, side_in, pad8(case.cin)), np.float16 if case.half else np.float32)
    x[..., : case.cin] = random.standard_normal((*x.shape[:3], case.cin))
    work, weights = ConvWork.of_step(case.step), {"w": weight}
    exponent = weight_exponent(weight * np.float32(work.weight_scale)) if case.half else 0
    site = ConvSite(case.batch, case.half, "x", None, 8, 8, y="y", weight_exponent=exponent)
    kind = FLAVOURS[flavour]
    built = (kind.up_conv if case.is_up else kind.conv)(work, site, weights, target)
    found = run_built(built, {"x": x}, run)["y"]
    real = torch.from_numpy(x[..., : case.cin].astype(np.float64)).permute(0, 3, 1, 2)
    kernel = torch.from_numpy(weight.astype(np.float64)) * weight_gain(case.cin)
    if case.is_up:
        u = functional.conv2d(functional.interpolate(real, scale_factor=2), kernel.flip(2, 3), padding=1)
        taps = torch.tensor(BLUR, dtype=torch.float64)
        blur = (taps[:, None] * taps).expand(case.cout, 1, -1, -1)
        expected = functional.conv2d(u, blur, padding=1, groups=case.cout)
    else:
        expected = functional.conv2d(real, kernel, padding=1)
    assert not found[..., case.cout :].any(), "padding does not hold zeros"
    error = error_of(found[..., : case.cout], expected.permute(0, 2, 3, 1).numpy())
    assert error < kind.tolerance[case.half], f"{error} with {built.launches[0].recipe.title}"
