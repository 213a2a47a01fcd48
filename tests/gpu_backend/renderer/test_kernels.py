"""Which kernels a model needs on a GPU, and how many are ready. No GPU, no driver; NVRTC compiles one of them."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import gpu_backend.device as device
from gpu_backend import CancelledError, DeviceError, Model, compile_kernels, kernels_ready, prepare_device
from gpu_backend.cuda import executor
from gpu_backend.cuda.compiling import compilation
from gpu_backend.cuda.driver.probe import Gpu, Probe
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.tiles.target import target_of
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.kept_second import key_that_keeps
from gpu_backend.plan.plan import PlanEdits, PlanKey, Precision
from gpu_backend.recipe import RowRange
from gpu_backend.renderer import kernels
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import make_stylegan3

GPU = Gpu(0, "NVIDIA H200", "sm_90", "sm_90a", 150 << 30, 132, 227 << 10, 50 << 20, "GPU-0")
MODEL = make_stylegan2(resolution=32)


@pytest.fixture
def _a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_probe", lambda: Probe((GPU,), "", "580.95.05", "13.0"))


def test_on_the_cpu_there_is_nothing_to_compile() -> None:
    told: list[tuple[int, int]] = []
    compile_kernels(MODEL, "cpu", progress=lambda *numbers: told.append(numbers))
    assert told == []
    assert kernels_ready(MODEL, "cpu") == (0, 0)


@pytest.mark.usefixtures("_a_gpu")
def test_a_gpu_that_is_prepared_is_started_and_one_that_does_not_start_is_not_reported_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[Gpu] = []

    def start_gpu(gpu: Gpu) -> None:
        started.append(gpu)
        raise DeviceError("The GPU is full.")

    monkeypatch.setattr(executor, "start_gpu", start_gpu)
    for name in ("cpu", "auto", "cuda:0", "cuda:7"):
        prepare_device(name)
    assert started == [GPU, GPU]


def test_kernels_for_both_networks_are_named_each_once_and_plain_ones_too() -> None:
    recipes = kernels.recipes_of(MODEL, GPU, "fp16")
    assert len(set(recipes)) == len(recipes)
    stems = {recipe.stem for recipe in recipes}
    assert {"styles", "fully_connected", "modulated_conv", "plain_modulated_conv", "to_rgb"} <= stems


def test_kernels_of_the_trial_in_fp16_are_among_those_of_the_networks_that_are_tried() -> None:
    for model, is_tried in ((make_stylegan1(), True), (make_stylegan2(conv_clamp=256.0), False)):
        in_fp32 = set(kernels.recipes_of(model, GPU, "fp32"))
        assert (in_fp32 <= set(kernels.recipes_of(model, GPU, "fp16"))) == is_tried
        assert not set(kernels.recipes_of(model, GPU, "fp16")) <= in_fp32


@pytest.mark.parametrize("precision", ["fp16", "tf32", "bf16x3", "fp32"])
@pytest.mark.parametrize("model", [MODEL, make_stylegan3(), make_stylegan1()], ids=["StyleGAN2", "3", "1"])
def test_whatever_layer_is_shown_its_kernels_are_among_those_of_layers(model: Model, precision: Precision) -> None:
    pictures, layers = (set(name(model, GPU, precision)) for name in (kernels.recipes_of, kernels.layer_recipes_of))
    later = {recipe.stem for recipe in layers - pictures}
    assert later >= {"tap_statistics", "tap_display", "bend_channels", "shift_styles", "blend_samples"}
    target = target_of(GPU, None)
    for layer in model.facts.layers:
        plan = build_plan(model.spec, PlanKey(model.facts.model_id, "synthesis", 1, 0, precision, layer.name))
        for everything_plain in (False, True):
            assert set(lower(plan, model.weights, target, everything_plain=everything_plain).recipes) <= layers
    edits = PlanEdits(blends=(RowRange(),))
    key = PlanKey(model.facts.model_id, "synthesis", 1, model.spec.resolution, precision, edits=edits)
    key = key_that_keeps(key, partial(build_plan, model.spec))
    assert key.edits.keeps_second
    blended = lower(build_plan(model.spec, key), model.weights, target).recipes
    assert set(blended) <= layers


@pytest.mark.usefixtures("_a_gpu")
def test_kernels_of_layers_are_compiled_on_one_thread(monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> None:
    one = KernelRecipe("tap_display", (("HALF", "0"),))
    calls: list[dict[str, object]] = []
    compile_all = compilation.compile_kernels

    def watched(recipes: Any, architecture: str, **options: Any) -> compilation.Compilation:
        calls.append(options)
        return compile_all(recipes, architecture, **options)

    monkeypatch.setattr(compilation, "compile_kernels", watched)
    monkeypatch.setattr(kernels, "layer_recipes_of", lambda *_: (one,))
    compile_kernels(MODEL, of_layers=True)
    assert [options["threads"] for options in calls] == [1]
    assert compilation.ready_count([one], GPU.compile_architecture) == 1


def test_single_precision_needs_no_fused_kernels() -> None:
    stems = {recipe.stem for recipe in kernels.recipes_of(MODEL, GPU, "fp32")}
    assert "plain_modulated_conv" in stems
    assert not {"modulated_conv", "modulated_up_conv"} & stems


@pytest.mark.usefixtures("_a_gpu")
def test_compiled_kernels_are_ready_and_cached(monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> None:
    one = KernelRecipe(
        "normalize_2nd_moment",
        next(
            recipe.defines for recipe in kernels.recipes_of(MODEL, GPU, "fp32") if recipe.stem == "normalize_2nd_moment"
        ),
    )
    monkeypatch.setattr(kernels, "recipes_of", lambda *_: (one,))
    assert kernels_ready(MODEL) == (0, 1)
    told: list[tuple[int, int]] = []
    compile_kernels(MODEL, progress=lambda *numbers: told.append(numbers))
    assert told == [(0, 1), (1, 1)]
    assert kernels_ready(MODEL, "cuda:0") == (1, 1)
    assert list(empty_cache.rglob("*.kernel"))


@pytest.mark.usefixtures("_a_gpu")
def test_compiling_can_be_cancelled() -> None:
    with pytest.raises(CancelledError):
        compile_kernels(MODEL, should_cancel=lambda: True)


def test_the_kernels_of_a_stylegan3_are_named_fused_and_plain() -> None:
    stems = {recipe.stem for recipe in kernels.recipes_of(make_stylegan3(), GPU, "fp16")}
    assert {"fourier_features", "filtered_lrelu", "plain_filtered_lrelu", "modulated_conv", "to_rgb"} <= stems
    assert "modulated_up_conv" not in stems


def test_the_kernels_of_a_stylegan1_are_named_fused_and_plain() -> None:
    stems = {
        recipe.stem for recipe in kernels.recipes_of(make_stylegan1(resolution=128, channel_base=1024), GPU, "fp16")
    }
    assert {"adain_input", "adain", "plain_adain", "plain_adain_moments", "modulated_up_conv", "to_rgb"} <= stems
