"""The whole run, on the processor and a tiny network; on a GPU where there is one."""

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import torch

from gpu_backend.bench import suite
from gpu_backend.bench.command import main
from gpu_backend.bench.report import NO_GRAPH, OURS, read_report
from gpu_backend.bench.stopwatch import SPENT, STOPPED
from gpu_backend.bench.torch_side import arithmetic, cuda_problem
from gpu_backend.device import DeviceFacts

TINY = ("--shape", "16:128:8", "--runs", "3", "--threads", str(torch.get_num_threads()))


@pytest.fixture(autouse=True)
def _without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_backend.bench.files.plots_problem", lambda: "left out of this test")


@pytest.fixture(autouse=True)
def _a_small_roofline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_backend.bench.ceiling._CPU_COPY_NBYTES", 1 << 16)
    monkeypatch.setattr("gpu_backend.bench.ceiling._CPU_SIDE", 32)
    monkeypatch.setattr("gpu_backend.bench.gesture._LEAST", 3)


def test_a_run_on_the_processor_measures_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--device", "cpu", *TINY, "--batch", "1,2", "--precision", "fp32,tf32", "--quick", "--counters"]
    assert main([*words, "--peers", "eager,channels-last,traced", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    for part in ("b16.conv0", "traced", "gesture to frame on the host", "roofline, measured", "memory saved"):
        assert part in printed.out
    assert "skipped: eager, tf32, batch 1: tf32 is arithmetic of GPUs" in printed.out
    assert "skipped: hardware counters, batch 1: Hardware counters are those of an NVIDIA GPU." in printed.out
    assert "skipped: plots: left out of this test" in printed.out
    assert "measuring: traced, fp32, batch 2" in printed.err
    report = read_report(tmp_path / "bench.json")
    assert {(row.who, row.batch) for row in report.measurements} == {
        (who, batch) for who in (OURS, "eager", "channels-last", "traced") for batch in (1, 2)
    }
    assert all(row.runs == 3 and row.latency_ms > 0 for row in report.measurements)
    command = [*words, "--peers", "eager,channels-last,traced", "--out", tmp_path.name]
    assert report.run.command == f"python -m gpu_backend.bench {' '.join(command)}", "without folders of this machine"
    assert report.run.network == "16:128:8"
    assert report.run.versions["torch"] == metadata.version("torch")
    assert report.ceiling is not None
    assert report.kernels
    assert all(cost.roofline_share is not None for cost in report.kernels)
    (gesture,) = report.gestures
    assert gesture.p99_ms >= gesture.p50_ms > 0
    assert gesture.nbytes > 0


def test_a_spent_budget_names_everything_that_did_not_begin(tmp_path: Path) -> None:
    assert (
        main(["--device", "cpu", *TINY, "--peers", "eager", "--quick", "--budget-s", "0", "--out", str(tmp_path)]) == 0
    )
    report = read_report(tmp_path / "bench.json")
    assert report.measurements == ()
    assert {item.what for item in report.skipped if item.reason == SPENT} == {
        "latentloom, fp32, batch 1",
        "eager, fp32, batch 1",
    }


def test_ctrl_c_keeps_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(suite, "measured_ceiling", stop)
    words = ["--device", "cpu", *TINY, "--peers", "eager", "--quick", "--out", str(tmp_path)]
    assert main(words) == 130
    report = read_report(tmp_path / "bench.json")
    assert {row.who for row in report.measurements} == {OURS, "eager"}
    assert {item.what: item.reason for item in report.skipped}["roofline"] == STOPPED
    assert "roofline: the run was stopped" in capsys.readouterr().out


def test_a_compiler_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_compiler(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("Failed to find C compiler.\nA long story follows.")

    monkeypatch.setattr(torch, "compile", no_compiler)
    assert main(["--device", "cpu", *TINY, "--peers", "compiled", "--quick", "--out", str(tmp_path)]) == 0
    report = read_report(tmp_path / "bench.json")
    assert [row.who for row in report.measurements] == [OURS]
    reasons = {item.what: item.reason for item in report.skipped}
    assert reasons["compiled, fp32, batch 1"] == "RuntimeError: Failed to find C compiler."


def _pretend_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our networks stay on the processor; only what is decided for a GPU is looked at."""
    monkeypatch.setattr(suite, "cuda_problem", lambda: "this torch (1.2+cpu) is a build without CUDA")
    make = vars(suite)["make_executor"]
    gpu = DeviceFacts("Some GPU", "fp16", "Some GPU: it was chosen.", id="cuda:0", driver="580.1")
    monkeypatch.setattr(suite, "make_executor", lambda model, device, precision="fp16": (make(model, "cpu")[0], gpu))
    monkeypatch.setattr(suite, "Renderer", lambda model, device, precision: _Broken())


def test_a_torch_that_finds_no_gpu_is_named_once_and_ours_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pretend_a_gpu(monkeypatch)
    words = ["--batch", "1", "--precision", "fp32", "--out", str(tmp_path)]
    assert main([*TINY, *words]) == 0
    report = read_report(tmp_path / "bench.json")
    reasons = {item.what: item.reason for item in report.skipped}
    assert reasons["every peer"] == reasons["roofline"] == "this torch (1.2+cpu) is a build without CUDA"
    assert reasons["gesture to frame"] == "AttributeError: lost"
    assert {row.who for row in report.measurements} == {OURS, NO_GRAPH}
    assert report.run.device == "Some GPU"


def test_times_come_before_the_comparison_with_fp32_which_a_spent_budget_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pretend_a_gpu(monkeypatch)
    words = [*TINY, "--batch", "1", "--precision", "fp16,tf32", "--peers", "none", "--out", str(tmp_path)]
    assert main([*words, "--budget-s", "0"]) == 0
    skipped = [item.what for item in read_report(tmp_path / "bench.json").skipped if item.reason == SPENT]
    assert skipped[-2:] == ["accuracy, fp16", "accuracy, tf32"]
    assert OURS + ", fp16, batch 1" in skipped


def test_a_mistake_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--shape", "17:1:1"]) == 2
    assert main(["model.pkl", "--shape", "ffhq256"]) == 2
    assert main(["--device", "typewriter"]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 3
    assert all(line.startswith("python -m gpu_backend.bench: ") for line in said)


@pytest.mark.parametrize("words", [["--peers", "best"], ["--batch", "0"], ["--budget-s", "-1"], ["--precision", "fp4"]])
def test_values_that_are_none_are_reported(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(words)
    assert "expected" in capsys.readouterr().err


def test_arithmetic_is_put_back() -> None:
    before = torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()
    with arithmetic("tf32"):
        assert torch.backends.cudnn.allow_tf32
    with arithmetic("fp32"):
        assert not torch.backends.cudnn.allow_tf32
    assert (torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()) == before


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_a_run_on_a_gpu_measures_ours_with_and_without_the_graph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--device", "cuda", *TINY, "--batch", "1,2", "--peers", "eager,channels-last", "--out", str(tmp_path)]
    assert main(words) == 0
    printed = capsys.readouterr().out
    report = read_report(tmp_path / "bench.json")
    ours = {(row.who, row.precision, row.batch) for row in report.measurements if row.who in (OURS, NO_GRAPH)}
    assert ours == {(who, p, b) for who in (OURS, NO_GRAPH) for p in ("fp16", "tf32", "fp32") for b in (1, 2)}, printed
    assert all(cost.state in ("fused", "plain", "fallback") for cost in report.kernels), printed
    assert report.compiling is not None, printed
    assert report.compiling.kernels > 5
    (gesture,) = report.gestures
    assert gesture.host_ms is not None
    assert gesture.device_ms is not None
    if not cuda_problem():
        peers = {(row.who, row.precision) for row in report.measurements} - {(OURS, "fp16"), (OURS, "fp32")}
        assert ("channels-last", "tf32") in peers, json.dumps([repr(item) for item in report.skipped])
        assert report.ceiling is not None
        assert report.ceiling.is_measured


class _Broken:
    """A renderer that fails when it is used."""

    def close(self) -> None:
        """Nothing is held."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError("lost")
