"""The arguments that a StyleGAN1 of NVIDIA's TensorFlow tools was built with: its layout and settings."""

from __future__ import annotations

from gpu_backend.model.attribute_checks import in_words
from gpu_backend.model.layouts import JOINED_LABEL
from gpu_backend.model.refusal import Refusal, Unsupported
from gpu_backend.model.shapes import Shapes
from gpu_backend.model.spec import Activation
from gpu_backend.model.stylegan1_assembly import StyleGAN1Settings
from gpu_backend.model.stylegan1_layout import StyleGAN1Layout, place_stylegan1
from gpu_backend.model.stylegan1_layouts import FUSED_FROM, tensorflow_stylegan1
from gpu_backend.model.tensorflow_network import TensorFlowParts
from gpu_backend.model.tensorflow_settings import KNOWN, check_sizes, learning_rate, unknown_arguments

_ALWAYS: tuple[tuple[str, object, str], ...] = (
    ("use_wscale", True, "weights that are scaled by their inputs"),
    ("use_pixel_norm", False, "no normalisation of pixels"),
    ("use_instance_norm", True, "instance normalisation"),
    ("use_styles", True, "styles"),
    ("const_input_layer", True, "a constant at the beginning"),
    ("blur_filter", [1, 2, 1], "the blur [1, 2, 1]"),
)
"""Arguments with the same value in all public networks: name, value, meaning."""

_KNOWN = KNOWN | {name for name, _, _ in _ALWAYS} | {"fused_scale"}


def read_stylegan1_arguments(
    parts: TensorFlowParts, shapes: Shapes, resolution: int
) -> tuple[StyleGAN1Layout, StyleGAN1Settings, tuple[str, ...]]:
    """Read the settings that shapes do not determine, and check the rest; warnings list unknown arguments.

    Raises
    ------
    Unsupported
        If the network computes something that is not supported.
    Refusal
        If an argument has the wrong type, or contradicts the tensors.
    """
    arguments = parts.arguments
    for name, value, words in _ALWAYS:
        found = arguments.get(name, value)
        if (list(found) if isinstance(found, tuple) else found) != value:
            raise Unsupported(words, f"this network is built with {name} {in_words(found)}")
    fused = arguments.get("fused_scale", "auto")
    if fused not in ("auto", True, False):
        raise Refusal("fused_scale to be 'auto', True or False", f"found {in_words(fused)}")
    layout = tensorflow_stylegan1(lambda side: side >= FUSED_FROM if fused == "auto" else fused is True)
    settings = StyleGAN1Settings(
        mapping_activation=_activation(arguments.get("mapping_nonlinearity", "lrelu")),
        lr_multiplier=learning_rate(arguments),
        joins_label=JOINED_LABEL in shapes,
        activation=_activation(arguments.get("nonlinearity", "lrelu")),
    )
    check_sizes(parts, place_stylegan1(layout, shapes), resolution, {})
    return layout, settings, unknown_arguments(arguments, _KNOWN)


def _activation(name: object) -> Activation:
    if name == "lrelu":
        return "lrelu"
    if name == "relu":
        return "relu"
    raise Refusal("activations of a StyleGAN1, lrelu or relu", f"found {in_words(name)}")
