"""What the training of an encoder is asked for and what it reports, without torch; and the training, opened with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu_backend.errors import DeviceError
from gpu_backend.model import Model
from gpu_backend.model.encoder_file import EncoderFile
from gpu_backend.torch_import import torch_needed

if TYPE_CHECKING:
    from gpu_backend.training.encoder import EncoderTraining

MAX_STEPS = 1_000_000


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """How long to train: steps, and the seed of samples, masks and weights."""

    steps: int = 3000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class EncoderReport:
    """State of a training.

    Attributes
    ----------
    step, steps
        Finished steps of all.
    pictures
        Rendered pictures.
    error
        Of w on pictures that are not trained on: 1 is that of the mean of w. NaN until it is measured.
    share
        Progress of this run, 0..1; the first pictures are a tenth of it.
    is_done
        Nothing is left to do.
    """

    step: int
    steps: int
    pictures: int
    error: float
    share: float
    is_done: bool = False


def open_encoder_training(
    model: Model, settings: EncoderSettings, start: EncoderFile | None = None, device: str = "auto"
) -> EncoderTraining:
    """Return a training. Takes seconds if torch was not imported yet.

    Parameters
    ----------
    settings, start
        As for `EncoderTraining`.
    device
        ``auto`` is torch's CUDA where it has a GPU, else the processor.

    Raises
    ------
    TorchError
        If torch is missing.
    DeviceError
        If ``cuda`` is requested, but torch finds no GPU.
    RequestError
        If the settings are out of range.
    """
    with torch_needed("Training an encoder"):
        import torch

        from gpu_backend.training.encoder import EncoderTraining
    has_cuda = torch.cuda.is_available()
    if device == "cuda" and not has_cuda:
        raise DeviceError("Training on a GPU needs a torch with CUDA and an NVIDIA GPU, but there is none; use cpu.")
    return EncoderTraining(model, settings, start, "cuda" if has_cuda and device != "cpu" else "cpu")
