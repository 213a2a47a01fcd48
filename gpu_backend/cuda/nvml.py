"""Names of the NVIDIA GPUs in this machine, also of those that CUDA does not start on."""

from __future__ import annotations


def gpu_names() -> tuple[str, ...]:
    """Return the names in the driver's order; empty where there is no driver or it does not tell."""
    try:
        import pynvml

        pynvml.nvmlInit()
        try:
            handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
            return tuple(_text(pynvml.nvmlDeviceGetName(handle)) for handle in handles)
        finally:
            pynvml.nvmlShutdown()
    # Whatever the library or its driver raises, there are no names to tell.
    except Exception:
        return ()


def _text(name: object) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
