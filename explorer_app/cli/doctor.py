"""``latentloom doctor``: what the program finds on this machine, as plain text to paste into a report."""

from __future__ import annotations

import os
import platform
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from explorer_app.app import Places
from explorer_app.assets import bundled_model
from explorer_app.cli.arguments import Parser, UsageError
from explorer_app.cli.console import Console
from explorer_app.cli.path_text import without_home
from explorer_app.logs import log_path
from explorer_app.rendering.device_choice import PRECISIONS
from explorer_app.version import __version__
from gpu_backend import Diagnosis, GpuDiagnosis, LoomError, Model, diagnose, fused_plan, process_nbytes, read_model

_LABEL_WIDTH = 15
_FP8_ARCHITECTURES = ("sm_89", "sm_90", "sm_120")


def parser() -> Parser:
    """Return the parser of this command."""
    made = Parser(
        "latentloom doctor",
        "Report what the program finds on this machine, as plain text without personal paths, for bug reports.",
    )
    made.add_argument(
        "model", nargs="?", type=Path, metavar="MODEL", help="whose kernels to look for (default: bundled)"
    )
    made.add_argument(
        "--precision", choices=PRECISIONS, default="fp16", help="whose kernels or plan to show (default: fp16)"
    )
    made.add_argument(
        "--plan",
        action="store_true",
        help="print which steps of the model are fused into one kernel on a GPU, instead of the report",
    )
    made.add_argument(
        "--architecture",
        choices=_FP8_ARCHITECTURES,
        default="",
        help="GPU that a --plan of --precision fp8 is for: Ada, Hopper or RTX Blackwell (default: the first of this "
        "machine)",
    )
    return made


def run(words: Sequence[str], console: Console) -> int:
    """Print the report to stdout."""
    options = parser().parse_args(words)
    if options.architecture and not (options.plan and options.precision == "fp8"):
        raise UsageError("Plans of fp8 alone depend on --architecture; give --plan and --precision fp8 with it.")
    path: Path | None = options.model
    model: Model | None
    try:
        model = read_model(bundled_model() if path is None else path)
        named = f"{'bundled' if path is None else 'given'}, {model.facts.resolution} x {model.facts.resolution}"
    except LoomError as error:
        if path is not None:
            raise
        model, named = None, error.sentence
        if options.plan:
            raise
    if options.plan and model is not None:
        console.results(fused_plan(model, options.precision, options.architecture))
        return 0
    console.status("Looking for GPUs ...")
    lines = [*_program(), ("Model", [named]), *report(diagnose(model, options.precision)), *_folders()]
    console.end_progress()
    console.results(without_home(line) for line in _laid_out(lines))
    return 0


def report(found: Diagnosis) -> Iterator[tuple[str, list[str]]]:
    """Yield (label, value) pairs."""
    memory = f", {_gigabytes(found.memory_nbytes)} of memory" if found.memory_nbytes else ""
    yield "Processor", [f"{found.processor}, {found.processors} threads{memory}", *filter(None, [found.cpu_problem])]
    yield "Packages", [f"{name} {version or 'not installed'}" for name, version in found.packages]
    nvrtc = f"{found.nvrtc}: {', '.join(found.architectures)}" if found.nvrtc else "not found"
    yield "NVRTC", [nvrtc]
    yield "Driver", [found.driver or ("unknown" if found.gpus else "none")]
    if not found.gpus:
        yield "GPU", ["none to use", found.problem, *(f"There is: {name}" for name in found.other_gpus)]
    for gpu in found.gpus:
        yield gpu.id, list(_gpu_lines(gpu))
    yield (
        "Cache",
        [f"{found.cache_folder}", f"{found.cache_files} files, {found.cache_nbytes / 1e6:.1f} MB"],
    )


def _gpu_lines(gpu: GpuDiagnosis) -> Iterator[str]:
    yield f"{gpu.name}, {gpu.architecture}, kernels for {gpu.compile_architecture}"
    yield (
        f"{_gigabytes(gpu.memory_nbytes)}, {gpu.multiprocessors} multiprocessors, L2 {gpu.l2_nbytes / 1e6:.0f} MB, "
        f"{gpu.shared_nbytes_per_block / 1024:.0f} KiB shared a block"
    )
    tables = f"tuned {gpu.tuned_entries}, shipped {gpu.shipped_entries} entries"
    origins = ", ".join(f"{count} {origin}" for origin, count in gpu.tiles)
    yield f"tile tables: {tables}" + (f"; this model's convolutions: {origins}" if origins else "")
    if gpu.other_precision:
        yield gpu.other_precision
    if gpu.problem:
        yield f"kernels: {gpu.problem}"
    elif gpu.kernels:
        yield from _kernel_lines(gpu)


def _kernel_lines(gpu: GpuDiagnosis) -> Iterator[str]:
    ready = [kernel.stem for kernel in gpu.kernels if kernel.state == "ready"]
    yield f"kernels ready: {len(ready)} of {len(gpu.kernels)}" + (f": {_counted(ready)}" if ready else "")
    waiting = [kernel.stem for kernel in gpu.kernels if kernel.state == "not compiled yet"]
    if waiting:
        yield f"not compiled yet: {_counted(waiting)}; that is done when the GPU first renders this model"
    for state, words in (("falls back", "falls back"), ("fails", "fails, without a fallback")):
        titles: dict[tuple[str, str], list[str]] = {}
        for kernel in gpu.kernels:
            if kernel.state == state:
                titles.setdefault((kernel.stem, kernel.reason), []).append(kernel.title)
        for (stem, reason), same in titles.items():
            yield f"{words}: {same[0]}" + (f" and {len(same) - 1} more {stem}" if len(same) > 1 else "")
            yield f"  {reason}"
    for layer in gpu.plain_layers:
        yield f"falls back: {layer.layer}, {layer.stem}"
        yield f"  {layer.reason}"


def _counted(stems: Sequence[str]) -> str:
    """Return distinct names; repeated ones with their count."""
    return ", ".join(f"{count} {stem}" if count > 1 else stem for stem, count in Counter(stems).items())


def _program() -> Iterator[tuple[str, list[str]]]:
    yield "Latent Loom", [__version__]
    yield "System", [platform.platform()]
    yield "Python", [f"{platform.python_version()} ({platform.python_implementation()}), {platform.machine()}"]
    yield "Memory", [f"{process_nbytes() / 1e6:,.0f} MB of RAM held by this command"]
    yield "Qt", [f"{_qt_version()}, platform {qt_platform()}"]


def _folders() -> Iterator[tuple[str, list[str]]]:
    """Yield where this user's files are."""
    places = Places.of_this_system()
    yield "Log file", [str(log_path())]
    yield "Preferences", [str(places.settings)]
    yield "State folder", [str(places.state)]


def qt_platform() -> str:
    """Return the platform plugin that Qt would use, as far as known without starting Qt."""
    chosen = os.environ.get("QT_QPA_PLATFORM", "").partition(":")[0]
    if chosen:
        return f"{chosen} (QT_QPA_PLATFORM)"
    if sys.platform in ("win32", "cygwin"):
        return "windows"
    if sys.platform == "darwin":
        return "cocoa"
    if os.environ.get("WAYLAND_DISPLAY"):
        return "wayland"
    return "xcb" if os.environ.get("DISPLAY") else "none: there is no display"


def _qt_version() -> str:
    for package in ("PySide6-Essentials", "PySide6"):
        try:
            return f"PySide6 {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            continue
    return "PySide6 not installed"


def _gigabytes(nbytes: int) -> str:
    return f"{nbytes / 2**30:.1f} GiB"


def _laid_out(lines: Sequence[tuple[str, list[str]]]) -> Iterator[str]:
    for label, values in lines:
        for number, value in enumerate(values):
            yield (label if number == 0 else "").ljust(_LABEL_WIDTH) + value
