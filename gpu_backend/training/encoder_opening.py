"""The training of an encoder, opened where torch may be missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_backend.errors import DeviceError
from gpu_backend.model import Model
from gpu_backend.model.encoder_file import EncoderFile
from gpu_backend.torch_import import torch_needed
from gpu_backend.training.encoder_settings import EncoderSettings

if TYPE_CHECKING:
    from gpu_backend.training.encoder import EncoderTraining


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
