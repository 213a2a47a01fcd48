from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gpu_backend.cuda.driver.probe import Gpu, Probe
from gpu_backend.cuda.tiles import table as tiles
from gpu_backend.cuda.tiles.table import Tuned, read_entries, save_entries, tuned_folder, tuned_path
from gpu_backend.cuda.tiles.target import target_of
from gpu_backend.cuda.tuning import tile_tuning as tuning
from gpu_backend.cuda.tuning.isolated_conv import IsolatedConvs
from gpu_backend.cuda.tuning.tile_search import TileProgress, TileTimer
from gpu_backend.cuda.tuning.tile_tuning import TileTuning
from gpu_backend.cuda.tuning.timings import read_timings, timings_path
from gpu_backend.errors import DeviceError
from gpu_backend.ops.kernels.conv_tile import ConvShape, ConvTile
from tests.helpers.fake_gpu import FAKE_GPU
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1

MODEL = make_stylegan2(resolution=8, channel_base=128, channel_max=12)
GPU = replace(FAKE_GPU, name="NVIDIA Fake", shared_nbytes_per_block_optin=166912, multiprocessors=108)
OTHER = ConvShape("conv", 512, 64, 64, 1)
KEPT = Tuned(ConvTile(8, 16, 64, 32, 3, 2, 2), 3.0)


class Compiled:
    """Kernels that were compiled beforehand."""

    is_done = True

    def wait(self) -> None:
        pass


class FewestThreads:
    """The fewer threads, the faster; everything is right."""

    def prepare(self, shape: ConvShape, tiles: Sequence[ConvTile]) -> Compiled:
        return Compiled()

    def time_us(self, shape: ConvShape, tile: ConvTile) -> float:
        return float(tile.threads + tile.stages + tile.split_k)

    def problem(self, shape: ConvShape, tile: ConvTile) -> str:
        return ""


@contextlib.contextmanager
def open_timer(gpu: Gpu, convs: IsolatedConvs) -> Iterator[TileTimer]:
    yield FewestThreads()


@pytest.fixture(autouse=True)
def found(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("gpu"):
        return
    gpus = (GPU, replace(GPU, index=1, name="NVIDIA Second"))
    monkeypatch.setattr(tuning, "probe", lambda: Probe(gpus, "", "580.1", "13.0"))


def test_in_fp8_there_is_nothing_to_tune_on_older_gpus_and_in_small_networks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large = make_stylegan2(resolution=64, channel_base=2048, channel_max=32)
    hopper = replace(GPU, architecture="sm_90", compile_architecture="sm_90a", shared_nbytes_per_block_optin=232448)
    with pytest.raises(DeviceError, match="nothing to tune in fp8"):
        TileTuning(large, precision="fp8", open_timer=open_timer)
    monkeypatch.setattr(tuning, "probe", lambda: Probe((hopper,), "", "580.1", "13.0"))
    with pytest.raises(DeviceError, match="nothing to tune in fp8"):
        TileTuning(MODEL, precision="fp8", open_timer=open_timer)
    ada = replace(GPU, architecture="sm_89", compile_architecture="sm_89", shared_nbytes_per_block_optin=101376)
    for gpu in (hopper, ada):
        monkeypatch.setattr(tuning, "probe", lambda gpu=gpu: Probe((gpu,), "", "580.1", "13.0"))
        shapes = TileTuning(large, precision="fp8", open_timer=open_timer).shapes
        assert shapes == (ConvShape("conv", 64, 32, 32, 1, "fp8"),)


def test_the_table_of_a_gpu_is_used_from_then_on() -> None:
    search = TileTuning(MODEL, open_timer=open_timer)
    found = list(search.findings())
    assert [finding.shape for finding in found] == list(search.shapes)
    assert search.path == tuned_path(tuned_folder(), "NVIDIA Fake", "sm_80")
    table = target_of(GPU, tuned_folder()).tiles
    for finding in found:
        assert finding.time_us <= finding.before_us
        assert table.explain(finding.shape) == (finding.tile, "tuned")
    again = list(TileTuning(MODEL, open_timer=open_timer).findings())
    assert [finding.before for finding in again] == [finding.tile for finding in found]
    about = json.loads(search.path.read_text("utf-8"))
    assert (about["gpu"], about["architecture"], about["driver"]) == ("NVIDIA Fake", "sm_80", "580.1")
    assert about["kernels"] in search.path.name
    kept = read_timings(timings_path(search.path))
    assert {shape: len(times) for shape, times in kept.items()} == {item.shape: item.tried for item in found}
    assert TileTuning(MODEL, open_timer=open_timer).quality.shapes == 2, "the third has one tile, which tells nothing"


def test_a_convolution_that_sums_moments_starts_from_the_tile_that_is_shipped_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = make_stylegan1(resolution=16, channel_base=256, channel_max=32)
    alone, with_moments = ConvTile(8, 8, 16, 32, 2, 4, 1), ConvTile(8, 8, 16, 32, 3, 4, 1)
    shape = ConvShape("conv", 8, 32, 32, 1)
    shipped = {"sm_80": {shape: Tuned(alone, 3.0)}, "sm_80-moments": {shape: Tuned(with_moments, 5.0)}}
    monkeypatch.setattr(tiles, "shipped_entries", lambda family: shipped[family])
    found = list(TileTuning(model, open_timer=open_timer).findings(budget_s=0.0))
    assert [finding.before for finding in found if finding.shape == shape] == [with_moments]


def test_tiles_of_other_networks_stay_in_the_table(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    save_entries(path, {OTHER: KEPT}, {})
    search = TileTuning(MODEL, "cuda:0", batches=(1, 2), table=path, open_timer=open_timer)
    list(search.findings())
    entries = read_entries(path)
    assert entries[OTHER] == KEPT
    assert len(entries) == 1 + len(search.shapes) == 7


def test_a_shape_that_no_tile_fits_is_not_searched(tmp_path: Path) -> None:
    model = make_stylegan2(fir=(1,) * 23)
    search = TileTuning(model, table=tmp_path / "table.json", open_timer=open_timer)
    assert [(shape.kind, shape.side) for shape in search.shapes] == [("conv", 4), ("conv", 8), ("conv", 16)]
    assert [finding.shape for finding in search.findings()] == list(search.shapes)


def test_stopping_early_keeps_what_was_found(tmp_path: Path) -> None:
    search = TileTuning(MODEL, table=tmp_path / "table.json", open_timer=open_timer)
    findings = search.findings()
    first = next(findings)
    findings.close()
    assert list(read_entries(search.path)) == [first.shape]


def test_a_search_that_is_stopped_within_a_shape_keeps_its_timings(tmp_path: Path) -> None:
    search = TileTuning(MODEL, table=tmp_path / "table.json", open_timer=open_timer)
    with contextlib.closing(search.steps()) as steps:
        for step in steps:
            if isinstance(step, TileProgress) and step.tried == 3:
                break
    assert isinstance(step, TileProgress)
    assert step.shape not in read_entries(search.path)
    assert len(read_timings(timings_path(search.path))[step.shape]) == 3


def test_shapes_are_predicted_from_those_before_them_in_the_same_search(tmp_path: Path) -> None:
    search = TileTuning(MODEL, batches=(1, 2), table=tmp_path / "table.json", open_timer=open_timer)
    known = []
    for finding in search.findings():
        assert 1 <= finding.trials <= finding.tried
        known.append(search.quality.timings)
    assert known == sorted(known)
    assert known[-1] > known[0]


def test_a_table_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    search = TileTuning(MODEL, table=tmp_path / "file" / "table.json", open_timer=open_timer)
    with pytest.raises(DeviceError, match=r"^The table table\.json was not written: .*\.$"):
        list(search.findings())


def test_the_gpu_is_chosen_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert TileTuning(MODEL, "cuda:1", open_timer=open_timer).gpu.name == "NVIDIA Second"
    with pytest.raises(DeviceError, match=r"must be one of cuda:0 \(NVIDIA Fake\), cuda:1"):
        TileTuning(MODEL, "cuda:7", open_timer=open_timer)
    monkeypatch.setattr(tuning, "probe", lambda: Probe((), "There is no driver.", "", ""))
    with pytest.raises(DeviceError, match=r"^There is no driver – tuning needs a GPU\.$"):
        TileTuning(MODEL, open_timer=open_timer)


@pytest.mark.gpu
@pytest.mark.parametrize("batch", [1, 3])
def test_tuning_on_a_gpu_finds_right_tiles(gpu: Gpu, batch: int, tmp_path: Path) -> None:
    model = make_stylegan2(resolution=64, channel_base=4096, channel_max=72)
    search = TileTuning(model, batches=(batch,), table=tmp_path / "table.json")
    found = list(search.findings(budget_s=20))
    assert [finding.shape for finding in found] == list(search.shapes)
    wrong = [(item.shape, refused) for item in found for refused in item.refused if refused.is_wrong]
    assert wrong == []
    slower = [(item.shape, item.before_us, item.time_us) for item in found if item.time_us > item.before_us]
    assert slower == []
    assert len(read_entries(search.path)) == len(found)
