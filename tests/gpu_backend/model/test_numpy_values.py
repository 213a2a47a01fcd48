"""NumPy values as NumPy pickles them: scalars become numbers, arrays keep their geometry, objects are refused."""

import pickle
from typing import Any, Literal

import numpy as np
import pytest

from gpu_backend.model.budget import Budget
from gpu_backend.model.names import NameTable
from gpu_backend.model.network_names import NetworkNames
from gpu_backend.model.numpy_values import ArrayRecord
from gpu_backend.model.pickle_machine import PickleMachine
from gpu_backend.model.records import content_of
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.source import BytesSource
from gpu_backend.model.watch import Watch


def load(content: bytes) -> tuple[Any, BytesSource]:
    source, budget, watch = BytesSource(content), Budget(), Watch()
    names = NetworkNames(source, budget=budget, watch=watch, requested=set())
    machine = PickleMachine(
        source,
        0,
        len(content),
        find_name=NameTable(names.known(), set()).find,
        find_persistent=None,
        budget=budget,
        watch=watch,
    )
    return machine.load(), source


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("value", [np.float64(2.5), np.float32(-1), np.int64(-3), np.bool_(True), np.uint8(200)])
def test_a_scalar_becomes_the_number_it_equals(value: Any, protocol: int) -> None:
    number, _ = load(pickle.dumps(value, protocol))
    assert (number, type(number)) == (value.item(), type(value.item()))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "value", [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.zeros((0, 3), np.float32)]
)
def test_an_array_keeps_its_geometry_and_its_bytes(value: Any, protocol: int) -> None:
    record, source = load(pickle.dumps(value, protocol))
    assert isinstance(record, ArrayRecord)
    assert (record.shape, np.dtype(record.dtype)) == (value.shape, value.dtype)
    back = np.frombuffer(content_of(source, record.content, Watch()) or b"", value.dtype) if value.size else value
    order: Literal["F", "C"] = "F" if record.is_fortran else "C"
    np.testing.assert_array_equal(back.reshape(value.shape, order=order), value)


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize(
    "value", [np.array([None]), np.array(["text"]), np.zeros(1, [("a", "f4")]), np.array([1.0], ">f8"), np.array([1j])]
)
def test_objects_texts_and_structures_are_refused(value: Any, protocol: int) -> None:
    with pytest.raises(Refusal):
        load(pickle.dumps(value, protocol))
