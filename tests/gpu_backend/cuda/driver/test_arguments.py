from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from gpu_backend.cuda.driver.arguments import PackedArguments, pack_arguments
from gpu_backend.cuda.schedule import Address, TensorMap


def fetch(packed: PackedArguments, index: int, nbytes: int) -> bytes:
    """Follow the pointers as the driver does."""
    pointers = (ctypes.c_uint64 * len(packed.values)).from_address(packed.address)
    return ctypes.string_at(pointers[index], nbytes)


def encode(address: int, described: TensorMap) -> bytes:
    """A map that tells its address and its box."""
    return address.to_bytes(64, "little") + bytes(described.box) + bytes(61)


def test_each_pointer_leads_to_its_value() -> None:
    arguments = {
        "y": Address("y", "region", 16),
        "weight": Address("w", "constant"),
        "bias": None,
        "from": np.int32(-5),
        "count": np.uint32(7),
        "clamp": np.float32(np.inf),
    }
    packed = pack_arguments(arguments, {"y": 1 << 40}, {"w": 512}, encode)
    assert fetch(packed, 0, 8) == ((1 << 40) + 16).to_bytes(8, "little")
    assert fetch(packed, 1, 8) == (512).to_bytes(8, "little")
    assert fetch(packed, 2, 8) == bytes(8)
    assert fetch(packed, 3, 4) == np.int32(-5).tobytes()
    assert fetch(packed, 4, 4) == np.uint32(7).tobytes()
    assert fetch(packed, 5, 4) == np.float32(np.inf).tobytes()


def test_a_tensor_map_is_passed_by_value_where_the_driver_wants_it() -> None:
    described = TensorMap(Address("x", "region", 32), (64, 9, 9, 2), (16, 24, 5))
    packed = pack_arguments({"before": np.int32(1), "map": described, "after": np.int32(2)}, {"x": 256}, {}, encode)
    assert fetch(packed, 0, 4) == np.int32(1).tobytes()
    assert fetch(packed, 1, 128) == encode(288, described)
    assert fetch(packed, 2, 4) == np.int32(2).tobytes()
    assert (ctypes.c_uint64 * 3).from_address(packed.address)[1] % 64 == 0


def test_a_kernel_without_arguments_has_an_address_too() -> None:
    assert PackedArguments(()).address


@pytest.mark.parametrize("argument", [Address("w", "region"), Address("y", "constant"), 3, np.float64(1)])
def test_missing_and_unknown_arguments_are_refused(argument: Any) -> None:
    with pytest.raises(ValueError, match=r"schedule has no|takes no"):
        pack_arguments({"x": argument}, {"y": 0}, {"w": 0}, encode)
