"""Projection on small networks: a known picture comes back, the best latent stays, and sizes are checked."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from gpu_backend import (
    LEAST_PHOTO_PX,
    Bend,
    Crop,
    LocalEdits,
    LoomError,
    Model,
    RequestError,
    open_features,
    open_photo,
    read_photo,
)
from gpu_backend.gradients.encoder import PictureEncoder
from gpu_backend.gradients.latents import latent_statistics, sample_w
from gpu_backend.gradients.matched_drafts import MatchedDrafts
from gpu_backend.gradients.network import DifferentiableNetwork, differentiable_network
from gpu_backend.gradients.picture_loss import PictureLoss, psnr, ssim
from gpu_backend.gradients.projection import Projection, pictures_together
from gpu_backend.gradients.projection_settings import ProjectionSettings
from gpu_backend.gradients.time_limit import TimeLimit
from gpu_backend.model.draft_file import Readout
from tests.helpers.golden import CASES, Golden
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import make_stylegan3


@pytest.fixture(scope="module")
def network() -> DifferentiableNetwork:
    return differentiable_network(make_stylegan2(resolution=32, channel_max=12, channel_base=512, w_dim=16, seed=2))


def picture_of(network: DifferentiableNetwork, seed: int) -> np.ndarray:
    """The picture of a random latent, in the range that a file can hold, (1, 3, side, side)."""
    with torch.no_grad():
        rows = sample_w(network, 1, seed)[:, None].expand(1, network.spec.num_ws, -1)
        return network.picture(rows).clamp(-1, 1).numpy()


def run(projection: Projection) -> list[float]:
    losses = []
    while not projection.step().is_done:
        losses.append(projection.report.loss)
    return losses


def test_a_known_picture_comes_back_much_nearer_than_the_best_random_one(network: DifferentiableNetwork) -> None:
    projection = Projection(network, picture_of(network, 77), ProjectionSettings(steps=60, candidates=16))
    while projection.step().stage == "random":
        before = projection.psnr()[0]
    run(projection)
    assert projection.psnr()[0] > before + 3.0
    assert projection.latent.num_ws == network.spec.num_ws


@pytest.mark.parametrize("name", CASES)
def test_a_published_picture_of_a_golden_network_comes_back(name: str) -> None:
    golden = Golden(name)
    network = differentiable_network(golden.model)
    published = golden.arrays["img_psi07"][:1]
    features = open_features(golden.model, network, None)
    assert (features is None) == (name != "S1_sg2ada_skip_64"), "one of the files holds a discriminator"
    projection = Projection(network, published, ProjectionSettings(steps=80, candidates=16), features=features)
    run(projection)
    with torch.no_grad():
        found = network.picture(network.tensor(projection.rows)).numpy()
    deviation = np.linalg.norm(published - published.mean())
    assert np.linalg.norm(found - published) < 0.15 * deviation, "the best of 16 random ones is 0.6 to 0.8 away"


def test_a_picture_with_edits_comes_back_under_the_same_edits(network: DifferentiableNetwork) -> None:
    edited = network.edited(LocalEdits((Bend("b8.conv1", "turn", 90.0), Bend("b16.conv0", "gain", 1.5))))
    known = picture_of(edited, 77)
    found = Projection(edited, known, ProjectionSettings(steps=24, candidates=8))
    while found.step().stage == "random":
        before = found.psnr()[0]
    run(found)
    assert found.psnr()[0] > before + 3.0
    with torch.no_grad():
        shown = edited.picture(torch.from_numpy(found.rows)), network.picture(torch.from_numpy(found.rows))
    assert psnr(shown[0], torch.from_numpy(known)) == pytest.approx(found.psnr()[0], abs=0.01)
    assert psnr(shown[1], torch.from_numpy(known)) < found.psnr()[0] - 3.0, "the edits are not in the latent"


def test_the_best_latent_so_far_stays_whenever_one_stops(network: DifferentiableNetwork) -> None:
    projection = Projection(network, picture_of(network, 5), ProjectionSettings(steps=12, candidates=20))
    assert not projection.has_found
    assert projection.report.loss == math.inf
    best: dict[int, float] = {}
    while not (report := projection.step()).is_done:
        assert report.loss <= best.get(report.resolution, math.inf)
        best[report.resolution] = report.loss
        assert projection.has_found
        assert projection.rows.shape == (1, network.spec.num_ws, network.spec.w_dim)
    assert projection.step().is_done, "a step after the end does nothing"


def test_w_is_searched_at_drafts_then_at_the_full_resolution_and_then_all_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large = make_stylegan2(resolution=256, channel_base=256, channel_max=2)
    projection = Projection(
        differentiable_network(large),
        np.zeros((1, 3, 256, 256), np.float32),
        ProjectionSettings(steps=10, candidates=1),
    )
    searched: list[int] = []
    picture = MatchedDrafts.picture

    def recorded(drafts: MatchedDrafts, rows: torch.Tensor, side: int) -> torch.Tensor:
        if torch.is_grad_enabled():
            searched.append(side)
        return picture(drafts, rows, side)

    monkeypatch.setattr(MatchedDrafts, "picture", recorded)
    seen: list[tuple[str, int]] = []
    while not (report := projection.step()).is_done:
        seen.append((report.stage, report.resolution))
    chosen = [("drafts", 32), ("random", 32), ("scales", 32), ("w", 256), ("rows", 256)]
    assert list(dict.fromkeys(seen)) == chosen, "by full pictures at last"
    assert searched == [64] + [256] * 9


def test_who_stops_at_a_draft_keeps_no_worse_picture_than_before() -> None:
    network = differentiable_network(make_stylegan2(resolution=128, channel_base=512, channel_max=6, w_dim=8))
    wanted = np.random.default_rng(0).uniform(-1, 1, (1, 3, 128, 128)).astype(np.float32)
    projection = Projection(network, wanted, ProjectionSettings(steps=200, candidates=4))
    loss = PictureLoss(torch.from_numpy(wanted))
    while projection.report.stage in ("random", "drafts"):
        projection.step()
    losses = []
    for _ in range(58):
        projection.step()
        with torch.no_grad():
            losses.append(float(loss(network.picture(torch.from_numpy(projection.rows)))))
    assert projection.report.step < 60, "still drafts"
    assert all(after <= before + 1e-4 for before, after in itertools.pairwise(losses))


def test_pictures_that_share_passes_are_found_as_each_alone(network: DifferentiableNetwork) -> None:
    settings = ProjectionSettings(steps=8, candidates=6)
    targets = [picture_of(network, seed) for seed in (5, 77, 6)]
    together = Projection(network, np.concatenate(targets), settings)
    run(together)
    for target, found, rows in zip(targets, together.psnr(), together.rows, strict=True):
        alone = Projection(network, target, settings)
        run(alone)
        assert found == pytest.approx(alone.psnr()[0], abs=0.3)
        np.testing.assert_allclose(rows, alone.rows[0], atol=0.1)


def test_the_best_of_several_starts_goes_on(network: DifferentiableNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ProjectionSettings(steps=20, candidates=12)
    targets = np.concatenate([picture_of(network, seed) for seed in (5, 77)])
    one = Projection(network, targets, settings)
    run(one)
    monkeypatch.setattr("gpu_backend.gradients.projection._STARTS", {"cpu": 3})
    several = Projection(network, targets, settings)
    run(several)
    assert np.mean(several.psnr()) > np.mean(one.psnr()) - 1.0
    assert len(several.latents) == 2


def test_a_processor_projects_pictures_one_by_one(network: DifferentiableNetwork) -> None:
    assert pictures_together(network) == 1


def test_a_network_of_another_family_projects_too() -> None:
    network = differentiable_network(make_stylegan1(resolution=16))
    projection = Projection(network, picture_of(network, 3), ProjectionSettings(steps=6, candidates=3))
    run(projection)
    assert projection.report.is_done


class Clock:
    """Stands still unless a picture is rendered, which takes `picture_s`."""

    def __init__(self, picture_s: float) -> None:
        self.picture_s, self.now_s = picture_s, 0.0

    def __call__(self) -> float:
        return self.now_s

    def count(self, monkeypatch: pytest.MonkeyPatch, network: DifferentiableNetwork) -> None:
        """Let the network's full pictures take their time."""
        plain = network.picture

        def picture(ws: torch.Tensor, resolution: int | None = None) -> torch.Tensor:
            self.now_s += self.picture_s * len(ws)
            return plain(ws, resolution)

        monkeypatch.setattr(network, "picture", picture)


@pytest.mark.parametrize(
    ("picture_s", "reported"),
    [
        (60.0, [(1, 1)]),
        (2.0, [(1, 2), (2, 2)]),
        (0.5, [(1, 10), (3, 10), (5, 10), (7, 10), (9, 10), (11, 11)]),
        (0.01, [(1, 12), (3, 12), (5, 12), (7, 12), (9, 12), (11, 12), (12, 12)]),
    ],
)
def test_random_latents_are_fewer_where_pictures_take_long(
    monkeypatch: pytest.MonkeyPatch, picture_s: float, reported: list[tuple[int, int]]
) -> None:
    network = differentiable_network(make_stylegan3(seed=3))
    clock = Clock(picture_s)
    clock.count(monkeypatch, network)
    settings = ProjectionSettings(steps=2, candidates=12, start_s=5.0)
    projection = Projection(network, picture_of(network, 3), settings, clock=clock)
    first = projection.step()
    assert projection.has_found
    assert math.isfinite(first.loss)
    np.testing.assert_array_equal(projection.rows[0, 0], network.mean_w, "the mean comes first")
    seen = [first]
    while (report := projection.step()).stage == "random":
        seen.append(report)
        clock.now_s += 100.0  # other work of the thread between two steps does not count
    assert [(report.step, report.steps) for report in seen] == reported


def test_drafts_are_matched_to_fewer_pictures_where_these_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    network = differentiable_network(make_stylegan1(resolution=64))
    clock = Clock(2.0)
    clock.count(monkeypatch, network)
    settings = ProjectionSettings(steps=2, candidates=4, start_s=5.0)
    projection = Projection(network, np.zeros((1, 3, 64, 64), np.float32), settings, clock=clock)
    reports = [projection.step() for _ in range(8)]
    assert [(report.stage, report.step, report.steps) for report in reports] == [
        ("random", 0, 4),
        *(("drafts", done, 3) for done in (1, 2, 3)),
        *(("random", done, 4) for done in (1, 3, 4)),
        ("w", 1, 2),
    ]
    assert not any(report.is_done for report in reports)
    assert math.isfinite(reports[0].loss), "the picture of the mean is there before the drafts are matched"


@pytest.mark.parametrize("is_backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("make", [make_stylegan1, make_stylegan3])
def test_a_pass_ends_early_if_its_search_is_cancelled(make: Callable[..., Model], is_backward: bool) -> None:
    network = differentiable_network(make(resolution=16))
    projection = Projection(network, picture_of(network, 3), ProjectionSettings(steps=4, candidates=2))
    while (report := projection.step()).stage == "random" or report.step < report.steps:
        pass
    assert report.stage == "scales"
    rows = projection.rows
    gradient_of = torch.autograd.grad
    seen: list[int] = []

    def picture(drafts: MatchedDrafts, rows: torch.Tensor, side: int) -> torch.Tensor:
        seen.append(side)
        if not is_backward:
            projection.cancel()
        return plain(drafts, rows, side)

    def grad(*arguments: Any) -> Any:
        projection.cancel()
        seen.append(0)
        return gradient_of(*arguments)

    plain = MatchedDrafts.picture
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(MatchedDrafts, "picture", picture)
        patches.setattr(torch.autograd, "grad", grad)
        assert projection.step() == report
        assert projection.step() == report, "and later steps do nothing"
    assert seen == ([16, 0, 0] if is_backward else [16]), "of the loss, and of the pass"
    np.testing.assert_array_equal(projection.rows, rows)
    assert not report.is_done
    assert math.isfinite(projection.psnr()[0]), "the network itself is not cancelled"


def test_a_search_without_time_for_its_start_is_refused(network: DifferentiableNetwork) -> None:
    with pytest.raises(RequestError, match="need some time"):
        Projection(network, picture_of(network, 3), ProjectionSettings(start_s=0.0))


def test_the_encoders_answer_is_compared_with_random_latents(network: DifferentiableNetwork) -> None:
    wanted = sample_w(network, 1, 77)

    class Knowing(PictureEncoder):
        def encode(self, pictures: Any, masks: Any = None) -> torch.Tensor:
            assert pictures.shape == (1, 3, 32, 32)
            return wanted

    settings = ProjectionSettings(steps=3, candidates=1)
    projection = Projection(network, picture_of(network, 77), settings, Knowing(32, {}))
    projection.step()
    assert projection.psnr()[0] > 60
    torch.testing.assert_close(torch.from_numpy(projection.rows[0, 0]), wanted[0])


@pytest.mark.parametrize("is_corrected", [True, False])
def test_an_answer_is_corrected_by_what_the_encoder_says_of_its_own_picture(
    network: DifferentiableNetwork, is_corrected: bool
) -> None:
    wanted = sample_w(network, 2, 77)
    error = 0.3 * (sample_w(network, 2, 5) - wanted)
    # One error in each reading is taken back; another one would be added.
    readings = [wanted + error, wanted + 2.0 * error] if is_corrected else [wanted, wanted + error]
    left = iter(readings)
    encoder: Any = SimpleNamespace(encode=lambda pictures: next(left), scales=None)
    with torch.no_grad():
        targets = network.picture(wanted[:, None].expand(-1, network.spec.num_ws, -1)).numpy()
    projection = Projection(network, targets, ProjectionSettings(steps=3, candidates=8), encoder)
    assert projection.step().step == 0
    np.testing.assert_allclose(projection.rows[:, 0], readings[0], atol=1e-5, err_msg="the answer is shown first")
    assert projection.step().step == 0
    np.testing.assert_allclose(projection.rows[:, 0], wanted, atol=1e-5)
    assert next(left, None) is None
    while projection.step().stage in ("drafts", "random"):
        pass
    np.testing.assert_allclose(projection.rows[:, 0], wanted, atol=1e-5)


def test_the_encoders_answer_is_there_before_readouts_are_fitted() -> None:
    network = differentiable_network(make_stylegan2(resolution=64, channel_base=512, channel_max=4))
    encoder = PictureEncoder.fresh(64, network.mean_w, torch.ones_like(network.mean_w))
    wanted = np.zeros((1, 3, 64, 64), np.float32)
    projection = Projection(network, wanted, ProjectionSettings(steps=3, candidates=8), encoder)
    first = projection.step()
    assert projection.has_found
    assert (first.stage, first.step, first.steps, first.resolution) == ("random", 0, 1, 64)
    assert math.isfinite(first.loss)
    (answer,) = encoder.encode(wanted, np.ones((1, 1, 64, 64)))
    torch.testing.assert_close(encoder.encode(torch.from_numpy(wanted))[0], answer)
    torch.testing.assert_close(torch.from_numpy(projection.rows[0, 0]), answer)
    run(projection)


def test_with_an_encoder_latents_are_compared_where_the_model_has_a_readout() -> None:
    model = make_stylegan2(resolution=128, channel_base=512, channel_max=4)
    readout = Readout(np.array([0, 3], np.int32), np.ones((3, 2), np.float32), np.zeros(3, np.float32))
    network = differentiable_network(replace(model, readouts={64: readout}))
    encoder = PictureEncoder.fresh(128, network.mean_w, torch.ones_like(network.mean_w))
    wanted, settings = np.zeros((1, 3, 128, 128), np.float32), ProjectionSettings(steps=3, candidates=1)
    projection = Projection(network, wanted, settings, encoder)
    reports = [projection.step() for _ in range(3)]
    assert all(report.stage == "random" and np.isfinite(report.loss) for report in reports)
    assert [report.resolution for report in reports] == [128, 128, 64], "first the picture of the answer"
    first = Projection(network, wanted, settings).step()
    assert (first.resolution, np.isfinite(first.loss)) == (32, False), "one for 32 is fitted first"


def test_an_encoders_answer_takes_the_place_of_the_search_of_one_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = differentiable_network(make_stylegan2(resolution=128, channel_base=512, channel_max=4))
    encoder = PictureEncoder.fresh(128, network.mean_w, torch.ones_like(network.mean_w))
    wanted, settings = np.zeros((1, 3, 128, 128), np.float32), ProjectionSettings(steps=10, candidates=1)
    searched: list[tuple[str, int]] = []
    picture = MatchedDrafts.picture

    def recorded(drafts: MatchedDrafts, rows: torch.Tensor, side: int) -> torch.Tensor:
        if torch.is_grad_enabled():
            is_shared = torch.allclose(rows, rows[:, :1], atol=1e-5)
            searched.append(("w" if is_shared else "rows", side))
        return picture(drafts, rows, side)

    monkeypatch.setattr(MatchedDrafts, "picture", recorded)
    run(Projection(network, wanted, settings, encoder))
    # The first step evaluates the answer, so its rows still share one w.
    assert searched == [("w", 128)] + [("rows", 128)] * 9


def test_drafts_without_a_readout_get_one_that_is_fitted(
    network: DifferentiableNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight = torch.from_numpy(np.random.default_rng(3).standard_normal((3, 12)).astype(np.float32))
    bias = torch.tensor([0.3, -0.2, 0.1])[:, None, None]

    def picture(rows: torch.Tensor) -> torch.Tensor:
        """A picture whose box-filtered drafts are a readout of the features at 16."""
        small = torch.einsum("oc,bcyx->boyx", weight, network.features(rows, 16)) + bias
        return torch.nn.functional.interpolate(small, scale_factor=2, mode="nearest")

    monkeypatch.setattr(network, "picture", picture)
    drafts = MatchedDrafts(network, (16, 32))
    assert [done for done, _ in drafts.fit()] == list(range(1, 13))
    rows = sample_w(network, 2, 9)[:, None].expand(-1, network.spec.num_ws, -1)
    wanted = picture(rows)[:, :, ::2, ::2]
    assert (drafts.picture(rows, 16) - wanted).square().mean() < 1e-4 * wanted.square().mean()


def test_readouts_are_fitted_once_for_a_network_unless_time_is_limited() -> None:
    network = differentiable_network(make_stylegan2(resolution=32, channel_max=4))
    assert len(list(MatchedDrafts(network, (16,)).fit(TimeLimit(1000.0)))) == 12
    first = MatchedDrafts(network, (16,))
    assert first.missing == (16,), "with less time there would have been fewer pictures"
    list(first.fit())
    later = MatchedDrafts(network, (16,))
    assert not later.missing
    rows = sample_w(network, 1, 9)[:, None].expand(-1, network.spec.num_ws, -1)
    torch.testing.assert_close(later.picture(rows, 16), first.picture(rows, 16))


def test_drafts_are_read_by_the_readouts_of_the_model() -> None:
    model = make_stylegan2(resolution=32, channel_max=4)
    weight, bias = np.ones((3, 2), np.float32), np.array([1, 2, 3], np.float32)
    network = differentiable_network(replace(model, readouts={16: Readout(np.array([0, 3], np.int32), weight, bias)}))
    drafts = MatchedDrafts(network, (16,))
    assert list(drafts.fit()) == [], "nothing is missing"
    rows = network.mean_w.expand(1, network.spec.num_ws, -1)
    features = network.features(rows, 16)
    wanted = features[:, [0, 3]].sum(1, keepdim=True) + torch.tensor(bias)[:, None, None]
    torch.testing.assert_close(drafts.picture(rows, 16), wanted)


def test_equal_pictures_have_no_loss_and_different_ones_have() -> None:
    one = torch.from_numpy(np.random.default_rng(0).uniform(-1, 1, (2, 3, 32, 32)).astype(np.float32))
    assert PictureLoss(one)(one).tolist() == pytest.approx([0.0, 0.0], abs=1e-5)
    assert float(ssim(one, -one).max()) < 0.1
    moved = one + 0.5
    assert (PictureLoss(one)(moved) > 2.5).all(), "10 times the mean square, and less structure"
    assert psnr(one, one) > 100
    assert psnr(torch.zeros(1, 3, 8, 8), torch.full((1, 3, 8, 8), 0.2)) == pytest.approx(20.0)


def test_a_target_of_another_size_or_with_settings_out_of_range_is_refused(network: DifferentiableNetwork) -> None:
    with pytest.raises(RequestError, match=r"\(3, 32, 32\)"):
        Projection(network, np.zeros((1, 3, 16, 16), np.float32))
    with pytest.raises(RequestError, match="1 to 100,000 steps"):
        Projection(network, np.zeros((1, 3, 32, 32), np.float32), ProjectionSettings(steps=0))


def test_statistics_of_w_measure_its_deviation_and_its_widest_directions() -> None:
    network = differentiable_network(make_stylegan2(c_dim=3, w_dim=6, z_dim=6))
    found = latent_statistics(network, count=600, directions=4)
    w = sample_w(network, 600)
    torch.testing.assert_close(found.deviation, w.std(0), rtol=1e-3, atol=1e-4)
    lengths = found.directions.norm(dim=1)
    assert found.directions.shape == (4, 6)
    assert (lengths[:-1] >= lengths[1:]).all()
    unit = found.directions / lengths[:, None]
    torch.testing.assert_close(unit @ unit.t(), torch.eye(4), atol=1e-4, rtol=0)


def test_photos_are_cropped_to_their_centre_and_turned_as_the_camera_says(tmp_path: Path) -> None:
    folder = tmp_path
    wide = np.zeros((20, 60, 3), np.uint8)
    wide[:, 20:40] = 255  # the centred square is white
    Image.fromarray(wide).save(folder / "wide.png")
    assert read_photo(folder / "wide.png", 8).min() > 0.9
    assert read_photo(folder / "wide.png", 8, crop=Crop(0.0, 4.0, 16.0)).max() == -1.0
    assert read_photo(folder / "wide.png", 8, crop=Crop(45.0, 15.0, 90.0)).max() == -1.0, "kept inside the picture"
    tall = np.zeros((16, 16, 3), np.uint8)
    tall[:8] = (255, 0, 0)
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    Image.fromarray(tall).save(folder / "turned.png", exif=exif)
    turned = read_photo(folder / "turned.png", 16)
    assert turned[0, 0].max() == -1.0
    assert turned[0, -1].min() == 1.0
    Image.new("RGBA", (16, 16), (255, 255, 255, 0)).save(folder / "clear.png")
    assert read_photo(folder / "clear.png", 4).max() == -1.0
    assert read_photo(folder / "wide.png", 8, channels=1).shape == (1, 8, 8)


def test_a_photo_is_opened_upright_in_eight_bits_and_reduced(tmp_path: Path) -> None:
    levels = np.linspace(0, 65535, 64 * 16, dtype=np.uint16).reshape(16, 64)
    path = tmp_path / "grey.png"
    Image.fromarray(levels).save(path)
    assert read_photo(path, 16, channels=1).min() < -0.2, "not white above 255"
    picture, size = open_photo(path, longest=32)
    assert (picture.mode, picture.size, size) == ("RGB", (32, 8), (64, 16))
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (640, 320)).save(tmp_path / "turned.jpg", exif=exif)
    picture, size = open_photo(str(tmp_path / "turned.jpg"), longest=32)
    assert (picture.size, size) == ((16, 32), (320, 640))


def test_a_photo_with_damaged_exif_data_is_opened_as_it_lies(tmp_path: Path) -> None:
    for number, exif in enumerate((b"Exif\0\0no TIFF", b"Exif\0\0MM\0*\0\0")):
        path = tmp_path / f"{number}.png"
        Image.new("RGB", (8, 4)).save(path, exif=exif)
        picture, size = open_photo(path)
        assert picture.size == size == (8, 4)


def test_a_photo_of_floats_is_not_black(tmp_path: Path) -> None:
    levels = np.linspace(0.0, 1.0, 16 * 16, dtype=np.float32).reshape(16, 16)
    levels[0, 0] = np.nan
    for name, scale in (("ones.tif", 1.0), ("bytes.tif", 255.0)):
        Image.fromarray(levels * np.float32(scale)).save(tmp_path / name)
        read = read_photo(tmp_path / name, 16, channels=1)
        np.testing.assert_allclose(read[0, 1:], 2.0 * levels[1:] - 1.0, atol=0.01)


def test_a_file_that_is_no_picture_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "words.png"
    path.write_text("no picture")
    with pytest.raises(LoomError, match=r"words\.png should be a picture"):
        read_photo(path, 8)
    with pytest.raises(RequestError, match="1, 3 or 4 channels"):
        read_photo(path, 8, channels=2)


def test_a_photo_of_few_pixels_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "line.png"
    Image.new("RGB", (40, LEAST_PHOTO_PX - 1)).save(path)
    with pytest.raises(LoomError, match=r"line\.png should have at least 16 x 16 pixels, but has 40 x 15\."):
        read_photo(path, 8)
    assert open_photo(path, "L")[1] == (40, 15), "a mask may be smaller"


def test_pictures_may_be_lists_and_tensors(network: DifferentiableNetwork) -> None:
    picture = picture_of(network, 3)
    settings = ProjectionSettings(steps=1, candidates=2)
    run(Projection(network, picture, settings))  # fits the network's drafts, in steps that later ones do not need
    losses = [run(Projection(network, given, settings)) for given in (picture, picture.tolist(), torch.tensor(picture))]
    assert losses[1] == losses[0] == losses[2]
    with pytest.raises(RequestError, match="must not need gradients"):
        Projection(network, torch.tensor(picture, requires_grad=True), settings)
    wrong: Any
    for wrong in (None, "picture", picture + 1j):
        with pytest.raises(RequestError, match="must be an array of numbers"):
            Projection(network, wrong, settings)
    with pytest.raises(RequestError, match=r"must be n x \(3, .* but there are \(3, "):
        Projection(network, picture[0], settings)
