"""The table of layers that the kernels of a gradient read."""

from __future__ import annotations

import re
from pathlib import Path

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
