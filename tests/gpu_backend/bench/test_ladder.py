"""The ladder: each rung adds one thing, and says what it gains and how far its picture is from the first rung's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend.bench import ladder
from gpu_backend.bench.command import main
from gpu_backend.bench.ladder import Rung, RungResult, ladder_table, rungs_of
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.tiles.target import Target, target_of
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey
from tests.helpers.networks import make_stylegan2

HOPPER = Gpu(0, "NVIDIA H200", "sm_90", "sm_90a", 150 << 30, 132, 227 << 10, 50 << 20, "GPU-0")
MODEL = make_stylegan2(resolution=32)
WORDS = ("--ladder", "--device", "cpu", "--shape", "16:128:8", "--runs", "5", "--threads", str(torch.get_num_threads()))


def macros_of(rung: Rung, target: Target) -> set[tuple[str, str]]:
    plan = build_plan(MODEL.spec, PlanKey(MODEL.facts.model_id, "synthesis", rung.batch, 32, rung.precision))
    changed = target if rung.change is None else rung.change(target)
    schedule = lower(plan, MODEL.weights, changed, everything_plain=not rung.use_fused)
    return {define for launch in schedule.launches for define in launch.recipe.defines}


def test_on_hopper_each_rung_adds_its_instructions() -> None:
    target = target_of(HOPPER, None)
    rungs = {rung.what: rung for rung in rungs_of(target.architecture)}
    assert ("USE_WGMMA", "1") not in macros_of(rungs["plain kernels"], target)
    assert not {"USE_WGMMA", "USE_TMA"} & {name for name, _ in macros_of(rungs["half precision"], target)}
    for what in ("tensor cores (mma)", "fused epilogues"):
        portable = macros_of(rungs[what], target)
        assert ("USE_WGMMA", "0") in portable
        assert not {("USE_WGMMA", "1"), ("USE_TMA", "1")} & portable
        assert (("HAS_RGB", "1") in portable) == (what == "fused epilogues")
    with_tma = macros_of(rungs["TMA"], target)
    assert ("USE_TMA", "1") in with_tma
    assert ("USE_WGMMA", "1") not in with_tma
    assert [rung.use_graph for rung in rungs.values()] == [False] * 7 + [True] * 3
    assert [rung.batch for rung in rungs.values()] == [1] * 8 + [8, 32]


def test_on_hopper_kernels_without_tiles_are_a_rung_of_their_own() -> None:
    model = make_stylegan2(resolution=16, channel_base=2048, channel_max=128)
    plan = build_plan(model.spec, PlanKey(model.facts.model_id, "synthesis", 1, 16, "fp16"))
    target = target_of(HOPPER, None)
    found = {}
    for rung in rungs_of(target.architecture):
        schedule = lower(plan, model.weights, target if rung.change is None else rung.change(target))
        found[rung.what] = any(launch.label == "first_layers" for launch in schedule.launches)
    names = list(found)
    first = names.index("streaming, flat and persistent kernels")
    assert names[first - 1] == "tuned tiles, wgmma"
    assert [found[what] for what in names[2:]] == [False] * (first - 2) + [True] * (len(names) - first)


def test_fp8_comes_last_where_gpu_and_network_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "choose_gpu", lambda device: HOPPER)
    large = make_stylegan2(resolution=64, channel_base=2048, channel_max=32)
    last = ladder.rungs_for(large, "cuda:0")[-1]
    assert (last.precision, last.batch) == ("fp8", 32)
    assert all(rung.precision != "fp8" for rung in ladder.rungs_for(MODEL, "cuda:0"))


def test_pictures_are_compared_by_their_largest_difference_and_psnr() -> None:
    first = np.zeros((4, 4, 4), np.uint8)
    picture = first.copy()
    picture[0, 0, 0] = 255
    rung = rungs_of("sm_89")[0]
    found = ladder.compared(RungResult(rung, 1.0, 50), picture, first)
    assert found.largest_difference == 255
    assert found.psnr_db == pytest.approx(10 * np.log10(48))
    assert "16.8" in ladder_table([found])
    assert ladder.compared(RungResult(rung, 1.0, 50), first, first).psnr_db == np.inf


def test_elsewhere_there_is_no_rung_for_hoppers_instructions() -> None:
    assert "TMA" not in {rung.what for rung in rungs_of("sm_89")}


def test_on_the_cpu_it_is_measured_printed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0].strip() for line in lines] == [
        "rung", "reference functions", "+ fused steps, packed weights", "+ batch 8"
    ]  # fmt: skip
    table = (tmp_path / "ladder.csv").read_text().splitlines()
    assert len(table) == 4
    assert all(int(line.rsplit(",", 4)[1]) <= 1 for line in table[1:]), "their pictures are alike"


def test_gains_count_from_the_last_rung_that_was_measured() -> None:
    rungs = rungs_of("sm_89")
    found = [
        RungResult(rungs[0], 8.0, 50),
        RungResult(rungs[1], problem="out of memory"),
        RungResult(rungs[2], 2.0, 50, 3),
    ]
    last = ladder_table(found).splitlines()[-1].split()
    assert last[-6:] == ["4.00", "x", "4.00", "x", "3", "50"]
    assert "out of memory" in ladder_table(found)


def test_a_rung_that_fails_is_named_and_ctrl_c_keeps_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = vars(ladder)["_measured"]

    def fail(model: Any, device: str, rung: Rung, runs: int) -> Any:
        if rung.what == "batch 8":
            raise KeyboardInterrupt
        if rung.what == "reference functions":
            raise RuntimeError("It broke.")
        return measured(model, device, rung, runs)

    monkeypatch.setattr(ladder, "_measured", fail)
    assert main(list(WORDS)) == 130
    said = capsys.readouterr().out
    assert "RuntimeError: It broke." in said
    assert "the run was stopped" in said
    assert "+ fused steps, packed weights  fp32           1" in said
