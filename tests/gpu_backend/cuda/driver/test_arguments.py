from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from gpu_backend.cuda.driver.arguments import PackedArguments, pack_arguments
from gpu_backend.cuda.schedule import Address, Argument, TensorMap
from gpu_backend.ops.kernels.parameters import parameters_dtype
from tests.helpers.hand_kernels import hand_kernel

KERNEL = hand_kernel(
    "many",
    'extern "C" __global__ void many(int from, const __grid_constant__ TensorMap map, float* y, unsigned count, '
    "const float* __restrict__ weight, float clamp) {}",
)


def fetch(packed: PackedArguments, index: int, nbytes: int) -> bytes:
    """Follow the pointers as the driver does."""
    pointers = (ctypes.c_uint64 * len(packed.values)).from_address(packed.address)
    return ctypes.string_at(pointers[index], nbytes)


def encode(address: int, described: TensorMap) -> bytes:
    """A map that tells its address and its box."""
    return address.to_bytes(64, "little") + bytes(described.box) + bytes(61)


def test_values_lie_where_the_kernel_reads_them_whatever_their_order() -> None:
    described = TensorMap(Address("x", "region", 32), (64, 9, 9, 2), (16, 24, 5))
    arguments: dict[str, Argument] = {
        "clamp": np.float32(np.inf),
        "weight": Address("w", "constant"),
        "y": Address("y", "region", 16),
        "from": np.int32(-5),
        "count": np.uint32(7),
        "map": described,
    }
    packed = pack_arguments(KERNEL, arguments, {"x": 256, "y": 1 << 40}, {"w": 512}, encode)
    assert fetch(packed, 0, 4) == np.int32(-5).tobytes()
    assert fetch(packed, 1, 128) == encode(288, described)
    assert fetch(packed, 2, 8) == ((1 << 40) + 16).to_bytes(8, "little")
    assert fetch(packed, 3, 4) == np.uint32(7).tobytes()
    assert fetch(packed, 4, 8) == (512).to_bytes(8, "little")
    assert fetch(packed, 5, 4) == np.float32(np.inf).tobytes()
    pointers = (ctypes.c_uint64 * 6).from_address(packed.address)
    assert pointers[1] % 64 == 0, "the driver wants a tensor map there"


def test_the_null_pointer_and_numbers_of_python_take_the_parameters_type() -> None:
    parameters = parameters_dtype([("float*", "y"), ("float", "gain"), ("unsigned", "count")])
    packed = PackedArguments(parameters, {"gain": 1, "count": 2, "y": None})
    assert [(type(value), int(value)) for value in packed.values.values()] == [
        (np.uint64, 0),
        (np.float32, 1),
        (np.uint32, 2),
    ]


def test_a_kernel_without_arguments_has_an_address_too() -> None:
    assert PackedArguments(np.dtype([]), {}).address


@pytest.mark.parametrize(
    ("kind", "value"), [("float*", 3), ("float*", np.int32(3)), ("int", 1.0), ("int", np.float32(1)), ("int", None)]
)
def test_a_value_of_another_kind_is_refused(kind: str, value: Any) -> None:
    with pytest.raises(ValueError, match="the parameter x is"):
        PackedArguments(parameters_dtype([(kind, "x")]), {"x": value})


@pytest.mark.parametrize("names", [(), ("y",), ("x", "y")])
def test_missing_and_unknown_names_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="a kernel's arguments lack"):
        PackedArguments(parameters_dtype([("int", "x")]), dict.fromkeys(names, 1))


@pytest.mark.parametrize("argument", [Address("w", "region"), Address("y", "constant")])
def test_regions_and_constants_that_the_schedule_lacks_are_refused(argument: Address) -> None:
    with pytest.raises(ValueError, match="schedule has no"):
        pack_arguments(KERNEL, {"x": argument}, {"y": 0}, {"w": 0}, encode)
