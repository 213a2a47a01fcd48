"""StyleGAN1's layers kernel by kernel against the reference: a case gives the problem, a flavour builds the launches.

Regions that a kernel must not look at, and gaps between a layer's numbers and those of others, hold NaN.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from gpu_backend.cuda.launches.adain import (
    AdainSite,
    FusedLayer,
    adain,
    adain_input,
    fold_adain,
    folded_input,
    normalising,
    plain_adain,
)
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork, RgbPart
from gpu_backend.cuda.launches.fused_convs import conv_geometry, fused_conv, has_whole_picture
from gpu_backend.cuda.launches.plain_convs import plain_modulated_conv, plain_modulated_up_conv
from gpu_backend.cuda.launches.streaming_up_conv import streaming_choice, streaming_up_conv
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.launches.weight_exponent import weight_exponent
from gpu_backend.cuda.schedule import Built
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.ops.adain import weight_gain
from gpu_backend.ops.adain_conv import AdainConv
from gpu_backend.ops.adain_input import AdainInput
from gpu_backend.ops.adain_up_conv import BLUR, AdainUpConv, blurred_ones
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.kernels.conv_tile import ConvGeometry, ConvShape, ConvTile
from gpu_backend.ops.noise import noise_picture
from gpu_backend.ops.to_rgb import UNSTYLED
from gpu_backend.plan.plan import Step
from gpu_backend.reference.adain import adain as reference
from tests.helpers.conv_cases import NOISE_GAIN, NOISE_INDEX, SEED, Weights, error_of, run_built
from tests.helpers.gpu import run_launches
from tests.helpers.kernel_checks import accepted

TOLERANCE = {"plain": {False: 2e-5, True: 3e-3}, "fused": {True: 4e-3}}
"""The largest error relative to the largest value, by flavour and `half`."""

EPSILON = 1e-8
_GAP = 8
Kind = Literal["input", "conv", "up_conv"]


@dataclass(frozen=True)
class AdainCase:
    """The problem; `side` is the output's, `offset` is added to every bias, `deviation` is the layer's.

    With `folded` the convolution's weights take in the normalisation of the layer before; `about` is added to its
    channels, of deviation 1.
    """

    channels: int
    side: int
    batch: int = 1
    kind: Kind = "conv"
    cin: int = 16
    noise: str = "stored"
    act: BiasAct = field(default_factory=lambda: BiasAct("lrelu"))
    blurs_bias: bool = False
    rgb: int = 0
    offset: float = 0.0
    deviation: float = 1.0
    folded: bool = False
    about: float = 0.0
    half: bool = False

    def __str__(self) -> str:
        """Return a test's id."""
        parts = [
            self.kind,
            f"{self.cin}to{self.channels}x{self.side}x{self.batch}",
            self.act.activation if self.act.activation != "lrelu" else "",
            self.noise if self.noise != "stored" else "",
            "blurred" if self.blurs_bias else "",
            f"rgb{self.rgb}" if self.rgb else "",
            f"about{self.offset}" if self.offset else "",
            f"folded{self.about:g}" if self.folded else "",
            "fp16" if self.half else "fp32",
        ]
        return "-".join(part for part in parts if part)

    @property
    def side_in(self) -> int:
        """Side of the input of the convolution."""
        return self.side // 2 if self.kind == "up_conv" else self.side

    @property
    def before(self) -> tuple[Step, ConvGeometry]:
        """The layer before, and how its convolution was cut."""
        settings = AdainConv(16, self.cin, self.side_in, 0, -1, self.act, EPSILON)
        shape = ConvShape("conv", self.side_in, 16, pad8(self.cin), self.batch)
        tile = ConvTile(4, 16, 16, 16, 2, 4, 1, row_tiles=3)
        return Step("synthesis.a.conv1", "adain_conv", settings, ("w",), ("x",), {}), ConvGeometry(shape, tile)

    @property
    def step(self) -> Step:
        """The step of a plan."""
        index = -1 if self.noise == "none" else NOISE_INDEX
        place = (self.channels, self.side, 0, index, self.act, EPSILON)
        weights = {"bias": "b"} | ({} if index < 0 else {"noise_strength": "strength", "noise_const": "picture"})
        if self.kind == "input":
            return Step("synthesis.b.input", "adain_input", AdainInput(*place), ("const",), ("y",), weights)
        weights["weight"] = "w"
        if self.kind == "up_conv":
            settings = AdainUpConv(self.cin, *place, self.blurs_bias)
            return Step("synthesis.b.conv0", "adain_up_conv", settings, ("x",), ("y",), weights)
        return Step("synthesis.b.conv1", "adain_conv", AdainConv(self.cin, *place), ("x",), ("y",), weights)


def build(flavour: str, case: AdainCase, weights: Weights, target: Target) -> Built:
    """Build a case's launches."""
    site = AdainSite(
        batch=case.batch,
        half=case.half,
        x="activated",
        moments="moments",
        y="y",
        style_offset=_GAP,
        style_stride=2 * _GAP + 2 * case.channels + 2 * case.cin,
        rgb=RgbPart("synthesis.b.torgb", "rgb", case.rgb, UNSTYLED, "parts") if case.rgb else None,
    )
    if case.kind == "input":
        return adain_input(case.step, site, weights, "const")
    work = ConvWork.of_step(case.step)
    exponent = weight_exponent(weights["w"] * np.float32(work.weight_scale)) if case.half else 0
    conv = ConvSite(case.batch, case.half, "x", None, 8, 8, y="activated", weight_exponent=exponent)
    if flavour == "plain":
        plain = plain_modulated_up_conv if work.is_up else plain_modulated_conv
        return Built.joined((plain(work, conv, weights, target), plain_adain(case.step, site, weights)))
    folded = folded_input(work, "x") if case.folded else None
    calls = replace(conv, moments="moments", folded=folded)
    streaming = streaming_choice(work, calls, target)
    if streaming is not None:
        before = streaming_up_conv(work, calls, weights, streaming)
        return Built.joined((before, adain(case.step, site, weights, target, streaming)))
    geometry = accepted(conv_geometry(work, calls, target))
    if has_whole_picture(geometry) and not case.rgb and not case.offset:
        calls = normalising(calls, case.step, site)
        layer = fused_conv(work, calls, weights, geometry)
    else:
        normal = adain(case.step, site, weights, target, geometry)
        layer = Built.joined((fused_conv(work, calls, weights, geometry), normal))
    if not case.folded:
        return layer
    step, cut = case.before
    earlier = replace(
        site, x="x", moments="partials", y="x/normal", style_offset=2 * _GAP + 2 * case.channels, rgb=None
    )
    reader = FusedLayer(case.step, site, work, calls, geometry, (), None)
    return Built.joined((fold_adain(step, earlier, weights, cut, reader), layer))


def check_adain_case(
    flavour: str, case: AdainCase, target: Target, run: Callable[..., dict[str, NDArray[Any]]] = run_launches
) -> None:
    """Run a case twice on the same memory and compare the outputs with the formula in double precision."""
    random = np.random.default_rng(case.channels * 1000 + case.side)
    dtype = np.float16 if case.half else np.float32
    scale = np.float32(case.deviation)
    weights: Weights = {
        "b": np.float32(case.offset) + random.standard_normal(case.channels, np.float32) * np.float32(0.5) * scale,
        "strength": random.standard_normal(case.channels, np.float32) * np.float32(0.3) * scale,
        "picture": random.standard_normal((case.side, case.side), np.float32),
        "rgb": random.standard_normal((max(case.rgb, 1), case.channels, 1, 1), np.float32),
        "const": random.standard_normal((case.channels, case.side, case.side), np.float32).astype(dtype).astype("f4"),
        "w": random.standard_normal((case.channels, case.cin, 3, 3), np.float32) * scale,
    }
    if case.noise == "off":
        weights["picture"][:] = np.nan
    styles = np.full((case.batch, 2 * _GAP + 2 * case.channels + 2 * case.cin), np.nan, np.float32)
    own = slice(_GAP, _GAP + 2 * case.channels)
    styles[:, own] = random.standard_normal((case.batch, 2 * case.channels))
    gains = np.full(NOISE_INDEX + 1, np.nan, np.float32)
    gains[NOISE_INDEX] = 0.0 if case.noise == "off" else NOISE_GAIN
    source = np.array([case.noise == "random", SEED & 0xFFFFFFFF, SEED >> 32, 0], np.uint32)
    inputs: dict[str, NDArray[Any]] = {"styles": styles, "noise_gain": gains, "noise_source": source}
    if case.kind != "input":
        shape = (case.batch, case.side_in, case.side_in, case.cin)
        inputs["x"] = np.zeros((*shape[:3], pad8(case.cin)), dtype)
        inputs["x"][..., : case.cin] = case.about + random.standard_normal(shape)
    read = inputs.get("x")
    if case.folded:
        given = random.standard_normal((case.batch, 2 * case.cin), np.float32)
        styles[:, -2 * case.cin :] = given
        inputs["partials"] = _partials(inputs["x"], *case.before[1].part)
        pixels = torch.from_numpy(inputs["x"][..., : case.cin].astype("f8")).permute(0, 3, 1, 2)
        layer = reference(pixels, None, None, BiasAct(), torch.from_numpy(given.astype("f8")), EPSILON)
        read = layer.permute(0, 2, 3, 1).numpy()
    built = build(flavour, case, weights, target)
    found = run_built(built, inputs, run)
    for name, array in inputs.items():
        assert found[name].tobytes() == array.tobytes(), f"a kernel wrote to {name}"
    activated = _activated(case, weights, read)
    if "moments" in found:
        normal = built.launches[-1].arguments
        part = [int(normal[name]) for name in ("part_rows", "part_columns")]  # type: ignore[arg-type]
        _check_moments(found["activated"], found["moments"], part)
    if case.offset and case.half:  # what counts is what is made of the numbers as they are stored
        stored = found["activated"][..., : case.channels].astype(np.float64)
        assert np.abs(stored - activated.permute(0, 2, 3, 1).numpy()).max() < 2e-3 * case.offset
        activated = torch.from_numpy(stored).permute(0, 3, 1, 2)
    answer = reference(activated, None, None, BiasAct(), torch.from_numpy(styles[:, own].astype("f8")), EPSILON)
    expected = np.asarray(answer.permute(0, 2, 3, 1).numpy(), np.float64)
    errors = []
    if "y" in found:
        assert not found["y"][..., case.channels :].any(), "padding of y does not hold zeros"
        errors.append(error_of(found["y"][..., : case.channels], expected))
    if "parts" in found:
        weight = weights["rgb"].reshape(-1, case.channels).astype(np.float64) / np.sqrt(case.channels)
        errors.append(error_of(found["parts"].sum(axis=0, dtype=np.float64), expected @ weight.T))
    assert errors
    assert max(errors) < TOLERANCE[flavour][case.half], (errors, built.launches[0].recipe.title)


def _partials(x: NDArray[Any], rows: int, columns: int) -> NDArray[np.float32]:
    """Return mean and M2 of each part of a layer, (batch, parts, channels, 2)."""
    side = x.shape[1]
    parts = []
    for y, left in itertools.product(range(0, side, rows), range(0, side, columns)):
        part = x[:, y : y + rows, left : left + columns].astype(np.float64)
        mean = part.mean(axis=(1, 2), keepdims=True)
        parts.append(np.stack((mean[:, 0, 0], ((part - mean) ** 2).sum(axis=(1, 2))), axis=-1))
    return np.stack(parts, axis=1).astype(np.float32)


def _activated(case: AdainCase, weights: Weights, x: NDArray[Any] | None) -> torch.Tensor:
    """The input of the normalisation, (batch, channels, side, side)."""

    def real(array: NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, np.float64))

    if x is None:
        v = real(weights["const"]).expand(case.batch, -1, -1, -1)
    else:
        pixels = real(x[..., : case.cin]).permute(0, 3, 1, 2)
        kernel = real(weights["w"]) * weight_gain(case.cin)
        if case.kind == "up_conv":
            u = functional.conv2d(functional.interpolate(pixels, scale_factor=2), kernel.flip(2, 3), padding=1)
            taps = torch.tensor(BLUR, dtype=torch.float64)
            blur = (taps[:, None] * taps).expand(case.channels, 1, -1, -1)
            v = functional.conv2d(u, blur, padding=1, groups=case.channels)
        else:
            v = functional.conv2d(pixels, kernel, padding=1)
    share = blurred_ones(case.side)[:, None] * blurred_ones(case.side) if case.blurs_bias else np.ones((1, 1))
    v = v + real(weights["b"])[:, None, None] * real(share)
    picture = {"stored": weights["picture"], "random": noise_picture(SEED, NOISE_INDEX, case.side)[0]}.get(case.noise)
    if picture is not None:
        v = v + real(picture * NOISE_GAIN) * real(weights["strength"])[None, :, None, None]
    acts: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "linear": lambda v: v,
        "relu": functional.relu,
        "lrelu": lambda v: functional.leaky_relu(v, 0.2),
        "swish": functional.silu,
    }
    v = acts[case.act.activation](v) * case.act.gain
    return v if case.act.clamp is None else v.clamp(-case.act.clamp, case.act.clamp)


def _check_moments(stored: NDArray[Any], moments: NDArray[np.float32], part: list[int]) -> None:
    """Check the partial moments of each rectangle of the stored values; errors are relative to the whole layer's."""
    rows, columns = part
    side, number = stored.shape[1], 0
    variance = stored.astype(np.float64).var((1, 2))
    for y in range(0, side, rows):
        for x in range(0, side, columns):
            pixels = stored[:, y : y + rows, x : x + columns].astype(np.float64)
            mean = pixels.mean((1, 2))
            squares = np.square(pixels - mean[:, None, None]).sum((1, 2))
            allowed = 1e-3 * np.sqrt(variance) + 1e-6 * np.abs(mean)
            assert (np.abs(moments[:, number, :, 0] - mean) <= allowed).all()
            assert (np.abs(moments[:, number, :, 1] - squares) <= 2e-3 * (squares + variance)).all()
            number += 1
    assert number == moments.shape[1]
