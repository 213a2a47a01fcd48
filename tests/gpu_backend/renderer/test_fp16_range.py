"""A network whose numbers exceed fp16 renders in tf32, and says so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu_backend import Renderer
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.device import DeviceFacts
from gpu_backend.errors import DeviceError
from gpu_backend.model import Model
from gpu_backend.model_runner import ModelRunner
from gpu_backend.plan.plan import Plan, Precision
from gpu_backend.renderer import opening
from gpu_backend.renderer.fp16_range import exceeds_fp16, may_exceed_fp16
from gpu_backend.renderer.opening import open_model
from tests.helpers.fake_executor import FakeExecutor, FakePlan
from tests.helpers.networks import make_stylegan2
from tests.helpers.requests import request_for
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import make_stylegan3

FREE, CLAMPED = make_stylegan2(), make_stylegan2(conv_clamp=256.0)
BUDGET = 1 << 30


class Device:
    """Makes executors; those of fp16 give pictures that are not finite."""

    def __init__(self, architecture: str = "sm_90") -> None:
        self.architecture = architecture
        self.made: list[FakeExecutor] = []
        self.failing: dict[str, DeviceError] = {}

    def make(self, model: Model, device: str, precision: Precision) -> tuple[FakeExecutor, DeviceFacts]:
        class Executor(FakeExecutor):
            def bind(self, plan: Plan, *, use_fused: bool = True) -> FakePlan:
                bound = super().bind(plan, use_fused=use_fused)
                if precision == "fp16" and "flags" in bound._made:
                    bound._made["flags"][:] = 1
                return bound

        self.made.append(Executor(precision=precision, failing=dict(self.failing)))
        return self.made[-1], DeviceFacts("A GPU", precision, "A GPU: it was chosen.", "cuda:0", self.architecture)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()
    monkeypatch.setattr(opening, "make_executor", made.make)
    return made


def test_only_networks_without_bounds_may_exceed_fp16() -> None:
    assert may_exceed_fp16(FREE.spec)
    assert not any(may_exceed_fp16(model.spec) for model in (CLAMPED, make_stylegan1(), make_stylegan3()))


@pytest.mark.parametrize(("architecture", "precision"), [("sm_90", "tf32"), ("sm_86", "tf32"), ("sm_75", "fp32")])
def test_pictures_that_are_not_finite_in_fp16_are_rendered_with_the_range_of_fp32(
    device: Device, architecture: str, precision: str
) -> None:
    device.architecture = architecture
    opened = open_model(FREE, "cuda", "fp16", None, BUDGET)
    assert [executor.precision for executor in device.made] == ["fp16", precision]
    assert [executor.closed for executor in device.made] == [1, 0]
    assert opened.executor is device.made[1]
    assert opened.device.precision == precision
    assert opened.device.reason == f"A GPU: it was chosen, in {precision}: numbers of this network exceed fp16."
    opened.runner.close()


def test_a_clamped_network_is_not_tried(device: Device) -> None:
    opened = open_model(CLAMPED, "cuda", "fp16", None, BUDGET)
    assert (opened.device.precision, device.made[0].runs("synthesis")) == ("fp16", [])
    opened.runner.close()


def test_a_precision_that_holds_more_is_not_tried(device: Device) -> None:
    opened = open_model(FREE, "cuda", "fp32", None, BUDGET)
    assert (opened.device.precision, device.made[0].runs("synthesis")) == ("fp32", [])
    opened.runner.close()


def test_a_network_within_fp16_keeps_it(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    make = device.make
    monkeypatch.setattr(opening, "make_executor", lambda *asked: (FakeExecutor(), make(*asked)[1]))
    opened = open_model(FREE, "cuda", "fp16", None, BUDGET)
    assert opened.device.reason == "A GPU: it was chosen."
    opened.runner.close()


def test_nothing_stays_open_where_a_trial_fails(device: Device) -> None:
    device.failing = {"wait": DeviceError("The GPU failed.")}
    with pytest.raises(DeviceError):
        open_model(replace(FREE), "cuda", "fp16", None, BUDGET)
    assert [executor.closed for executor in device.made] == [1]


@pytest.mark.parametrize("model", [FREE, make_stylegan2(c_dim=3, embed_dim=5)], ids=["latents", "classes"])
def test_a_real_run_tells_whether_pictures_are_finite(model: Model) -> None:
    biases = {name: array + np.float32(np.inf) for name, array in model.weights.items() if name.endswith("conv1.bias")}
    for changed, is_beyond in (({}, False), (biases, True)):
        one = replace(model, weights={**model.weights, **changed})
        runner = ModelRunner(one, CpuExecutor(one.weights), BUDGET)
        assert exceeds_fp16(runner, one) is is_beyond
        runner.close()


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_a_network_whose_numbers_exceed_fp16_is_rendered_as_by_the_processor() -> None:
    biases = {name: array * 1e7 for name, array in FREE.weights.items() if name.endswith("conv1.bias")}
    model = replace(FREE, weights={**FREE.weights, **biases})
    with Renderer(model, "cuda") as on_gpu, Renderer(model, "cpu") as on_cpu:
        assert on_gpu.device.precision == "tf32"
        assert on_gpu.device.reason.endswith("in tf32: numbers of this network exceed fp16.")
        found, expected = (one.render(request_for(one, wants_image=True)) for one in (on_gpu, on_cpu))
        assert not found.warnings
        assert found.image is not None
        assert expected.image is not None
        assert np.abs(found.image - expected.image).max() <= 0.01 * np.abs(expected.image).max()
