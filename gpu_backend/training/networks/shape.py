"""Sizes of a network to train, and its spec."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_backend.model.spec import MappingSpec, StyleGAN2Spec
from gpu_backend.model.stylegan2 import block_resolutions, num_ws_of, stylegan2_layers

CLAMP = 256.0
"""Bound of every layer's output, which keeps half precision finite (Karras et al. 2020a, appendix C)."""

_HALF_BLOCKS = 4


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """Sizes. Channels at resolution R are min(channel_base / R, channel_max), in both networks."""

    resolution: int
    channel_base: int = 16384
    channel_max: int = 512
    z_dim: int = 512
    w_dim: int = 512
    mapping_layers: int = 2

    def channels(self, resolution: int) -> int:
        """Channels of a block."""
        return max(1, min(self.channel_base // resolution, self.channel_max))

    @property
    def half_from(self) -> int:
        """Resolution from which fp16 is used: the four highest; lower layers cost little and need the range."""
        return max(8, self.resolution >> (_HALF_BLOCKS - 1))

    def spec(self) -> StyleGAN2Spec:
        """Return the generator's spec: the skip architecture (Karras et al. 2020b, section 4.1)."""
        channels = {side: self.channels(side) for side in block_resolutions(self.resolution)}
        return StyleGAN2Spec(
            family="stylegan2",
            architecture="skip",
            resolution=self.resolution,
            img_channels=3,
            num_ws=num_ws_of(self.resolution),
            mapping=MappingSpec(self.z_dim, 0, 0, (self.w_dim,) * self.mapping_layers),
            layers=stylegan2_layers("skip", channels, 3, conv_clamp=CLAMP, fp16_from=self.half_from),
        )
