import numpy as np

from gpu_backend import Frame, FrameTimings, RenderRequest


def frame_of(has_alpha: bool) -> Frame:
    pixels = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
    return Frame(RenderRequest("a"), pixels, FrameTimings(1.0, 0.1, 0.8), has_alpha=has_alpha)


def test_width_and_height_are_those_of_the_pixels() -> None:
    assert (frame_of(False).width, frame_of(False).height) == (3, 2)


def test_rgb_turns_the_order_around_and_leaves_the_unused_byte_out() -> None:
    rgb = frame_of(False).to_rgb()
    assert rgb.shape == (2, 3, 3)
    assert rgb[0, 0].tolist() == [2, 1, 0]
    assert rgb.flags.c_contiguous


def test_alpha_is_kept_where_there_is_one() -> None:
    assert frame_of(True).to_rgb()[0, 1].tolist() == [6, 5, 4, 7]
