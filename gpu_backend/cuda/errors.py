"""What the driver's and the compiler's errors mean to a user."""

from __future__ import annotations

from gpu_backend.errors import DeviceError, DeviceLostError, DeviceMemoryError

_LOST = frozenset(
    {
        "CUDA_ERROR_DEINITIALIZED",
        "CUDA_ERROR_DEVICE_UNAVAILABLE",
        "CUDA_ERROR_INVALID_CONTEXT",
        "CUDA_ERROR_ECC_UNCORRECTABLE",
        "CUDA_ERROR_NVLINK_UNCORRECTABLE",
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "CUDA_ERROR_LAUNCH_TIMEOUT",
        "CUDA_ERROR_CONTEXT_IS_DESTROYED",
        "CUDA_ERROR_ASSERT",
        "CUDA_ERROR_HARDWARE_STACK_ERROR",
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        "CUDA_ERROR_MISALIGNED_ADDRESS",
        "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        "CUDA_ERROR_INVALID_PC",
        "CUDA_ERROR_LAUNCH_FAILED",
        "CUDA_ERROR_CONTAINED",
        "CUDA_ERROR_SYSTEM_NOT_READY",
        "CUDA_ERROR_EXTERNAL_DEVICE",
        "CUDA_ERROR_MPS_CLIENT_TERMINATED",
        "CUDA_ERROR_TENSOR_MEMORY_LEAK",
        "CUDA_ERROR_UNKNOWN",
    }
)
"""After these the driver refuses all further work of the process on that GPU."""


class KernelError(DeviceError):
    """A kernel could not be compiled, loaded or started, or computed something wrong; others still work.

    Parameters
    ----------
    phrase
        The cause, a few words that follow a colon.
    """

    def __init__(self, sentence: str, details: str = "", phrase: str = "it does not work") -> None:
        super().__init__(sentence, details)
        self.phrase = phrase


def driver_error(word: str, doing: str) -> DeviceError:
    """Return the error for the driver's word, ``"CUDA_ERROR_..."``, while `doing` something, as in "copying a picture".

    What to raise is the caller's decision.
    """
    if word == "CUDA_ERROR_OUT_OF_MEMORY":
        return DeviceMemoryError(
            f"The GPU has not enough free memory for {doing}; close other programs that use it, or choose a smaller "
            "size.",
            word,
        )
    if word in _LOST:
        return DeviceLostError(
            f"The GPU stopped working while {doing} ({word}); save the session and start the program again, or "
            "render on the CPU.",
            word,
        )
    return DeviceError(f"The GPU's driver refused {doing} ({word}); render on the CPU.", word)
