import math

import numpy as np
import pytest

from gpu_backend.errors import RequestError
from gpu_backend.latent.classes import class_label, picking_labels


def test_one_class_is_one_hot() -> None:
    assert class_label([(2, 1.0)], 4).tolist() == [0.0, 0.0, 1.0, 0.0]


def test_weights_are_continuous_and_add_up() -> None:
    assert class_label([(0, 0.25), (3, 0.5), (0, 0.25)], 4).tolist() == [0.5, 0.0, 0.0, 0.5]


def test_no_class_is_an_all_zero_label() -> None:
    label = class_label([], 3)
    assert label.dtype == np.float32
    assert label.tolist() == [0.0, 0.0, 0.0]
    assert class_label([], 0).shape == (0,)


@pytest.mark.parametrize("index", [-1, 5])
def test_a_class_that_does_not_exist_is_refused_with_a_sentence(index: int) -> None:
    with pytest.raises(RequestError, match=f"must be in 0..4 for this network, not {index}"):
        class_label([(index, 1.0)], 5)


@pytest.mark.parametrize("index", [1.0, "1", None])
def test_a_class_that_is_no_whole_number_is_a_type_error(index: object) -> None:
    with pytest.raises(TypeError, match="A class is a whole number, not"):
        class_label(((index, 1.0),), 3)  # type: ignore[arg-type]


def test_a_class_for_a_network_without_classes_is_refused() -> None:
    with pytest.raises(RequestError, match="has no classes, but class 3 was requested"):
        class_label([(3, 1.0)], 0)


def test_a_weight_that_is_not_finite_is_refused() -> None:
    with pytest.raises(RequestError, match="weight of class 1 must be a finite number"):
        class_label([(1, math.nan)], 5)


def test_labels_that_pick_have_length_1_and_empty_ones_pick_the_first_class() -> None:
    labels = np.array([[0, 1, 0], [0, 0, 0], [0.25, 0, -1], [0, 0.2, 0]], np.float32)
    found = picking_labels(labels)
    assert found.dtype == np.float32
    assert found == pytest.approx(np.array([[0, 1, 0], [1, 0, 0], [0.2, 0, -0.8], [0, 1, 0]]))
    assert labels[1].tolist() == [0, 0, 0], "the ones that came are left alone"
    assert picking_labels(found) is found
