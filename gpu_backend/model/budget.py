"""Resource budget of a file."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_backend.model.refusal import Refusal

_OPCODES, _CONTAINERS, _TEXT_BYTES, _STORAGES = 500_000, 200_000, 16 << 20, 20_000


@dataclass(slots=True)
class Budget:
    """Remaining budget of a file, for all its pickles. A 1024 px snapshot needs about a tenth of the full budget."""

    opcodes: int = _OPCODES
    containers: int = _CONTAINERS
    text_bytes: int = _TEXT_BYTES
    storages: int = _STORAGES

    def take_operations(self, count: int) -> None:
        """Charge `count` units of work of one operation, so that a small file cannot cause much work."""
        self.opcodes -= count
        if self.opcodes <= 0:
            raise Refusal(f"at most {_OPCODES:,} pickle operations in a model file", "this one asks for more")

    def take_containers(self) -> None:
        """Charge one list, tuple, dict, set or record."""
        self.containers -= 1
        if self.containers < 0:
            raise Refusal(f"at most {_CONTAINERS:,} objects in a model file", "this one asks for more")

    def take_storages(self) -> None:
        """Charge one tensor storage."""
        self.storages -= 1
        if self.storages < 0:
            raise Refusal(f"at most {_STORAGES:,} tensors in a model file", "this one asks for more")

    def take_text(self, count: int) -> None:
        """Charge `count` bytes of short strings."""
        self.text_bytes -= count
        if self.text_bytes < 0:
            raise Refusal(f"at most {_TEXT_BYTES >> 20} MiB of short texts in a model file", "this one asks for more")
