"""The differentiable network of a model, its encoder and its features, opened where torch may be missing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_backend.cuda.driver.probe import probe
from gpu_backend.errors import DeviceError, ModelFileError
from gpu_backend.limits import is_regular_file
from gpu_backend.model.discriminator_file import read_discriminator
from gpu_backend.model.encoder_file import encoder_path, read_encoder
from gpu_backend.model.model import Model
from gpu_backend.model.tuned_file import changed_model
from gpu_backend.plain_text import type_with_article
from gpu_backend.recipe import Noise
from gpu_backend.torch_import import torch_needed

if TYPE_CHECKING:
    from gpu_backend.gradients.encoder import PictureEncoder
    from gpu_backend.gradients.network import DifferentiableNetwork
    from gpu_backend.gradients.picture_features import PictureFeatures

_log = logging.getLogger(__name__)

TORCH_DEVICES = ("auto", "cpu", "cuda")
"""``auto`` is torch's CUDA where it has a GPU, else the processor. Drags use own kernels if it is not ``cpu``."""


def open_gradients(model: Model, noise: Noise | None = None, device: str = "auto") -> DifferentiableNetwork:
    """Return a model's network in torch, float32. Takes seconds if torch was not imported yet.

    Parameters
    ----------
    device
        One of `TORCH_DEVICES`.

    Raises
    ------
    TorchError
        If torch is missing.
    DeviceError
        If there is no such device, or ``cuda`` is requested, but torch finds no GPU.
    TypeError
        If `model` is not a Model, such as a path.
    """
    if device not in TORCH_DEVICES:
        raise DeviceError(f"The device of gradients must be one of {', '.join(TORCH_DEVICES)}, not {device!r:.40}.")
    given: object = model
    if not isinstance(given, Model):
        raise TypeError(f"Gradients need a Model from read_model, not {type_with_article(given)}.")
    with torch_needed("Computing gradients"):
        import torch

        from gpu_backend.gradients.network import differentiable_network
        from gpu_backend.gradients.own_kernels import OwnKernels, why_no_kernels
    has_cuda = torch.cuda.is_available()
    if device == "cuda" and not has_cuda:
        raise DeviceError("Gradients on a GPU need a torch with CUDA and an NVIDIA GPU, but there is none; use cpu.")
    network = differentiable_network(model, noise, device="cuda" if has_cuda and device != "cpu" else "cpu")
    gpus = probe().gpus if device != "cpu" else ()
    if gpus:
        network.kernels_refusal = why_no_kernels(network.spec)
        if not network.kernels_refusal:
            network.own_kernels = OwnKernels(gpus[0])
    return network


def open_encoder(
    model: Model, network: DifferentiableNetwork, own: Callable[[str], Path | None] = lambda model_id: None
) -> PictureEncoder | None:
    """Return the encoder of a model; None if there is none, or it cannot be read: the log says why.

    A tuned model without its own has that of the model that it changes.

    Parameters
    ----------
    own
        The file for the SHA-256 of a model that takes the place of the one beside it; None for none.
    """
    path, model_id = model.facts.path, model.facts.model_id
    file = own(model_id) or encoder_path(path)
    if not is_regular_file(file) and (base := changed_model(path)) is not None:
        model_id = base.model_id
        file = own(model_id) or encoder_path(base.path)
    if not is_regular_file(file):
        return None
    try:
        stored = read_encoder(file, model_id, model.spec.w_dim, model.spec.num_ws)
    except ModelFileError as error:
        _log.warning("%s The search begins with random latents.", error.sentence)
        return None
    from gpu_backend.gradients.encoder import PictureEncoder

    return PictureEncoder.from_file(stored, network.mean_w)


def open_features(
    model: Model, network: DifferentiableNetwork, encoder: PictureEncoder | None
) -> PictureFeatures | None:
    """Return what compares pictures of a model: its file's discriminator, else its encoder; None if it has neither.

    The discriminator of a tuned model is that of the model that it changes.
    """
    from gpu_backend.gradients.picture_features import PictureFeatures

    path, model_id = model.facts.path, model.facts.model_id
    if (base := changed_model(path)) is not None:
        path, model_id = str(base.path), base.model_id
    try:
        stored = read_discriminator(path, model_id, model.spec)
    except ModelFileError as error:
        _log.warning("%s Pictures are compared without its discriminator.", error.sentence)
        stored = None
    if stored is not None:
        return PictureFeatures.of_discriminator(stored, network.mean_w)
    return None if encoder is None else PictureFeatures.of_encoder(encoder)
