"""StyleGAN3's layers, frequencies and filters, against published numbers."""

import numpy as np
import pytest

from gpu_backend.model.spec import MappingSpec, StyleGAN3Spec
from gpu_backend.model.stylegan3 import parameter_count, row_resolutions
from gpu_backend.model.stylegan3_design import StyleGAN3Design
from gpu_backend.model.stylegan3_filters import kaiser_beta, low_pass, radial_low_pass
from tests.helpers.stylegan3 import R

DESIGNS = {
    "T-256": StyleGAN3Design(256, channel_base=16384),
    "R-256": StyleGAN3Design(256, channel_base=32768, channel_max=1024, **R),
    "T-512": StyleGAN3Design(512),
    "R-512": StyleGAN3Design(512, channel_base=65536, channel_max=1024, **R),
    "T-1024": StyleGAN3Design(1024),
    "R-1024": StyleGAN3Design(1024, channel_base=65536, channel_max=1024, **R),
}
NAMES = {
    "T-256": "L0_36_512 L1_36_512 L2_36_512 L3_52_512 L4_52_512 L5_84_512 L6_84_512 L7_148_362 L8_148_256 L9_148_181 "
    "L10_276_128 L11_276_91 L12_276_64 L13_256_64 L14_256_3",
    "R-256": "L0_36_1024 L1_36_1024 L2_36_1024 L3_52_1024 L4_52_1024 L5_84_1024 L6_84_1024 L7_148_724 L8_148_512 "
    "L9_148_362 L10_276_256 L11_276_181 L12_276_128 L13_256_128 L14_256_3",
    "T-512": "L0_36_512 L1_36_512 L2_52_512 L3_52_512 L4_84_512 L5_84_512 L6_148_512 L7_148_483 L8_276_323 L9_276_215 "
    "L10_532_144 L11_532_96 L12_532_64 L13_512_64 L14_512_3",
    "T-1024": "L0_36_512 L1_36_512 L2_52_512 L3_52_512 L4_84_512 L5_148_512 L6_148_512 L7_276_323 L8_276_203 "
    "L9_532_128 L10_1044_81 L11_1044_51 L12_1044_32 L13_1024_32 L14_1024_3",
}
PARAMETERS = {
    "T-256": 23_320_443,
    "R-256": 15_779_565,
    "T-512": 24_873_519,
    "R-512": 16_665_594,
    "T-1024": 22_313_167,
    "R-1024": 15_093_151,
}


def spec_of(design: StyleGAN3Design) -> StyleGAN3Spec:
    layers = design.layers()
    mapping = MappingSpec(512, 0, 0, (512, 512))
    return StyleGAN3Spec("stylegan3", design.resolution, 3, len(layers) + 1, mapping, design.input(), layers)


@pytest.mark.parametrize("name", NAMES)
def test_the_layers_of_the_public_networks_have_their_names(name: str) -> None:
    assert [layer.name for layer in DESIGNS[name].layers()] == NAMES[name].split()


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_public_networks_have_as_many_parameters_as_they_should(name: str) -> None:
    spec = spec_of(DESIGNS[name])
    assert parameter_count(spec) == PARAMETERS[name]
    assert spec.architecture == name[0]
    assert spec.num_ws == 16


def test_the_rates_double_where_they_should() -> None:
    ups = {
        name: [index for index, layer in enumerate(design.layers()) if layer.up == 4]
        for name, design in DESIGNS.items()
    }
    assert ups["T-256"] == ups["R-256"] == [3, 5, 7, 10]
    assert ups["T-512"] == [2, 4, 6, 8, 10]
    assert ups["T-1024"] == ups["R-1024"] == [2, 4, 5, 7, 9, 10]
    layers = DESIGNS["T-1024"].layers()
    assert {layer.down for layer in layers[:-1]} == {2}
    assert {(layer.up_taps, layer.up) for layer in layers[:-1]} == {(12, 2), (24, 4)}
    assert (layers[-1].up, layers[-1].down, layers[-1].up_taps, layers[-1].down_taps) == (1, 1, 1, 1)
    assert row_resolutions(spec_of(DESIGNS["T-1024"])) == (16, 16, 16, 32, 32, 64, 128, 128, 256, 256, 512, *[1024] * 5)


@pytest.mark.parametrize(
    ("name", "plain", "doubling", "cropping"),
    [("T-1024", (9, 8), (-6, -9), (-11, -12)), ("R-1024", (11, 10), (-2, -5), (-9, -10))],
)
def test_the_paddings(name: str, plain: tuple[int, int], doubling: tuple[int, int], cropping: tuple[int, int]) -> None:
    layers = DESIGNS[name].layers()
    assert layers[0].pads == plain
    assert layers[2].pads == doubling
    assert layers[13].pads == cropping
    assert layers[14].pads == (0, 0)


def test_half_precision_begins_where_it_does_in_the_official_networks() -> None:
    first = {name: next(layer.name for layer in DESIGNS[name].layers() if layer.use_fp16) for name in NAMES}
    assert first == {"T-256": "L3_52_512", "R-256": "L3_52_1024", "T-512": "L4_84_512", "T-1024": "L5_148_512"}


def test_separable_filters() -> None:
    assert kaiser_beta(12, 12, 32) == pytest.approx(6.443719, abs=1e-6)
    first = (0.00079190, 0.01001832, 0.03894952, 0.09241279, 0.15652562, 0.20130185)
    assert np.allclose(low_pass(12, 2.0, 12.0, 32.0), (*first, *first[::-1]), atol=1e-8)
    filters = DESIGNS["T-1024"].filters()
    second = (-0.00033991, -0.00029957, 0.00087359, 0.00421339, 0.01076619, 0.02124500, 0.03567749, 0.05317197)
    assert np.allclose(filters["synthesis.L2_52_512.up_filter"][:8], second, atol=1e-8)
    last = (0.02337425, 0.03444930, -0.05088070, -0.07861523, 0.13961044, 0.43206194)
    assert np.allclose(filters["synthesis.L13_1024_32.up_filter"][:6], last, atol=2e-8)


def test_radial_filters() -> None:
    taps = radial_low_pass(12, 2.0, 12.0, 32.0)
    found = taps[0, 0], taps[0, 5], taps[3, 4], taps[5, 5]
    assert np.allclose(found, (0.000000841, 0.000205262, 0.014584850, 0.038754885), atol=1e-9)
    assert np.allclose(taps, taps.T)
    assert np.allclose(taps, taps[::-1])
    radial = [name for name, values in DESIGNS["R-256"].filters().items() if values.ndim == 2]
    assert radial == [f"synthesis.{layer.name}.down_filter" for layer in DESIGNS["R-256"].layers()[:12]]
    assert all(values.ndim == 1 for values in DESIGNS["T-256"].filters().values())


def test_every_filter_sums_to_one() -> None:
    for name in ("T-512", "R-512"):
        assert all(values.sum() == pytest.approx(1.0, abs=1e-5) for values in DESIGNS[name].filters().values())
