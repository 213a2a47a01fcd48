"""Dragging on a network that moves a picture: where the content goes is known exactly."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from gpu_backend import CancelledError, Model, RequestError, RowRange
from gpu_backend.gradients import drag as drag_module, tracking
from gpu_backend.gradients.drag import DragOptimizer, default_block
from gpu_backend.gradients.drag_settings import DragReport, DragSettings, Handle, default_drag_rows
from gpu_backend.gradients.forward_plans import ForwardPlans
from gpu_backend.gradients.latents import latent_statistics
from gpu_backend.gradients.network import differentiable_network
from tests.helpers.moving_picture import NUM_WS, ROW_RESOLUTIONS, SIDE, W_DIM, MovingPicture, moving_statistics
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import StyleGAN3Options, make_stylegan3

FAST = DragSettings(rate=0.05)
TO_THE_RIGHT = (Handle((30.0, 30.0), (40.0, 33.0)),)


def drag_of(
    network: MovingPicture, settings: DragSettings = FAST, handles: tuple[Handle, ...] = TO_THE_RIGHT
) -> DragOptimizer:
    rows = np.zeros((NUM_WS, W_DIM), np.float32)
    return DragOptimizer(network, moving_statistics(), rows, ROW_RESOLUTIONS, handles, settings)


def settle(drag: DragOptimizer, most: int = 200) -> DragReport:
    for _ in range(most):
        if drag.step().is_settled:
            break
    return drag.report


@pytest.mark.parametrize("family", ["stylegan2", "stylegan3"])
def test_the_content_of_a_handle_arrives_at_its_target(family: str) -> None:
    drag = drag_of(MovingPicture(family))
    report = settle(drag)
    assert report.is_settled
    assert drag.rows[0, :2] == pytest.approx([10.0, 3.0], abs=1.5)
    (handle,) = report.handles
    assert handle.distance < 0.01
    assert handle.position == pytest.approx((40.0, 33.0), abs=0.01)
    assert handle.tracked == pytest.approx((40.0, 33.0), abs=2.5), "pictures, which the loss does not see, agree"
    assert not handle.is_lost


def test_a_step_runs_the_network_once() -> None:
    network = MovingPicture()
    drag = drag_of(network)
    for _ in range(20):
        before = network.calls
        drag.step()
        assert network.calls == before + 1


def test_the_target_may_move_while_the_drag_goes_on() -> None:
    drag = drag_of(MovingPicture())
    settle(drag)
    drag.set_target(0, (34.0, 30.0))
    assert not drag.report.is_settled
    assert settle(drag).is_settled
    assert drag.rows[0, :2] == pytest.approx([4.0, 0.0], abs=1.2)


def test_a_pin_holds_its_place_against_a_handle() -> None:
    pinned = drag_of(MovingPicture(), DragSettings(rate=0.05, pins=((12.0, 12.0), (50.0, 50.0), (12.0, 50.0))))
    for _ in range(40):
        pinned.step()
    assert math.hypot(*pinned.rows[0, :2]) < 5.0


def test_a_mask_keeps_what_is_under_it() -> None:
    mask = np.zeros((10, 10), np.float32)
    mask[:, :5] = 1.0
    kept = drag_of(MovingPicture(), DragSettings(rate=0.05, mask=mask, keep=100.0))
    for _ in range(40):
        kept.step()
    assert abs(float(kept.rows[0, 0])) < 5.0


def test_only_the_chosen_rows_change() -> None:
    drag = drag_of(MovingPicture(), DragSettings(rate=0.05, rows=RowRange(1, 2)))
    for _ in range(5):
        drag.step()
    assert not drag.rows[0].any()
    assert not drag.rows[3].any()
    whole = drag_of(MovingPicture())
    for _ in range(5):
        whole.step()
    assert whole.rows[0].any()
    assert not whole.rows[3].any(), "fine rows stay by default"


def test_a_handle_on_a_flat_place_is_refused_and_does_not_pull() -> None:
    drag = drag_of(MovingPicture(is_flat_outside=True), FAST, (Handle((4.0, 4.0), (20.0, 4.0)),))
    report = drag.report
    assert report.handles[0].is_weak
    assert report.is_settled, "no handle pulls"
    drag.step()
    assert not drag.rows.any()


def test_a_handle_on_a_flat_place_of_the_picture_is_refused_whatever_noise_leaves_in_the_features() -> None:
    class Noisy(MovingPicture):
        """The noise of the network stays where it is, and does not show in the picture."""

        def features(self, ws: torch.Tensor, block: int, noise: object = None) -> torch.Tensor:
            found = super().features(ws, block)
            return found + 0.3 * torch.randn(found.shape, generator=torch.Generator().manual_seed(1))

    drag = drag_of(Noisy(is_flat_outside=True), FAST, (Handle((6.0, 6.0), (20.0, 6.0)),))
    assert not drag.report.handles[0].is_weak, "the picture is not known yet"
    report = drag.step()
    assert report.handles[0].is_weak
    assert report.is_settled
    assert drag.step().step == 0, "nothing is done while no handle pulls"


def test_a_refused_handle_pulls_once_it_goes_another_way() -> None:
    network = MovingPicture()
    network._wide = network._wide[:, :, :1].expand_as(network._wide)
    drag = drag_of(network, FAST, (Handle((30.0, 30.0), (30.0, 40.0)),))
    assert drag.step().handles[0].is_weak, "stripes look the same along themselves"
    drag.set_target(0, (30.0, 42.0))
    assert drag.step().handles[0].is_weak
    drag.set_target(0, (38.0, 30.0))
    assert not settle(drag).handles[0].is_weak
    assert drag.rows[0, 0] == pytest.approx(8.0, abs=1.5)


def test_a_handle_whose_content_stays_behind_is_lost_and_no_longer_pulls() -> None:
    class Vanishing(MovingPicture):
        """Shows another picture once w has moved."""

        def picture(self, ws: torch.Tensor, resolution: int | None = None, noise: object = None) -> torch.Tensor:
            found = super().picture(ws, resolution)
            return torch.where(ws[:, :1, :1, None].abs() > 1.0, found.flip(2, 3), found)

    drag = drag_of(Vanishing(), DragSettings(rate=0.3, check_every=2))
    for _ in range(30):
        drag.step()
    assert drag.report.handles[0].is_lost
    assert drag.report.is_settled


@pytest.mark.parametrize("rate", [0.6, 1.0])
def test_steps_after_which_a_handle_is_not_found_again_are_taken_back_and_shorter_ones_arrive(
    rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(drag_module, "_MOST_RETURNS", 0)
        assert settle(drag_of(MovingPicture(), DragSettings(rate=rate))).handles[0].is_lost
    drag = drag_of(MovingPicture(), DragSettings(rate=rate))
    report = settle(drag)
    assert report.is_settled
    assert not report.handles[0].is_lost
    assert drag.rows[0, :2] == pytest.approx([10.0, 3.0], abs=1.6)
    assert report.handles[0].tracked == pytest.approx((40.0, 33.0), abs=2.0)


class Ahead(MovingPicture):
    """Features go half as far again as the picture."""

    def features(self, ws: torch.Tensor, block: int, noise: object = None) -> torch.Tensor:
        farther = ws.clone()
        farther[:, 0, :2] *= 1.5
        return super().features(farther, block)


@pytest.mark.parametrize("family", ["stylegan2", "stylegan3"])
def test_a_handle_takes_hold_again_of_content_that_is_behind_its_features(family: str) -> None:
    drag = drag_of(Ahead(family))
    report = settle(drag)
    assert report.is_settled
    assert drag.rows[0, :2] == pytest.approx([10.0, 3.0], abs=1.6), "at 6.7 and 2 the features have arrived"
    assert report.handles[0].tracked == pytest.approx((40.0, 33.0), abs=1.6)


def test_a_handle_that_comes_no_nearer_is_not_held_for_ever() -> None:
    class Still(MovingPicture):
        """Only the features move."""

        def features(self, ws: torch.Tensor, block: int, noise: object = None) -> torch.Tensor:
            return functional.avg_pool2d(MovingPicture.picture(self, ws), SIDE // block)

        def picture(self, ws: torch.Tensor, resolution: int | None = None, noise: object = None) -> torch.Tensor:
            return super().picture(torch.zeros_like(ws), resolution)

    drag = drag_of(Still())
    report = settle(drag)
    assert report.is_settled
    assert report.handles[0].tracked == pytest.approx((30.0, 30.0), abs=0.1)
    held = drag._failures[0]
    drag.set_target(0, (36.0, 30.0))
    assert held > drag._failures[0] == 0, "a new target is a new start"


def test_handles_are_checked_often_on_their_way_and_seldom_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[int] = []

    def track(*arguments: Any) -> Any:
        checked.append(drag.count)
        return tracking.track(*arguments)

    monkeypatch.setattr(drag_module, "track", track)
    monkeypatch.setattr(DragOptimizer, "_has_arrived", False)
    monkeypatch.setattr(DragOptimizer, "_hold_again", lambda drag: None)
    drag = drag_of(MovingPicture())
    while not drag._handles[0].is_resting:
        drag.step()
    assert checked == list(range(2, drag.count, 2))
    for _ in range(60):
        drag.step()
    assert checked[-1] - checked[-2] == drag._settings.check_every == 8
    drag.set_target(0, (20.0, 30.0))
    seen = len(checked)
    while len(checked) < seen + 3:
        drag.step()
    assert checked[-1] - checked[-2] == 2


def test_a_stored_latent_of_the_present_rows_is_what_the_app_shows() -> None:
    drag = drag_of(MovingPicture())
    drag.step()
    drag.step()
    assert np.frombuffer(drag.latent.rows, "<f4").reshape(NUM_WS, W_DIM) == pytest.approx(drag.rows)


def test_a_drag_lowers_the_loss_of_a_whole_network() -> None:
    model = make_stylegan2(resolution=32, channel_max=8, channel_base=256)
    network = differentiable_network(model)
    rows = np.tile(model.mean_w, (model.spec.num_ws, 1))
    drag = DragOptimizer(
        network,
        latent_statistics(network, count=64),
        rows,
        model.facts.row_resolutions,
        (Handle((10.0, 10.0), (16.0, 10.0)),),
        DragSettings(check_every=0),
    )
    drag.step()
    drag.step()
    first = drag.report.handles[0].distance
    for _ in range(40):
        drag.step()
    assert drag.report.handles[0].distance < first
    assert not np.array_equal(drag.rows, rows)


@pytest.mark.parametrize("family", ["stylegan1", "stylegan3"])
def test_other_families_are_dragged_by_finite_differences(family: str) -> None:
    model: Model = make_stylegan1() if family == "stylegan1" else make_stylegan3(StyleGAN3Options(num_layers=4))
    network = differentiable_network(model)
    rows = np.tile(model.mean_w, (model.spec.num_ws, 1))
    drag = DragOptimizer(
        network,
        latent_statistics(network, count=64, directions=5),
        rows,
        model.facts.row_resolutions,
        (Handle((6.0, 6.0), (9.0, 6.0)),),
        DragSettings(check_every=0, radius=1),
    )
    losses = {}
    for _ in range(30):
        report = drag.step()
        losses[report.step] = report.loss
    assert len(losses) == 5, "an iteration takes a pass for the start and one for each of five directions"
    assert all(math.isfinite(loss) for loss in losses.values())
    assert not np.array_equal(drag.rows, rows)


def drag_of_stylegan3() -> DragOptimizer:
    model = make_stylegan3(StyleGAN3Options(num_layers=4))
    network = differentiable_network(model)
    rows = np.tile(model.mean_w, (model.spec.num_ws, 1))
    statistics = latent_statistics(network, count=64, directions=2)
    handles = (Handle((6.0, 6.0), (9.0, 6.0)),)
    return DragOptimizer(network, statistics, rows, model.facts.row_resolutions, handles, DragSettings(radius=1))


def test_a_check_gives_way_to_a_preview_and_a_step_of_the_search_does_not() -> None:
    drag, alone = drag_of_stylegan3(), drag_of_stylegan3()
    for _ in range(2):
        with pytest.raises(CancelledError):
            drag.step(lambda: True)
    drag.step(lambda: False)
    alone.step()
    for _ in range(4):
        assert drag.step(lambda: True) == alone.step()
    np.testing.assert_array_equal(drag.rows, alone.rows)


def test_a_step_returns_early_if_its_drag_is_cancelled_and_later_ones_do_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drag = drag_of_stylegan3()
    before = drag.step()
    passes: list[str] = []
    plain = ForwardPlans.features

    def features(plans: ForwardPlans, ws: torch.Tensor, layer: str, should_cancel: Callable[[], bool] | None) -> object:
        passes.append(layer)
        drag.cancel()
        found = plain(plans, ws, layer, should_cancel)
        passes.append("finished")
        return found

    monkeypatch.setattr(ForwardPlans, "features", features)
    for _ in range(2):
        assert repr(drag.step()) == repr(before), "the losses are NaN"
    assert len(passes) == 1
    assert "finished" not in passes


def test_a_move_that_makes_things_worse_is_taken_back() -> None:
    class Wild(MovingPicture):
        """Follows w for small moves only: far ones show noise."""

        def picture(self, ws: torch.Tensor, resolution: int | None = None, noise: object = None) -> torch.Tensor:
            found = super().picture(ws, resolution)
            is_far = ws[:, :1, :1, None].abs() > 0.6
            return torch.where(is_far, 5.0 * found.flip(3), found)

    drag = drag_of(Wild("stylegan3"), DragSettings(check_every=0))
    for _ in range(60):
        drag.step()
    assert abs(float(drag.rows[0, 0])) <= 0.6


def test_defaults_choose_coarse_and_middle_rows_and_a_block_of_a_quarter() -> None:
    assert default_drag_rows((4, 8, 8, 16, 16, 32, 32, 64, 64, 128, 128, 256, 256, 256)) == RowRange(0, 6)
    assert default_drag_rows((4, 8, 8, 8)) == RowRange(0, 3)
    assert default_block(MovingPicture()) == 16


@pytest.mark.parametrize(
    ("handles", "settings", "message"),
    [
        ((), FAST, "at least 1 handle, and up to 64 handles and pins, not 0 and 0"),
        ((Handle((math.nan, 0.0), (1.0, 1.0)),), FAST, "finite"),
        (TO_THE_RIGHT, DragSettings(mask=np.full((4, 4), 2.0, np.float32)), "0..1"),
        (TO_THE_RIGHT, DragSettings(rows=RowRange(9, 10)), r"0\.\.3"),
        (TO_THE_RIGHT, DragSettings(rate=-1.0), "at least 0"),
        (TO_THE_RIGHT, DragSettings(block=7), "16, 32, but 7"),
    ],
)
def test_impossible_handles_and_settings_are_refused(
    handles: tuple[Handle, ...], settings: DragSettings, message: str
) -> None:
    with pytest.raises(RequestError, match=message):
        drag_of(MovingPicture(), settings, handles)


def test_points_in_place_of_handles_are_a_type_error() -> None:
    handles: Any = [((94, 68), (118, 68))]
    with pytest.raises(TypeError, match="a list of Handle, but one is a tuple"):
        drag_of(MovingPicture(), FAST, handles)


def test_rows_of_another_network_are_refused() -> None:
    with pytest.raises(RequestError, match="4 finite rows of 6"):
        DragOptimizer(MovingPicture(), moving_statistics(), np.zeros((2, 6), np.float32), ROW_RESOLUTIONS, TO_THE_RIGHT)
    assert SIDE == 64


def test_a_drag_starts_from_a_list_of_rows_too() -> None:
    rows = np.zeros((NUM_WS, W_DIM))
    drag = DragOptimizer(
        MovingPicture(),
        moving_statistics(),
        rows.tolist(),
        ROW_RESOLUTIONS,
        TO_THE_RIGHT,
        FAST,
    )
    assert drag.step() == drag_of(MovingPicture()).step()
