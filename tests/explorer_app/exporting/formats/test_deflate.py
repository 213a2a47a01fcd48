from __future__ import annotations

import threading
import zlib

import numpy as np

from explorer_app.exporting.formats.deflate import checksum, deflate_fast


def test_equal_bytes_are_compressed_alike_on_every_thread() -> None:
    """Inputs whose first bytes come again show a hash of anything else: one in thirty of them, if they are short."""
    inputs = [
        np.tile(np.random.default_rng(seed).integers(0, 256, 6, np.uint8), 11)[: 40 + seed % 24] for seed in range(400)
    ]
    found: list[list[bytes]] = []

    def compress() -> None:
        found.append([deflate_fast(data) for data in inputs])

    threads = [threading.Thread(target=compress) for _ in range(4)]
    compress()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(others == found[0] for others in found[1:])
    assert [zlib.decompress(data) for data in found[0]] == [data.tobytes() for data in inputs]


def test_the_checksum_goes_on_from_another() -> None:
    assert checksum(b"latent", checksum(b"loom")) == zlib.crc32(b"loomlatent")
