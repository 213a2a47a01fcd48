"""Networks with other FIR filters than [1, 3, 3, 1]: the filter is read where it is applied, and pictures follow it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend import ModelFileError, UnsupportedModelError, read_model
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.schedule import Launch
from gpu_backend.cuda.tiles.table import TileTable
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from gpu_backend.reference.synthesis import run_synthesis
from tests.helpers.network_file import write_nvidia_pickle
from tests.helpers.networks import StyleGAN2Model, as_stylegan2, make_stylegan2
from tests.helpers.sentences import assert_one_sentence
from tests.helpers.tool_names import Tensors, official_tensors
from tests.helpers.torch_file import save_torch

FILTERS: dict[str, tuple[float, ...]] = {
    "2": (1, 1),
    "3": (1, 2, 1),
    "3, asymmetric": (1, 2, 5),
    "4, asymmetric": (1, 2, 3, 4),
    "6": (1, 5, 10, 10, 5, 1),
    "6, asymmetric": (1, 2, 4, 1, 1, 2),
    "8": (1, 2, 3, 4, 4, 3, 2, 1),
    "8, asymmetric": (1, 2, 3, 4, 4, 3, 2, 9),
}
ARCHITECTURES = ("skip", "resnet", "orig")
OTHER = np.full((3, 3), 1 / 9, np.float32)


def is_applied(name: str, architecture: str) -> bool:
    """Whether a network of more than 4 x 4 pixels filters with this buffer."""
    if ".conv1." in name or ".b4." in name:
        return False
    return ".conv0." in name or ".skip." in name or architecture == "skip"


def with_filters(made: StyleGAN2Model, change: dict[str, np.ndarray[Any, Any]]) -> Tensors:
    return {**official_tensors(made), **change}


def filter_names(made: StyleGAN2Model) -> list[str]:
    return [name for name in official_tensors(made) if name.endswith("resample_filter")]


def assert_renders_as(model: StyleGAN2Model, made: StyleGAN2Model) -> None:
    """The file's network on the CPU gives what the reference functions give of the network that it was made of."""
    ws = np.random.default_rng(0).standard_normal((1, made.spec.num_ws, made.spec.w_dim)).astype(np.float32)
    tensors = {name: torch.from_numpy(array) for name, array in made.weights.items()}
    expected = run_synthesis(made.spec, tensors, torch.from_numpy(ws), None).numpy().transpose(0, 2, 3, 1)
    executor = CpuExecutor(model.weights, threads=1)
    try:
        bound = executor.bind(build_synthesis_plan(model.spec, "model"))
        found = bound.run({"ws": ws}, outputs=("image",))["image"]
        assert np.abs(found - expected).max() <= 1e-5 * max(1.0, float(np.abs(expected).max()))
    finally:
        executor.close()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", FILTERS)
def test_a_pickle_renders_with_its_filter(name: str, architecture: Any, tmp_path: Path) -> None:
    made = make_stylegan2(fir=FILTERS[name], architecture=architecture)
    model = as_stylegan2(read_model(write_nvidia_pickle(tmp_path / "n.pkl", made)))
    assert model.spec.resample_filter == pytest.approx(made.spec.resample_filter, abs=1e-7)
    assert model.facts.warnings == ()
    assert_renders_as(model, made)


def without_pictures(launches: Sequence[Launch]) -> list[str]:
    return [launch.label for launch in launches if launch.op != "to_rgb"]


@pytest.mark.parametrize("precision", ["fp16", "fp32"])
@pytest.mark.parametrize("name", FILTERS)
def test_gpus_run_it_with_the_kernels_of_the_usual_filter(name: str, precision: Any) -> None:
    made = make_stylegan2(fir=FILTERS[name], architecture="resnet" if "asymmetric" in name else "skip")
    shared = 101376
    target = Target("sm_86", 82, shared, TileTable("sm_86", 82, {}, {}, shared))
    launches = lower(build_synthesis_plan(made.spec, "model", precision=precision), made.weights, target).launches
    assert {launch.reason for launch in launches} == {""}
    usual = lower(build_synthesis_plan(make_stylegan2().spec, "model", precision=precision), made.weights, target)
    if "asymmetric" not in name:
        # Pictures are added up beside an up-convolution for four taps alone; all else is the same.
        assert without_pictures(launches) == without_pictures(usual.launches)
        doubled = {layer for launch in launches for layer in (launch.layer, *launch.pictures) if "torgb" in layer}
        assert doubled == {step.layer for step in usual.plan.steps if step.op == "to_rgb"}


@pytest.mark.parametrize("count", [3, 4, 6, 8])
def test_a_filter_may_be_stored_along_one_axis(count: int, tmp_path: Path) -> None:
    made = make_stylegan2(fir=tuple(range(1, count + 1)))
    taps = np.array(made.spec.resample_filter, np.float32)
    tensors = with_filters(made, dict.fromkeys(filter_names(made), taps))
    model = as_stylegan2(read_model(save_torch(tensors, tmp_path / "n.pt")))
    assert model.spec.resample_filter == pytest.approx(made.spec.resample_filter, abs=1e-7)
    assert_renders_as(model, made)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_filters_that_nothing_applies_are_not_compared(architecture: Any, tmp_path: Path) -> None:
    made = make_stylegan2(fir=(1, 2, 5), architecture=architecture)
    for name in filter_names(made):
        path = save_torch(with_filters(made, {name: OTHER}), tmp_path / "n.pt")
        if is_applied(name, architecture):
            with pytest.raises(ModelFileError) as caught:
                read_model(path)
            assert_one_sentence(caught.value, "one resample filter everywhere")
        else:
            assert as_stylegan2(read_model(path)).spec.resample_filter == pytest.approx(
                made.spec.resample_filter, abs=1e-7
            )


@pytest.mark.parametrize("values", [np.full((257, 257), np.nan), np.zeros((0,)), np.ones((2, 3, 4))])
def test_the_content_of_an_unused_filter_is_ignored(values: np.ndarray[Any, Any], tmp_path: Path) -> None:
    made = make_stylegan2()
    tensors = with_filters(made, {"synthesis.b8.conv1.resample_filter": values.astype(np.float32)})
    assert read_model(save_torch(tensors, tmp_path / "n.pt")).spec == made.spec


def test_a_network_that_doubles_nothing_has_the_filter_of_its_block(tmp_path: Path) -> None:
    made = make_stylegan2(resolution=4, mapping_layers=1, fir=(1, 2, 5))
    for path in (write_nvidia_pickle(tmp_path / "n.pkl", made), save_torch(with_filters(made, {}), tmp_path / "n.pt")):
        assert as_stylegan2(read_model(path)).spec.resample_filter == pytest.approx(made.spec.resample_filter, abs=1e-7)


def test_a_filter_that_differs_along_rows_and_columns_is_reported(tmp_path: Path) -> None:
    made = make_stylegan2()
    other = np.outer((0.25, 0.5, 0.25), (0.5, 0.25, 0.25)).astype(np.float32)
    tensors = with_filters(made, dict.fromkeys(filter_names(made), other))
    with pytest.raises(UnsupportedModelError) as caught:
        read_model(save_torch(tensors, tmp_path / "n.pt"))
    assert_one_sentence(caught.value, "the same along rows and columns")
