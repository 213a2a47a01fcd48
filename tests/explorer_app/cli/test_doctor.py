import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from explorer_app.app import Places
from explorer_app.cli import doctor
from explorer_app.cli.path_text import without_home
from explorer_app.logs import log_path
from explorer_app.version import __version__
from gpu_backend import Diagnosis, GpuDiagnosis, KernelDiagnosis, PlainLayer
from tests.explorer_app.cli.test_commands import run_fresh
from tests.helpers.command import Command

GPU = GpuDiagnosis(
    id="cuda:0",
    name="NVIDIA H200",
    architecture="sm_90",
    compile_architecture="sm_90a",
    memory_nbytes=139 << 30,
    multiprocessors=132,
    shared_nbytes_per_block=232448,
    l2_nbytes=50 << 20,
    tuned_entries=0,
    shipped_entries=34,
    tiles=(("shipped", 12), ("rule", 1)),
    kernels=(
        KernelDiagnosis("styles", "styles (half=1)", "ready"),
        KernelDiagnosis("modulated_conv", "modulated_conv (rows=2)", "ready"),
        KernelDiagnosis("modulated_conv", "modulated_conv (rows=4)", "ready"),
        KernelDiagnosis("to_rgb", "to_rgb (taps=4)", "not compiled yet"),
        KernelDiagnosis("empty", "empty", "not compiled yet"),
        KernelDiagnosis("modulated_conv", "modulated_conv (rows=8)", "falls back", "its result differs by 3"),
        KernelDiagnosis(
            "modulated_up_conv", "modulated_up_conv (rows=4)", "falls back", "it does not compile: x.cu(3)"
        ),
        KernelDiagnosis(
            "modulated_up_conv", "modulated_up_conv (rows=6)", "falls back", "it does not compile: x.cu(3)"
        ),
        KernelDiagnosis("fully_connected", "fully_connected (batch=1)", "fails", "it does not compile: y.cu(9)"),
    ),
    plain_layers=(PlainLayer("synthesis.b8.conv0", "plain_modulated_up_conv", "its filter has 23 taps"),),
    other_precision="fp16 in place of fp8: this network has no layers for fp8",
)
FOUND = Diagnosis(
    gpus=(GPU,),
    problem="",
    driver="580.95.05",
    other_gpus=(),
    nvrtc="13.0",
    architectures=("sm_75", "sm_90"),
    packages=(("cuda-bindings", "13.0.3"), ("torch", "")),
    cache_folder=Path("cache"),
    cache_files=3,
    cache_nbytes=1_500_000,
    processor="A processor",
    processors=16,
    memory_nbytes=128 << 30,
)
NONE = replace(FOUND, gpus=(), problem="The driver is too old.", driver="535.1", other_gpus=("NVIDIA T4",))


def text_of(found: Diagnosis) -> str:
    return "\n".join(f"{label}: {'; '.join(values)}" for label, values in doctor.report(found))


def test_the_report_names_what_was_found() -> None:
    text = text_of(FOUND)
    for words in (
        "NVIDIA H200, sm_90, kernels for sm_90a",
        "132 multiprocessors",
        "580.95.05",
        "13.0: sm_75, sm_90",
        "cuda-bindings 13.0.3",
        "torch not installed",
        "tuned 0, shipped 34 entries; this model's convolutions: 12 shipped, 1 rule",
        "fp16 in place of fp8: this network has no layers for fp8;",
        "kernels ready: 3 of 9: styles, 2 modulated_conv;",
        "not compiled yet: to_rgb, empty;",
        "falls back: modulated_conv (rows=8);   its result differs by 3;",
        "falls back: modulated_up_conv (rows=4) and 1 more modulated_up_conv;   it does not compile: x.cu(3);",
        "fails, without a fallback: fully_connected (batch=1);   it does not compile: y.cu(9);",
        "falls back: synthesis.b8.conv0, plain_modulated_up_conv;   its filter has 23 taps",
        "3 files, 1.5 MB",
    ):
        assert words in text


def test_kernels_that_all_are_ready_take_one_line() -> None:
    kernels = tuple(kernel for kernel in GPU.kernels if kernel.state == "ready")
    lines = dict(doctor.report(replace(FOUND, gpus=(replace(GPU, kernels=kernels, plain_layers=()),))))["cuda:0"]
    assert lines[-1] == "kernels ready: 3 of 3: styles, 2 modulated_conv"


def test_without_a_usable_gpu_the_report_says_why_and_what_is_there() -> None:
    text = text_of(NONE)
    assert "The driver is too old." in text
    assert "There is: NVIDIA T4" in text
    assert "535.1" in text
    assert "kernels" not in text
    assert "NVRTC: not found" in text_of(replace(NONE, nvrtc="", architectures=()))


def test_doctor_prints_which_steps_of_a_model_become_one_kernel(command: Command) -> None:
    outcome = command("doctor", "--plan")
    assert (outcome.status, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("mapping.normalize: normalize_2nd_moment")
    assert any(line.startswith("synthesis.b8.conv1: modulated_conv + noise ") for line in lines)
    assert lines[-1].endswith("to_rgb + to_display -> image")


@pytest.mark.parametrize("precision", ["fp16", "tf32", "bf16x3"])
def test_the_plan_says_what_convolutions_multiply(command: Command, precision: str) -> None:
    lines = command("doctor", "--plan", "--precision", precision).out.splitlines()
    products = [line for line in lines if "_conv + " in line]
    assert products
    assert all(line.endswith(f", multiplies {precision}") for line in products)


@pytest.mark.parametrize("architecture", ["sm_89", "sm_90", "sm_120"])
def test_a_plan_of_fp8_can_be_that_of_another_gpu(command: Command, architecture: str) -> None:
    outcome = command("doctor", "--plan", "--precision", "fp8", "--architecture", architecture)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.splitlines()[0] == f"Plan for {architecture}"


@pytest.mark.parametrize("words", [[], ["--plan"], ["--precision", "fp8"], ["--plan", "--precision", "fp32"]], ids=str)
def test_an_architecture_that_changes_nothing_is_refused(command: Command, words: list[str]) -> None:
    outcome = command("doctor", "--architecture", "sm_90", *words)
    assert (outcome.status, outcome.out) == (2, "")
    assert "--plan and --precision fp8" in outcome.err


def test_a_plan_of_no_model_is_an_error(command: Command, tmp_path: Path) -> None:
    (tmp_path / "nothing.pkl").write_bytes(b"")
    assert command("doctor", "--plan", str(tmp_path / "nothing.pkl")).status == 2


def test_doctor_prints_a_report_without_personal_paths(
    command: Command, monkeypatch: pytest.MonkeyPatch, own_folders: Path
) -> None:
    home = own_folders / "home"
    monkeypatch.setattr(
        doctor, "diagnose", lambda model, precision: replace(FOUND, cache_folder=home / ".cache" / "latentloom")
    )
    outcome = command("doctor")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.startswith(f"Latent Loom    {__version__}\n")
    assert str(home) not in outcome.out
    assert f"~{os.sep}.cache{os.sep}latentloom" in outcome.out
    assert "Model          bundled, 16 x 16" in outcome.out
    assert without_home(f"Log file       {log_path()}\n") in outcome.out
    assert without_home(f"State folder   {Places.of_this_system().state}\n") in outcome.out
    assert max(map(len, outcome.out.splitlines())) < 300


def test_doctor_looks_at_the_model_that_is_named(command: Command, networks: Path, tmp_path: Path) -> None:
    assert "given, 16 x 16" in command("doctor", networks / "labelled.safetensors").out
    assert command("doctor", tmp_path / "missing.pkl").sentence


def test_doctor_goes_on_without_the_bundled_model(command: Command, networks: Path) -> None:
    (networks / "bundled" / "models" / "plain.safetensors").unlink()
    outcome = command("doctor")
    assert outcome.status == 0
    assert "The bundled model is missing" in outcome.out


@pytest.mark.parametrize(
    ("environment", "platform", "shown"),
    [
        ({"QT_QPA_PLATFORM": "offscreen"}, "linux", "offscreen (QT_QPA_PLATFORM)"),
        ({"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"}, "linux", "wayland"),
        ({"DISPLAY": ":0"}, "linux", "xcb"),
        ({}, "linux", "none: there is no display"),
        ({}, "win32", "windows"),
        ({}, "darwin", "cocoa"),
    ],
)
def test_the_qt_platform_is_reported_without_starting_qt(
    environment: dict[str, str], platform: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("QT_QPA_PLATFORM", "WAYLAND_DISPLAY", "DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert doctor.qt_platform() == shown


def test_doctor_needs_neither_torch_nor_qt() -> None:
    code = (
        "import sys; from explorer_app.cli import main\n"
        "for name in ('PySide6', 'torch', 'pyqtgraph', 'qtawesome'): sys.modules[name] = None\n"
        "sys.exit(main(['doctor']))\n"
    )
    done = run_fresh(code)
    assert (done.returncode, done.stderr) == (0, "")
    assert "GPU " in done.stdout or "cuda:0" in done.stdout
