"""A model that has been read: arrays on the host, a spec, and what the file said about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpu_backend.model.draft_file import Readouts
from gpu_backend.model.named_directions import NamedDirections
from gpu_backend.model.spec import NetworkSpec

Weights = Mapping[str, NDArray[np.float32]]
"""Official state-dict name (``"synthesis.b8.conv0.weight"``) to a contiguous float32 array."""


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """What a layer of the synthesis network gives: its official name without ``synthesis.``, channels, side."""

    name: str
    channels: int
    side: int


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model file; `latentloom inspect` and the model panel show it.

    Attributes
    ----------
    model_id
        SHA-256 of the file, in hexadecimal.
    container
        ``"NVIDIA PyTorch pickle"``, ``"TensorFlow pickle"``, ``"torch file (zip)"``, ``"torch file (older form)"`` or
        ``"safetensors"``; ``"pickle"`` for tensors pickled by Python alone.
    family, flavour
        ``"StyleGAN1"``, ``"StyleGAN2"``, ``"StyleGAN3"`` or ``"StyleGAN-XL"``, and the tool or repository whose
        conventions the file follows: ``"TensorFlow"``, ``"StyleGAN2-ADA"`` or ``"StyleGAN3 repository"``.
    row_resolutions
        Side in pixels of the first layer that each row of w styles; samples across the picture for StyleGAN3.
    fp16_layers
        Names of the layers that the file marks as half precision.
    names_requested
        Every ``module name`` that the file asks to import, sorted. None was imported.
    ignored
        Parts of the file that were left alone, a phrase each (``"D: the discriminator"``).
    warnings
        Sentences a person should know (``"The file was written in version 5 of its format, not 6."``).
    named_directions
        Names of the directions that lie in a file beside the model.
    class_names, class_file
        What each class is called, and the name of the file beside the model that says so; empty without one.
    has_transform
        The picture can be moved, turned and scaled inside the network.
    layers
        All that can be shown instead of the picture, in execution order.
    usual_cutoff
        Rows that truncation acts on if nobody says otherwise; None for all.
    looks_classes_up
        A picture is always of a class: where none is said, of class 0. Truncation goes to the class's own average.
    """

    path: str
    name: str
    nbytes: int
    model_id: str
    container: str
    family: str
    flavour: str
    architecture: str
    resolution: int
    img_channels: int
    z_dim: int
    w_dim: int
    num_ws: int
    c_dim: int
    mapping_layers: int
    parameters: int
    conv_clamp: float | None
    fp16_layers: tuple[str, ...]
    noise_layers: tuple[str, ...]
    draft_resolutions: tuple[int, ...]
    row_resolutions: tuple[int, ...]
    names_requested: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    named_directions: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    class_file: str = ""
    has_transform: bool = False
    layers: tuple[LayerFacts, ...] = ()
    usual_cutoff: int | None = None
    looks_classes_up: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Spec, weights and facts of one file, and what lies beside it: directions (or None) and draft readouts."""

    spec: NetworkSpec
    weights: Weights
    facts: ModelFacts
    directions: NamedDirections | None = None
    readouts: Readouts = field(default_factory=dict)

    @property
    def mean_w(self) -> NDArray[np.float32]:
        """The average of w, (w_dim,): over all classes where the model has one of each."""
        average = self.weights["mapping.w_avg"]
        return average if average.ndim == 1 else average.mean(axis=0)
