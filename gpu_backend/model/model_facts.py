"""What is known of a model file: plain values, without arrays, so that a window shows them before NumPy is imported."""

from __future__ import annotations

from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """Output of a layer of the synthesis network: official name without ``synthesis.``, channels, side."""

    name: str
    channels: int
    side: int


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts of a model file, as shown by `latentloom inspect` and the model panel.

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
        Ignored parts of the file, a phrase each (``"D: the discriminator"``).
    warnings
        Warnings for the user (``"The file was written in version 5 of its format, not 6."``).
    named_directions
        Names of the directions in the file beside the model.
    class_names, class_file
        Name of each class, and the name of the file beside the model that has them; empty without one.
    has_transform
        The network has a transform input (translation, rotation, scale).
    layers
        Layers that a tap can show, in execution order.
    usual_cutoff
        Default cutoff of truncation in rows; None for all.
    looks_classes_up
        The network has a table of classes: the default class is 0, and truncation uses the class's own average.
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
