"""How StyleGAN1's normalisation is divided among thread blocks: the sizes of ``adain.cu``."""

from __future__ import annotations

from gpu_backend.quick_dataclass import dataclass

THREADS = 256
"""Of a block."""

_MOST_GROUPS = 8
"""Groups of eight channels of a block: whole 128-byte lines of a pixel."""

_BLOCKS = 2
"""Blocks of a multiprocessor: a third would only read the moments once more."""

_MOST_PARTS = 0.45
"""Partial moments of a channel, relative to its pixels in a block: with more, blocks of fewer channels are faster."""


@dataclass(frozen=True, slots=True)
class AdainTile:
    """How the pixels and channels of a layer are divided among blocks.

    Attributes
    ----------
    groups
        Of eight channels, of a block.
    chunk
        Pixels of a block.
    """

    side: int
    cout: int
    batch: int
    groups: int
    chunk: int

    @classmethod
    def of(cls, side: int, cout: int, batch: int, multiprocessors: int, parts: int = 1) -> AdainTile:
        """Cut pictures of a side and padded channels; every block reads all `parts` of its channels' moments."""
        groups = min(_power_of_two(cout // 8), _MOST_GROUPS)
        while True:
            lanes, channel_blocks = THREADS // groups, -(-cout // (8 * groups))
            chunks = max(1, _BLOCKS * multiprocessors // (channel_blocks * batch))
            # With one group, a pixel's channels are half a sector of memory.
            if groups <= 2 or parts * chunks <= _MOST_PARTS * side**2:
                return cls(side, cout, batch, groups, -(-(side**2) // (chunks * lanes)) * lanes)
            groups //= 2

    @property
    def chunks(self) -> int:
        """Blocks along the pixels of a picture."""
        return -(-(self.side**2) // self.chunk)

    @property
    def channel_blocks(self) -> int:
        """Blocks along the channels."""
        return -(-self.cout // (8 * self.groups))

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks: chunks, channels, pictures."""
        return self.chunks, self.channel_blocks, self.batch


def _power_of_two(count: int) -> int:
    """Return the smallest power of two that is no smaller."""
    return 1 << (count - 1).bit_length()
