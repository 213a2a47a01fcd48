"""``latentloom encode``: trains an encoder of a model, from which projections of pictures start."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import gpu_backend
from explorer_app.assets import bundled_model
from explorer_app.cli.arguments import Parser, UsageError
from explorer_app.cli.console import Console
from explorer_app.cli.network import read_network
from explorer_app.cli.path_text import without_home
from explorer_app.cli.renderer import chosen, start_renderer
from explorer_app.exporting.output_file import check_output_path
from explorer_app.exporting.progress import ProgressMeter
from gpu_backend import TORCH_DEVICES, whole_number

if TYPE_CHECKING:
    from gpu_backend import EncoderReport, EncoderTraining, RendersSamples

_EXAMPLES = """examples:
  latentloom encode --network hills.pkl
  latentloom encode --network hills.pkl --steps 20000 --resume

Ctrl-C keeps the best encoder so far; --resume continues with it. With
--overwrite, Ctrl-C keeps a former encoder that is better."""

_SAVED_EVERY_S = 60.0
"""A better encoder is written at most this often while the training runs."""
_STEPS = whole_number(1, 1_000_000)


def parser() -> Parser:
    """Return the parser of this command."""
    made = Parser("latentloom encode", "Train an encoder: a small network that estimates w from a picture.", _EXAMPLES)
    made.add_argument(
        "--network",
        type=Path,
        metavar="FILE",
        help="network file (default: the bundled model); the encoder is saved beside it as NAME.encoder.safetensors",
    )
    made.add_argument("--steps", type=_STEPS, default=3000, metavar="N", help="steps of the training (default: 3000)")
    made.add_argument(
        "--seed", type=whole_number(0), default=0, metavar="S", help="seed of samples and weights (default: 0)"
    )
    made.add_argument(
        "--device",
        choices=TORCH_DEVICES,
        default="auto",
        help="where samples are rendered and PyTorch computes: cpu, cuda, or auto: cuda if there is a GPU",
    )
    made.add_argument("--resume", action="store_true", help="continue training the existing encoder")
    made.add_argument("--overwrite", action="store_true", help="replace an existing encoder")
    return made


def run(words: Sequence[str], console: Console) -> int:
    """Train an encoder. After Ctrl-C the best one so far is written."""
    options = parser().parse_args(words)
    target = gpu_backend.encoder_path(options.network or bundled_model())
    check_output_path(target)
    if target.exists() and not (options.overwrite or options.resume):
        raise UsageError(f"{target} already exists; continue with --resume, or replace it with --overwrite.")
    model = read_network(options.network, console)
    facts = model.facts
    if options.resume and not target.exists():
        raise UsageError(f"There is no {target.name} to continue; leave --resume out to train one.")
    start = _stored(target, facts) if options.resume else None
    if start is not None and start.steps >= options.steps:
        raise UsageError(f"{target.name} was trained for {start.steps:,} steps already; ask for more with --steps.")
    former = None if options.resume or not target.exists() else _former(target, facts)
    settings = gpu_backend.EncoderSettings(options.steps, options.seed)
    training = gpu_backend.open_encoder_training(model, settings, start, options.device)
    renderer = start_renderer(model, chosen(options.device, "fp16"), console)
    try:
        train(training, cast("RendersSamples", renderer), lambda: _write(training, target, facts, former), console)
    except KeyboardInterrupt:
        if former is not None and not _replaces(training, former):
            found = "" if training.found is None else f", the new one {training.found.error:.3f}"
            console.conclude(
                f"{without_home(str(target))} stays as it was, which is better: error of w {former.error:.3f}{found}."
            )
        else:
            _conclude(training, target, facts, console, ", stopped early; --resume goes on")
        raise
    finally:
        renderer.close()
    _conclude(training, target, facts, console)
    return 0


def _stored(target: Path, facts: gpu_backend.ModelFacts) -> gpu_backend.EncoderFile:
    try:
        return gpu_backend.read_encoder(target, facts.model_id, facts.w_dim, facts.num_ws)
    except gpu_backend.ModelFileError as error:
        raise gpu_backend.ModelFileError(
            f"{error.sentence.removesuffix('.')}; to begin anew, give --overwrite instead of --resume.", error.details
        ) from error


def _former(target: Path, facts: gpu_backend.ModelFacts) -> gpu_backend.EncoderFile | None:
    """Return the encoder that is to be replaced; None if it is damaged."""
    try:
        return _stored(target, facts)
    except gpu_backend.ModelFileError:
        return None


def train(
    training: EncoderTraining,
    renderer: RendersSamples,
    write: Callable[[], None],
    console: Console,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run a training to its end; call `write` now and then for a better encoder, at the end, and after Ctrl-C."""
    saved_s = clock()
    begun, written = training.report.step, None
    meter = ProgressMeter(training.report.steps)
    try:
        while not training.report.is_done:
            report = training.step(renderer)
            now_s = clock()
            console.status(_progress_text(report, meter.update(report.step, begun, now_s).seconds_left))
            if training.found is not written and now_s - saved_s >= _SAVED_EVERY_S:
                write()
                written, saved_s = training.found, now_s
    finally:
        if training.found is not written:
            write()


def _replaces(training: EncoderTraining, former: gpu_backend.EncoderFile | None) -> bool:
    """Return whether there is a new encoder to write: before the end of the training, one better than the former."""
    found = training.found
    return found is not None and (former is None or training.report.is_done or found.error < former.error)


def _write(
    training: EncoderTraining, target: Path, facts: gpu_backend.ModelFacts, former: gpu_backend.EncoderFile | None
) -> None:
    if training.found is not None and _replaces(training, former):
        gpu_backend.write_encoder(training.found, target, facts.model_id, facts.w_dim, facts.num_ws)


def _conclude(
    training: EncoderTraining, target: Path, facts: gpu_backend.ModelFacts, console: Console, how: str = ""
) -> None:
    """Say what is kept."""
    found = training.found
    if found is None:
        console.conclude("The training was stopped before its first evaluation, so there is nothing to keep.")
    else:
        place = without_home(str(target))
        console.conclude(f"{place} reads pictures of {facts.name}: error of w {found.error:.3f}{how}.")


def _progress_text(report: EncoderReport, seconds_left: float | None) -> str:
    if report.probes:
        return f"Measuring scales of searches: {report.probes:,} of {report.most_probes:,} passes"
    text = f"Step {report.step:,} of {report.steps:,}, {report.pictures:,} pictures"
    if math.isfinite(report.error):
        text += f", error {report.error:.3f}"
    if seconds_left is not None and report.step < report.steps:
        text += f", {gpu_backend.duration(seconds_left)} left"
    return text
