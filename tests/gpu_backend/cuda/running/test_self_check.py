from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from gpu_backend.cuda.driver.comparison import Numbers, TensorDiff
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.errors import KernelError
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.running.self_check import (
    SelfCheckRecord,
    check_steps,
    doubtful_recipes,
    returned,
    tolerance_of,
)
from gpu_backend.cuda.schedule import Address, Schedule
from gpu_backend.cuda.tiles.target import target_of, target_of_batch
from gpu_backend.model.model import Model
from gpu_backend.ops.kernels.e4m3 import E4M3
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.plan import fusion
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey, Precision
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from tests.helpers.conv_cases import H200
from tests.helpers.hand_schedule import PAINT, PLAIN_SCALE, SCALE
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1

_GPU = Gpu(0, "A GPU", "sm_80", "sm_80", 1 << 34, 108, 166912, 40 << 20, "GPU-0")


class Paper:
    """A device of paper: at each place one number stands for all. Implements `self_check.Compares`."""

    def __init__(self) -> None:
        self.places: list[float] = []
        self.kept: set[int] = set()

    def place(self) -> int:
        self.places.append(1.0)
        return len(self.places) - 1

    def copy(self, target: int, source: int, nbytes: int) -> None:
        assert nbytes > 0
        self.places[target] = self.places[source]

    def keep(self, source: int, nbytes: int) -> int:
        address = self.place()
        self.copy(address, source, nbytes)
        self.kept.add(address)
        return address

    def release(self, address: int) -> None:
        self.kept.remove(address)

    def diff(self, got: Numbers, expected: Numbers) -> TensorDiff:
        assert (got.count, got.dtype) == (expected.count, expected.dtype)
        one, other = (self.places[side.address] * side.parts for side in (got, expected))
        return TensorDiff(abs(one - other), other, 0, got.count if one != other else 0)


@pytest.fixture(autouse=True)
def _small_layers_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion, "LEAST_FOLDED_SIDE", 128)


class PaperBench:
    """A schedule that computes nothing; it writes down what was run, and each layer fills every region."""

    def __init__(self, schedule: Schedule, paper: Paper, log: list[str] | None = None, offset: float = 0.0) -> None:
        self.schedule = schedule
        self.paper = paper
        self.log = [] if log is None else log
        self.offset = offset
        self.places = {region.name: paper.place() for region in schedule.regions}

    def launch(self, index: int) -> None:
        launch = self.schedule.launches[index]
        self.log.append(f"{launch.layer} {launch.label}")
        if launch.label not in ("plain_to_rgb", "to_rgb"):  # they come with a convolution
            for place in self.places.values():
                self.paper.places[place] = (1.0 + crc32(launch.layer.encode()) % 997) * (1.0 + self.offset)

    def place_of(self, name: str) -> int:
        return self.places[name]

    def write_region(self, name: str, array: np.ndarray) -> None:
        assert any(region.name == name and region.shape == array.shape for region in self.schedule.regions)


def judged(
    fused: Schedule,
    plain: Schedule,
    wanted: Collection[KernelRecipe],
    *,
    offset: float = 0.0,
    fused_log: list[str] | None = None,
    plain_log: list[str] | None = None,
    kind: type[PaperBench] = PaperBench,
) -> dict[KernelRecipe, str]:
    paper = Paper()
    first, second = kind(fused, paper, fused_log, offset), PaperBench(plain, paper, plain_log)
    verdicts = returned(check_steps(first, second, {}, wanted, paper))
    assert not paper.kept
    return verdicts


def both_ways(batch: int = 1, architecture: str = "skip") -> tuple[Schedule, Schedule]:
    model: Model
    if architecture == "AdaIN":
        model = make_stylegan1(resolution=128, channel_base=1024, channel_max=16)
    else:
        model = make_stylegan2(channel_max=16, architecture=architecture)
    key = PlanKey("model", "synthesis", batch, model.spec.resolution, "fp16")
    plan = build_plan(model.spec, key)
    target = target_of(_GPU, None)
    return lower(plan, model.weights, target), lower(plan, model.weights, target, everything_plain=True)


def both_ways_on_hopper() -> tuple[Schedule, Schedule]:
    """With a streaming up-convolution, and a layer after it."""
    model = make_stylegan2(resolution=512, channel_base=4096, channel_max=16)
    plan = build_synthesis_plan(model.spec, "model", batch=1, precision="fp16")
    return lower(plan, model.weights, H200), lower(plan, model.weights, H200, everything_plain=True)


@pytest.mark.parametrize("architecture", ["skip", "resnet", "orig", "AdaIN", "skip on Hopper"])
def test_every_fused_kernel_of_a_network_is_run_beside_its_plain_counterpart(architecture: str) -> None:
    on_hopper = architecture == "skip on Hopper"
    fused, plain = both_ways_on_hopper() if on_hopper else both_ways(architecture=architecture)
    assert on_hopper == any(launch.label == "streaming_up_conv" for launch in fused.launches)
    doubtful = doubtful_recipes(replace(fused, zero_copy=None), plain)
    assert doubtful
    fused_log: list[str] = []
    plain_log: list[str] = []
    verdicts = judged(fused, plain, doubtful, fused_log=fused_log, plain_log=plain_log)
    assert verdicts == dict.fromkeys(doubtful, "")
    assert plain_log == [f"{launch.layer} {launch.label}" for launch in plain.launches]
    assert fused_log == [
        f"{launch.layer} {launch.label}" for launch in fused.launches if launch.recipe not in set(plain.recipes)
    ]


def test_the_kernel_that_writes_to_the_host_is_run_beside_the_plain_ones_of_its_layers() -> None:
    fused, plain = both_ways_on_hopper()
    whole = fused.with_zero_copy
    assert whole is not None
    assert fused.zero_copy is not None
    recipe = fused.zero_copy.recipe
    assert recipe in doubtful_recipes(fused, plain)
    log: list[str] = []
    assert judged(whole, plain, {recipe}, fused_log=log) == {recipe: ""}
    assert log == ["synthesis.b512.conv1 streaming_conv"]
    (why,) = judged(whole, plain, {recipe}, offset=0.5).values()
    assert "off by" in why


def test_kernels_that_are_off_are_named_with_their_layer() -> None:
    fused, plain = both_ways()
    doubtful = doubtful_recipes(fused, plain)
    verdicts = judged(fused, plain, doubtful, offset=0.5)
    assert all(re.match(r"its self-check was off by (49|50)\.\d% in synthesis\.b", why) for why in verdicts.values())


def test_only_wanted_kernels_are_judged() -> None:
    fused, plain = both_ways()
    one = next(iter(doubtful_recipes(fused, plain)))
    assert set(judged(fused, plain, {one})) == {one}


def test_a_kernel_that_another_asks_runs_though_it_was_checked_before() -> None:
    fused, plain = both_ways(architecture="AdaIN")
    asking = {launch.recipe for launch in fused.launches if launch.label == "adain"}
    log: list[str] = []
    verdicts = judged(fused, plain, asking, fused_log=log)
    assert set(verdicts) == asking
    layers = [launch.layer for launch in fused.launches if launch.label == "adain"]
    for place, layer in enumerate(layers[:-1]):
        assert log[2 * place].startswith(f"{layer} modulated_")
        assert log[2 * place + 1] == f"{layer} adain"
    # The last one depends on weights that another kernel made of the moments of the layer before.
    assert log[2 * len(layers) - 2 :] == [
        "synthesis.b128.conv0 modulated_up_conv",
        "synthesis.b128.conv0 fold_adain",
        "synthesis.b128.conv1 modulated_conv",
        "synthesis.b128.conv1 adain",
    ]


def test_a_kernel_that_asks_one_which_is_wrong_is_not_judged() -> None:
    class Refusing(PaperBench):
        def launch(self, index: int) -> None:
            if self.schedule.launches[index].label.startswith("modulated_"):
                raise KernelError("The kernel is refused.", phrase="the driver refuses it")
            super().launch(index)

    fused, plain = both_ways(architecture="AdaIN")
    log: list[str] = []
    verdicts = judged(fused, plain, doubtful_recipes(fused, plain), fused_log=log, kind=Refusing)
    assert set(verdicts.values()) == {"the driver refuses it"}
    assert {recipe.stem for recipe in verdicts} == {"modulated_conv", "modulated_up_conv"}
    assert log == []


def test_a_batch_is_checked_by_one_picture_with_the_same_kernels() -> None:
    model = make_stylegan2(channel_max=16)
    target = target_of(_GPU, None)
    single, batched = (build_synthesis_plan(model.spec, "model", batch=batch, precision="fp16") for batch in (1, 32))
    plain = lower(batched, model.weights, target, everything_plain=True)
    wanted = doubtful_recipes(lower(batched, model.weights, target), plain)
    assert wanted <= set(lower(single, model.weights, target_of_batch(target, 32)).recipes)


def test_verdicts_are_kept_for_one_gpu_and_driver(tmp_path: Path) -> None:
    SelfCheckRecord(tmp_path, "GPU-0", "580").note({SCALE: "", PLAIN_SCALE: "it was off"})
    again = SelfCheckRecord(tmp_path, "GPU-0", "580")
    assert again.knows(SCALE)
    assert not again.knows(PAINT)
    assert again.failures == {PLAIN_SCALE.digest: "it was off"}
    assert not SelfCheckRecord(tmp_path, "GPU-0", "590").knows(SCALE)
    assert not SelfCheckRecord(tmp_path, "GPU-1", "580").knows(SCALE)


def test_a_verdict_that_another_process_stored_stays(tmp_path: Path) -> None:
    mine, other = (SelfCheckRecord(tmp_path, "GPU-0") for _ in range(2))
    other.note({PLAIN_SCALE: "it stopped the GPU"})
    mine.note({SCALE: ""})
    again = SelfCheckRecord(tmp_path, "GPU-0")
    assert again.knows(SCALE)
    assert again.failures == {PLAIN_SCALE.digest: "it stopped the GPU"}


@pytest.mark.parametrize("content", [b"", b"[]", b'{"a": 1}', b"\xff", b"[" * 100000])
def test_a_broken_record_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    SelfCheckRecord(tmp_path, "GPU-0").note({SCALE: ""})
    (path,) = tmp_path.iterdir()
    path.write_bytes(content)
    assert not SelfCheckRecord(tmp_path, "GPU-0").knows(SCALE)


def test_a_record_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    record = SelfCheckRecord(blocked / "record", "GPU-0")
    record.note({SCALE: ""})
    assert record.knows(SCALE)


@pytest.mark.parametrize(("precision", "share"), [("fp16", 1.0), ("tf32", 1.0), ("bf16x3", 0.05)])
def test_activations_are_judged_by_their_precision_and_sums_less_strictly(precision: Precision, share: float) -> None:
    model = make_stylegan2()
    plan = build_synthesis_plan(model.spec, "model", precision=precision)
    schedule = lower(plan, model.weights, target_of(_GPU, None))
    launch = next(item for item in schedule.launches if item.recipe.stem == "modulated_conv")
    dtypes = {region.name: region.dtype for region in schedule.regions}
    named = {name: argument.name for name, argument in launch.arguments.items() if isinstance(argument, Address)}
    y = named.get("y") or named["y_raw"]
    assert tolerance_of(launch, y, dtypes[y]) == 4e-3 * share
    assert tolerance_of(launch, named["rgb_parts"], "float32") == 2e-2 * share


def test_e4m3_is_judged_by_how_coarse_it_is() -> None:
    model = make_stylegan2(resolution=64, channel_base=2048, channel_max=32)
    schedule = lower(build_synthesis_plan(model.spec, "model", precision="fp8"), model.weights, H200)
    launch = next(one for one in schedule.launches if one.layer == "synthesis.b64.conv0" and "conv" in one.label)
    y = launch.arguments["y"]
    assert isinstance(y, Address)
    dtype = next(region.dtype for region in schedule.regions if region.name == y.name)
    assert (dtype, tolerance_of(launch, y.name, dtype)) == (E4M3, 4e-2)
