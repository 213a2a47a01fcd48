"""The spec of a StyleGAN1 generator from tensor shapes and settings, as in `assembly`."""

from __future__ import annotations

from dataclasses import replace

from gpu_backend.model.assembly import find_resolutions
from gpu_backend.model.mapping_network import find_mapping
from gpu_backend.model.refusal import Refusal, Unsupported
from gpu_backend.model.shapes import Shapes, check_shapes, shape_of
from gpu_backend.model.spec import Activation, StyleGAN1Spec
from gpu_backend.model.stylegan1 import INPUT, stylegan1_layers, tensor_shapes
from gpu_backend.model.stylegan2 import num_ws_of
from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class StyleGAN1Settings:
    """Settings that tensor shapes do not determine; the fields are those of StyleGAN1Spec and of its parts."""

    mapping_activation: Activation = "lrelu"
    lr_multiplier: float = 0.01
    joins_label: bool = True
    activation: Activation = "lrelu"
    epsilon: float = 1e-8
    blurs_bias: bool = False


def assemble_stylegan1(shapes: Shapes, settings: StyleGAN1Settings) -> StyleGAN1Spec:
    """Derive the spec of a StyleGAN1 generator, and check every tensor's shape against it.

    Raises
    ------
    Refusal
        If a tensor is missing, does not fit the shapes of the others, or has no place in the network.
    """
    if not 0.0 < settings.epsilon < 1.0:
        raise Refusal("a small number above 0 that is added to variances", f"found {settings.epsilon:g}")
    resolutions = find_resolutions(shapes)
    const = shape_of(shapes, f"synthesis.{INPUT}.const", 3)
    if const[1:] != (4, 4):
        raise Unsupported("square pictures", f"this network starts from {const[1]} x {const[2]} pixels")
    layers = stylegan1_layers(
        {size: shape_of(shapes, f"synthesis.b{size}.conv1.weight", 4)[0] for size in resolutions},
        shape_of(shapes, f"synthesis.b{resolutions[-1]}.torgb.weight", 4)[0],
        pictures=[size for size in resolutions if f"synthesis.b{size}.torgb.weight" in shapes],
        activation=settings.activation,
    )
    mapping = find_mapping(
        shapes, settings.mapping_activation, settings.lr_multiplier, joins_label=settings.joins_label
    )
    spec = StyleGAN1Spec(
        family="stylegan1",
        resolution=resolutions[-1],
        img_channels=layers[-1].out_channels,
        num_ws=num_ws_of(resolutions[-1]),
        mapping=mapping,
        layers=tuple(replace(layer, has_noise=f"synthesis.{layer.name}.noise_strength" in shapes) for layer in layers),
        epsilon=settings.epsilon,
        blurs_bias=settings.blurs_bias,
    )
    check_shapes(shapes, tensor_shapes(spec))
    return spec
