"""Layers and shapes worked out from a few numbers agree with what is published."""

import pytest

from gpu_backend.model.stylegan2 import parameter_count, row_resolutions, stylegan2_layers, tensor_shapes
from tests.helpers.networks import NetworkOptions, make_spec


@pytest.mark.parametrize(
    ("resolution", "channel_base", "mapping_layers", "c_dim", "expected"),
    [
        (1024, 32768, 8, 0, 30_370_060),
        (1024, 16384, 8, 0, 24_900_764),
        (512, 32768, 8, 0, 30_276_583),
        (256, 16384, 8, 0, 24_767_458),
        (256, 32768, 8, 0, 30_034_338),
        (32, 32768, 2, 10, 20_215_315),
    ],
)
def test_published_networks_have_their_published_number_of_parameters(
    resolution: int, channel_base: int, mapping_layers: int, c_dim: int, expected: int
) -> None:
    options = NetworkOptions(
        resolution=resolution,
        z_dim=512,
        w_dim=512,
        c_dim=c_dim,
        mapping_layers=mapping_layers,
        channel_base=channel_base,
        channel_max=512,
    )
    assert parameter_count(make_spec(options)) == expected


def test_rows_are_shared_between_a_torgb_and_the_next_block() -> None:
    rows = {layer.name: layer.w_index for layer in stylegan2_layers("skip", {4: 3, 8: 3, 16: 2}, 3)}
    assert rows == {
        "b4.conv1": 0,
        "b4.torgb": 1,
        "b8.conv0": 1,
        "b8.conv1": 2,
        "b8.torgb": 3,
        "b16.conv0": 3,
        "b16.conv1": 4,
        "b16.torgb": 5,
    }


def test_a_row_has_the_resolution_of_the_first_layer_it_styles() -> None:
    assert row_resolutions(stylegan2_layers("skip", {4: 3, 8: 3}, 3), 4) == (4, 4, 8, 8)
    assert row_resolutions(stylegan2_layers("orig", {4: 3, 8: 3}, 3), 4) == (4, 8, 8, 8)


def test_a_1024_network_has_its_tensors() -> None:
    shapes = tensor_shapes(make_spec(NetworkOptions(resolution=1024, mapping_layers=8)))
    # 182 entries are published; 26 of them are copies of the resample filter, which is in the spec.
    assert len(shapes) == 182 - 26
