import numpy as np
import pytest

from gpu_backend import RequestError
from gpu_backend.latent.mapped import MappedAnchors
from gpu_backend.latent.rows import Anchor
from gpu_backend.latent.seeds import seed_to_z


class CountingMap:
    """A mapping network that remembers what it was asked."""

    def __init__(self) -> None:
        self.inputs: list[tuple[np.ndarray, np.ndarray]] = []

    def __call__(self, z: np.ndarray, label: np.ndarray) -> np.ndarray:
        self.inputs.append((z, label))
        return z[:4] + label.sum()


def seed(number: int, *classes: tuple[int, float]) -> Anchor:
    return Anchor(((number, 1.0),), classes)


def test_each_anchor_is_mapped_once() -> None:
    network = CountingMap()
    mapped = MappedAnchors(network, 8, 0)
    first = mapped.fetch((seed(1), seed(2)))
    again = mapped.fetch((seed(2), seed(3), seed(1)))
    assert len(network.inputs) == 3
    assert np.array_equal(first[seed(1)], again[seed(1)])


def test_the_network_gets_the_seeds_z_and_the_label() -> None:
    network = CountingMap()
    MappedAnchors(network, 8, 3).fetch((seed(5, (1, 0.5)),))
    z, label = network.inputs[0]
    assert np.array_equal(z, seed_to_z(5, 8))
    assert label.tolist() == [0.0, 0.5, 0.0]


def test_the_same_seed_with_another_class_is_another_anchor() -> None:
    network = CountingMap()
    MappedAnchors(network, 8, 3).fetch((seed(5, (1, 1.0)), seed(5, (2, 1.0)), seed(5)))
    assert len(network.inputs) == 3


def test_the_least_recently_used_anchor_is_let_go() -> None:
    network = CountingMap()
    mapped = MappedAnchors(network, 8, 0, capacity=2)
    mapped.fetch((seed(1), seed(2)))
    mapped.fetch((seed(1),))
    mapped.fetch((seed(3),))
    assert mapped.nbytes == 2 * 16
    mapped.fetch((seed(1), seed(3)))
    assert len(network.inputs) == 3
    mapped.fetch((seed(2),))
    assert len(network.inputs) == 4


def test_more_anchors_at_once_than_are_kept_all_come_back() -> None:
    assert len(MappedAnchors(CountingMap(), 8, 0, capacity=2).fetch(tuple(seed(n) for n in range(9)))) == 9


def test_the_anchors_of_the_last_call_are_found_without_a_look_at_each() -> None:
    network = CountingMap()
    mapped = MappedAnchors(network, 8, 0)
    anchors = seed(1), seed(2)
    found = mapped.fetch(anchors)
    assert mapped.fetch(anchors) is found
    assert found.stacked(anchors) is found.stacked(anchors)
    other = seed(2), seed(1)
    assert np.array_equal(found.stacked(other), found.stacked(anchors)[::-1])
    mapped.clear()
    assert mapped.fetch(anchors) is not found
    assert len(network.inputs) == 4


def test_a_refused_latent_is_not_cached() -> None:
    mapped = MappedAnchors(CountingMap(), 8, 2)
    with pytest.raises(RequestError, match=r"class must be in 0\.\.1"):
        mapped.fetch((seed(1, (2, 1.0)),))
    assert mapped.nbytes == 0


def test_clearing_forgets_everything() -> None:
    network = CountingMap()
    mapped = MappedAnchors(network, 8, 0)
    mapped.fetch((seed(1),))
    mapped.clear()
    mapped.fetch((seed(1),))
    assert len(network.inputs) == 2
