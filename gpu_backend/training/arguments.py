"""The options of `latentloom train`; importing this loads no torch, so that --help is quick."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from gpu_backend.argument_types import number_above_0, number_from_0, whole_number
from gpu_backend.errors import RequestError
from gpu_backend.training.options import TrainOptions
from gpu_backend.training.request import TrainRequest

_USUAL = TrainOptions()
_COUNT = whole_number(1)
_PRECISIONS = ("auto", "fp32", "bf16", "fp16")
_OTHERS = ("out", "resume", "device")


def add_train_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to a parser; `train_request_of` reads the parsed result.

    The result has only the options that were given, so that a resumed training keeps its other options.
    """
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="FOLDER", help="where checkpoints, snapshots, sheets and the log go")
    add(
        "--resume",
        nargs="?",
        type=Path,
        const=True,
        metavar="CHECKPOINT",
        help="continue from a checkpoint, or from the newest in --out; options that are not given stay as they were",
    )
    add("--device", default="auto", metavar="NAME", help="auto, cpu, cuda or cuda:N (default: auto)")

    group = parser.add_argument_group("pictures")
    _add(group, "--data", str, "FOLDER|ZIP|world", "pictures to learn from; world: landscapes drawn on the fly")
    _add(group, "--resolution", _COUNT, "N", "side of the pictures, a power of two; others are cropped and scaled")
    _flag(group, "--mirror", "also show the pictures mirrored (x-flips)")
    _add(group, "--seed", whole_number(0), "N", "seed of the weights, the latents and the order of pictures")

    group = parser.add_argument_group("network")
    _add(group, "--channel-base", _COUNT, "N", "channels at resolution R are N / R, up to --channel-max")
    _add(group, "--channel-max", _COUNT, "N", "the most channels at any resolution")
    _add(group, "--z-dim", _COUNT, "N", "width of the sampled latent z")
    _add(group, "--w-dim", _COUNT, "N", "width of the mapped latent w")
    _add(group, "--mapping-layers", _COUNT, "N", "depth of the mapping network")

    group = parser.add_argument_group("training")
    _add(group, "--kimg", number_above_0, "N", "train until so many thousand real pictures were shown")
    _add(group, "--batch", _COUNT, "N", "pictures a step, over all GPUs")
    _add(group, "--accumulate", _COUNT, "N", "compute each GPU's share of the batch in so many parts, to save memory")
    _add(group, "--learning-rate", number_above_0, "X", "learning rate of both networks")
    _add(group, "--gamma", number_from_0, "X", "R1 regularisation weight", "0.0002 resolution^2 / batch")
    _add(group, "--r1-every", _COUNT, "N", "steps between two R1 penalties (lazy regularisation)")
    _add(group, "--path-weight", number_from_0, "X", "path-length regularisation weight, 0 for none")
    _add(group, "--path-every", _COUNT, "N", "steps between two path-length penalties")
    _add(group, "--mixing", number_from_0, "P", "style mixing probability")
    _add(group, "--ema-kimg", number_from_0, "N", "half-life of the moving average of the generator", "batch * 10 / 32")
    _add(
        group, "--ema-ramp", number_from_0, "X", "longest half-life as a share of the training so far, 0 for no ramp-up"
    )

    group = parser.add_argument_group("adaptive discriminator augmentation (ADA), for small sets of pictures")
    _flag(group, "--augment", "change what the discriminator sees, as much as it overfits")
    _add(group, "--augment-target", number_from_0, "X", "mean sign of real logits to hold")
    _add(group, "--augment-kimg", number_above_0, "N", "thousand pictures in which its chance may go from 0 to 1")

    group = parser.add_argument_group("speed and reports")
    _add(group, "--precision", _PRECISIONS, None, "what layers compute in", "bf16 on a GPU, fp32 on the processor")
    _flag(group, "--graphs", "replay each kind of update as a CUDA graph, on a GPU and not in fp16")
    _flag(group, "--compile", "compile both networks with torch.compile: a minute first, faster steps then")
    _add(group, "--log-kimg", number_above_0, "N", "thousand pictures between two lines of the log")
    _add(
        group, "--snapshot-kimg", number_above_0, "N", "thousand pictures between two checkpoints, snapshots and sheets"
    )


def train_request_of(parsed: argparse.Namespace) -> TrainRequest:
    """Return the request of a parsed command line.

    Raises
    ------
    RequestError
        If an option is out of range.
    """
    given = {name: value for name, value in vars(parsed).items() if name not in _OTHERS}
    if parsed.resume is None:  # otherwise the checkpoint has the defaults
        TrainOptions(**given).checked()
    if not _is_device(parsed.device):
        raise RequestError(f"A device must be auto, cpu, cuda or cuda:1, not {parsed.device[:40]!r}.")
    resume = parsed.out if parsed.resume is True else parsed.resume
    return TrainRequest(parsed.out, given, resume, parsed.device)


def _add(
    group: argparse._ArgumentGroup, flag: str, kind: Any, metavar: str | None, text: str, usual: str | None = None
) -> None:
    """Add an option; `kind` converts its value, or lists the allowed values."""
    name = flag[2:].replace("-", "_")
    default = getattr(_USUAL, name)
    said = usual or (f"{default:g}" if isinstance(default, float) else str(default))
    values: dict[str, Any] = {"choices": kind} if isinstance(kind, tuple) else {"type": kind}
    group.add_argument(flag, default=argparse.SUPPRESS, metavar=metavar, help=f"{text} (default: {said})", **values)


def _flag(group: argparse._ArgumentGroup, flag: str, text: str) -> None:
    """Add a switch that can also be turned off when a training is resumed."""
    usual = "yes" if getattr(_USUAL, flag[2:].replace("-", "_")) else "no"
    group.add_argument(
        flag, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=f"{text} (default: {usual})"
    )


def _is_device(name: str) -> bool:
    kind, colon, number = name.partition(":")
    return (kind in ("auto", "cpu", "cuda") and not colon) or (kind == "cuda" and number.isascii() and number.isdigit())
