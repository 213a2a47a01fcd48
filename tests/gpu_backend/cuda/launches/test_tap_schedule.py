"""What a plan that shows a layer becomes on a GPU, as data."""

from __future__ import annotations

import pytest

from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.schedule import Address, Schedule
from gpu_backend.cuda.tiles.table import TileTable
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.model.model import Model
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey, Precision
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import make_stylegan3

TARGET = Target("sm_90a", 132, 232448, TileTable("sm_90a", 132, shared_nbytes_per_block=232448))
SKIP, RESNET = (make_stylegan2(resolution=32, architecture=name) for name in ("skip", "resnet"))
FILTERED = make_stylegan3(w_dim=20)
NORMALIZED = make_stylegan1()
"""Places among the arguments of a convolution."""
EVERY = [
    pytest.param(model, layer.name, id=f"{name}-{layer.name}")
    for name, model in {"skip": SKIP, "resnet": RESNET, "StyleGAN3": FILTERED, "StyleGAN1": NORMALIZED}.items()
    for layer in model.facts.layers
]


def schedule_of(model: Model, tap: str, precision: Precision = "fp16", *, plain: bool = False) -> Schedule:
    plan = build_plan(model.spec, PlanKey("model", "synthesis", 1, 0, precision, tap))
    return lower(plan, model.weights, TARGET, everything_plain=plain)


@pytest.mark.parametrize(("model", "tap"), EVERY)
@pytest.mark.parametrize("precision", ["fp16", "fp32"])
def test_it_ends_with_the_layer_that_is_shown(model: Model, tap: str, precision: Precision) -> None:
    schedule = schedule_of(model, tap, precision)
    *before, measure, show = schedule.launches
    assert (measure.label, show.label) == ("tap_statistics", "tap_display")
    assert before[-1].layer == f"synthesis.{tap}"
    shown = measure.arguments["x"]
    assert isinstance(shown, Address)
    assert shown in before[-1].arguments.values(), "the last kernel of the layer writes what is shown"
    facts = next(layer for layer in model.facts.layers if layer.name == tap)
    (region,) = [item for item in schedule.regions if item.name == shown.name]
    assert region.shape[:3] == (1, facts.side, facts.side)
    assert region.shape[3] >= facts.channels
    outputs = {item.name: item.shape for item in schedule.regions if item.role == "output"}
    assert outputs == {
        "pixels": (1, facts.side, facts.side, 4),
        "flags": (1,),
        "statistics": (1, 4, 4),
        "values": (1, facts.side, facts.side),
    }
    assert {item.name for item in schedule.regions if item.role == "input"} >= {"ws", "tap"}


@pytest.mark.parametrize(("model", "tap"), [(SKIP, "b16.conv0"), (SKIP, "b16.conv1"), (RESNET, "b16.conv1")])
@pytest.mark.parametrize("is_plain", [False, True])
def test_a_convolution_that_is_shown_carries_no_style_no_sum_and_no_picture(
    model: Model, tap: str, is_plain: bool
) -> None:
    schedule = schedule_of(model, tap, plain=is_plain)
    last = next(launch for launch in reversed(schedule.launches) if "conv" in launch.label)
    assert last.arguments["y"] == Address(tap, "region")
    assert last.arguments["next_style"] is None
    assert "skip" not in last.arguments or tap.endswith("conv0"), "no skip is added"
    assert "to_rgb" not in {launch.label for launch in schedule.launches}


def test_a_filtered_layer_that_is_shown_carries_no_style() -> None:
    name = FILTERED.spec.layers[3].name
    *_, last, _, _ = schedule_of(FILTERED, name).launches
    assert last.label == "filtered_lrelu"
    assert last.arguments["next_style"] is None


def test_a_skip_that_is_shown_is_doubled() -> None:
    labels = [launch.label for launch in schedule_of(RESNET, "b16.skip").launches]
    assert labels[-3:] == ["doubled", "tap_statistics", "tap_display"]
    assert "doubled" not in {launch.label for launch in schedule_of(RESNET, "b16.conv1").launches}


def test_the_input_of_a_stylegan3_needs_no_styles() -> None:
    labels = [launch.label for launch in schedule_of(FILTERED, "input").launches]
    assert labels == ["fourier_features", "modulated_conv", "tap_statistics", "tap_display"]


@pytest.mark.parametrize("tap", ["b16.torgb", FILTERED.spec.layers[-1].name])
def test_the_picture_of_a_to_rgb_is_shown_before_its_gain_and_without_those_before(tap: str) -> None:
    model = SKIP if tap == "b16.torgb" else FILTERED
    *_, last, _, _ = schedule_of(model, tap).launches
    assert last.label == "to_rgb"
    assert last.arguments["previous"] is None, "the picture before"
    assert last.arguments["gain"] == 1.0, "the gain"
    assert last.arguments["pixels"] is None, "bytes are made of what is shown"
