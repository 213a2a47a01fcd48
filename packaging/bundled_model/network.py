"""All tensors of the bundled model, by their state-dict names."""

from __future__ import annotations

import math

import numpy as np

from bundled_model.colours import picture_layer
from bundled_model.layers import Array, Style
from bundled_model.mapping import W_DIM, mapping_tensors
from bundled_model.scene import WIDTHS, constant, layers

SEED = 3

NOISE = {"b256.conv1": 0.008}
"""Strength of the noise inputs: a trace of cloth in the last layer, nothing elsewhere."""


def tensors() -> dict[str, Array]:
    """Return every tensor in float64."""
    rng = np.random.default_rng(SEED)
    made, samples = mapping_tensors(rng)
    names, made["synthesis.b4.const"] = constant(rng)
    program = layers(names)
    styles: dict[str, list[Style]] = {}
    for name, layer in program.items():
        resolution = int(name[1:].split(".")[0])
        width = WIDTHS[resolution]
        made[f"synthesis.{name}.weight"], made[f"synthesis.{name}.bias"] = layer.weights(width)
        made[f"synthesis.{name}.noise_const"] = _weave(resolution)
        made[f"synthesis.{name}.noise_strength"] = np.array(NOISE.get(name, 0.0))
        styles[name] = [layer.styles.get(source, Style()) for source in layer.sources]
        if name.endswith("conv1"):
            outputs = layer.names(width)
            weight, bias, found = picture_layer(resolution, outputs)
            made[f"synthesis.b{resolution}.torgb.weight"] = weight[:, :, None, None]
            made[f"synthesis.b{resolution}.torgb.bias"] = bias
            styles[f"b{resolution}.torgb"] = [found.get(output, Style()) for output in outputs]
    controls = _controls(rng, styles, samples)
    mean = samples.mean(axis=0)
    for name, inputs in styles.items():
        slopes = np.zeros((len(inputs), W_DIM))
        for row, style in enumerate(inputs):
            for control, slope in style.slopes.items():
                slopes[row] += slope * controls[control]
        means = np.array([style.mean for style in inputs])
        made[f"synthesis.{name}.affine.weight"] = slopes * math.sqrt(W_DIM)
        made[f"synthesis.{name}.affine.bias"] = means - slopes @ mean
    return made


def _controls(rng: np.random.Generator, styles: dict[str, list[Style]], samples: Array) -> dict[str, Array]:
    """Give each control a direction of its own in w, at right angles to the others and one standard deviation long."""
    wanted = sorted({control for inputs in styles.values() for style in inputs for control in style.slopes})
    basis = np.linalg.qr(rng.standard_normal((W_DIM, W_DIM)))[0]
    return {control: axis / (samples @ axis).std() for control, axis in zip(wanted, basis, strict=False)}


def _weave(resolution: int) -> Array:
    """Return a plain weave, threads that go over and under each other: (resolution, resolution) with mean 0."""
    y, x = np.mgrid[0:resolution, 0:resolution]
    over = np.where((x // 4 + y // 4) % 2 == 0, np.sin(math.pi * (x + 0.5) / 4.0), np.sin(math.pi * (y + 0.5) / 4.0))
    weave: Array = np.abs(over) - np.abs(over).mean()
    return weave
