from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from gpu_backend import compile_kernels, device, diagnosis
from gpu_backend.cuda.compiling import compiler
from gpu_backend.cuda.compiling.compiler import CompiledKernel, compiler_version
from gpu_backend.cuda.compiling.kernel_cache import KernelCache, kernel_key
from gpu_backend.cuda.driver import nvml
from gpu_backend.cuda.driver.probe import Probe
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.running.self_check import record_of
from gpu_backend.cuda.tiles import table as tiles
from gpu_backend.cuda.tiles.table import Tuned, save_entries, tuned_folder, tuned_path
from gpu_backend.cuda.tiles.target import target_of
from gpu_backend.cuda.tuning.isolated_conv import FusedExtras, conv_steps
from gpu_backend.diagnosis import PlainLayer, diagnose, fused_plan
from gpu_backend.ops.kernels import e4m3
from gpu_backend.ops.kernels.conv_tile import NoTileError
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from gpu_backend.renderer.kernels import recipes_of
from tests.helpers.fake_gpu import FAKE_GPU
from tests.helpers.networks import make_stylegan2

GPU = replace(FAKE_GPU, name="NVIDIA Fake", shared_nbytes_per_block_optin=166912, multiprocessors=108)
MODEL = make_stylegan2(resolution=16, channel_base=128, channel_max=12, conv_clamp=256.0)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


@pytest.fixture
def one_gpu(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "probe", lambda: Probe((GPU,), "", "580.1", "13.0"))


@pytest.fixture
def no_gpu(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "probe", lambda: Probe((), "The driver is too old.", "535.1", ""))
    monkeypatch.setattr(nvml, "gpu_names", lambda: ("NVIDIA T4",))


@pytest.mark.usefixtures("no_gpu")
def test_without_a_usable_gpu_the_reason_and_what_is_there_are_reported() -> None:
    found = diagnose(MODEL)
    assert found.gpus == ()
    assert (found.problem, found.driver, found.other_gpus) == ("The driver is too old.", "535.1", ("NVIDIA T4",))
    assert found.nvrtc == compiler_version()
    assert {"sm_75", "sm_90", "sm_120"} <= set(found.architectures)
    assert dict(found.packages)["numpy"]
    assert (found.cache_files, found.cache_nbytes) == (0, 0)
    assert not found.cache_folder.exists()


@pytest.mark.usefixtures("one_gpu")
def test_kernels_are_ready_when_they_lie_in_the_cache_and_fall_back_when_they_failed() -> None:
    recipes = recipes_of(MODEL, GPU, "fp16")
    found = diagnose(MODEL).gpus[0]
    assert [kernel.title for kernel in found.kernels] == [recipe.title for recipe in recipes]
    assert {kernel.state for kernel in found.kernels} == {"not compiled yet"}

    conv = next(place for place, recipe in enumerate(recipes) if recipe.stem == "modulated_conv")
    KernelCache().keep(kernel_key(recipes[0], "sm_80"), CompiledKernel(b"code", 32, 0, 0))
    record_of(GPU, "580.1").note({recipes[conv]: "off by 3", recipes[0]: ""})
    found = diagnose(MODEL).gpus[0]
    assert found.kernels[0].state == "ready"
    assert (found.kernels[conv].state, found.kernels[conv].reason) == ("falls back", "off by 3")
    assert found.kernels[-1].state == "not compiled yet"
    after = diagnose()
    assert after.cache_files == 2
    assert after.cache_nbytes > len(b"code")


LOG = """NVRTC_ERROR_COMPILATION, compilation log:

{stem}.cu(7): warning #177-D: variable "unused" was declared but never referenced

{stem}.cu(12): error: identifier "unheard_of" is undefined
    unheard_of();
    ^

{stem}.cu(99): error: identifier "also" is undefined
"""


@pytest.mark.usefixtures("one_gpu")
@pytest.mark.parametrize(("stem", "state"), [("modulated_conv", "falls back"), ("styles", "fails")])
def test_a_kernel_that_did_not_compile_is_named_with_the_compilers_first_error(
    stem: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = next(recipe for recipe in recipes_of(MODEL, GPU, "fp16") if recipe.stem == stem)

    def run(recipe: KernelRecipe, architecture: str) -> tuple[bytes, str, str]:
        return (b"", LOG.format(stem=stem), "refused") if recipe == broken else (b"code", "", "")

    monkeypatch.setattr(device, "_probe", lambda: Probe((GPU,), "", "580.1", "13.0"))
    monkeypatch.setattr(compiler, "_run_nvrtc", run)
    compile_kernels(MODEL)
    reason = f'it does not compile for sm_80: {stem}.cu(12): error: identifier "unheard_of" is undefined'
    found = {kernel.title: (kernel.state, kernel.reason) for kernel in diagnose(MODEL).gpus[0].kernels}
    assert found.pop(broken.title) == (state, reason)
    assert set(found.values()) == {("ready", "")}

    monkeypatch.setattr(compiler, "_run_nvrtc", lambda recipe, architecture: (b"code", "", ""))
    compile_kernels(MODEL)
    assert {kernel.state for kernel in diagnose(MODEL).gpus[0].kernels} == {"ready"}


@pytest.mark.usefixtures("one_gpu")
def test_looking_compiles_nothing_and_writes_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_run_nvrtc", None)
    diagnose(MODEL)
    assert list(cache.iterdir()) == []


@pytest.mark.usefixtures("one_gpu")
def test_the_tables_in_use_are_reported() -> None:
    before = diagnose(MODEL).gpus[0]
    assert sum(count for _, count in before.tiles) == 5
    assert before.tuned_entries == 0
    target = tiles.TileTable.load("sm_80", 108, 166912)
    shape = next(iter(conv_steps([build_synthesis_plan(MODEL.spec, "model", precision="fp16")])))
    path = tuned_path(tuned_folder(), GPU.name, "sm_80")
    save_entries(path, {shape: Tuned(target.choose(shape), 1.0)}, {})
    after = diagnose(MODEL).gpus[0]
    assert after.tuned_entries == 1
    assert dict(after.tiles)["tuned"] == 1


@pytest.mark.usefixtures("cache")
def test_convolutions_of_kernels_without_tiles_are_counted_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    hopper = replace(GPU, architecture="sm_90", compile_architecture="sm_90a", multiprocessors=132)
    monkeypatch.setattr(diagnosis, "probe", lambda: Probe((hopper,), "", "580.1", "13.0"))
    found = diagnose(make_stylegan2(resolution=32, channel_base=4096, channel_max=128)).gpus[0]
    counted = dict(found.tiles)
    assert counted.pop(diagnosis.WITHOUT_TILES) == 5, "4 x 4 to 16 x 16 are one kernel"
    assert sum(counted.values()) == 2


@pytest.mark.usefixtures("one_gpu")
def test_layers_that_no_fused_kernel_can_do_are_named_with_the_reason() -> None:
    found = diagnose(make_stylegan2(fir=(1,) * 23)).gpus[0]
    reason = "no fused kernel fits a block's shared memory with an FIR filter of 23 taps"
    assert found.plain_layers == tuple(
        PlainLayer(f"synthesis.b{side}.conv0", "plain_modulated_up_conv", reason) for side in (8, 16)
    )
    assert {kernel.state for kernel in found.kernels} == {"not compiled yet"}
    assert dict(found.tiles)["plain"] == 2


def test_a_plan_says_which_convolutions_multiply_e4m3() -> None:
    lines = fused_plan(make_stylegan2(resolution=64, channel_base=2048, channel_max=32), "fp8")
    products = {
        line.partition(":")[0]: line.rpartition(", multiplies ")[2] for line in lines if ", multiplies " in line
    }
    assert products["synthesis.b64.conv1"] == "e4m3"
    assert products["synthesis.b4.conv1"] == "fp16"
    assert any(line.startswith("synthesis.b64.conv0: ") and "+ e4m3 -> " in line for line in lines)


@pytest.mark.parametrize(
    ("here", "asked", "product", "first"),
    [
        ("sm_90a", "", "e4m3", "Plan for NVIDIA Fake, sm_90"),
        ("sm_89", "", "fp16", "Plan for NVIDIA Fake, sm_89"),
        ("sm_90a", "sm_89", "fp16", "Plan for sm_89"),
        ("", "sm_90", "e4m3", "Plan for sm_90"),
        ("", "", "fp16", "Plan for GPUs other than Hopper (sm_90), since this machine has no GPU to use"),
    ],
)
def test_a_plan_says_for_which_gpu_it_is_and_has_its_up_convolutions(
    here: str, asked: str, product: str, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus = (replace(GPU, architecture=here.rstrip("a"), compile_architecture=here),) if here else ()
    monkeypatch.setattr(diagnosis, "probe", lambda: Probe(gpus, "", "580.1", "13.0"))
    lines = fused_plan(make_stylegan2(resolution=64, channel_base=64 * 64, channel_max=128), "fp8", asked)
    assert lines[0] == first
    (line,) = (line for line in lines if line.startswith("synthesis.b64.conv0: "))
    assert line.endswith(f", multiplies {product}")


@pytest.mark.usefixtures("no_gpu")
def test_a_plan_of_fp32_says_that_its_kernels_are_plain() -> None:
    lines = fused_plan(MODEL, "fp32")
    assert lines[0].startswith("Plan of fp32, whose kernels are plain: ")
    assert lines[1:] == [line.replace("fp16", "fp32") for line in fused_plan(MODEL, "fp16")]
    schedule = lower(build_synthesis_plan(MODEL.spec, "model"), MODEL.weights, target_of(GPU, None))
    assert {launch.label for launch in schedule.launches if launch.layer == "synthesis.b8.conv1"} == {
        "plain_modulated_conv"
    }
    assert [launch.label for launch in schedule.launches if launch.layer == "synthesis.b8.torgb"] == [
        "plain_to_rgb",
        "to_rgb",
    ]


@pytest.mark.parametrize(("multiprocessors", "is_named"), [(132, True), (32, False)])
def test_a_plan_names_the_layers_of_the_persistent_kernel(
    multiprocessors: int, is_named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = replace(
        GPU, compile_architecture="sm_90a", multiprocessors=multiprocessors, shared_nbytes_per_block_optin=232448
    )
    monkeypatch.setattr(diagnosis, "probe", lambda: Probe((gpu,), "", "580.1", "13.0"))
    lines = fused_plan(make_stylegan2(resolution=32, channel_base=4096, channel_max=128), "fp16")
    named = f"{GPU.name}: one kernel from synthesis.styles to synthesis.b16.conv1"
    assert (lines[-1] == named) == is_named


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    ("architecture", "expected"), [("sm_86", f"fp16 in place of fp8: {e4m3.NEEDS}"), ("sm_89", "")]
)
def test_another_precision_is_named_with_the_reason(
    architecture: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = replace(GPU, architecture=architecture, compile_architecture=architecture)
    monkeypatch.setattr(diagnosis, "probe", lambda: Probe((gpu,), "", "580.1", "13.0"))
    found = diagnose(make_stylegan2(resolution=64, channel_base=2048, channel_max=32), "fp8").gpus[0]
    assert found.other_precision == expected
    assert found.plain_layers == ()


@pytest.mark.usefixtures("one_gpu")
def test_an_error_in_the_choice_of_a_tile_is_not_taken_for_a_plain_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[type[ValueError]] = [NoTileError]

    def explain(*arguments: object) -> NoReturn:
        raise raised[-1]("nothing fits")

    monkeypatch.setattr(FusedExtras, "explain", explain)
    assert [origin for origin, _ in diagnose(MODEL).gpus[0].tiles] == ["plain"]
    raised.append(ValueError)
    with pytest.raises(ValueError, match="nothing fits"):
        diagnose(MODEL)


@pytest.mark.usefixtures("one_gpu")
def test_without_a_model_kernels_are_not_requested() -> None:
    (found,) = diagnose().gpus
    assert (found.id, found.name, found.kernels, found.tiles) == ("cuda:0", "NVIDIA Fake", (), ())


@pytest.mark.gpu
def test_a_real_gpu_is_described(gpu: object, cache: Path) -> None:
    found = diagnose(MODEL)
    assert found.problem == ""
    assert found.driver
    assert all(one.kernels and one.memory_nbytes > 1 << 30 and not one.problem for one in found.gpus)
