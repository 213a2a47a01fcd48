"""Texts about devices for the menu, the panel, the top bar and the status bar: pure functions."""

from __future__ import annotations

from explorer_app.controller import DeviceState
from explorer_app.rendering.renderer_like import DeviceLike, MemoryLike

PRECISIONS = (
    ("fp16", "fp16 – fast", "Activations in half precision on the GPU: fastest."),
    (
        "fp8",
        "fp8 – fastest",
        "Layers from 64 x 64 on multiply 8-bit numbers, on GPUs from Ada on (RTX 40 and 50, Hopper): "
        "a StyleGAN2 is 44 dB from fp32, 47 dB on RTX 40 and 50.",
    ),
    (
        "tf32",
        "tf32 – wide range",
        "Activations in single precision, products with 10-bit mantissas: for networks that exceed the range of fp16.",
    ),
    (
        "bf16x3",
        "bf16x3 – near fp32",
        "Activations in single precision, products with 16-bit mantissas: pictures as in fp32, up to rounding.",
    ),
    ("fp32", "fp32 – reference", "Everything in single precision on the GPU: slower, for reference."),
)
"""Key, label and tooltip of each selectable precision."""


def chosen_key(state: DeviceState) -> str:
    """Return the key of the checked menu entry: "auto", "cpu" or a GPU's id."""
    if state.choice.device == "cuda":
        return state.gpus[0].id if state.gpus else "cuda"
    return state.choice.device


def gpu_text(device: DeviceLike, state: DeviceState) -> str:
    """Return a GPU's menu text: its name and memory, and its index if another GPU has the same name."""
    is_alone = [gpu.name for gpu in state.gpus].count(device.name) == 1
    name = device.name if is_alone else f"{device.name} ({device.id.removeprefix('cuda:')})"
    return f"{name} · {device.memory_nbytes / 2**30:.0f} GB" if device.memory_nbytes else name


def device_text(state: DeviceState) -> str:
    """Return the rendering device and precision: "NVIDIA H200 · fp16"; empty without a model."""
    return f"{state.device.name} · {state.device.precision}" if state.device is not None else ""


def memory_text(memory: MemoryLike) -> str:
    """Return a renderer's memory use in one line."""
    parts = [("weights", memory.weights), ("plans", memory.plans), ("pinned", memory.pinned)]
    shown = [f"{name} {round(nbytes / 1e6):,}" for name, nbytes in parts if nbytes >= 500_000]
    return " · ".join([f"Holds {round(memory.total / 1e6):,} MB", *shown])


def engine_text(state: DeviceState) -> str:
    """Return the engine's state for the status bar: "CPU ready", "compiling 14 kernels, 5 done"."""
    if state.device is None:
        return ""
    if state.compiling is not None:
        return f"{state.device.name} · {state.compiling.doing}, {state.compiling.done} done"
    return f"{state.device.name} ready"
