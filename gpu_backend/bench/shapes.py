"""Networks by name, for measurements that need a size but no file: ``ffhq1024``, or ``RESOLUTION:BASE:MAX``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from gpu_backend.errors import RequestError


@dataclass(frozen=True, slots=True)
class Shape:
    """A network of a size.

    Attributes
    ----------
    base, maximum
        The block at R of a StyleGAN1 or StyleGAN2 has min(base / R, maximum) channels; for a StyleGAN3, see
        `StyleGAN3Design`, and for a StyleGAN-XL that of its stem.
    config
        ``"AdaIN"`` for a StyleGAN1, ``"skip"`` for a StyleGAN2 of that architecture, ``"T"`` or ``"R"`` for a
        StyleGAN3, ``"XL"`` for a StyleGAN-XL of a thousand classes, grown from 16 x 16 by doubling.
    """

    name: str
    resolution: int
    base: int
    maximum: int
    w_dim: int = 512
    config: Literal["AdaIN", "skip", "T", "R", "XL"] = "skip"


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("ffhq1024", 1024, 32768, 512),
        Shape("ffhq512", 512, 32768, 512),
        Shape("ffhq256", 256, 16384, 512),
        Shape("cifar32", 32, 16384, 512),
        Shape("adain1024", 1024, 16384, 512, config="AdaIN"),
        Shape("adain256", 256, 16384, 512, config="AdaIN"),
        Shape("t1024", 1024, 32768, 512, config="T"),
        Shape("t256", 256, 16384, 512, config="T"),
        Shape("r1024", 1024, 65536, 1024, config="R"),
        Shape("r256", 256, 32768, 1024, config="R"),
        Shape("xl1024", 1024, 65536, 1024, config="XL"),
        Shape("xl256", 256, 65536, 1024, config="XL"),
    )
}
"""The sizes of the public models: config F at 1024 and 512, the 256 models with half the channels, and the 32 ones; of
StyleGAN3 those at 1024 and 256 in both configurations; of StyleGAN1 those at 1024 and 256. Those of StyleGAN-XL have
heads of seven layers; the public files say their layers themselves, and need not be so."""

SHAPES_WITH_PEERS = tuple(shape.name for shape in SHAPES.values() if shape.config == "skip")
"""Names of the shapes that the plain network is written for, the largest first."""

_OWN = re.compile(r"([0-9]{1,4}):([0-9]{1,6}):([0-9]{1,4})", re.ASCII)


def shape_of(text: str) -> Shape:
    """Return the shape of a name, or of three numbers like ``64:2048:128``.

    Raises
    ------
    RequestError
        If there is no such shape.
    """
    if text in SHAPES:
        return SHAPES[text]
    match = _OWN.fullmatch(text)
    if match is None:
        raise RequestError(f"The shape must be one of {', '.join(SHAPES)} or RESOLUTION:BASE:MAX, not {text[:40]!r}.")
    resolution, base, maximum = (int(number) for number in match.groups())
    if not 8 <= resolution <= 4096 or resolution & (resolution - 1):
        raise RequestError(f"The resolution of a shape must be a power of two from 8 to 4096, not {resolution}.")
    if base < resolution or maximum < 1:
        raise RequestError(f"Every block of a shape must have a channel, but {text} leaves some without.")
    return Shape(text, resolution, base, maximum)
