"""A network for which fp16 has too little range or precision renders in tf32, and says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

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

FREE, CLAMPED, NORMALISED = make_stylegan2(), make_stylegan2(conv_clamp=256.0), make_stylegan1()
BUDGET = 1 << 30


class Device:
    """Makes executors. Numbers of pictures are `in_fp16` in fp16 and `in_fp32` otherwise."""

    def __init__(self, architecture: str = "sm_90") -> None:
        self.architecture = architecture
        self.made: list[FakeExecutor] = []
        self.failing: dict[str, DeviceError] = {}
        self.too_large: tuple[Precision, ...] = ()
        """Precisions for which there is no memory."""
        self.in_fp16, self.in_fp32 = 0.0, 0.5
        self.differing = 0
        """Numbers of a picture that differ by one between the precisions, besides."""

    def make(self, model: Model, device: str, precision: Precision) -> tuple[FakeExecutor, DeviceFacts]:
        number = self.in_fp16 if precision == "fp16" else self.in_fp32
        others = self.differing if precision == "fp16" else 0

        class Executor(FakeExecutor):
            def bind(self, plan: Plan, *, use_fused: bool = True) -> FakePlan:
                bound = super().bind(plan, use_fused=use_fused)
                if "image" in bound._made:
                    bound._made["image"][:] = number
                    bound._made["image"].reshape(-1)[:others] = number - 1.0
                return bound

        memory_nbytes = 0 if precision in self.too_large else 1 << 40
        self.made.append(Executor(precision=precision, failing=dict(self.failing), memory_nbytes=memory_nbytes))
        return self.made[-1], DeviceFacts("A GPU", precision, "A GPU: it was chosen.", "cuda:0", self.architecture)

    @property
    def made_precisions(self) -> list[Precision]:
        return [executor.precision for executor in self.made]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> Device:
    made = Device()
    monkeypatch.setattr(opening, "make_executor", made.make)
    return made


def test_networks_without_bounds_or_with_normalisation_may_exceed_fp16() -> None:
    assert all(may_exceed_fp16(model.spec) for model in (FREE, NORMALISED))
    assert not any(may_exceed_fp16(model.spec) for model in (CLAMPED, make_stylegan3()))


@pytest.mark.parametrize(
    ("in_fp16", "in_fp32", "precision"),
    [(0.5, 0.54, "fp16"), (0.5, 0.55, "tf32"), (np.nan, 0.5, "tf32"), (7.0, 9.0, "fp16"), (9.0, 0.9, "tf32")],
)
def test_pictures_of_a_stylegan1_are_compared_as_they_are_shown(
    device: Device, in_fp16: float, in_fp32: float, precision: str
) -> None:
    """Six steps of 255 are allowed, and nothing beyond -1..1 is seen."""
    device.in_fp16, device.in_fp32 = in_fp16, in_fp32
    opened = open_model(NORMALISED, "cuda", "fp16", None, BUDGET)
    assert opened.device.precision == precision
    opened.runner.close()


@pytest.mark.parametrize(("differing", "precision"), [(1, "fp16"), (2, "tf32")])
def test_a_single_number_of_a_stylegan1_does_not_decide(device: Device, differing: int, precision: str) -> None:
    """One of the 12,288 numbers of a picture may differ visibly."""
    device.in_fp16, device.differing = 0.5, differing
    opened = open_model(make_stylegan1(resolution=64), "cuda", "fp16", None, BUDGET)
    assert opened.device.precision == precision
    opened.runner.close()


@pytest.mark.parametrize(("architecture", "precision"), [("sm_90", "tf32"), ("sm_86", "tf32"), ("sm_75", "fp32")])
@pytest.mark.parametrize(("in_fp16", "in_fp32"), [(0.0, 0.5), (np.nan, 0.5), (6e4, 7e4)])
def test_pictures_that_differ_in_fp16_are_rendered_with_the_range_of_fp32(
    device: Device, architecture: str, precision: str, in_fp16: float, in_fp32: float
) -> None:
    device.architecture, device.in_fp16, device.in_fp32 = architecture, in_fp16, in_fp32
    opened = open_model(FREE, "cuda", "fp16", None, BUDGET)
    assert device.made_precisions == ["fp16", "fp32", precision]
    assert [executor.closed for executor in device.made] == [1, 1, 0]
    assert opened.executor is device.made[2]
    assert opened.device.precision == precision
    assert opened.device.reason == f"A GPU: it was chosen, in {precision}: this network needs more than fp16."
    opened.runner.close()


def test_fp8_is_tried_in_fp16(device: Device) -> None:
    opened = open_model(FREE, "cuda", "fp8", None, BUDGET)
    assert device.made_precisions == ["fp8", "fp16", "fp32", "tf32"]
    assert [executor.closed for executor in device.made] == [1, 1, 1, 0]
    assert opened.device.reason == "A GPU: it was chosen, in tf32: this network needs more than fp16."
    opened.runner.close()


@pytest.mark.parametrize("model", [CLAMPED, FREE], ids=["clamped", "free"])
def test_a_network_within_fp16_keeps_fp8(device: Device, model: Model) -> None:
    device.in_fp16 = device.in_fp32
    opened = open_model(model, "cuda", "fp8", None, BUDGET)
    assert (opened.executor, opened.device.precision) == (device.made[0], "fp8")
    assert device.made_precisions == (["fp8"] if model is CLAMPED else ["fp8", "fp16", "fp32"])
    assert [executor.closed for executor in device.made] == [0, 1, 1][: len(device.made)]
    opened.runner.close()


@pytest.mark.parametrize(("in_fp16", "again"), [(0.5, ["fp8"]), (0.0, ["fp8", "tf32"])])
def test_a_network_in_fp8_is_tried_once(device: Device, in_fp16: float, again: list[str]) -> None:
    device.in_fp16 = in_fp16
    open_model(FREE, "cuda", "fp8", None, BUDGET).runner.close()
    device.made.clear()
    open_model(FREE, "cuda", "fp8", None, BUDGET).runner.close()
    assert device.made_precisions == again
    assert all(executor.closed for executor in device.made)


def test_nothing_stays_open_where_the_trial_of_fp8_fails(device: Device) -> None:
    device.failing = {"wait": DeviceError("The GPU failed.")}
    with pytest.raises(DeviceError):
        open_model(FREE, "cuda", "fp8", None, BUDGET)
    assert device.made_precisions == ["fp8", "fp16"]
    assert [executor.closed for executor in device.made] == [1, 1]


@pytest.mark.parametrize(("too_large", "made"), [("fp16", ["fp8", "fp16"]), ("fp32", ["fp8", "fp16", "fp32"])])
def test_a_gpu_that_has_no_memory_for_the_trial_of_fp8_renders_in_fp8(
    device: Device, too_large: Precision, made: list[str]
) -> None:
    device.too_large = (too_large,)
    opened = open_model(FREE, "cuda", "fp8", None, BUDGET)
    assert (opened.device.precision, device.made_precisions) == ("fp8", made)
    assert [executor.closed for executor in device.made] == [0] + [1] * (len(made) - 1)
    opened.runner.close()


def test_a_clamped_network_is_not_tried(device: Device) -> None:
    opened = open_model(CLAMPED, "cuda", "fp16", None, BUDGET)
    assert (opened.device.precision, device.made[0].runs("synthesis")) == ("fp16", [])
    opened.runner.close()


def test_a_precision_that_holds_more_is_not_tried(device: Device) -> None:
    opened = open_model(FREE, "cuda", "fp32", None, BUDGET)
    assert (opened.device.precision, device.made[0].runs("synthesis")) == ("fp32", [])
    opened.runner.close()


@pytest.mark.parametrize(("in_fp16", "in_fp32"), [(0.5, 0.53), (6.9e4, 7e4), (0.0, np.nan), (np.nan, np.inf)])
def test_a_network_within_fp16_or_beyond_fp32_keeps_fp16(device: Device, in_fp16: float, in_fp32: float) -> None:
    device.in_fp16, device.in_fp32 = in_fp16, in_fp32
    opened = open_model(FREE, "cuda", "fp16", None, BUDGET)
    assert opened.device.reason == "A GPU: it was chosen."
    assert device.made_precisions == ["fp16", "fp32"]
    assert [executor.closed for executor in device.made] == [0, 1]
    opened.runner.close()


@pytest.mark.parametrize(("in_fp16", "again"), [(0.5, ["fp16"]), (0.0, ["fp16", "tf32"])])
def test_a_network_is_tried_once_and_again_when_its_weights_changed(
    device: Device, empty_cache: Path, in_fp16: float, again: list[str]
) -> None:
    device.in_fp16 = in_fp16
    name = next(name for name in FREE.weights if name.endswith("conv1.bias"))
    other = replace(FREE, weights={**FREE.weights, name: FREE.weights[name] + np.float32(0.001)})
    tried = [*again[:1], "fp32", *again[1:]]
    for model, precisions in ((FREE, tried), (FREE, again), (other, tried)):
        device.made.clear()
        open_model(model, "cuda", "fp16", None, BUDGET).runner.close()
        assert device.made_precisions == precisions
    for path in (empty_cache / "latentloom" / "fp16_range").iterdir():
        path.write_bytes(b"\xff[")
    device.made.clear()
    open_model(FREE, "cuda", "fp16", None, BUDGET).runner.close()
    assert device.made_precisions == tried


def test_nothing_stays_open_where_a_trial_fails(device: Device) -> None:
    device.failing = {"wait": DeviceError("The GPU failed.")}
    with pytest.raises(DeviceError):
        open_model(replace(FREE), "cuda", "fp16", None, BUDGET)
    assert [executor.closed for executor in device.made] == [1]


def test_a_gpu_that_has_no_memory_for_the_trial_renders_in_fp16_and_tries_the_next_time(device: Device) -> None:
    device.too_large = ("fp32",)
    opened = open_model(FREE, "cuda", "fp16", None, BUDGET)
    assert (opened.device.precision, device.made_precisions) == ("fp16", ["fp16", "fp32"])
    opened.runner.close()
    device.too_large = ()
    opened = open_model(FREE, "cuda", "fp16", None, BUDGET)
    assert opened.device.precision == "tf32"
    opened.runner.close()


@pytest.mark.parametrize("model", [FREE, make_stylegan2(c_dim=3, embed_dim=5)], ids=["latents", "classes"])
@pytest.mark.usefixtures("empty_cache")
def test_real_pictures_tell_whether_a_network_exceeds_fp16(model: Model) -> None:
    biases = {name: array + np.float32(2.0) for name, array in model.weights.items() if name.endswith("conv1.bias")}
    saturating = replace(model, weights={**model.weights, **biases})
    for narrow, is_beyond in ((model, False), (saturating, True)):
        # Another network stands for the one in fp16: processors render in fp32 alone.
        runner = ModelRunner(model, CpuExecutor(narrow.weights), BUDGET)
        wide = ModelRunner(model, CpuExecutor(model.weights), BUDGET)
        named = replace(model, weights={**model.weights, "is_beyond": np.array(is_beyond)})
        assert exceeds_fp16(runner, named, lambda wide=wide: wide) is is_beyond  # type: ignore[misc]
        runner.close()


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_a_network_whose_numbers_exceed_fp16_is_rendered_as_by_the_processor() -> None:
    biases = {name: array * 1e7 for name, array in FREE.weights.items() if name.endswith("conv1.bias")}
    model = replace(FREE, weights={**FREE.weights, **biases})
    with Renderer(model, "cuda") as on_gpu, Renderer(model, "cpu") as on_cpu:
        assert on_gpu.device.precision == "tf32"
        assert on_gpu.device.reason.endswith("in tf32: this network needs more than fp16.")
        found, expected = (one.render(request_for(one, wants_image=True)) for one in (on_gpu, on_cpu))
        assert not found.warnings
        assert found.image is not None
        assert expected.image is not None
        assert np.abs(found.image - expected.image).max() <= 0.01 * np.abs(expected.image).max()
