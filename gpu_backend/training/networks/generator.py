"""The generator: mapping and synthesis (Karras et al. 2020b), with the tensor names of model files."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gpu_backend.model.spec import LayerSpec, MappingSpec, StyleGAN2Spec
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.reference.normalize_2nd_moment import normalize_2nd_moment
from gpu_backend.training.networks.layers import Dense, NoiseInput, StyledConv, ToRgb

_W_AVG_BETA = 0.998


class Mapping(nn.Module):
    """z to w; tracks the running mean of w for truncation."""

    w_avg: Tensor

    def __init__(self, spec: MappingSpec) -> None:
        super().__init__()
        act = BiasAct.of_layer(spec.activation)
        features = spec.z_dim
        self.depth = len(spec.widths)
        for index, width in enumerate(spec.widths):
            self.add_module(f"fc{index}", Dense(features, width, act=act, lr=spec.lr_multiplier))
            features = width
        self.register_buffer("w_avg", torch.zeros(spec.w_dim))

    def forward(self, z: Tensor) -> Tensor:
        """(n, z_dim) to (n, w_dim)."""
        x = normalize_2nd_moment(z)
        for index in range(self.depth):
            x = self.get_submodule(f"fc{index}")(x)
        return x

    def follow(self, w: Tensor) -> None:
        """Update the running mean with the w of a batch."""
        self.w_avg.lerp_(w.detach().float().mean(0), 1.0 - _W_AVG_BETA)


class Block(nn.Module):
    """The layers of one resolution."""

    def __init__(self, layers: tuple[LayerSpec, ...], w_dim: int) -> None:
        super().__init__()
        self.use_half = layers[0].use_fp16
        self.rows = {layer.name.split(".")[1]: layer.w_index for layer in layers}
        if layers[0].kind == "conv":
            self.const = nn.Parameter(torch.randn(layers[0].in_channels, 4, 4))
        for layer in layers:
            made = ToRgb(layer, w_dim) if layer.kind == "to_rgb" else StyledConv(layer, w_dim)
            self.add_module(layer.name.split(".")[1], made)

    def forward(
        self, x: Tensor | None, image: Tensor | None, ws: Tensor, noise: NoiseInput, low: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Return features and picture of this resolution."""
        if x is None:
            x = self.const.expand(ws.shape[0], -1, -1, -1)
        for name in ("conv0", "conv1"):
            if name in self.rows:
                x = self.get_submodule(name)(x, ws[:, self.rows[name]], noise, low)
        return x, self.get_submodule("torgb")(x, image, ws[:, self.rows["torgb"]], low)


class Synthesis(nn.Module):
    """Rows of w to a picture."""

    def __init__(self, spec: StyleGAN2Spec) -> None:
        super().__init__()
        sides = sorted({layer.resolution for layer in spec.layers})
        self.names = [f"b{side}" for side in sides]
        for side, name in zip(sides, self.names, strict=True):
            self.add_module(name, Block(tuple(la for la in spec.layers if la.resolution == side), spec.w_dim))

    def forward(self, ws: Tensor, noise: NoiseInput = "random", low: torch.dtype = torch.float32) -> Tensor:
        """Return the picture of (n, num_ws, w_dim): (n, 3, R, R) float32, about -1 to 1.

        Parameters
        ----------
        low
            Precision of the layers: bfloat16 applies to all, float16 to those that the spec marks.
        """
        x: Tensor | None = None
        image: Tensor | None = None
        for name in self.names:
            block = self.get_submodule(name)
            x, image = block(x, image, ws, noise, block_precision(low, bool(block.use_half)))
        if image is None:
            raise ValueError("a synthesis network needs layers")
        return image


class Generator(nn.Module):
    """Mapping and synthesis, in float32 by default; the state dict has the tensors of a model file."""

    def __init__(self, spec: StyleGAN2Spec) -> None:
        super().__init__()
        self.spec = spec
        self.mapping = Mapping(spec.mapping)
        self.synthesis = Synthesis(spec)

    def rows(self, z: Tensor, psi: float = 1.0) -> Tensor:
        """(n, z_dim) to (n, num_ws, w_dim), truncated by psi."""
        w: Tensor = self.mapping(z)
        if psi != 1.0:
            w = self.mapping.w_avg.lerp(w, psi)
        return w[:, None].expand(-1, self.spec.num_ws, -1)

    def forward(
        self, z: Tensor, psi: float = 1.0, noise: NoiseInput = "const", low: torch.dtype = torch.float32
    ) -> Tensor:
        """Return the pictures of (n, z_dim)."""
        image: Tensor = self.synthesis(self.rows(z, psi), noise, low)
        return image


def block_precision(low: torch.dtype, use_half: bool) -> torch.dtype:
    """Return the precision of a block; float16 has too little range for unmarked blocks."""
    return torch.float32 if low == torch.float16 and not use_half else low
