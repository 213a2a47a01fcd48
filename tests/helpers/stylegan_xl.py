"""Small StyleGAN-XL networks with random weights, built in memory; compare `stylegan3`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from gpu_backend.model.spec import ClassTable, MappingSpec, StyleGAN3Spec
from gpu_backend.model.stylegan3_design import StyleGAN3Design
from gpu_backend.model.stylegan_xl_design import StyleGANXLDesign
from tests.helpers.stylegan3 import StyleGAN3Model, make_weights, model_of


@dataclass(frozen=True)
class StyleGANXLOptions:
    """Options of a network. A resolution above that of the stem makes a super-resolution network."""

    resolution: int = 16
    stem_resolution: int = 16
    stem_layers: int = 5
    head_layers: int = 4
    channel_base: int = 64
    channel_max: int = 6
    kernel: int = 3
    is_radial: bool = False
    img_channels: int = 3
    conv_clamp: float | None = 256.0
    margin: int = 10
    z_dim: int = 6
    w_dim: int = 8
    c_dim: int = 4
    rows: int = 7
    width: int = 10
    mapping_layers: int = 2

    @property
    def design(self) -> StyleGANXLDesign:
        """The layer design for these options."""
        stem = StyleGAN3Design(
            self.stem_resolution,
            img_channels=self.img_channels,
            channel_base=self.channel_base,
            channel_max=self.channel_max,
            num_layers=self.stem_layers,
            kernel=self.kernel,
            is_radial=self.is_radial,
            conv_clamp=self.conv_clamp,
            margin=self.margin,
        )
        return StyleGANXLDesign(self.resolution, stem, self.head_layers)


def make_spec_xl(options: StyleGANXLOptions) -> StyleGAN3Spec:
    """The spec for these options."""
    layers = options.design.layers()
    mapping = MappingSpec(options.z_dim, 0, 0, (options.w_dim,) * options.mapping_layers)
    if options.c_dim:
        table = ClassTable(options.rows, options.width)
        mapping = replace(mapping, c_dim=options.c_dim, embed_dim=options.z_dim, class_table=table)
    return StyleGAN3Spec(
        family="stylegan_xl",
        resolution=options.resolution,
        img_channels=options.img_channels,
        num_ws=len(layers) + 1,
        mapping=mapping,
        input=options.design.input(),
        layers=layers,
    )


def make_stylegan_xl(options: StyleGANXLOptions | None = None, *, seed: int = 0, **changes: Any) -> StyleGAN3Model:
    """Make a model from options; keywords override single options: ``make_stylegan_xl(resolution=32, seed=3)``."""
    options = replace(options or StyleGANXLOptions(), **changes)
    spec = make_spec_xl(options)
    return model_of(spec, make_weights(spec, options.design.filters(), seed))
