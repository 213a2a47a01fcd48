"""How the kernels of StyleGAN1's normalisation are cut into blocks of threads: the sizes of ``adain*.cu``."""

from __future__ import annotations

from dataclasses import dataclass

_HELD = 4
_MOST_HELD = 8
"""Pixels of a thread that keeps them: usually, and while registers last."""

_MOST_THREADS = 512
_THREADS = 256
_MOST_GROUPS = 8
"""Groups of eight channels of a block: whole 128-byte lines of a pixel."""

_BLOCKS, _PICTURE_BLOCKS = 3, 2
"""How many a multiprocessor shall have, all at once; and where a picture rides along, which takes registers."""

_MOST_CHUNK = 4096
"""Pixels of a block, whose noise is kept in shared memory."""


@dataclass(frozen=True, slots=True)
class AdainTile:
    """One way to cut it.

    Attributes
    ----------
    groups
        Of eight channels, of a block.
    threads
        Of a block.
    held
        Pixels that a thread keeps, where a block holds all of them; 0 where moments are found beforehand.
    chunk
        Pixels of a block.
    """

    side: int
    cout: int
    batch: int
    groups: int
    threads: int
    held: int
    chunk: int

    @classmethod
    def of(cls, side: int, cout: int, batch: int, multiprocessors: int, *, has_picture: bool = False) -> AdainTile:
        """Cut pictures of a side and padded channels: whole channels a block where it can hold them."""
        area = side * side
        if area <= _MOST_HELD * _MOST_THREADS:
            threads = min(max(32, _power_of_two(-(-area // _HELD))), _MOST_THREADS)
            return cls(side, cout, batch, 1, threads, _power_of_two(-(-area // threads)), area)
        groups = min(_power_of_two(cout // 8), _MOST_GROUPS)
        lanes, channel_blocks = _THREADS // groups, -(-cout // (8 * groups))
        blocks = _PICTURE_BLOCKS if has_picture else _BLOCKS
        chunks = max(1, blocks * multiprocessors // (channel_blocks * batch))
        chunk = min(-(-area // (chunks * lanes)) * lanes, _MOST_CHUNK)
        return cls(side, cout, batch, groups, _THREADS, 0, chunk)

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
