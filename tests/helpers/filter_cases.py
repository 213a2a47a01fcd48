"""One filtered-activation kernel against the reference: a case gives the problem, a flavour builds the launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gpu_backend.cuda.launches.conv_work import RgbPart
from gpu_backend.cuda.launches.filtered_lrelu import FilterSite, filter_geometry, fused_filter, plain_filter
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.schedule import Built
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.filtered_lrelu import FilteredLrelu
from gpu_backend.plan.plan import Step
from gpu_backend.reference.filtered_lrelu import filtered_lrelu
from tests.helpers.conv_cases import Weights, error_of, run_built, without_rounding
from tests.helpers.gpu import run_launches
from tests.helpers.kernel_checks import accepted

TOLERANCE = {"plain": {False: 1e-5, True: 2e-3}, "fused": {True: 8e-3}}
"""The largest error relative to the largest value, by flavour and `half`."""

_GAP = 8


@dataclass(frozen=True)
class FilterCase:
    """The problem; `low` zeros precede the first sample, and the zeros after the last follow from the sizes.

    A radial filter is the sum of `rank` products of both axes.
    """

    channels: int
    in_size: int
    out_size: int
    up: int = 2
    low: int = 9
    is_radial: bool = False
    batch: int = 1
    up_taps: int = 0
    down: int = 2
    down_taps: int = 12
    act: BiasAct = BiasAct.of_layer("lrelu", clamp=256.0)
    is_styled: bool = True
    half: bool = False
    rank: int = 6
    picture_channels: int = 0
    is_stored: bool = True
    fp8: bool = False
    """Whether y is e4m3."""

    @property
    def settings(self) -> FilteredLrelu:
        """The filter of the operation."""
        up_taps = self.up_taps or 6 * self.up
        total = (self.out_size - 1) * self.down + 1 - self.in_size * self.up + up_taps + self.down_taps - 2
        return FilteredLrelu(
            self.channels,
            self.in_size,
            self.out_size,
            self.up,
            self.down,
            (self.low, total - self.low),
            up_taps,
            self.down_taps,
            self.is_radial,
            self.act,
        )

    @property
    def step(self) -> Step:
        """The step of a plan."""
        filters = {"up_filter": "up", "down_filter": "down"}
        return Step("synthesis.L", "filtered_lrelu", self.settings, ("x",), ("y",), filters)

    @property
    def site(self) -> FilterSite:
        """The site of the operation."""
        rgb = RgbPart("synthesis.rgb", "rgb", self.picture_channels, _GAP, "rgb") if self.picture_channels else None
        offset = _GAP if self.is_styled else None
        stride = _GAP + pad8(self.channels)
        return FilterSite(self.batch, self.half, "x", "y", offset, stride, rgb, self.is_stored, self.fp8)

    def __str__(self) -> str:
        """Return a test's id."""
        parts = [
            f"{self.channels}x{self.in_size}to{self.out_size}x{self.batch}",
            f"up{self.up}from{self.low}",
            f"radial{self.rank}" if self.is_radial else "",
            f"picture{self.picture_channels}" if self.picture_channels else "",
            "" if self.is_stored else "unstored",
            "" if self.is_styled else "unstyled",
            "fp16" if self.half else "fp32",
            "to-fp8" if self.fp8 else "",
        ]
        return "-".join(part for part in parts if part)


def filters_of(case: FilterCase) -> Weights:
    """Filters with sum 1; all except radial ones are asymmetric, which reveals a reversed one."""
    random = np.random.default_rng(case.up)
    settings = case.settings
    up, down = (
        np.hanning(count + 2)[1:-1] * random.uniform(0.5, 1.5, count) for count in (settings.up_taps, case.down_taps)
    )
    if case.is_radial:
        columns, rows = (random.uniform(-0.2, 1.0, (case.rank, case.down_taps // 2)) for _ in range(2))
        quarter = columns.T @ rows
        half = np.concatenate((quarter, quarter[::-1]))
        down = np.concatenate((half, half[:, ::-1]), axis=1)
    found = {"up": (up / up.sum()).astype(np.float32), "down": (down / down.sum()).astype(np.float32)}
    if case.picture_channels:
        found["rgb"] = random.standard_normal((case.picture_channels, case.channels, 1, 1)).astype(np.float32)
    return found


def build(flavour: str, case: FilterCase, target: Target) -> Built:
    """Build a case's launch."""
    weights = filters_of(case)
    if flavour == "plain":
        return plain_filter(case.step, case.site, weights, target)
    return fused_filter(case.step, case.site, weights, accepted(filter_geometry(case.step, case.site, weights, target)))


def check_filter_case(
    flavour: str,
    case: FilterCase,
    target: Target,
    run: Callable[..., dict[str, NDArray[Any]]] = run_launches,
) -> None:
    """Run a case twice on the same memory and compare the outputs."""
    random = np.random.default_rng(case.channels)
    channels = pad8(case.channels)
    x = np.zeros((case.batch, case.in_size, case.in_size, channels), np.float16 if case.half else np.float32)
    x[..., : case.channels] = random.standard_normal((*x.shape[:3], case.channels))
    styles = np.full((case.batch, _GAP + channels), np.nan, np.float32)
    styles[:, _GAP:] = 0.0
    styles[:, _GAP : _GAP + case.channels] = random.standard_normal((case.batch, case.channels))
    inputs = {"x": x, "styles": styles}
    built = build(flavour, case, target)
    found = run_built(built, inputs, run)
    for name, array in inputs.items():
        assert found[name].tobytes() == array.tobytes(), f"the kernel wrote to {name}"
    weights = {name: torch.from_numpy(array.astype(np.float64)) for name, array in filters_of(case).items()}
    real = torch.from_numpy(x[..., : case.channels].astype(np.float64)).permute(0, 3, 1, 2)
    free = replace(case.settings, act=replace(case.act, clamp=None))
    expected, unclamped = (
        filtered_lrelu(real, weights["up"], weights["down"], settings).permute(0, 2, 3, 1).numpy()
        * (styles[:, None, None, _GAP : _GAP + case.channels] if case.is_styled else 1.0)
        for settings in (case.settings, free)
    )
    if case.picture_channels:
        weight = filters_of(case)["rgb"][:, :, 0, 0] * styles[:, None, _GAP : _GAP + case.channels]
        picture = np.einsum("bhwo,bio->bhwi", expected, weight.astype(np.float64))
        error = error_of(found["rgb"].sum(axis=0), picture)
        assert error < TOLERANCE[flavour][case.half], f"{error} of the picture with {built.launches[0].recipe.title}"
    if "y" not in found:
        return
    assert not found["y"][..., case.channels :].any(), "padding of y does not hold zeros"
    y = found["y"][..., : case.channels]
    if case.fp8:
        y = without_rounding(y, expected)
    error = error_of(y, expected, float(np.abs(unclamped).max()))
    assert error < TOLERANCE[flavour][case.half], f"{error} with {built.launches[0].recipe.title}"
