"""Rendering a sequence on a farm in the foreground, or on several GPUs of this machine."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from explorer_app.cli.arguments import UsageError, count, gpu_list, priority
from explorer_app.cli.console import Console
from explorer_app.cli.path_text import folder_text
from explorer_app.cli.sequence import taken, written_text
from explorer_app.exporting.errors import TakenError
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.farm.address import FarmAddress, farm_address
from explorer_app.farm.errors import FarmError, require_farm_extra
from explorer_app.farm.farm_model import farm_model_of
from explorer_app.farm.job import FarmJob
from explorer_app.farm.local_farm import LocalFarm, crew_of_this_machine
from explorer_app.rendering.device_choice import precision_of
from gpu_backend import Model

_LOOK_S = 0.5
_PATIENCE_S = 180.0
"""For the first worker of a private farm: it may have to compile kernels of torch before it answers."""
_ALL: tuple[int, ...] = (-1,)
"""``--gpus all`` among the options, where None means that the option was left out."""


def add_farm_options(made: argparse.ArgumentParser) -> None:
    """Add the options that choose where a sequence is rendered."""
    farm = made.add_argument_group("on many GPUs, with the extra `farm`")
    farm.add_argument(
        "--gpus",
        type=lambda text: _ALL if (gpus := gpu_list(text)) is None else gpus,
        metavar="LIST",
        help="render a sequence on several GPUs of this machine, such as 0,1,3 or all",
    )
    farm.add_argument("--cpu-workers", type=count, metavar="N", help="also use N processes on its CPU")
    farm.add_argument("--farm", metavar="HOST[:PORT]", help="render a sequence on a farm; see latentloom farm --help")
    farm.add_argument("--keys", type=Path, metavar="FILE", help="keys of the farm")
    farm.add_argument(
        "--priority",
        type=priority,
        metavar="N",
        help="frames of the farm's jobs with a higher one come first (default: 0)",
    )
    farm.add_argument(
        "--spot-check",
        type=count,
        metavar="N",
        help="at the end, render N frames on two workers each and compare them (default: 2)",
    )


def is_for_farm(options: argparse.Namespace) -> bool:
    """Return whether the options request more than one device."""
    return options.farm is not None or options.gpus is not None or options.cpu_workers is not None


def check_farm_options(options: argparse.Namespace) -> None:
    """Refuse what does not go together. Raises LoomError."""
    if not is_for_farm(options):
        for name in ("keys", "priority", "spot_check"):
            if getattr(options, name) is not None:
                raise UsageError(f"--{name.replace('_', '-')} belongs to a farm; give --farm or --gpus too.")
        return
    if options.farm is not None and (options.gpus is not None or options.cpu_workers is not None):
        raise UsageError("--farm names a farm that has its workers, so --gpus and --cpu-workers cannot be given too.")
    if options.farm is None and options.keys is not None:
        raise UsageError("--keys are those of a --farm; GPUs of this machine need no keys.")
    if options.farm is None and options.priority is not None:
        raise UsageError(
            "--priority is for a --farm, which several jobs share; on the GPUs of this machine there is only this job."
        )
    if options.device != "auto":
        raise UsageError("The farm's workers have their devices, so --device cannot be given.")
    if options.jobs is not None:
        raise UsageError("The farm's workers know how many pictures to encode at a time, so leave --jobs out.")
    require_farm_extra()


def render_on_farm(settings: SequenceSettings, model: Model, options: argparse.Namespace, console: Console) -> None:
    """Render the missing frames of a sequence on the farm that the options name.

    Raises
    ------
    LoomError
        If the farm cannot be used, the folder holds something else, a frame cannot be rendered or written, or another
        program cancelled the job.
    KeyboardInterrupt
        After Ctrl-C; the frames so far are whole, and the same command continues.
    """
    is_private = options.farm is None
    job = FarmJob(
        settings,
        farm_model_of(model),
        _farm_of(options, console),
        precision=precision_of(options.precision),
        priority=options.priority or 0,
        spot_checks=2 if options.spot_check is None else options.spot_check,
        workers_patience_s=_PATIENCE_S if is_private else None,
    )
    job.start()
    said = ""
    try:
        while not job.wait(_LOOK_S):
            for sentence in job.take_messages():
                console.warn(sentence)
            if job.sentence != said and job.done < job.total:
                said = job.sentence
                console.progress(said)
    except BaseException as error:
        job.stop(cancelled=isinstance(error, KeyboardInterrupt))
        job.join()
        if job.done and not isinstance(error, TakenError):
            console.note(
                f"{job.done} of {job.total} frames are in {folder_text(settings.folder)}; "
                "run the same command to continue."
            )
        if isinstance(error, TakenError):
            raise taken(error, settings) from error
        raise
    if job.done < job.total:
        raise FarmError(
            f"The job was cancelled on the farm: {job.done} of {job.total} frames are in "
            f"{folder_text(settings.folder)}; run the same command to continue."
        )
    _conclude(job, console)


def _conclude(job: FarmJob, console: Console) -> None:
    settings = job.settings
    for sentence in job.take_messages():
        console.warn(sentence)
    for worker in job.workers:
        if worker.frames:
            console.conclude(f"{worker.name}: {worker.frames} frames; {worker.device}.")
    check = job.spot_check
    if check is not None and check.is_fine:
        console.conclude(check.sentence)
    elif check is not None:
        console.warn(check.sentence)
    console.conclude(written_text(settings, job.total))


def _farm_of(options: argparse.Namespace, console: Console) -> Callable[[], AbstractContextManager[FarmAddress]]:
    """Return what opens the farm: one that runs already, or a private one."""
    if options.farm is not None:
        address = farm_address(options.farm, options.keys)
        return lambda: contextlib.nullcontext(address)
    gpus = () if options.gpus is None else None if options.gpus == _ALL else options.gpus
    crew = crew_of_this_machine(gpus, options.cpu_workers or 0)

    @contextlib.contextmanager
    def private() -> Iterator[FarmAddress]:
        with LocalFarm(None, crew, say=console.note) as farm:
            yield farm.address

    return private
