"""Measure exports from a renderer to files: ``python packaging/export_benchmark.py [CASE ...] [options]``.

For each case a sequence of seeds is written as `latentloom render` writes it: rendered, encoded, written aside, flushed
and moved into place. The first row of a case renders the same frames without writing any; with ``--rounds`` both
alternate and the fastest of each counts, so that "of rendering alone" compares them on a machine that does other work
too. Prints frames a second, the
CPU time a frame of all processes, of this process and of its rendering thread, and MB; ``--csv`` writes the table to a
file. "own ms" bounds the rate on any number of cores, since threads of one process share Python's lock: it is measured
over the second half of the frames, when the encoders' processes have started. ``--by-thread`` shows it for each thread.

``--fake`` renders nothing: a renderer that answers at once shows what the pipeline itself costs, on any machine.
``--device cuda`` and ``cpu`` choose what renders. Neither Qt nor torch is needed on a GPU.

Cases: png256, jpeg256, png1024, jpeg1024, h264, av1, preview; h264small and webp256 are videos of 256 x 256. "preview"
measures previews a second without and with an export beside them, and needs PySide6, but no event loop.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import explorer_app  # noqa: E402, F401 - before NumPy, whose library of linear algebra it keeps to one thread

# isort: split
import numpy as np  # noqa: E402

from explorer_app.assets import bundled_model  # noqa: E402
from explorer_app.exporting.formats.picture_format import PictureFormat  # noqa: E402
from explorer_app.exporting.job import SequenceJob  # noqa: E402
from explorer_app.exporting.keyframes import Keyframe  # noqa: E402
from explorer_app.exporting.sequence import SequenceSettings  # noqa: E402
from explorer_app.exporting.video.video_format import VideoFormat  # noqa: E402
from explorer_app.exporting.writers import usual_threads  # noqa: E402
from explorer_app.rendering.pipeline import Pipeline  # noqa: E402
from explorer_app.rendering.renderer_like import PROCESSOR_ID  # noqa: E402
from explorer_app.session.session import ModelReference  # noqa: E402
from gpu_backend import (  # noqa: E402
    Frame,
    FrameTimings,
    Latent,
    Point,
    Recipe,
    Renderer,
    RenderRequest,
    Truncation,
    open_renderer,
    random_model,
    read_model,
    shape_of,
)

LARGE = "ffhq1024"
SEEDS = 9
"""Keyframes of the sequence; the pictures of a fake renderer repeat after as many frames."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is exported.

    Attributes
    ----------
    side
        256 for the bundled model, 1024 for a random network of the shape of FFHQ.
    must
        Frames a second that the project asks of 16 cores and one H100; 0 for none.
    """

    side: int
    form: PictureFormat = PictureFormat()
    video: VideoFormat | None = None
    must: float = 0.0


CASES = {
    "png256": Case(256, PictureFormat("png"), must=2500),
    "jpeg256": Case(256, PictureFormat("jpeg")),
    "png1024": Case(1024, PictureFormat("png"), must=500),
    "jpeg1024": Case(1024, PictureFormat("jpeg", 95), must=1000),
    "h264small": Case(256, video=VideoFormat("h264")),
    "webp256": Case(256, video=VideoFormat("webp")),
    "h264": Case(1024, video=VideoFormat("h264"), must=120),
    "av1": Case(1024, video=VideoFormat("av1")),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table."""

    case: str
    what: str
    frames: int
    seconds: float
    cpu_ms: float
    own_ms: float
    render_thread_ms: float
    nbytes: int
    must: float
    by_thread: tuple[tuple[str, float], ...] = ()

    @property
    def per_second(self) -> float:
        """Frames a second."""
        return self.frames / self.seconds


@dataclass(frozen=True, slots=True)
class FakePending:
    """A frame that is there already."""

    frame: Frame

    def wait(self) -> Frame:
        """Return the frame."""
        return self.frame


class FakeRenderer:
    """Answers at once, with pictures that compress like those of a network if it is given some."""

    def __init__(self, pictures: Sequence[np.ndarray[Any, Any]]) -> None:
        self._pictures = pictures
        self._count = 0
        self.device = type("FakeDevice", (), {"id": "fake", "name": "no device"})()

    def submit(self, request: RenderRequest) -> FakePending:
        """Return a frame under way."""
        return FakePending(self.render(request))

    def render(self, request: RenderRequest, **_: object) -> Frame:
        """Return the next of the pictures."""
        pixels = self._pictures[self._count % len(self._pictures)]
        self._count += 1
        return Frame(request, pixels, FrameTimings(0.0, 0.0, 0.0))


def scenes(side: int) -> list[np.ndarray[Any, Any]]:
    """Return pictures of the bundled model, scaled to a side."""
    from explorer_app.exporting.formats.resize import resized

    path = bundled_model()
    assert path is not None
    with open_renderer(path) as renderer:
        made = []
        for seed in range(SEEDS):
            request = RenderRequest(renderer.facts.model_id, ((recipe(seed), 1.0),))
            pixels = resized(renderer.render(request).pixels, (side, side))
            pixels.setflags(write=False)
            made.append(pixels)
        return made


def recipe(seed: int) -> Recipe:
    """Return a seed's recipe."""
    return Recipe(Latent(Point(((seed, 1.0),))), Truncation(0.7))


def settings_of(case: Case, folder: Path, model: ModelReference, z_dim: int, frames: int) -> SequenceSettings:
    """Return a sequence of about as many frames through some seeds."""
    keys = tuple(Keyframe(((recipe(seed), 1.0),)) for seed in range(SEEDS))
    steps = max(1, (frames - 1) // (SEEDS - 1))
    return SequenceSettings(
        keys, folder, "walk", model, "w-linear", steps, z_dim=z_dim, form=case.form, video=case.video
    )


def exported(case: Case, settings: SequenceSettings, renderer: Any, threads: int, name: str) -> Row:
    """Export a sequence, and measure it."""
    job = SequenceJob(settings, threads=threads)
    pipeline = Pipeline(job.next_request)
    total = settings.frame_count
    cpu, began, own = _cpu_s(), time.perf_counter(), time.thread_time()
    job.start()
    delivered = halfway = 0
    before: dict[str, float] = {}
    after: dict[str, float] = {}
    while pipeline.has_in_flight or job.wait():
        frame = pipeline.next_frame(renderer)
        if frame is not None:
            job.deliver(frame)
            delivered += 1
            if delivered == total // 2:
                before, halfway = _seconds_by_thread(), job.done
            elif delivered == total:
                after, second_half = _seconds_by_thread(), max(1, job.done - halfway)
    own_s = time.thread_time() - own
    job.join()
    seconds, cpu_s = time.perf_counter() - began, _cpu_s() - cpu
    if job.error is not None:
        raise job.error
    nbytes = sum(path.stat().st_size for path in settings.folder.iterdir())
    by_thread = tuple((what, 1e3 * (spent - before.get(what, 0.0)) / second_half) for what, spent in after.items())
    return Row(
        name,
        "export",
        total,
        seconds,
        1e3 * cpu_s / total,
        sum(ms for _, ms in by_thread),
        1e3 * own_s / total,
        nbytes,
        case.must,
        by_thread,
    )


def rendered(case: Case, settings: SequenceSettings, renderer: Any, name: str) -> Row:
    """Render the same frames and write none."""
    from explorer_app.exporting.sequence import plan_sequence

    plan = plan_sequence(settings)
    requests = iter([plan.request(index) for index in range(len(plan))])
    pipeline = Pipeline(lambda: next(requests, None))
    cpu, began = _cpu_s(), time.perf_counter()
    while pipeline.next_frame(renderer) is not None:
        pass
    seconds, cpu_s = time.perf_counter() - began, _cpu_s() - cpu
    total = len(plan)
    cpu_ms = 1e3 * cpu_s / total
    return Row(name, "render only", total, seconds, cpu_ms, cpu_ms, cpu_ms, 0, 0.0)


def _seconds_by_thread() -> dict[str, float]:
    """Return the CPU time of the threads that run now; those of one kind, whose names end in a number, are summed."""
    spent: dict[str, float] = {}
    for thread in threading.enumerate():
        if thread.ident is not None:
            kind = thread.name.rstrip("0123456789")
            clock = time.pthread_getcpuclockid(thread.ident)
            spent[kind] = spent.get(kind, 0.0) + time.clock_gettime(clock)
    return spent


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime + children.ru_utime + children.ru_stime


def preview_beside_an_export(model: Any, device: str, side: int, seconds: float, folder: Path) -> list[Row]:
    """Return previews a second as fast as they come, without and with an export of PNG files."""
    from explorer_app.rendering.backend import Backend
    from explorer_app.rendering.device_choice import DeviceChoice
    from explorer_app.rendering.render_events import ExportEnded, ModelOpened, ModelRefused
    from explorer_app.rendering.render_thread import RenderThread

    thread = RenderThread(Backend(), DeviceChoice(device))
    shown, ended, opened = [0], [False], [False]

    def submit() -> None:
        shown[0] += 1
        thread.submit(RenderRequest(model.facts.model_id, ((recipe(shown[0] % 4096), 1.0),)), None)

    def listen() -> None:
        if thread.take_frame() is not None:
            submit()
        for event in thread.take_events():
            if isinstance(event, ModelRefused):
                raise SystemExit(str(event.error))
            opened[0] = opened[0] or isinstance(event, ModelOpened)
            ended[0] = ended[0] or isinstance(event, ExportEnded)

    def until(is_so: Callable[[], bool]) -> None:
        while not is_so():
            listen()
            time.sleep(0.0002)

    thread.start()
    thread.open(model)
    until(lambda: opened[0])
    rows = []
    for what in ("preview alone", "preview beside an export"):
        job = None
        if what.endswith("export"):
            wanted = settings_of(Case(side), folder, ModelReference("", "m", model.facts.model_id), 512, 90_000)
            job = SequenceJob(wanted)
            thread.export(job)
            until(lambda job=job: job.delivered > 4)  # type: ignore[misc]
        submit()
        until(lambda: shown[0] > 20)
        before, began, cpu = shown[0], time.perf_counter(), _cpu_s()
        until(lambda began=began: time.perf_counter() - began > seconds)  # type: ignore[misc]
        count, took = shown[0] - before, time.perf_counter() - began
        cpu_ms = 1e3 * (_cpu_s() - cpu) / max(1, count)
        rows.append(Row(f"preview{side}", what, count, took, cpu_ms, 0.0, 0.0, 0, 60.0))
        if job is not None:
            made = job.delivered
            thread.cancel_export(job)
            until(lambda: ended[0])
            job.join()
            rows.append(Row(f"preview{side}", "the export meanwhile", made, took, 0.0, 0.0, 0.0, 0, 0.0))
        shown[0] = 0
    thread.close()
    return rows


def main(words: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help=f"{', '.join(CASES)}, preview; default: pictures, h264"
    )
    parser.add_argument("--device", default="auto", help="cpu, cuda or cuda:1; default: as found")
    parser.add_argument("--fake", action="store_true", help="render nothing")
    parser.add_argument("--frames", type=int, default=0, help="frames of a case; default: 4000 at 256, 1000 at 1024")
    parser.add_argument("--seconds", type=float, default=5.0, help="time of a measurement of previews")
    parser.add_argument("--threads", type=int, default=usual_threads(), help="encoders; default: all cores but one")
    parser.add_argument("--rounds", type=int, default=1, help="the fastest of so many runs counts; default: 1")
    parser.add_argument(
        "--folder", type=Path, help="where files go and are deleted again; default: the temporary folder"
    )
    parser.add_argument("--by-thread", action="store_true", help="show the CPU time of each thread of this process")
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args(words)
    names = options.cases or ["png256", "jpeg256", "png1024", "jpeg1024", "h264"]
    unknown = [name for name in names if name not in CASES and name != "preview"]
    if unknown:
        parser.error(f"unknown case {unknown[0]}")
    rows: list[Row] = []
    tell(f"{options.threads} encoder threads, {len(os.sched_getaffinity(0))} cores")
    tell(
        f"{'case':<12}{'what':<26}{'frames':>8}{'seconds':>9}{'a second':>10}{'CPU ms':>8}{'own ms':>8}"
        f"{'render ms':>11}{'MB':>9}{'must':>7}"
    )
    with tempfile.TemporaryDirectory(prefix="export-benchmark-", dir=options.folder) as scratch:
        for side in (256, 1024):
            here = [name for name in names if name in CASES and CASES[name].side == side]
            if here or ("preview" in names and side == 1024):
                for row in measured(here, side, options, Path(scratch), with_preview="preview" in names):
                    rows.append(row)
                    show(row)
                    for what, ms in row.by_thread if options.by_thread else ():
                        tell(f"  {what:<36}{ms:.3f} ms a frame")
    if options.csv is not None:
        with options.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(
                ("case", "what", "frames", "seconds", "per_second", "cpu_ms", "own_ms", "render_thread_ms", "nbytes")
            )
            for row in rows:
                measures = (row.seconds, row.per_second, row.cpu_ms, row.own_ms, row.render_thread_ms)
                writer.writerow((row.case, row.what, row.frames, *(f"{item:.3f}" for item in measures), row.nbytes))
    return 0


def measured(names: Sequence[str], side: int, options: argparse.Namespace, scratch: Path, *, with_preview: bool) -> Any:
    """Yield the rows of the cases of a size."""
    path = bundled_model()
    assert path is not None
    frames = options.frames or (4000 if side == 256 else 1000)
    if options.fake:
        model, renderer, z_dim = ModelReference("", "m", "ab" * 32), FakeRenderer(scenes(side)), 512
    else:
        read: Any = read_model(path) if side == 256 else random_model(shape_of(LARGE), seed=1)
        model, renderer, z_dim = ModelReference("", "m", read.facts.model_id), None, 512
        if names:
            renderer = Renderer(read, options.device)
            z_dim = renderer.facts.z_dim
            tell(f"{renderer.device.name}, {side} x {side}")
            for seed in range(2 if renderer.device.id == PROCESSOR_ID else 20):
                renderer.render(RenderRequest(read.facts.model_id, ((recipe(seed), 1.0),)))
    for name in names:
        case = CASES[name]
        folder = scratch / name

        alone: list[Row] = []
        written: list[Row] = []
        for _ in range(options.rounds):
            wanted = settings_of(case, folder, model, z_dim, frames)
            if not options.fake:
                alone.append(rendered(case, wanted, renderer, name))
            written.append(exported(case, wanted, renderer, options.threads, name))
            shutil.rmtree(folder, ignore_errors=True)
        for rows in filter(None, (alone, written)):
            yield min(rows, key=lambda row: row.seconds)
        if alone:
            ratios = [
                min(getattr(row, what) for row in written) / min(getattr(row, what) for row in alone)
                for what in ("seconds", "cpu_ms")
            ]
            tell(f"{name}: the export takes {ratios[0]:.3f} of rendering alone, {ratios[1]:.3f} of its CPU time")
    if renderer is not None and not options.fake:
        renderer.close()
    if with_preview and side == 1024 and not options.fake:
        yield from preview_beside_an_export(read, options.device, 1024, options.seconds, scratch / "preview")


def tell(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def show(row: Row) -> None:
    """Print a row."""
    must = f"{row.must:.0f}" if row.must else ""
    tell(
        f"{row.case:<12}{row.what:<26}{row.frames:>8}{row.seconds:>9.2f}{row.per_second:>10.1f}{row.cpu_ms:>8.3f}{row.own_ms:>8.3f}"
        f"{row.render_thread_ms:>11.3f}{row.nbytes / 1e6:>9.1f}{must:>7}"
    )


if __name__ == "__main__":
    threading.current_thread().name = "rendering"
    sys.exit(main(sys.argv[1:]))
