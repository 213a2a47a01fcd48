"""Replayed kernels write what Python's calls write, for every input, and Python goes on where they cannot."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import gpu_backend.cpu.replay as replay
from gpu_backend import Bend, LocalEdits, Model
from gpu_backend.cpu.bound_plan import CpuBoundPlan
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.cpu.kernel import Kernel
from gpu_backend.cpu.replay import Replay
from gpu_backend.cpu.team import Team
from gpu_backend.errors import CancelledError
from gpu_backend.plan.edit_inputs import bendable_layers, edit_inputs, plan_edits
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import R, make_stylegan3

MODELS: dict[str, Model] = {
    "skip": make_stylegan2(resolution=32, channels=dict.fromkeys((4, 8, 16, 32), 64)),
    "large": make_stylegan2(resolution=128, channels=dict.fromkeys((4, 8, 16, 32, 64, 128), 64)),
    "resnet": make_stylegan2(resolution=16, architecture="resnet", conv_clamp=0.8),
    "no noise": make_stylegan2(resolution=16, use_noise=False),
    "AdaIN": make_stylegan1(resolution=16),
    "T": make_stylegan3(num_layers=5),
    "R": make_stylegan3(num_layers=5, **R),
}
OUTPUTS = ("pixels", "image", "flags")
Bind = Callable[..., Any]


@pytest.fixture
def bind(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bind]:
    """Bind a model's plan; its kernels are recorded from the first run on."""
    monkeypatch.setattr(replay, "_FIRST_RUN", 0)
    executors: list[CpuExecutor] = []

    def make(model: Model, threads: int = 2, edits: LocalEdits | None = None, batch: int = 1) -> CpuBoundPlan:
        executors.append(CpuExecutor(model.weights, threads=threads))
        edited = plan_edits(edits or LocalEdits())
        bound = executors[-1].bind(
            build_plan(model.spec, PlanKey("id", "synthesis", batch, model.spec.resolution, edits=edited))
        )
        assert isinstance(bound, CpuBoundPlan)
        return bound

    yield make
    for executor in executors:
        executor.close()


def rows_of(model: Model, seed: int, batch: int = 1) -> np.ndarray:
    shape = (batch, model.spec.num_ws, model.spec.w_dim)
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def record(bound: CpuBoundPlan, inputs: dict[str, np.ndarray]) -> None:
    """Run until nothing is left to record."""
    for _ in range(len(bound.plan.steps)):
        bound.run(inputs, outputs=OUTPUTS)


def recordings(bound: CpuBoundPlan) -> list[object]:
    return [recording for one in bound._replays._replays for recording in one._recordings.values()]


def assert_replays_alike(bound: CpuBoundPlan, inputs: dict[str, np.ndarray]) -> None:
    expected = {name: array.copy() for name, array in bound.run(inputs, outputs=OUTPUTS, use_graph=False).items()}
    bound.run({name: np.zeros_like(array) for name, array in inputs.items() if name == "ws"}, outputs=OUTPUTS)
    found = bound.run({"ws": inputs["ws"]}, outputs=OUTPUTS)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("name", MODELS)
def test_replayed_pictures_have_the_same_bytes(name: str, threads: int, bind: Bind) -> None:
    model = MODELS[name]
    bound = bind(model, threads)
    record(bound, {"ws": rows_of(model, 0)})
    made = recordings(bound)
    assert len(made) >= (2 if name == "AdaIN" else len(bound.plan.steps) - 3)
    assert None not in made
    for seed in (1, 2):
        assert_replays_alike(bound, {"ws": rows_of(model, seed)})
    assert recordings(bound) == made


@pytest.mark.parametrize("name", ["skip", "large", "AdaIN"])
def test_replays_follow_noise(name: str, bind: Bind) -> None:
    model = MODELS[name]
    bound, ws = bind(model, batch=2), rows_of(model, 0, 2)
    count = bound._inputs["noise_gain"].size
    gains = {
        "ones": np.ones(count, np.float32),
        "off": np.zeros(count, np.float32),
        "some": np.linspace(-1, 1, count).astype(np.float32) * (np.arange(count) % 2),
    }
    record(bound, {"ws": ws, "noise_gain": gains["ones"]})
    pictures = []
    for source in ([0, 0, 0, 0], [1, 7, 3, 0], [1, 8, 3, 0]):
        for gain in gains.values():
            inputs = {"ws": ws, "noise_gain": gain.astype(np.float32), "noise_source": np.array(source, np.uint32)}
            assert_replays_alike(bound, inputs)
            pictures.append(bound.run(inputs, outputs=("image",))["image"].tobytes())
    assert len(set(pictures)) == 7  # without noise its source does not matter
    assert None not in recordings(bound)


def test_replays_follow_edits(bind: Bind) -> None:
    model = MODELS["skip"]
    layer = list(bendable_layers(model.spec))[1]
    first = LocalEdits((Bend(layer, "turn", 10.0),))
    bound, ws = bind(model, edits=first), rows_of(model, 0)
    record(bound, {"ws": ws})
    for edits in (first, LocalEdits((Bend(layer, "gain", 0.0, (0,)),)), LocalEdits((Bend(layer, "threshold", 0.2),))):
        assert_replays_alike(bound, {"ws": ws, **edit_inputs(bound.plan, edits)})


def test_layers_are_observed_and_runs_are_cancelled_and_timed_as_before(bind: Bind) -> None:
    model = MODELS["skip"]
    bound, ws = bind(model), rows_of(model, 0)
    before = bound.observe({"ws": ws})
    record(bound, {"ws": ws})
    after = bound.observe({"ws": ws})
    assert before.keys() == after.keys()
    for layer, array in before.items():
        np.testing.assert_array_equal(after[layer], array)
    assert len(bound.submit({"ws": ws}, measure=True).steps) == len(bound.plan.steps)
    calls: list[None] = []

    def should_cancel() -> bool:
        calls.append(None)
        return len(calls) == 4

    with pytest.raises(CancelledError):
        bound.run({"ws": ws}, should_cancel=should_cancel)
    assert len(calls) == 4
    assert_replays_alike(bound, {"ws": ws})


def test_a_plan_records_one_kernel_a_run_and_none_at_first(bind: Bind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_FIRST_RUN", 2)
    model = MODELS["skip"]
    bound = bind(model)
    counts = []
    for _ in range(5):
        bound.run({"ws": rows_of(model, 0)})
        counts.append(len(recordings(bound)))
    assert counts == [0, 0, 1, 2, 3]
    bound.run({"ws": rows_of(model, 0)}, use_graph=False)
    assert len(recordings(bound)) == 3


def test_a_torch_that_does_not_compile_calls_from_python(
    bind: Bind, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(lanes: object) -> None:
        raise RuntimeError("no such operator")

    monkeypatch.setattr(replay, "_compiled", refuse)
    model = MODELS["skip"]
    bound = bind(model)
    with caplog.at_level(logging.INFO, logger=replay.__name__):
        record(bound, {"ws": rows_of(model, 0)})
        logged = len(caplog.records)
        record(bound, {"ws": rows_of(model, 0)})
    assert set(recordings(bound)) == {None}
    assert len(caplog.records) == logged == len(recordings(bound))
    assert "synthesis.b4.conv1 modulated_conv is not replayed: no such operator" in caplog.text
    assert_replays_alike(bound, {"ws": rows_of(model, 1)})


def test_a_torch_without_torchscript_records_nothing(bind: Bind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.jit, "CompilationUnit")
    model = MODELS["skip"]
    bound = bind(model)
    record(bound, {"ws": rows_of(model, 0)})
    assert recordings(bound) == []


class Twice(Kernel):
    """Two tasks: x * 2 + 1, and what a test adds."""

    def __init__(self, team: Team, also: Callable[["Twice", int], None] = lambda kernel, lane: None) -> None:
        self.x, self.out, self.team, self._also = torch.zeros(2, 3), torch.zeros(2, 3), team, also
        self.made: list[Tensor] = [torch.zeros(3)] * 2
        self.is_recorded = False

    def replay_key(self) -> str:
        return "always"

    def run(self) -> None:
        self.team.run(self._first)
        self.team.run(self._second)
        self.out.add_(1.0)

    def _first(self, lane: int) -> None:
        self.made[lane] = self.x[lane] * 2.0
        self.out[lane].copy_(self.made[lane])

    def _second(self, lane: int) -> None:
        self._also(self, lane)


def run_twice(also: Callable[[Twice, int], None]) -> Twice:
    """Run a kernel twice, the first time to record it."""
    team = Team(2)
    kernel = Twice(team, also)
    one = Replay(kernel, team, "twice", [kernel.out])

    def run(value: float) -> None:
        kernel.x.fill_(value)
        team.run_alone(lambda: replayed.append(one.run(may_record=True)))
        assert kernel.out.eq(2 * value + 1).all()

    replayed: list[bool] = []
    run(1.0)
    run(2.0)
    assert replayed == [True, False]
    kernel.is_recorded = None not in one._recordings.values()
    team.close()
    return kernel


def test_serial_calls_between_tasks_are_replayed() -> None:
    assert run_twice(lambda kernel, lane: None).is_recorded


def look(kernel: Twice, lane: int) -> None:
    float(kernel.x[lane, 0])


def use_what_another_task_made(kernel: Twice, lane: int) -> None:
    kernel.out[lane].copy_(kernel.made[lane])


def use_an_argument_without_a_literal(kernel: Twice, lane: int) -> None:
    kernel.x[lane].clamp_(max=float("inf"))


@pytest.mark.parametrize("also", [look, use_what_another_task_made, use_an_argument_without_a_literal])
def test_calls_that_a_function_cannot_repeat_are_python_s(also: Callable[[Twice, int], None]) -> None:
    assert not run_twice(also).is_recorded


def test_a_replay_that_writes_other_bytes_is_dropped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(replay, "_bound", lambda function, tensors: lambda: None)
    assert not run_twice(lambda kernel, lane: None).is_recorded
    assert "twice is not replayed: its bytes differ" in caplog.text
    caplog.clear()


def test_variables_are_freed_while_calls_are_recorded() -> None:
    living: list[int] = []
    variables: dict[int, Any] = {}
    calls = replay._Calls(variables)
    x = torch.zeros(3)
    with torch.inference_mode(), replay._Recorder(calls):
        for _ in range(10):
            x.add_(x * 2.0)
            living.append(len(variables))
    assert max(living) <= 1
    assert not variables
    assert len(calls.tensors) == 1
    assert calls.source("run").count("torch.ops.aten.mul") == 10


def test_recording_does_not_import_torch_s_compiler() -> None:
    assert not hasattr(replay._Recorder.__torch_dispatch__, "__wrapped__")
