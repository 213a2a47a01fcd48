from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpu_backend import diagnosis
from gpu_backend.cuda import nvml, tiles
from gpu_backend.cuda.compiler import CompiledKernel, compiler_version
from gpu_backend.cuda.kernel_cache import KernelCache, kernel_key
from gpu_backend.cuda.lone_conv import conv_steps
from gpu_backend.cuda.probe import Probe
from gpu_backend.cuda.self_check import record_of
from gpu_backend.cuda.tiles import Tuned, save_entries, tuned_folder, tuned_path
from gpu_backend.diagnosis import diagnose
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from gpu_backend.renderer.kernels import recipes_of
from tests.helpers.fake_gpu import FAKE_GPU
from tests.helpers.networks import make_stylegan2

GPU = replace(FAKE_GPU, name="NVIDIA Fake", shared_nbytes_per_block_optin=166912, multiprocessors=108)
MODEL = make_stylegan2(resolution=16, channel_base=128, channel_max=12)


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
def test_without_a_usable_gpu_the_reason_and_what_is_there_are_told() -> None:
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

    KernelCache().keep(kernel_key(recipes[0], "sm_80"), CompiledKernel(b"code", 32, 0, 0))
    record_of(GPU, "580.1").note({recipes[1]: "off by 3", recipes[2]: ""})
    found = diagnose(MODEL).gpus[0]
    assert found.kernels[0].state == "ready"
    assert (found.kernels[1].state, found.kernels[1].reason) == ("falls back", "off by 3")
    assert found.kernels[2].state == "not compiled yet"
    after = diagnose()
    assert after.cache_files == 2
    assert after.cache_nbytes > len(b"code")


@pytest.mark.usefixtures("one_gpu")
def test_the_tables_in_use_are_told() -> None:
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


@pytest.mark.usefixtures("one_gpu")
def test_layers_that_no_fused_kernel_can_do_are_named_with_the_reason() -> None:
    found = diagnose(make_stylegan2(fir=(1,) * 23)).gpus[0]
    fallen = [(kernel.title, kernel.reason) for kernel in found.kernels if kernel.state == "falls back"]
    reason = "no fused kernel fits a block's shared memory with an FIR filter of 23 taps"
    assert fallen == [(f"synthesis.b{side}.conv0, plain_modulated_up_conv", reason) for side in (8, 16)]
    assert dict(found.tiles)["plain"] == 2


@pytest.mark.usefixtures("one_gpu")
def test_without_a_model_kernels_are_not_asked_for() -> None:
    (found,) = diagnose().gpus
    assert (found.id, found.name, found.kernels, found.tiles) == ("cuda:0", "NVIDIA Fake", (), ())


@pytest.mark.gpu
def test_a_real_gpu_is_described(gpu: object, cache: Path) -> None:
    found = diagnose(MODEL)
    assert found.problem == ""
    assert found.driver
    assert all(one.kernels and one.memory_nbytes > 1 << 30 and not one.problem for one in found.gpus)
