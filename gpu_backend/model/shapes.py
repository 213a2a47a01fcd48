"""Checks of the tensor shapes of a file against those of a network."""

from __future__ import annotations

from collections.abc import Mapping

from gpu_backend.model.refusal import Refusal, Unsupported, shown

Shapes = Mapping[str, tuple[int, ...]]
"""State-dict name -> shape."""

GENERATOR = "a StyleGAN generator"

MAX_RESOLUTION = 4096


def shape_of(shapes: Shapes, name: str, dimensions: int) -> tuple[int, ...]:
    """Return the shape of a tensor that must be there, have so many dimensions, and hold something.

    Raises
    ------
    Refusal
        If it is not so.
    """
    shape = shapes.get(name)
    if shape is None:
        raise Refusal(GENERATOR, f"its tensor {name} is missing")
    if len(shape) != dimensions:
        raise Refusal(f"{name} to have {dimensions} dimensions", f"its shape is {shape}")
    if 0 in shape:
        raise Refusal(f"{name} to have something in it", f"its shape is {shape}")
    return shape


def check_shapes(shapes: Shapes, expected: Shapes) -> None:
    """Check that there are the tensors that a network has, and no others.

    Raises
    ------
    Refusal
        If one is missing or of another shape.
    Unsupported
        If there is one more.
    """
    for name, shape in expected.items():
        if name not in shapes:
            raise Refusal(GENERATOR, f"its tensor {name} is missing")
        if shapes[name] != shape:
            raise Refusal(f"{name} of shape {shape}", f"its shape is {shapes[name]}")
    extra = sorted(set(shapes) - set(expected))
    if extra:
        raise Unsupported(GENERATOR, f"it also has {shown(extra[0])}, which such a network does not have")
