"""A farm of real processes on the CPU: a worker and then the scheduler are killed in the middle."""

import contextlib
import os
import signal
import threading
from pathlib import Path

import pytest

from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.manifest import read_manifest
from explorer_app.farm.farm_model import farm_model_of
from explorer_app.farm.job import FarmJob
from explorer_app.farm.local_farm import CrewMember, LocalFarm
from gpu_backend import Renderer, read_model, write_safetensors
from tests.helpers.farm import farm_settings
from tests.helpers.networks import make_stylegan2

_PATIENCE_S = 90.0


@pytest.mark.long
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_no_frame_is_lost_or_made_twice_when_a_worker_and_then_the_scheduler_are_killed(tmp_path: Path) -> None:
    write_safetensors(make_stylegan2(seed=1), tmp_path / "small.safetensors")
    model = read_model(tmp_path / "small.safetensors")
    settings = farm_settings(tmp_path / "farm", model.facts, frames=150)
    crew = [CrewMember(f"cpu{number}", None, 1, 1) for number in range(2)]
    moved = threading.Event()
    with LocalFarm(None, crew) as farm:
        job = FarmJob(settings, farm_model_of(model), lambda: contextlib.nullcontext(farm.address), spot_checks=0)
        job.start(moved.set)

        def wait_for(frames: int) -> None:
            while job.done < frames and job.error is None:
                assert moved.wait(_PATIENCE_S)
                moved.clear()

        wait_for(20)
        os.kill(farm.processes["cpu1"], signal.SIGKILL)
        wait_for(70)
        os.kill(farm.processes["scheduler"], signal.SIGKILL)
        assert job.wait(_PATIENCE_S)
        assert farm.starts["cpu1"] == 2
    one = farm_settings(tmp_path / "one", model.facts, frames=150)
    with Renderer(model, "cpu") as renderer:
        export = SequenceJob(one)
        export.start()
        while export.wait():
            request = export.next_request()
            assert request is not None
            export.deliver(renderer.render(request))
        assert export.join(_PATIENCE_S)
    pictures = {path.name: path.read_bytes() for path in one.folder.glob("*.png")}
    assert {path.name: path.read_bytes() for path in settings.folder.iterdir() if path.suffix != ".json"} == pictures
    manifest = read_manifest(settings.manifest_path)
    assert (manifest.state, manifest.frames_written) == ("complete", settings.frame_count)
    assert sorted(frame for made in manifest.made_on for frame in made.frames) == list(range(settings.frame_count))
