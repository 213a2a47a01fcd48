"""The persistent kernel of styles and first layers: where it is chosen, what it is given, what it computes on a GPU."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.executor import CudaExecutor
from gpu_backend.cuda.launches.first_layers import pack_fragments, style_items
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.launches.op_table import GPU_OPS
from gpu_backend.cuda.launches.style_layout import StyleLayout, pad8
from gpu_backend.cuda.launches.style_table import StyleTable
from gpu_backend.cuda.running.self_check import SelfCheckRecord, doubtful_recipes
from gpu_backend.cuda.schedule import Launch, Schedule
from gpu_backend.cuda.tiles.target import Target, target_of_batch
from gpu_backend.ops.kernels.first_layers_tile import ROWS, FirstLayersGeometry
from gpu_backend.plan.plan import NOT_EDITED, PlanEdits
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from gpu_backend.recipe import RowRange
from tests.gpu_backend.cuda.running.test_self_check import PaperBench, judged
from tests.helpers.conv_cases import H200
from tests.helpers.kept_kernels import statistics_of
from tests.helpers.kernel_checks import assert_compiles
from tests.helpers.networks import StyleGAN2Model, make_stylegan2

LABEL = "first_layers"
FIVE = ("b4.conv1", "b8.conv0", "b8.conv1", "b16.conv0", "b16.conv1")


def model_of(width: int = 128, resolution: int = 32, **changes: Any) -> StyleGAN2Model:
    """A network whose first layers all have so many channels."""
    widths = dict.fromkeys((4, 8, 16), width)
    options = {"channel_base": 64 * resolution, "channel_max": 64, "channels": widths, "conv_clamp": 256.0, **changes}
    return make_stylegan2(resolution=resolution, **options)


def schedule_of(model: StyleGAN2Model, target: Target = H200, **changes: Any) -> Schedule:
    """The schedule of one picture in fp16, or of another plan."""
    plain = changes.pop("plain", None)
    plan = build_synthesis_plan(model.spec, "model", **{"precision": "fp16", **changes})
    return lower(plan, model.weights, target, plain=plain)


def kernel_of(schedule: Schedule) -> Launch | None:
    """The persistent kernel's launch."""
    return next((launch for launch in schedule.launches if launch.label == LABEL), None)


def layers_of(launch: Launch | None) -> tuple[str, ...]:
    return () if launch is None else tuple(name.removeprefix("synthesis.") for name in launch.convolutions)


def test_a_plan_of_one_picture_begins_with_the_kernel() -> None:
    schedule = schedule_of(model_of())
    launch = schedule.launches[0]
    assert (launch.label, launch.layer, launch.op) == (LABEL, "synthesis.styles", "styles")
    assert layers_of(launch) == FIVE
    assert launch.pictures == ("synthesis.b4.torgb", "synthesis.b8.torgb")
    following = schedule.launches[1]
    assert (following.layer, following.pictures) == ("synthesis.b32.conv0", ("synthesis.b16.torgb",))
    assert launch.grid == (2 * 128 // 8 + 1, 1, 1)
    regions = {region.name: region for region in schedule.regions}
    assert regions["b16.conv1/rgb"].shape == (128 // 8, 1, 16, 16, 3)
    assert {regions[name].role for name in launch.region_names if name.startswith(LABEL)} == {"kept"}
    named = [regions[name] for name in launch.region_names]
    places = sorted((region.offset, region.offset + region.nbytes) for region in named)
    assert all(end <= start for (_, end), (start, _) in pairwise(places)), "regions of the kernel overlap"


def test_what_is_kept_from_run_to_run_shares_its_memory_with_nothing() -> None:
    schedule = schedule_of(model_of())
    kept = [region for region in schedule.regions if region.role == "kept"]
    assert len(kept) == 2
    for region in kept:
        others = [other for other in schedule.regions if other is not region]
        end = region.offset + region.nbytes
        assert all(other.offset >= end or other.offset + other.nbytes <= region.offset for other in others)


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"channels": {4: 128, 8: 128, 16: 64}}, 3),
        ({"channels": {4: 128, 8: 64, 16: 64}}, 0),
        ({"channels": {4: 128, 8: 128, 16: 128}, "resolution": 16}, 5),
        ({"channels": {4: 72, 8: 72, 16: 72}}, 0),
        ({"channels": {4: 640, 8: 640, 16: 640}}, 0),
        ({"architecture": "resnet"}, 0),
        ({"architecture": "orig"}, 0),
        ({"use_noise": False}, 0),
        ({"fir": (1, 2, 1)}, 0),
        ({"w_dim": 520}, 0),
        ({"img_channels": 8}, 5),
        ({"img_channels": 9}, 0),
    ],
    ids=str,
)
def test_it_takes_as_many_layers_as_are_alike(changes: dict[str, Any], count: int) -> None:
    assert layers_of(kernel_of(schedule_of(model_of(**changes)))) == FIVE[:count]


@pytest.mark.parametrize(
    "changes",
    [
        {"batch": 2},
        {"precision": "tf32"},
        {"precision": "bf16x3"},
        {"precision": "fp32"},
        {"tap": "b8.conv0"},
        {"edits": PlanEdits(("b8.conv0",))},
        {"edits": PlanEdits(shifts_styles=True)},
        {"edits": PlanEdits(blends=(RowRange(),))},
    ],
    ids=str,
)
def test_other_plans_keep_a_kernel_for_each_layer(changes: dict[str, Any]) -> None:
    schedule = schedule_of(model_of(), **changes)
    assert kernel_of(schedule) is None
    assert any(launch.layer == "synthesis.b4.conv1" for launch in schedule.launches)


@pytest.mark.parametrize(
    "changes",
    [
        {"fuses_first_layers": False},
        {"architecture": "sm_90"},
        {"multiprocessors": 32},
        {"shared_nbytes_per_block": 98304},
        {"adds_pictures": False},
        {"fuses_epilogues": False},
    ],
    ids=str,
)
def test_other_gpus_keep_a_kernel_for_each_layer(changes: dict[str, Any]) -> None:
    assert kernel_of(schedule_of(model_of(), replace(H200, **changes))) is None
    assert kernel_of(schedule_of(model_of(), replace(H200, multiprocessors=33))) is not None


def test_kernels_of_a_batch_are_checked_without_it() -> None:
    assert kernel_of(schedule_of(model_of(), target_of_batch(H200, 8))) is None


def test_a_tap_behind_the_layers_leaves_a_kernel_for_each() -> None:
    """Its plan has no toRGB, and so no picture for the kernel."""
    assert kernel_of(schedule_of(model_of(), tap="b32.conv0")) is None


def test_a_kernel_that_failed_leaves_a_kernel_for_each_layer() -> None:
    model = model_of()
    launch = kernel_of(schedule_of(model))
    assert launch is not None
    schedule = schedule_of(model, plain={launch.recipe.digest: "it was off"})
    assert kernel_of(schedule) is None
    assert {launch.is_fused for launch in schedule.launches} == {True}


@pytest.mark.parametrize(("width", "resolution"), [(128, 32), (384, 16), (512, 32)])
def test_it_compiles_and_its_arguments_and_memory_fit(width: int, resolution: int) -> None:
    launch = kernel_of(schedule_of(model_of(width, resolution)))
    assert launch is not None
    assert set(launch.arguments) == set(launch.recipe.parameters.names or ())
    assert_compiles(launch.recipe, "sm_90a", launch.block[0], is_heavy=width == 512)
    assert launch.shared_nbytes + FirstLayersGeometry(width).static_nbytes <= 232448


def test_it_declares_no_more_shared_memory_than_its_geometry_counts() -> None:
    launch = kernel_of(schedule_of(model_of(512, img_channels=8)))
    assert launch is not None
    declared = statistics_of(launch.recipe, "sm_90a").shared_nbytes
    assert 6144 < declared <= FirstLayersGeometry(512).static_nbytes


def test_shared_memory_of_the_public_networks() -> None:
    geometry = FirstLayersGeometry(512)
    assert (geometry.blocks, geometry.threads) == (129, 384)
    assert geometry.dynamic_nbytes == 73728 + 8 * 4 * 2 * 9 * 16 * 16
    assert FirstLayersGeometry(512, 3).dynamic_nbytes < geometry.dynamic_nbytes


def test_lanes_hold_their_weights() -> None:
    weight = np.random.default_rng(0).standard_normal((16, 32, 3, 3)).astype(np.float32)
    packed = pack_fragments(weight, 1)
    assert packed.shape == (2, 2, 9, 32, 2, 2)
    for lane in (0, 5, 31):
        channel, quarter = divmod(lane, 4)
        for word in (0, 1):
            for number in (0, 1):
                cin = 16 + 8 * word + 2 * quarter + number
                expected = (weight[8 + channel, cin] / 2).astype(np.float16).reshape(9)
                assert (packed[1, 1, :, lane, word, number] == expected).all()


def test_every_row_of_styles_and_demodulation_is_made_once() -> None:
    schedule = schedule_of(model_of(resolution=64))
    styles = next(step.attributes for step in schedule.plan.steps if step.op == "styles")
    layout = StyleLayout(styles)
    table = StyleTable(layout, half=True)
    items = style_items(layout, 9, 5)
    first_rows = sum(pad8(slot.in_channels) for slot in styles.slots[:9])
    own_rows = sum(pad8(slot.out_channels) for slot in table.demod_slots[:5])
    made = items[items[:, 6] < 0]
    demodulated = items[items[:, 6] >= 0]
    rows = (made[:, 5, None] + np.arange(ROWS)).reshape(-1)
    assert sorted(rows) == list(range(first_rows, layout.style_width))
    rows = (demodulated[:, 5, None] + np.arange(ROWS)).reshape(-1)
    assert sorted(rows) == list(range(own_rows, layout.demod_width))
    # Nothing waits for a style that a later item of the same warp makes.
    assert (np.diff((items[:, 6] >= 0).astype(int)) >= 0).all()
    assert (items[:, 1] + items[:, 0] * ROWS <= table.weights_nbytes // 16).all()
    for slot in table.demod_slots[5:]:
        own = demodulated[demodulated[:, 3] == layout.style_offset(slot.layer)]
        assert own[:, 6].tolist() == list(range(len(own)))
        assert set(own[:, 7]) == {len(own)}


class LayersBench(PaperBench):
    """A launch of several layers leaves in each region what the last plain launch does that names it."""

    def launch(self, index: int) -> None:
        super().launch(index)
        for last in self.schedule.launches[index].convolutions[-1:]:
            for region in self.schedule.regions:
                layer = {"ws": "synthesis.styles", "image": "synthesis.b16.conv0"}.get(region.name.split("/")[0], last)
                parts = region.shape[0] if region.name.endswith("/rgb") else 1
                number = (1.0 + crc32(layer.encode()) % 997) * (1.0 + self.offset)
                self.paper.places[self.places[region.name]] = number / parts


def test_it_is_checked_against_all_plain_kernels_of_its_layers() -> None:
    model = model_of()
    fused = schedule_of(model)
    plain = lower(fused.plan, model.weights, H200, everything_plain=True)
    launch = kernel_of(fused)
    assert launch is not None
    assert launch.recipe in doubtful_recipes(fused, plain)
    assert judged(fused, plain, {launch.recipe}, kind=LayersBench) == {launch.recipe: ""}
    verdicts = judged(fused, plain, {launch.recipe}, offset=0.5, kind=LayersBench)
    assert "off by" in verdicts[launch.recipe]


def test_every_layer_and_picture_of_it_is_observed() -> None:
    schedule = schedule_of(model_of())
    launch = kernel_of(schedule)
    assert launch is not None
    regions = {region.name: region for region in schedule.regions}
    steps = {(step.layer, step.op): step for step in schedule.plan.steps}
    for number, name in enumerate(launch.convolutions):
        step = next(one for (layer, _), one in steps.items() if layer == name)
        found = GPU_OPS[step.op].observe(step, launch, regions)
        assert found is not None
        assert found.shape == step.attributes.output_shape(1)
        assert found.changes["observed_layer"] == number
    for name in launch.pictures:
        found = GPU_OPS["to_rgb"].observe(steps[name, "to_rgb"], launch, regions)
        assert found is not None
        assert found.changes["adds_image"] == 0
        side = steps[name, "to_rgb"].attributes.resolution
        assert found.shape == (1, side, side, 3)
        assert f"image_{side}" in found.changes


NETWORKS: dict[str, dict[str, Any]] = {
    "128": {},
    "256, three layers": {"channels": {4: 256, 8: 256, 16: 40}, "w_dim": 24},
    "384, one colour, until 16": {"width": 384, "resolution": 16, "img_channels": 1},
    "512": {"width": 512, "w_dim": 512, "activation": "swish", "conv_clamp": None},
}


@pytest.mark.gpu
@pytest.mark.parametrize("network", list(NETWORKS))
def test_it_gives_what_plain_kernels_give(gpu: Gpu, tmp_path: Path, network: str) -> None:
    options = dict(NETWORKS[network])
    model = model_of(**options)
    executor = CudaExecutor(model, gpu.index, "fp16", record=SelfCheckRecord(tmp_path, gpu.uuid))
    plan = build_synthesis_plan(model.spec, "model", precision="fp16", edits=NOT_EDITED)
    fused, plain = (executor.bind(plan, use_fused=use_fused) for use_fused in (True, False))
    if kernel_of(fused.schedule) is None:
        pytest.skip("the kernel is for Hopper")
    assert not executor.fallbacks
    generator = np.random.default_rng(3)
    for source in ((0, 0, 0, 0), (1, 7, 0, 0), (0, 0, 0, 0x3E800000)):
        inputs = {
            "ws": generator.standard_normal((1, model.spec.num_ws, model.spec.w_dim)).astype(np.float32),
            "noise_source": np.array(source, np.uint32),
        }
        first = np.array(fused.run(inputs)["pixels"])
        # Words of the run before are old in the next one, whatever the graph.
        for use_graph in (True, False, True):
            assert first.tobytes() == np.array(fused.run(inputs, use_graph=use_graph)["pixels"]).tobytes()
        apart = np.abs(first.astype(int) - plain.run(inputs)["pixels"].astype(int))
        assert apart.max() <= 6, f"{apart.max()} of 255 at worst, {apart.mean():.3f} on average"
        observed, expected = fused.observe(inputs), plain.observe(inputs)
        assert list(observed) == list(expected)
        for name, value in expected.items():
            off = float(np.linalg.norm(observed[name] - value) / np.linalg.norm(value))
            assert off < 1e-2, f"{name} is off by {off:.2%}"
    executor.close()
