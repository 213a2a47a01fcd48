"""The script that evaluates drags: known flows, distances, and its tables."""

import csv
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend import Handle, LatentStatistics, Transform
from tests.helpers.moving_picture import NUM_WS, ROW_RESOLUTIONS, SIDE, W_DIM, MovingPicture, moving_statistics
from tests.helpers.packaging_script import packaging_script

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def evaluation(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    return packaging_script("drag_evaluation")


def moved(x: float, y: float) -> torch.Tensor:
    ws = torch.zeros(1, NUM_WS, W_DIM)
    ws[0, 0, 0], ws[0, 0, 1] = x, y
    return MovingPicture().picture(ws)


def test_a_flow_counts_where_the_way_back_ends_at_the_start(evaluation: ModuleType) -> None:
    points = torch.tensor([[24.0, 24.0], [40.0, 30.0]])
    ends, is_kept = evaluation.checked_flow([moved(k, -k / 2) for k in range(7)], points)
    torch.testing.assert_close(ends, points + torch.tensor([6.0, -3.0]), atol=0.5, rtol=0)
    assert is_kept.all()
    _, is_kept = evaluation.checked_flow([moved(0, 0), moved(0, 0).flip(3)], points)
    assert not is_kept.all()


def test_processes_find_what_the_own_process_does(evaluation: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def threads(count: int, context: object, initializer: object, arguments: object) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(count)

    monkeypatch.setattr(evaluation, "ProcessPoolExecutor", threads)
    pictures = [moved(k, -k / 2) for k in range(3)]
    points = torch.tensor([[24.0, 24.0], [40.0, 30.0]])
    with evaluation.Judges(1) as one, evaluation.Judges(2) as two:
        for own, other in zip(one.flow(pictures, points), two.flow(pictures, points), strict=True):
            assert torch.equal(own, other)
        assert torch.equal(one.follow(pictures, points), two.follow(pictures, points))


def test_rows_are_those_of_the_first_seeds_that_have_one(
    evaluation: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys.modules["drag_benchmark"], "RESULTS", tmp_path)
    rows = evaluation._rows("odd", 4, lambda seed: {"seed": seed} if seed % 2 else None, 3)
    assert [row["seed"] for row in rows] == [1, 3, 5, 7]
    assert (tmp_path / "odd.csv").read_text().split() == ["seed", "1", "3", "5", "7"]


class MovedRenderer:
    """Renders stripes and blobs as a transform moves them, exactly."""

    def __init__(self, model: Any, device: str) -> None:
        self._side = model.spec.resolution

    def __enter__(self) -> "MovedRenderer":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def render(self, request: Any) -> Any:
        y, x = (np.mgrid[: self._side, : self._side] + 0.5) / self._side - 0.5
        matrix = np.reshape(request.transform, (3, 3))
        u, v, _ = np.einsum("ij,jyx->iyx", matrix, np.stack([x, y, np.ones_like(x)]))
        channels = [np.sin(31 * u + 5 * v) * np.cos(23 * v), np.sin(19 * v - 3) + np.cos(27 * u), np.sin(17 * (u - v))]
        return SimpleNamespace(image=np.stack(channels, -1).astype(np.float32))


def test_tracking_finds_the_flow_of_a_transform(evaluation: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "Renderer", MovedRenderer)
    monkeypatch.setattr(evaluation, "random_model", lambda shape, seed: _model(shape.resolution))
    monkeypatch.setattr(evaluation, "_GRID", 4)
    monkeypatch.setattr(evaluation, "BETWEEN", 4)
    row = evaluation.exact_flow("R", Transform(0.05, 0.02, -6.0), 0)
    assert row["kept"] > 0.5 * row["points"] > 3
    assert row["moved_px"] > 4.0
    assert row["error_px"] < 1.0


def _model(side: int) -> Any:
    return SimpleNamespace(spec=SimpleNamespace(resolution=side), facts=SimpleNamespace(model_id="0" * 64))


def test_points_of_found_pictures_are_dragged_and_what_is_left_of_the_way_is_told(evaluation: ModuleType) -> None:
    pictures = np.zeros((2, NUM_WS, W_DIM), np.float32)
    model = SimpleNamespace(facts=SimpleNamespace(row_resolutions=ROW_RESOLUTIONS))
    arguments = model, MovingPicture(), moving_statistics(), pictures
    row = evaluation.found_drag(*arguments, 60, 3)
    assert (row["seed"], row["picture"], row["lost"]) == (3, 1, 0)
    assert row["steps"] > 20
    assert row["left"] < 0.5
    assert evaluation.found_drag(*arguments, 0, 3)["left"] == 1.0
    flat = MovingPicture()
    flat._wide = torch.zeros_like(flat._wide)
    assert evaluation.found_drag(model, flat, moving_statistics(), pictures, 60, 3) is None, "nothing to hold on to"


def test_a_pair_is_measured_before_and_after_the_drag(evaluation: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    network = MovingPicture()
    start = torch.zeros(NUM_WS, W_DIM)
    dragged: list[Sequence[Handle]] = []

    def drag_to(*arguments: Any) -> tuple[torch.Tensor, Any]:
        dragged.append(arguments[4])
        states = [SimpleNamespace(tracked=(x + 3.0, y), is_lost=False) for x, y in (h.target for h in arguments[4])]
        return start, SimpleNamespace(step=7, handles=states)

    monkeypatch.setattr(evaluation, "rows_of", lambda network, seed: start if seed < 1000 else start + 20.0)
    monkeypatch.setattr(evaluation, "pictures_between", lambda network, one, other: [one, other])
    monkeypatch.setattr(
        evaluation, "checked_flow", lambda pictures, points: (points + 4.0, torch.ones(len(points), dtype=torch.bool))
    )
    monkeypatch.setattr(
        evaluation, "track_through", lambda pictures, points: (points + 3.0, torch.ones(len(points), dtype=torch.bool))
    )
    monkeypatch.setattr(evaluation, "drag_to", drag_to)
    features = SimpleNamespace(
        maps=lambda picture: picture, distance=lambda one, other: (one - other).abs().mean()[None]
    )
    model: Any = SimpleNamespace(facts=SimpleNamespace(row_resolutions=(4, 8, 32, 64)))
    known = LatentStatistics(torch.ones(W_DIM), torch.zeros(1, W_DIM))
    row = evaluation.pair(model, network, known, evaluation.Judges(1), features, 0, 60)
    assert row["points"] == len(dragged[0]) == 32
    assert row["own_tracker_px"] == pytest.approx(3.0)
    scale = SIDE / evaluation.JUDGED_SIDE
    assert row["distance_before_px"] == pytest.approx(scale * 4 * 2**0.5, abs=1e-3)
    assert row["distance_px"] == pytest.approx(scale * 2**0.5, abs=1e-3)
    assert row["mse"] == row["mse_before"] > 0, "the drag left the picture as it was"
    assert row["ssim"] == row["ssim_before"] < 1
    assert row["features"] == row["features_before"] > 0
    nothing = torch.zeros(len(evaluation.grid_of_points()), dtype=torch.bool)
    monkeypatch.setattr(evaluation, "checked_flow", lambda pictures, points: (points, nothing))
    assert evaluation.pair(model, network, known, evaluation.Judges(1), features, 0, 60) is None


def test_one_command_reads_labels_too(evaluation: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys.modules["drag_benchmark"], "RESULTS", tmp_path)
    asked: list[tuple[str, int, int]] = []

    def drag_sun(model: Any, network: Any, known: Any, seed: int, pixels: int, *, most_steps: int) -> Any:
        asked.append(("sun", pixels, most_steps))
        return {"seed": seed, "sun_error_px": 0.5 * seed} if seed else None

    def drag_edge(model: Any, network: Any, known: Any, kind: str, seed: int, pixels: int, *, most_steps: int) -> Any:
        asked.append((kind, pixels, most_steps))
        return {"seed": seed, f"{kind}_error_px": 1.0}

    for function in (drag_sun, drag_edge):
        monkeypatch.setattr(evaluation, function.__name__, function)
    for name in ("read_model", "open_gradients", "latent_statistics"):
        monkeypatch.setattr(evaluation, name, lambda *arguments, **options: None)
    evaluation.main(["--parts", "sun", "crest", "shore", "--drags", "2", "--most-steps", "9"])
    assert {*asked} == {("sun", 24, 9), ("crest", 12, 9), ("shore", 12, 9)}
    with (tmp_path / "evaluation.csv").open() as file:
        rows = [(row["part"], row["measure"], row["mean"]) for row in csv.DictReader(file)]
    assert rows == [
        ("sun", "sun_error_px", "0.75"),
        ("crest", "crest_error_px", "1.0"),
        ("shore", "shore_error_px", "1.0"),
    ]
    assert {path.name for path in tmp_path.iterdir()} == {"evaluation.csv", "sun.csv", "crest.csv", "shore.csv"}


def test_the_tables_are_written(
    evaluation: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.modules["drag_benchmark"], "RESULTS", tmp_path)
    monkeypatch.setattr(
        evaluation,
        "exact_flow",
        lambda config, transform, seed: {"config": config, "kept": seed, "error_px": 0.5 * seed},
    )
    threads = torch.get_num_threads()
    evaluation.main(["--parts", "flow", "--threads", "1"])
    torch.set_num_threads(threads)
    with (tmp_path / "evaluation.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows == [
        {"part": "flow", "measure": "kept", "drags": "4", "median": "1.5", "mean": "1.5"},
        {"part": "flow", "measure": "error_px", "drags": "4", "median": "0.75", "mean": "0.75"},
    ]
    assert len((tmp_path / "flow.csv").read_text().splitlines()) == 5
    assert "part flow" in capsys.readouterr().out
