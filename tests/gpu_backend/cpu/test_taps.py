"""Any layer as the output, of both families, on the CPU."""

import numpy as np
import pytest

from gpu_backend import Model, Tap
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import Plan, PlanKey
from gpu_backend.plan.tap_input import tap_input
from tests.helpers.networks import make_stylegan2
from tests.helpers.selection import in_turn
from tests.helpers.stylegan3 import R, make_stylegan3

MODELS: dict[str, Model] = {
    "skip": make_stylegan2(resolution=16),
    "resnet": make_stylegan2(resolution=16, architecture="resnet"),
    "orig": make_stylegan2(resolution=8, architecture="orig", use_noise=False),
    "T": make_stylegan3(num_layers=5),
    "R": make_stylegan3(num_layers=5, **R),
}
LAYERS = [(name, layer.name) for name, model in MODELS.items() for layer in model.facts.layers]


def tapped(model: Model, layer: str) -> Plan:
    side = next(item.side for item in model.facts.layers if item.name == layer)
    return build_plan(model.spec, PlanKey("id", "synthesis", 1, side, tap=layer))


def rows_of(model: Model) -> np.ndarray:
    return np.random.default_rng(2).standard_normal((1, model.spec.num_ws, model.spec.w_dim)).astype(np.float32)


def expected_bytes(values: np.ndarray, tap: Tap) -> np.ndarray:
    """(side, side, 3) B, G, R from (channels, side, side), by the rule of the official viewer."""
    planes = []
    for channel in (tap.channels * 3)[:3]:
        plane = values[channel].astype(np.float64)
        if tap.is_normalized:
            plane = plane / np.clip(np.abs(plane).max(), 1e-8, 1e8)
        planes.append(np.clip(plane * 10 ** (tap.gain_db / 20) * 127.5 + 128, 0, 255))
    return np.stack(planes[::-1], axis=-1)


@pytest.mark.parametrize(("place", "use_fused"), in_turn(LAYERS, (True, False)), ids=str)
def test_every_layer_is_shown_as_the_whole_network_computes_it(place: tuple[str, str], use_fused: bool) -> None:
    name, layer = place
    model, ws = MODELS[name], rows_of(MODELS[name])
    facts = next(item for item in model.facts.layers if item.name == layer)
    executor = CpuExecutor(model.weights, threads=2)
    full = build_plan(model.spec, PlanKey("id", "synthesis", 1, model.spec.resolution))
    values = executor.bind(full).observe({"ws": ws})[f"synthesis.{layer}"][0]
    assert values.shape == (facts.channels, facts.side, facts.side)
    plan = tapped(model, layer)
    bound = executor.bind(plan, use_fused=use_fused)
    last = facts.channels - 1
    for tap in (Tap(layer), Tap(layer, (last, 0, last // 2), -6.0), Tap(layer, (last,), 3.0, is_normalized=False)):
        outputs = bound.run({"ws": ws, "tap": tap_input(tap)})
        assert outputs["pixels"].shape == (1, facts.side, facts.side, 4)
        assert np.abs(outputs["pixels"][0, ..., :3] - expected_bytes(values, tap)).max() <= 1.01
        assert (outputs["pixels"][..., 3] == 255).all()
        assert outputs["flags"].tolist() == [0]
    executor.close()
    assert len(plan.steps) <= len(full.steps) - (layer != full.steps[-2].layer.removeprefix("synthesis."))


def test_steps_after_or_beside_a_tapped_layer_are_left_out() -> None:
    def layers(model: Model, layer: str) -> list[str]:
        return [step.layer.removeprefix("synthesis.") for step in tapped(model, layer).steps]

    skip, resnet = MODELS["skip"], MODELS["resnet"]
    assert layers(skip, "b8.conv0") == ["styles", "b4.const", "b4.conv1", "b8.conv0", "display"]
    assert layers(skip, "b8.torgb") == ["styles", "b4.const", "b4.conv1", "b8.conv0", "b8.conv1", "b8.torgb", "display"]
    assert layers(resnet, "b8.skip") == ["styles", "b4.const", "b4.conv1", "b8.skip", "display"]
    assert layers(resnet, "b8.conv1") == ["styles", "b4.const", "b4.conv1", "b8.conv0", "b8.conv1", "display"]
    assert "b8.sum" in layers(resnet, "b16.conv0")
    assert "b16.skip" not in layers(resnet, "b16.conv0")
    assert layers(MODELS["T"], "input") == ["input", "display"]


def test_a_layer_that_holds_a_number_that_is_not_finite_is_flagged() -> None:
    model = MODELS["T"]
    executor = CpuExecutor(model.weights, threads=1)
    for use_fused in (True, False):
        bound = executor.bind(tapped(model, "L1_36_6"), use_fused=use_fused)
        ws = rows_of(model)
        ws[0, 1] = np.inf
        assert bound.run({"ws": ws, "tap": tap_input(Tap("L1_36_6"))})["flags"].tolist() == [1]
    executor.close()


@pytest.mark.parametrize("name", ["skip", "T"])
def test_an_unknown_layer_is_an_error_of_the_caller(name: str) -> None:
    with pytest.raises(ValueError, match="not 'b99'"):
        build_plan(MODELS[name].spec, PlanKey("id", "synthesis", 1, 8, tap="b99"))


def test_plans_with_a_tap_have_keys_of_their_own() -> None:
    keys = {tapped(MODELS["skip"], layer).key for layer in ("b8.conv0", "b8.conv1")}
    assert len(keys | {PlanKey("id", "synthesis", 1, 8)}) == 3
