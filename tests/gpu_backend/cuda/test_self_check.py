from __future__ import annotations

import re
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from gpu_backend.cuda.batch_tiles import target_of_batch
from gpu_backend.cuda.errors import KernelError
from gpu_backend.cuda.lowering import lower
from gpu_backend.cuda.probe import Gpu
from gpu_backend.cuda.schedule import Schedule
from gpu_backend.cuda.self_check import (
    SelfCheckRecord,
    check_kernels,
    doubtful_recipes,
    has_changed,
    relative_error,
)
from gpu_backend.cuda.target import target_of
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from tests.helpers.hand_schedule import PAINT, PLAIN_SCALE, SCALE
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1

_GPU = Gpu(0, "A GPU", "sm_80", "sm_80", 1 << 34, 108, 166912, 40 << 20, "GPU-0")


class PaperBench:
    """A schedule that computes nothing; it writes down what was run, and each layer fills every region."""

    def __init__(self, schedule: Schedule, log: list[str], offset: float = 0.0) -> None:
        self.schedule = schedule
        self.log = log
        self.offset = offset
        self.value = 1.0

    def launch(self, index: int) -> None:
        launch = self.schedule.launches[index]
        self.log.append(f"{launch.layer} {launch.label}")
        if launch.label != "plain_to_rgb":  # it rides along with a convolution
            self.value = 1.0 + crc32(launch.layer.encode()) % 997

    def read_region(self, name: str) -> np.ndarray:
        region = next(region for region in self.schedule.regions if region.name == name)
        return np.full(region.shape, self.value * (1.0 + self.offset), region.dtype)

    def write_region(self, name: str, array: np.ndarray) -> None:
        assert any(region.name == name and region.shape == array.shape for region in self.schedule.regions)


def both_ways(batch: int = 1, architecture: str = "skip") -> tuple[Schedule, Schedule]:
    if architecture == "AdaIN":
        model = make_stylegan1(resolution=128, channel_base=1024, channel_max=16)
    else:
        model = make_stylegan2(channel_max=16, architecture=architecture)
    key = PlanKey("model", "synthesis", batch, model.spec.resolution, "fp16")
    plan = build_plan(model.spec, key)
    target = target_of(_GPU, None)
    return lower(plan, model.weights, target), lower(plan, model.weights, target, everything_plain=True)


@pytest.mark.parametrize("architecture", ["skip", "resnet", "orig", "AdaIN"])
def test_every_fused_kernel_of_a_network_is_run_beside_its_plain_counterpart(architecture: str) -> None:
    fused, plain = both_ways(architecture=architecture)
    doubtful = doubtful_recipes(fused, plain)
    assert doubtful
    fused_log: list[str] = []
    plain_log: list[str] = []
    verdicts = check_kernels(PaperBench(fused, fused_log), PaperBench(plain, plain_log), {}, doubtful)
    assert verdicts == dict.fromkeys(doubtful, "")
    assert plain_log == [f"{launch.layer} {launch.label}" for launch in plain.launches]
    assert fused_log == [
        f"{launch.layer} {launch.label}" for launch in fused.launches if launch.recipe not in set(plain.recipes)
    ]


def test_kernels_that_are_off_are_named_with_their_layer() -> None:
    fused, plain = both_ways()
    doubtful = doubtful_recipes(fused, plain)
    verdicts = check_kernels(PaperBench(fused, [], 0.5), PaperBench(plain, []), {}, doubtful)
    assert all(re.match(r"its self-check was off by (49|50)\.\d% in synthesis\.b", why) for why in verdicts.values())


def test_only_wanted_kernels_are_judged() -> None:
    fused, plain = both_ways()
    one = next(iter(doubtful_recipes(fused, plain)))
    assert set(check_kernels(PaperBench(fused, []), PaperBench(plain, []), {}, {one})) == {one}


def test_a_kernel_that_another_asks_runs_though_it_was_checked_before() -> None:
    fused, plain = both_ways(architecture="AdaIN")
    asking = {launch.recipe for launch in fused.launches if launch.label == "adain"}
    log: list[str] = []
    verdicts = check_kernels(PaperBench(fused, log), PaperBench(plain, []), {}, asking)
    assert set(verdicts) == asking
    layers = [launch.layer for launch in fused.launches if launch.label == "adain"]
    assert len(log) == 2 * len(layers)
    for place, layer in enumerate(layers):
        assert log[2 * place].startswith(f"{layer} modulated_")
        assert log[2 * place + 1] == f"{layer} adain"


def test_a_kernel_that_asks_one_which_is_wrong_is_not_judged() -> None:
    class Refusing(PaperBench):
        def launch(self, index: int) -> None:
            if self.schedule.launches[index].label.startswith("modulated_"):
                raise KernelError("The kernel is refused.", phrase="the driver refuses it")
            super().launch(index)

    fused, plain = both_ways(architecture="AdaIN")
    log: list[str] = []
    verdicts = check_kernels(Refusing(fused, log), PaperBench(plain, []), {}, doubtful_recipes(fused, plain))
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


def test_the_error_is_relative_and_infinity_is_never_right() -> None:
    def error(got: list[float], expected: list[float]) -> float:
        return relative_error(np.array(got, np.float32), np.array(expected, np.float32))

    assert error([3, 4.5], [3, 4]) == pytest.approx(0.1)
    assert error([3, np.nan], [3, 4]) == np.inf
    assert error([3, 7], [3, np.inf]) == 0.0
    assert error([0.25], [0]) == 0.25


@pytest.mark.parametrize("cores", [1, 3])
def test_large_arrays_are_compared_to_their_ends_on_all_cores(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_backend.cuda.shared_work.core_count", lambda: cores)
    monkeypatch.setattr("gpu_backend.cuda.self_check._BLOCK", 100)
    expected = np.random.default_rng(0).standard_normal((3, 7, 71)).astype(np.float16)
    got = expected.copy()
    assert relative_error(got, expected) == 0.0
    assert not has_changed(expected, got)
    got[-1, -1, -1] += np.float16(0.5)
    difference, size = (np.linalg.norm(array.astype(np.float64)) for array in (got - expected, expected))
    assert relative_error(got, expected) == pytest.approx(difference / size, rel=1e-5)
    assert has_changed(expected, got)
    got[0, 0, 0] = np.inf
    assert relative_error(got, expected) == np.inf
    negative_zero = np.zeros(450, np.float32)
    negative_zero[449] = -0.0
    assert has_changed(np.zeros(450, np.float32), negative_zero)


def test_verdicts_are_kept_for_one_gpu_and_driver(tmp_path: Path) -> None:
    SelfCheckRecord(tmp_path, "GPU-0", "580").note({SCALE: "", PLAIN_SCALE: "it was off"})
    again = SelfCheckRecord(tmp_path, "GPU-0", "580")
    assert again.knows(SCALE)
    assert not again.knows(PAINT)
    assert again.failures == {PLAIN_SCALE.digest: "it was off"}
    assert not SelfCheckRecord(tmp_path, "GPU-0", "590").knows(SCALE)
    assert not SelfCheckRecord(tmp_path, "GPU-1", "580").knows(SCALE)


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
