"""The table of layers that the kernels of a gradient read."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import gpu_backend.gradients.gpu.kernels
from gpu_backend.gradients.gpu.weights import pack_conv, style_table
from tests.helpers.networks import make_stylegan2


def test_a_row_of_the_table_has_the_columns_that_kernels_know_by_name() -> None:
    header = Path(gpu_backend.gradients.gpu.kernels.__file__).parent / "parts" / "gradient_table.cuh"
    columns = {name: int(number) for name, number in re.findall(r"#define (\w+) (\d+)", header.read_text("utf-8"))}
    model = make_stylegan2(resolution=16)
    layers = [layer for layer in model.spec.layers if layer.kind in ("conv", "up_conv", "to_rgb")]
    convs = [layer for layer in layers if layer.kind != "to_rgb"]
    weights = model.weights
    packed = [pack_conv(*(weights[f"synthesis.{layer.name}.{role}"] for role in ("weight", "bias"))) for layer in convs]
    table = style_table(layers, packed, weights)
    assert table.layers.shape == (len(layers), columns["LAYER_INTS"])
    for layer, row in zip(layers, table.layers, strict=True):
        assert row[columns["W_ROW"]] == layer.w_index
        assert row[columns["INPUTS"]] >= layer.in_channels
        assert bool(row[columns["OUTPUTS"]]) == bool(row[columns["DEMOD_BLOCKS"]]) == (layer.kind != "to_rgb")
    for begin, length, end in (
        ("STYLE", "INPUTS", table.styles),
        ("AFFINE", "INPUTS", len(table.affine)),
        ("DEMOD", "OUTPUTS", table.demods),
    ):
        starts, lengths = table.layers[:, columns[begin]], table.layers[:, columns[length]]
        assert [*starts, end] == [0, *(starts + lengths)], begin


def test_halves_of_the_table_are_the_matrices_and_the_sums_of_squares_in_units_of_a_layer() -> None:
    model = make_stylegan2(resolution=8, w_dim=10)
    layers = [layer for layer in model.spec.layers if layer.kind in ("conv", "up_conv")]
    weights = {
        name: array * np.float32(300.0) if name == "synthesis.b8.conv0.weight" else array
        for name, array in model.weights.items()
    }
    names = [f"synthesis.{layer.name}" for layer in layers]
    packed = [pack_conv(weights[f"{name}.weight"], weights[f"{name}.bias"]) for name in names]
    table = style_table(layers, packed, weights)
    assert table.half_affine.shape == (len(table.affine), 16), "dimensions are padded to whole loads"
    assert table.half_affine[:, :10] == pytest.approx(table.affine, rel=1e-3, abs=1e-6)
    assert not table.half_affine[:, 10:].any()
    begin = 0
    for row, conv in zip(table.layers, packed, strict=True):
        unit = float(row[11:].view(np.float32)[0])
        assert unit == conv.unit**2
        own = table.squares[begin : begin + conv.squares.size].astype(np.float32) * unit
        assert own == pytest.approx(conv.squares.reshape(-1), rel=1e-3, abs=1e-6 * unit)
        begin += conv.squares.size
    assert begin == table.squares.size
    assert np.isfinite(table.squares).all()
