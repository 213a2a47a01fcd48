from __future__ import annotations

import pytest

from gpu_backend.cuda.errors import driver_error
from gpu_backend.errors import DeviceError, DeviceLostError, DeviceMemoryError


@pytest.mark.parametrize(
    ("word", "kind", "says"),
    [
        ("CUDA_ERROR_OUT_OF_MEMORY", DeviceMemoryError, "not enough free memory for 3 MB of memory"),
        ("CUDA_ERROR_ILLEGAL_ADDRESS", DeviceLostError, "stopped working"),
        ("CUDA_ERROR_LAUNCH_FAILED", DeviceLostError, "save the session"),
        ("CUDA_ERROR_LAUNCH_TIMEOUT", DeviceLostError, "CPU"),
        ("CUDA_ERROR_EXTERNAL_DEVICE", DeviceLostError, "stopped working"),
        ("CUDA_ERROR_NOT_SUPPORTED", DeviceError, "refused 3 MB of memory"),
    ],
)
def test_the_drivers_word_becomes_one_sentence_of_the_right_kind(word: str, kind: type, says: str) -> None:
    error = driver_error(word, "3 MB of memory")
    assert type(error) is kind
    assert says in error.sentence
    assert error.sentence.endswith(".")
    assert ". " not in error.sentence
    assert error.details == word
