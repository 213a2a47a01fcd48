import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from explorer_app.exporting.formats.picture_format import PictureFormat
from explorer_app.farm.benchmark import DEVICE_BYTES, FarmBenchmark, run_farm_benchmark
from explorer_app.farm.job import FarmJob
from explorer_app.farm.local_farm import CrewMember
from tests.helpers.farm import PLACE, FakeFarm, small_model, station


class FakeLocalFarm:
    """A farm of stations in this process, as `LocalFarm`; a worker that is killed is gone."""

    address = PLACE

    def __init__(self, farm: FakeFarm, folder: Path) -> None:
        self._farm = farm
        self._folder = folder

    @contextlib.contextmanager
    def __call__(self, address: None, crew: list[CrewMember], *, say: Any) -> "Iterator[FakeLocalFarm]":
        for name in list(self._farm.names):
            self._farm.killed.add(name)
        for member in crew:
            self._farm.add(member.name, station(self._folder / member.name))
        yield self


def test_each_crew_is_measured_to_device_bytes_and_to_files_which_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts, model = small_model(tmp_path)
    farm = FakeFarm()
    monkeypatch.setattr("explorer_app.farm.benchmark.LocalFarm", FakeLocalFarm(farm, tmp_path))
    monkeypatch.setattr("explorer_app.farm.benchmark.connect", farm.connect)
    monkeypatch.setattr("explorer_app.farm.benchmark.FarmJob", partial(FarmJob, connect=farm.connect))
    monkeypatch.setattr("explorer_app.farm.benchmark._CALL_S", 0.02)
    monkeypatch.setattr("explorer_app.farm.benchmark._WARM_FRAMES", 8)
    monkeypatch.setattr("explorer_app.farm.foreman._EXCHANGE_S", 0.02)
    monkeypatch.setattr("explorer_app.farm.foreman._LOOK_S", 0.02)
    (tmp_path / "work").mkdir()
    crew = [CrewMember(f"cpu{number}", None, 1, 1) for number in range(2)]
    wanted = FarmBenchmark(
        facts, model, [crew[:1], crew], [PictureFormat("png")], 0.05, tmp_path / "work", kills_worker=False
    )
    said: list[str] = []
    results = run_farm_benchmark(wanted, said.append)
    assert [row[:2] for row in results.measured] == [(DEVICE_BYTES, 1), ("png", 1), (DEVICE_BYTES, 2), ("png", 2)]
    assert all(frames > 0 and seconds > 0 for _, _, frames, seconds in results.measured)
    assert len(results.devices) == 2
    assert list((tmp_path / "work").iterdir()) == []
    farm.close()
