"""How a StyleGAN-XL is laid out: a stem, and heads that go on where it was cut."""

from dataclasses import replace

import numpy as np
import pytest

from gpu_backend.model.stylegan3_design import StyleGAN3Design
from gpu_backend.model.stylegan3_filters import low_pass
from gpu_backend.model.stylegan_xl_design import STEM, StyleGANXLDesign


def test_at_the_resolution_of_the_stem_it_is_a_stylegan3_of_ten_layers() -> None:
    design = StyleGANXLDesign(16)
    plain = StyleGAN3Design(16, channel_base=65536, channel_max=1024, num_layers=10)
    assert design.layers() == plain.layers()
    assert design.filters().keys() == plain.filters().keys()
    assert len(design.layers()) == 11


def test_a_head_takes_the_place_of_what_is_critically_sampled_and_leaves_a_number_out() -> None:
    stem, grown = StyleGANXLDesign(16).layers(), StyleGANXLDesign(32).layers()
    assert grown[:8] == stem[:8]
    assert [int(layer.name[1:].split("_")[0]) for layer in grown] == [*range(8), *range(9, 16)]
    assert [layer.w_index for layer in grown] == list(range(1, 16))
    first = grown[8]
    assert (first.in_size, first.in_rate, first.in_channels) == (36, 16, 1024)
    assert (first.out_size, first.out_rate, first.up) == (52, 32, 4)
    assert [(layer.in_size, layer.in_channels) for layer in grown[1:]] == [
        (layer.out_size, layer.out_channels) for layer in grown[:-1]
    ]
    assert grown[-1].kind == "to_rgb"
    assert (grown[-1].out_size, grown[-1].out_channels) == (32, 3)


def test_the_frequencies_of_a_head_go_on_from_the_last_layer_kept() -> None:
    """Cutoff and half width of layer 7 of the stem by its own schedule; from there on by that of the head."""
    filters = StyleGANXLDesign(32).filters()
    cutoff, stopband = 2 * 4 ** (7 / 8), 2**2.1 * (8 * 2**0.3 / 2**2.1) ** (7 / 8)
    half_width = max(stopband, 8) - cutoff
    first = low_pass(24, cutoff, 2 * half_width, 64)
    assert filters["synthesis.L9_52_1024.up_filter"] == pytest.approx(first, abs=1e-7)
    next_cutoff = cutoff * (16 / cutoff) ** (1 / 5)
    next_stopband = (cutoff + half_width) * (16 * 2**0.3 / (cutoff + half_width)) ** (1 / 5)
    after = low_pass(12, next_cutoff, 2 * (max(next_stopband, 16) - next_cutoff), 64)
    assert filters["synthesis.L9_52_1024.down_filter"] == pytest.approx(after, abs=1e-7)
    last = low_pass(12, 16, 2 * (16 * 2**0.3 - 16), 64)
    assert filters["synthesis.L14_32_1024.down_filter"] == pytest.approx(last, abs=1e-7)


def test_every_stage_keeps_the_layers_of_the_one_before() -> None:
    r = replace(STEM, kernel=1, is_radial=True)
    for stem in (STEM, r):
        before = StyleGANXLDesign(16, stem).layers()
        for resolution in (32, 64, 128):
            layers = StyleGANXLDesign(resolution, stem).layers()
            assert layers[: len(before) - 3] == before[:-3]
            assert layers[-1].out_size == resolution
            before = layers
    filters, layers = StyleGANXLDesign(64, r).filters(), StyleGANXLDesign(64, r).layers()
    radial = {layer.name for layer in layers if layer.is_radial}
    assert len(radial) == len(layers) - 3, "the last two are critically sampled, and the toRGB has none"
    assert all(filters[f"synthesis.{name}.down_filter"].ndim == 2 for name in radial)
    assert all(np.isfinite(taps).all() for taps in filters.values())
