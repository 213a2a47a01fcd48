"""Measure what an export to a slow disk costs the preview: ``python packaging/slow_disk_benchmark.py [--seconds 1]``.

Renders drafts of the bundled model as fast as the render thread can, in short turns without and with an export beside
it whose disk takes ``--seconds`` a file. Each turn with the export is compared with the turns just before and after it,
and the median of these shares is printed, so that other load on the machine cancels. Also prints how long cancelling
the export and closing the render thread take, at worst.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median

from PySide6.QtCore import QCoreApplication, Qt

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import explorer_app  # noqa: E402, F401 - before NumPy, whose library of linear algebra it keeps to one thread

# isort: split
import gpu_backend  # noqa: E402
from explorer_app.assets import bundled_model  # noqa: E402
from explorer_app.exporting.job import SequenceJob  # noqa: E402
from explorer_app.exporting.keyframes import Keyframe  # noqa: E402
from explorer_app.exporting.sequence import SequenceSettings  # noqa: E402
from explorer_app.rendering.backend import Backend  # noqa: E402
from explorer_app.rendering.device_choice import DeviceChoice  # noqa: E402
from explorer_app.rendering.render_events import ExportEnded, ModelOpened, ModelRefused, RenderEvent  # noqa: E402
from explorer_app.rendering.render_thread import RenderThread  # noqa: E402
from explorer_app.session.session import ModelReference  # noqa: E402
from gpu_backend import Disk, Latent, Model, Point, Recipe, RenderRequest  # noqa: E402

_PATIENCE_S = 120.0


class SlowDisk(Disk):
    """Takes its time for every file."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def write(self, path: Path, data: bytes, *, flushed: bool = True) -> None:
        """Write after a wait."""
        time.sleep(self._seconds)
        super().write(path, data, flushed=flushed)


class Bench:
    """A render thread, and a preview that asks for the next frame as soon as one is there."""

    def __init__(self, qt: QCoreApplication, model: Model, device: str, side_px: int) -> None:
        self._qt = qt
        self._model = model
        self._side_px = side_px
        self._calls = 0
        self._is_asking = False
        self.frames = 0
        self.events: list[RenderEvent] = []
        self.thread = RenderThread(Backend(), DeviceChoice(device))
        self.thread.frame_ready.connect(self._take_frame, Qt.ConnectionType.QueuedConnection)
        self.thread.events_ready.connect(self._take_events, Qt.ConnectionType.QueuedConnection)
        self.thread.start()
        self.thread.open(model)
        self.until(lambda: any(isinstance(event, ModelOpened | ModelRefused) for event in self.events))

    def submit(self) -> None:
        """Ask for the next preview."""
        self._calls += 1
        recipe = Recipe(Latent(Point(((self._calls % 1000, 1.0),))))
        request = RenderRequest(self._model.facts.model_id, ((recipe, 1.0),), resolution=self._side_px)
        self.thread.submit(request, time.monotonic())

    def rate(self, seconds: float) -> float:
        """Return how many previews come in a second."""
        self._is_asking = True
        self.submit()
        start, before = time.monotonic(), self.frames
        self.until(lambda: time.monotonic() - start >= seconds)
        rate = (self.frames - before) / (time.monotonic() - start)
        self._is_asking = False
        return rate

    def has_ended(self, job: SequenceJob) -> bool:
        """Return whether the end of a job was told."""
        return any(isinstance(event, ExportEnded) and event.job is job for event in self.events)

    def until(self, is_so: Callable[[], bool]) -> None:
        """Let events pass until something is so."""
        end = time.monotonic() + _PATIENCE_S
        while not is_so():
            if time.monotonic() > end:
                raise SystemExit("The benchmark waited in vain; run it again.")
            self._qt.processEvents()
            time.sleep(0.0002)

    def _take_frame(self) -> None:
        if self.thread.take_frame() is not None:
            self.frames += 1
            if self._is_asking:
                self.submit()

    def _take_events(self) -> None:
        self.events += self.thread.take_events()


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure what an export to a slow disk costs the preview.")
    parser.add_argument("--seconds", type=float, default=1.0, help="what a file takes (default: 1)")
    parser.add_argument("--device", default="cpu", help="auto, cpu, cuda (default: cpu)")
    parser.add_argument("--draft", type=int, default=32, metavar="PX", help="side of the previews (default: 32)")
    parser.add_argument("--turn", type=float, default=2.0, metavar="S", help="seconds a turn (default: 2)")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each kind (default: 7)")
    options = parser.parse_args()
    qt = QCoreApplication(sys.argv[:1])
    model = gpu_backend.read_model(bundled_model())
    bench = Bench(qt, model, options.device, options.draft)
    facts = model.facts
    reference = ModelReference("", facts.name, facts.model_id)
    keys = tuple(Keyframe(((Recipe(Latent(Point(((seed, 1.0),)))), 1.0),)) for seed in (1, 2))
    bench.rate(1.0)
    without: list[float] = []
    beside: list[float] = []
    cancelling: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        jobs = []
        for number in range(options.rounds):
            without.append(bench.rate(options.turn))
            settings = SequenceSettings(
                keys, Path(folder), f"walk{number}", reference, "w-linear", 500, z_dim=facts.z_dim
            )
            job = SequenceJob(settings, disk=SlowDisk(options.seconds))
            jobs.append(job)
            bench.thread.export(job)
            bench.until(lambda job=job: job.delivered > 3)  # from here on the disk sets the pace
            beside.append(bench.rate(options.turn))
            start = time.monotonic()
            bench.thread.cancel_export(job)
            bench.until(lambda job=job: bench.has_ended(job))
            cancelling.append(time.monotonic() - start)
            job.join()
        without.append(bench.rate(options.turn))
        job = SequenceJob(
            SequenceSettings(keys, Path(folder), "last", reference, "w-linear", 500, z_dim=facts.z_dim),
            disk=SlowDisk(options.seconds),
        )
        bench.thread.export(job)
        bench.until(lambda: job.delivered > 3)
        start = time.monotonic()
        bench.thread.close()
        closing = time.monotonic() - start
        job.join()
    shares = [2.0 * rate / (before + after) for rate, (before, after) in zip(beside, pairwise(without), strict=True)]
    lines = (
        f"previews of {options.draft} px a second, median of {options.rounds} turns of {options.turn:g} s",
        f"  without an export       {median(without):7.1f}   ({_list(without)})",
        f"  export, {options.seconds:4g} s a file  {median(beside):7.1f}   ({_list(beside)})",
        f"  share                   {median(shares):7.1%}   (from {min(shares):.1%} to {max(shares):.1%})",
        f"cancelling, at worst {max(cancelling) * 1000:.0f} ms; closing {closing * 1000:.0f} ms",
    )
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _list(rates: list[float]) -> str:
    return ", ".join(f"{rate:.1f}" for rate in rates)


if __name__ == "__main__":
    sys.exit(main())
