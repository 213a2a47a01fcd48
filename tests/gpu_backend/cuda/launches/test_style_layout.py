"""Where styles lie on a GPU."""

import pytest

from gpu_backend.cuda.launches.style_layout import StyleLayout, pad8
from gpu_backend.ops.styles import Styles, StyleSlot

_STYLES = Styles(
    8,
    (
        StyleSlot("b4.conv1", 0, 12, 12, 0, 0),
        StyleSlot("b4.torgb", 1, 12, 3, 12, -1, 0.3),
        StyleSlot("b8.conv0", 1, 12, 5, 24, 12),
        StyleSlot("b8.conv1", 2, 5, 8, 36, 17),
    ),
    41,
    25,
)


def test_every_slot_takes_whole_groups_of_eight() -> None:
    layout = StyleLayout(_STYLES)
    assert [layout.style_offset(slot.layer) for slot in _STYLES.slots] == [0, 16, 32, 48]
    assert layout.style_width == 56
    assert [layout.demod_offset(layer) for layer in ("b4.conv1", "b8.conv0", "b8.conv1")] == [0, 16, 24]
    assert layout.demod_width == 32
    assert [pad8(channels) for channels in (1, 8, 9, 512)] == [8, 8, 16, 512]


def test_styles_that_a_layer_lacks_are_not_found() -> None:
    layout = StyleLayout(_STYLES)
    with pytest.raises(KeyError, match="torgb"):
        layout.demod_offset("b4.torgb")
    with pytest.raises(KeyError, match="b16"):
        layout.style_offset("b16.conv0")


def test_layouts_of_equal_styles_are_equal() -> None:
    assert StyleLayout(_STYLES) == StyleLayout(_STYLES)
