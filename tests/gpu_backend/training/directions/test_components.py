import numpy as np
import pytest

from gpu_backend.latent.sefa import sefa_directions
from gpu_backend.recipe import RowRange
from gpu_backend.training.directions.components import pca_directions, sefa_by_rows
from gpu_backend.training.directions.row_ranges import row_groups
from tests.helpers.networks import make_stylegan2


def test_components_of_w_are_as_long_as_w_spreads_along_them() -> None:
    rng = np.random.default_rng(0)
    turned = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    w = rng.normal(size=(20000, 3)) * [3.0, 2.0, 1.0] @ turned + 5.0
    found = pca_directions(w, RowRange(0, 9), 16)
    assert found.names == ("pca/0", "pca/1", "pca/2")
    assert np.linalg.norm(found.vectors, axis=1) == pytest.approx([3.0, 2.0, 1.0], rel=0.03)
    assert np.abs(found.vectors[0] @ turned.T) == pytest.approx([3.0, 0.0, 0.0], abs=0.15)
    assert [item["share"] for item in found.measures] == pytest.approx([9 / 14, 4 / 14, 1 / 14], abs=0.02)
    assert found.rows == (RowRange(0, 9),) * 3


def test_components_that_w_does_not_have_are_left_out() -> None:
    w = np.random.default_rng(0).normal(size=(50, 2)) @ np.random.default_rng(1).normal(size=(2, 8))
    assert len(pca_directions(w, RowRange(0, 9), 16)) == 2


def test_sefa_by_rows_looks_at_the_affines_of_its_rows_only() -> None:
    model = make_stylegan2(resolution=32)
    found = sefa_by_rows(model, 3)
    assert found.names == ("coarse/0", "coarse/1", "coarse/2", "middle/0", "middle/1", "middle/2")
    for group, where in row_groups(model.facts.row_resolutions).items():
        assert where.last is not None
        rows = range(where.first, where.last + 1)
        layers = [f"synthesis.{layer.name}.affine" for layer in model.spec.layers if layer.w_index in rows]
        expected = sefa_directions(
            [model.weights[f"{name}.weight"] for name in layers],
            [model.weights[f"{name}.bias"] for name in layers],
            model.weights["mapping.w_avg"],
            3,
        )
        place = found.names.index(f"{group}/0")
        assert np.array_equal(found.vectors[place : place + 3], expected.vectors)
        assert found.rows[place] == where
        assert found.reach[place : place + 3] == expected.reach
