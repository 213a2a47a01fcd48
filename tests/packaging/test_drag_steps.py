"""The script that times steps of drags: its peer, and its table of kernels."""

import csv
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend import DragOptimizer, DragSettings, Handle, latent_statistics
from gpu_backend.bench.shapes import Shape
from gpu_backend.cuda.timing.cupti_timer import KernelRecord
from gpu_backend.gradients.gpu.drag import GpuDrag
from gpu_backend.gradients.gpu.open_network import GpuGradients, packed_network
from gpu_backend.gradients.network import differentiable_network
from tests.helpers.fake_gpu import FAKE_GPU
from tests.helpers.gradient_twins import TwinDriver, twin_kernels
from tests.helpers.networks import make_stylegan2
from tests.helpers.packaging_script import packaging_script

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    module = packaging_script("drag_steps")
    monkeypatch.setattr(sys.modules["drag_benchmark"], "RESULTS", tmp_path)
    monkeypatch.setitem(module.SHAPES, "tiny", Shape("tiny", 16, 128, 8, w_dim=16))
    return module


def test_the_peer_steps(benchmark: ModuleType) -> None:
    peer = benchmark.PlainDrag("tiny", None, "cpu", torch.float32)
    before = peer._free.detach().clone()
    losses = [float(peer.step()) for _ in range(3)]
    assert np.isfinite(losses).all()
    assert len(set(losses)) == 3
    assert float((peer._free.detach() - before).abs().max()) > 0.01


def test_without_a_gpu_there_is_nothing_to_time(benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "open_gradients", differentiable_network)
    with pytest.raises(SystemExit, match="no GPU"):
        benchmark.own_drag("tiny")


def twin_drag(driver: TwinDriver) -> DragOptimizer:
    """Return a drag whose kernels are their twins."""
    model = make_stylegan2(channel_max=8)
    network = differentiable_network(model)
    gpu = GpuGradients(packed_network(network, 16), driver.as_driver(), twin_kernels(4), FAKE_GPU)
    kernels: Any = SimpleNamespace(
        problem="", drag=lambda network, terms, radius, rate: GpuDrag(gpu, terms, radius=radius, rate=rate)
    )
    network.own_kernels = kernels
    rows = np.tile(model.mean_w, (model.spec.num_ws, 1))
    handle, settings = Handle((4.0, 5.0), (9.0, 6.0)), DragSettings(check_every=0, block=16, radius=1)
    known = latent_statistics(network, count=64)
    return DragOptimizer(network, known, rows, model.facts.row_resolutions, [handle], settings)


class TwinRecords:
    """Records of twins: each takes 2 us, and 1 us passes before the next."""

    def __init__(self, driver: TwinDriver) -> None:
        self._driver, self._first = driver, 0

    def start(self) -> None:
        self._first = len(self._driver.launched)

    def stop(self) -> list[KernelRecord]:
        names = self._driver.launched[self._first :]
        return [KernelRecord(name, 3000 * number, 3000 * number + 2000) for number, name in enumerate(names)]


def test_each_kernel_of_a_step_has_its_time(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driver = TwinDriver()
    monkeypatch.setattr(benchmark, "own_drag", lambda name: twin_drag(driver))
    monkeypatch.setattr(benchmark, "cupti_records", lambda: TwinRecords(driver))
    monkeypatch.setattr(benchmark, "_RECORDED_STEPS", 2)
    monkeypatch.setattr(benchmark, "_WARM_UP_STEPS", 1)
    benchmark.main(["--parts", "kernels", "--shapes", "tiny"])
    with (tmp_path / "kernels_tiny.csv").open() as file:
        *rows, total, gaps = csv.DictReader(file)
    assert rows[0]["kernel"] == "gradient_styles"
    assert rows[-1]["kernel"] == "gradient_rows (cluster=1)"
    assert {row["us"] for row in rows} == {"2.0"}
    assert float(total["us"]) == 2 * len(rows)
    assert float(gaps["us"]) == len(rows) - 1
    assert "tiny gradient_rows (cluster=1): 2.0 us" in capsys.readouterr().out


def test_ways_of_pytorch_take_turns_with_own_kernels(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    turns: list[str] = []

    def peer(name: str, mode: str | None) -> SimpleNamespace:
        def step() -> torch.Tensor:
            turns.append(str(mode))
            return torch.zeros(())

        return SimpleNamespace(step=step)

    def own() -> Any:
        drag = twin_drag(TwinDriver())
        step = drag.step

        def counted() -> Any:
            turns.append("own")
            return step()

        monkeypatch.setattr(drag, "step", counted)
        return drag

    monkeypatch.setattr(benchmark, "own_drag", lambda name: own())
    monkeypatch.setattr(benchmark, "PlainDrag", peer)
    monkeypatch.setattr(benchmark, "_ROUNDS", 2)
    monkeypatch.setattr(benchmark, "_TURN_S", 0.0)
    monkeypatch.setattr(benchmark, "replayed_seconds", lambda drag: 0.001)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    benchmark.main(["--parts", "steps", "--shapes", "tiny", "--torch", "compiled", "eager"])
    with (tmp_path / "steps.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["by"].split(", ")[-1] for row in rows] == ["own kernels", "compiled", "eager"]
    assert [row["gpu_ms"] for row in rows] == ["1.0", "", ""]
    assert all(float(row["own_is_times"]) >= 0 for row in rows[1:])
    last = [name for name, before in zip(turns, ["", *turns], strict=False) if name != before][-6:]
    assert last == ["own", "default", "None"] * 2


def test_other_families_are_timed_by_iterations(benchmark: ModuleType, tmp_path: Path) -> None:
    benchmark.SHAPES["tiny"] = Shape("tiny", 16, 128, 8, w_dim=16, config="AdaIN")
    benchmark.main(["--parts", "families", "--families", "tiny", "--device", "cpu"])
    with (tmp_path / "families.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["shape"] == "tiny"
    assert row["directions"] == "16"
    assert float(row["longest_step_s"]) > 0
    assert float(row["iteration_s"]) > 0
