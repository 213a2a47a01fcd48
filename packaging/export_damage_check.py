"""Kill exports in every format, and fill their disk: ``python packaging/export_damage_check.py [FORMAT ...]``.

A format's export runs once without trouble. Then it is killed with SIGKILL, in a process of its own: just before every
N-th of its file operations (``--every N``), and at random moments (``--random N``), which also hit an encoder of C in
the middle of a file. And it runs in a file system that is too small for it, of several sizes. After each of these, a
file under its final name has the bytes of the export without trouble; the same export, started again, goes on to the
end, with all bytes equal to that one's and nothing else in the folder.

Prints a line for each format, and exits with 1 if one of them failed. Needs a system that can fork; for the full disk
also root, which mounts a tmpfs.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from kill_check import PATIENCE_S, Case, in_child, killed, tell  # noqa: E402

from explorer_app.exporting.errors import ExportError  # noqa: E402
from explorer_app.exporting.formats.picture_format import FORMATS, PictureFormat  # noqa: E402
from explorer_app.exporting.job import SequenceJob  # noqa: E402
from explorer_app.exporting.keyframes import Keyframe  # noqa: E402
from explorer_app.exporting.sequence import SequenceSettings  # noqa: E402
from explorer_app.exporting.sheet import SheetLayout  # noqa: E402
from explorer_app.exporting.video.video_format import CODECS, VideoFormat  # noqa: E402
from explorer_app.session.session import ModelReference  # noqa: E402
from gpu_backend import Frame, FrameTimings, Latent, Point, Recipe, RenderRequest  # noqa: E402

SIDE_PX = 64
FRAMES = 7
FPS = Fraction(1)
"""Two frames a segment of a video, so that a video has several."""

MODEL = ModelReference("", "m", "ab" * 32)
SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 1.5)
"""Sizes of the small disk, as shares of what the finished export takes."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A format under test: pictures, a video or a sheet."""

    name: str
    form: PictureFormat = PictureFormat()
    video: VideoFormat | None = None
    sheet: SheetLayout | None = None

    def settings(self, folder: Path) -> SequenceSettings:
        """Return the settings of its export."""
        keys = tuple(Keyframe(((Recipe(Latent(Point(((seed, 1.0),)))), 1.0),)) for seed in (1, 2))
        return SequenceSettings(
            keys,
            folder,
            "walk",
            MODEL,
            "w-linear",
            FRAMES - 1,
            z_dim=8,
            form=self.form,
            video=self.video,
            sheet=self.sheet,
        )


KINDS = (
    *(Kind(name, PictureFormat(name)) for name in FORMATS),
    *(Kind(f"{name}-video" if name == "webp" else name, video=VideoFormat(name, fps=FPS)) for name in CODECS),
    Kind("sheet", sheet=SheetLayout(3)),
)


class TroubleError(Exception):
    """What was broken."""


def picture(request: RenderRequest) -> Frame:
    """Return a picture that no format makes very small, another one for another request."""
    chance = np.random.default_rng(zlib.crc32(repr(request).encode()))
    rough = chance.integers(0, 256, (SIDE_PX // 4, SIDE_PX // 4, 4), np.uint8)
    pixels = np.ascontiguousarray(rough.repeat(4, axis=0).repeat(4, axis=1))
    pixels[..., 3] = 255
    pixels.setflags(write=False)
    image = None
    if request.wants_image:
        image = (pixels[..., 2::-1].astype(np.float32) - 128) / np.float32(127.5)
        image.setflags(write=False)
    return Frame(request, pixels, FrameTimings(0.0, 0.0, 0.0), image=image)


def export(kind: Kind, folder: Path) -> None:
    """Export, or go on where an earlier run ended."""
    job = SequenceJob(kind.settings(folder), threads=2)
    job.start()
    while job.wait():
        request = job.next_request()
        if request is not None:
            job.deliver(picture(request))
    assert job.join(PATIENCE_S)
    if job.error is not None:
        raise job.error


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, by its path in there."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def check_finals(folder: Path, whole: dict[str, bytes]) -> None:
    """Raise TroubleError if a file under its final name is not as it should be; a manifest may say unfinished."""
    for name, data in contents(folder).items() if folder.exists() else ():
        if name in whole and not name.endswith(".json") and data != whole[name]:
            raise TroubleError(f"{name} is under its name, but not whole")


def check_goes_on(kind: Kind, folder: Path, whole: dict[str, bytes]) -> None:
    """Raise TroubleError unless the export goes on to the same files."""
    problem = in_child(functools.partial(export, kind, folder))[1]
    if problem:
        raise TroubleError(f"it does not go on: {problem}")
    found = contents(folder)
    for name in found.keys() ^ whole.keys():
        raise TroubleError(f"{name} is {'left' if name in found else 'missing'} at the end")
    for name, data in whole.items():
        if found[name] != data:
            raise TroubleError(f"{name} differs at the end")


def tried(kind: Kind, every: int, count: int, scratch: Path) -> tuple[int, int, int]:
    """Make all the trouble for a format; return how many kills and full disks there were. Raises TroubleError."""
    whole_folder, folder = scratch / "whole", scratch / "now"
    start_s = time.monotonic()
    problem = in_child(functools.partial(export, kind, whole_folder))[1]
    took_s = time.monotonic() - start_s
    if problem:
        raise TroubleError(problem)
    whole = contents(whole_folder)
    at_operations = 0
    case = Case(kind.name, lambda place, _: export(kind, place), lambda place, former, new: None)
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        was_killed, problem = in_child(functools.partial(killed, case, folder, every * at_operations))
        if not was_killed:
            break
        at_operations += 1
        check_finals(folder, whole)
        check_goes_on(kind, folder, whole)
    if problem:
        raise TroubleError(problem)
    for _ in range(count):
        shutil.rmtree(folder, ignore_errors=True)
        kill_after(random.uniform(0.0, took_s), functools.partial(export, kind, folder))
        check_finals(folder, whole)
        check_goes_on(kind, folder, whole)
    return at_operations, count, full_disks(kind, whole, scratch / "disk") if os.geteuid() == 0 else 0


def kill_after(seconds: float, task: Callable[[], None]) -> None:
    """Run a task in a child process, and kill it after some time unless it has ended."""
    child = os.fork()
    if child == 0:
        try:
            task()
        finally:
            os._exit(0)
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def full_disks(kind: Kind, whole: dict[str, bytes], mount: Path) -> int:
    """Export to disks that are too small, then make room; return how often the disk was full. Raises TroubleError."""
    page = os.sysconf("SC_PAGESIZE")
    pages = sum(-(-len(data) // page) for data in whole.values())
    found = 0
    for share in SHARES:
        with small_disk(mount, max(1, round(share * pages)) * page) as grow:
            folder = mount / "out"
            problem = in_child(functools.partial(fails_on_full_disk, kind, folder))[1]
            if problem:
                raise TroubleError(f"disk of {share:g}: {problem}")
            found += 1
            check_finals(folder, whole)
            grow()
            check_goes_on(kind, folder, whole)
    return found


def fails_on_full_disk(kind: Kind, folder: Path) -> None:
    """Export; expect that it ends well, or says that the disk is full."""
    try:
        export(kind, folder)
    except ExportError as error:
        if not error.sentence.startswith("The disk is full"):
            raise


@contextlib.contextmanager
def small_disk(mount: Path, nbytes: int) -> Iterator[Callable[[], None]]:
    """Mount a file system of a size; give a function that makes it large."""

    def run(*words: str) -> None:
        subprocess.run(words, check=True)

    mount.mkdir(exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", f"size={nbytes}", "none", str(mount))
    try:
        yield lambda: run("mount", "-o", "remount,size=64m", str(mount))
    finally:
        run("umount", str(mount))


def main(words: Sequence[str]) -> int:
    """Run the formats and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="kill before every N-th file operation")
    parser.add_argument("--random", type=int, default=10, metavar="N", help="kills at random moments; default: 10")
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help=", ".join(kind.name for kind in KINDS))
    options = parser.parse_args(words)
    has_failed = False
    tell(f"{'format':<14}{'kills at operations':>21}{'at random':>11}{'small disks':>13}  outcome")
    for kind in chosen(options.formats):
        with tempfile.TemporaryDirectory(prefix="damage-check-") as name:
            try:
                counts = tried(kind, max(1, options.every), options.random, Path(name))
                outcome = "same bytes each time, nothing left"
            except TroubleError as trouble:
                has_failed, counts, outcome = True, (0, 0, 0), str(trouble)
        tell(f"{kind.name:<14}{counts[0]:>21}{counts[1]:>11}{counts[2]:>13}  {outcome}")
    return int(has_failed)


def chosen(names: Sequence[str]) -> Iterator[Kind]:
    """Return the formats of these names; all for none."""
    return (kind for kind in KINDS if not names or kind.name in names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
