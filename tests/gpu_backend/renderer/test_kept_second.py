"""Second latents of masked blends run once, and again when anything changes that they depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from gpu_backend import (
    MASK_SIDE,
    Bend,
    CancelledError,
    DeviceMemoryError,
    DirectionAmount,
    Latent,
    LocalEdits,
    MaskedBlend,
    Model,
    Noise,
    PictureMask,
    Point,
    Recipe,
    Renderer,
    RenderOptions,
    RenderRequest,
    RowRange,
    StyleOffset,
    Transform,
    Truncation,
)
from gpu_backend.plan import kept_second
from gpu_backend.plan.edit_inputs import bendable_layers, style_lengths
from gpu_backend.plan.executor import BoundPlan
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.kept_second import kept_nbytes, key_that_keeps
from gpu_backend.plan.plan import Plan, PlanEdits, PlanKey
from tests.helpers.fake_executor import FakeExecutor
from tests.helpers.networks import NetworkOptions, make_spec, make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import R, make_stylegan3
from tests.helpers.stylegan_xl import make_stylegan_xl

MODELS: dict[str, Model] = {
    "skip": make_stylegan2(resolution=32),
    "resnet": make_stylegan2(resolution=16, architecture="resnet"),
    "orig": make_stylegan2(resolution=16, architecture="orig"),
    "AdaIN": make_stylegan1(resolution=16),
    "T": make_stylegan3(num_layers=5),
    "R": make_stylegan3(num_layers=5, **R),
    "XL": make_stylegan_xl(),
}
TOP = PictureMask(bytes([255]) * (MASK_SIDE**2 // 2) + bytes(MASK_SIDE**2 // 2))
LEFT = PictureMask((bytes([255]) * (MASK_SIDE // 2) + bytes(MASK_SIDE // 2)) * MASK_SIDE)

Change = Callable[[RenderRequest], RenderRequest]


def recipe_of(seed: int, **fields: object) -> Recipe:
    return Recipe(Latent(Point(((seed, 1.0),)), **fields))  # type: ignore[arg-type]


def base_request(renderer: Renderer, first: int = 1) -> RenderRequest:
    """Two blends, of all rows and of some, with a bend, an offset of a style, and noise."""
    spec = renderer.model.spec
    layers, styles = list(bendable_layers(spec)), list(style_lengths(spec))
    blends = (
        MaskedBlend(recipe_of(7), TOP, RowRange(), 0.9, 0.3),
        MaskedBlend(recipe_of(8), LEFT, RowRange(1, 3), 0.7),
    )
    edits = LocalEdits((Bend(layers[1], "gain", 1.5),), (StyleOffset(styles[1], 0, 0.4),), blends)
    noise = Noise("random", 5, 0.8) if spec.noise_layers else Noise()
    return RenderRequest(renderer.facts.model_id, ((recipe_of(first), 1.0),), noise, edits=edits)


def with_blend(place: int = 0, **fields: object) -> Change:
    def change(request: RenderRequest) -> RenderRequest:
        blends = list(request.edits.blends)
        blends[place] = replace(blends[place], **fields)  # type: ignore[arg-type]
        return replace(request, edits=replace(request.edits, blends=tuple(blends)))

    return change


def with_noise(**fields: object) -> Change:
    return lambda request: replace(request, noise=replace(request.noise, **fields))  # type: ignore[arg-type]


def with_bend(amount: float) -> Change:
    def change(request: RenderRequest) -> RenderRequest:
        (bend,) = request.edits.bends
        return replace(request, edits=replace(request.edits, bends=(replace(bend, amount=amount),)))

    return change


def with_offset(amount: float) -> Change:
    def change(request: RenderRequest) -> RenderRequest:
        (offset,) = request.edits.style_offsets
        return replace(request, edits=replace(request.edits, style_offsets=(replace(offset, amount=amount),)))

    return change


def moved(request: RenderRequest) -> RenderRequest:
    return replace(request, transform=Transform(x=0.1, degrees=20.0).matrix)


OF_SECOND: dict[str, Change] = {
    "seed": with_blend(recipe=recipe_of(9)),
    "seed of the other": with_blend(1, recipe=recipe_of(9)),
    "truncation": with_blend(recipe=replace(recipe_of(7), truncation=Truncation(0.4))),
    "direction": with_blend(recipe=recipe_of(7, directions=(DirectionAmount("sefa/0", 2.0),))),
    "bend": with_bend(0.3),
    "style offset": with_offset(-0.8),
}
OF_NOISE: dict[str, Change] = {
    "no noise": with_noise(mode="none"),
    "stored noise": with_noise(mode="const"),
    "seed of the noise": with_noise(seed=6),
    "strength": with_noise(gain=2.0),
    "strength of a layer": with_noise(layer_gains=(1.0, 3.0)),
    "phase": with_noise(phase=90.0),
}
OF_PICTURE: dict[str, Change] = {
    "first latent": lambda request: replace(request, blend=((recipe_of(2), 1.0),)),
    "mask": with_blend(mask=LEFT),
    "strength": with_blend(strength=0.3),
    "soft edge": with_blend(softness=0.8),
}


def changes_of(name: str) -> dict[str, Change]:
    spec = MODELS[name].spec
    noise = OF_NOISE if spec.noise_layers else {}
    return OF_SECOND | noise | OF_PICTURE | ({"transform": moved} if spec.has_transform else {})


CASES = [(name, change) for name in MODELS for change in changes_of(name)]


def bytes_of(renderer: Renderer, request: RenderRequest) -> bytes:
    return renderer.render(request).pixels.tobytes()


def check_against_fresh_ones(name: str, device: str, change: Change, *, in_flight: bool = False) -> None:
    """Render with and without a change, in turns: the bytes are those of renderers that rendered nothing before."""
    with Renderer(MODELS[name], device) as one:
        before, after = base_request(one), change(base_request(one))
        requests = [before, after, base_request(one, 3), before, change(base_request(one, 3)), after]
        if in_flight:
            found = [pending.wait().pixels.tobytes() for pending in [one.submit(request) for request in requests]]
        else:
            found = [bytes_of(one, request) for request in requests]
    assert found[0] != found[1], "the change is seen"
    expected: dict[RenderRequest, bytes] = {}
    for request in dict.fromkeys(requests):
        with Renderer(MODELS[name], device) as fresh:
            expected[request] = bytes_of(fresh, request)
    assert found == [expected[request] for request in requests]


@pytest.mark.parametrize(("name", "change"), CASES)
def test_a_change_is_seen_as_by_a_renderer_that_rendered_nothing_before(name: str, change: str) -> None:
    check_against_fresh_ones(name, "cpu", changes_of(name)[change])


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("name", "change"), CASES)
def test_a_change_is_seen_on_a_gpu_with_two_frames_in_flight(name: str, change: str) -> None:
    check_against_fresh_ones(name, "cuda", changes_of(name)[change], in_flight=True)


@contextmanager
def faked(name: str) -> Iterator[tuple[Renderer, FakeExecutor]]:
    executor = FakeExecutor()
    with Renderer(MODELS[name], executor=executor) as renderer:
        yield renderer, executor


def uses(executor: FakeExecutor) -> list[bool]:
    return [run.uses_kept for run in executor.runs("synthesis") if run.key.edits.blends]


@pytest.mark.parametrize("name", MODELS)
def test_second_latents_run_again_only_when_something_changes_that_they_depend_on(name: str) -> None:
    changes = changes_of(name)
    for change in changes:
        with faked(name) as (renderer, executor):
            request = base_request(renderer)
            for one in (request, request, changes[change](request), changes[change](request), request):
                renderer.render(one)
            keeps = change in OF_PICTURE
            assert uses(executor) == [False, True, keeps, True, keeps], change
            assert len({run.key for run in executor.runs("synthesis")}) == 1


def test_noise_that_is_off_or_stored_may_have_any_seed() -> None:
    with faked("skip") as (renderer, executor):
        for seed in (1, 2, 3):
            renderer.render(replace(base_request(renderer), noise=Noise("const", seed)))
        assert uses(executor) == [False, True, True]


def test_each_batch_size_and_resolution_keeps_what_it_needs() -> None:
    with faked("skip") as (renderer, executor):
        renderer.render(base_request(renderer))
        renderer.render(replace(base_request(renderer), resolution=16))
        requests = [base_request(renderer, first) for first in range(17)]
        renderer.render_batch(requests)
        renderer.render(replace(base_request(renderer), resolution=16))
        runs = executor.runs("synthesis")
        assert [(run.key.batch, run.key.resolution, run.uses_kept) for run in runs] == [
            (1, 32, False),
            (1, 16, False),
            (8, 32, False),
            (8, 32, True),
            (1, 32, True),
            (1, 16, True),
        ]


def test_pictures_of_a_batch_with_noise_of_their_own_have_their_own_second_latents() -> None:
    requests: list[RenderRequest] = []
    with Renderer(MODELS["skip"], "cpu") as renderer:
        for first in range(4):
            requests.append(with_noise(seed=first % 2)(base_request(renderer, first)))
        found = [frame.pixels.tobytes() for frame in renderer.render_batch(requests)]
    for request, one in zip(requests, found, strict=True):
        with Renderer(MODELS["skip"], "cpu") as fresh:
            assert bytes_of(fresh, request) == one


def test_drafts_blend_what_they_keep_themselves() -> None:
    with Renderer(MODELS["skip"], "cpu") as renderer:
        requests = [replace(base_request(renderer, first), resolution=side) for first in (1, 2) for side in (16, None)]
        found = [bytes_of(renderer, request) for request in requests]
    for request, one in zip(requests, found, strict=True):
        with Renderer(MODELS["skip"], "cpu") as fresh:
            assert bytes_of(fresh, request) == one


@pytest.mark.parametrize("name", MODELS)
def test_reference_functions_keep_second_latents_too(name: str) -> None:
    with Renderer(MODELS[name], "cpu") as renderer:
        renderer.options = RenderOptions(use_fused=False)
        requests = [base_request(renderer, first) for first in (1, 2)]
        requests.append(OF_SECOND["seed"](requests[0]))
        plain = [renderer.render(request).pixels.astype(int) for request in requests]
        renderer.options = RenderOptions()
        for request, one in zip(requests, plain, strict=True):
            assert np.abs(renderer.render(request).pixels - one).max() <= 1


def cancel_after(steps: int) -> Callable[[], bool]:
    left = iter([False] * steps)
    return lambda: next(left, True)


@pytest.mark.parametrize("steps", [0, 3, 12, 30])
def test_what_a_cancelled_frame_kept_in_part_is_not_used(steps: int) -> None:
    with Renderer(MODELS["skip"], "cpu") as renderer:
        before = base_request(renderer)
        expected = bytes_of(renderer, before)
        after = OF_SECOND["seed"](before)
        with pytest.raises(CancelledError):
            renderer.render(after, should_cancel=cancel_after(steps))
        assert bytes_of(renderer, before) == expected
        with pytest.raises(CancelledError):
            renderer.render(after, should_cancel=cancel_after(steps))
        found = bytes_of(renderer, after)
    with Renderer(MODELS["skip"], "cpu") as fresh:
        assert bytes_of(fresh, after) == found != expected


@pytest.mark.parametrize("where", ["submit", "wait"])
def test_what_a_failed_run_kept_is_not_used(where: str) -> None:
    with faked("skip") as (renderer, executor):
        request = base_request(renderer)
        renderer.render(request)
        executor.failing[where] = DeviceMemoryError("no room")
        changed = OF_SECOND["seed"](request)
        if where == "submit":  # tried again
            renderer.render(changed)
        else:
            with pytest.raises(DeviceMemoryError):
                renderer.render(changed)
        renderer.render(request)
        renderer.render(request)
        assert uses(executor)[-2:] == [False, True]


def steps_of(renderer: Renderer, request: RenderRequest) -> Sequence[str]:
    steps = renderer.render(replace(request, measure_steps=True)).timings.steps
    assert all(step.time_us > 0 for step in steps)
    return [step.layer for step in steps]


def test_a_measured_frame_lists_the_steps_that_it_ran() -> None:
    with Renderer(MODELS["skip"], "cpu") as renderer:
        request = base_request(renderer)
        first, second = steps_of(renderer, request), steps_of(renderer, request)
        assert list(second) == list(first[-len(second) :])
        assert "synthesis.b16.conv1.keep.second" in first[: -len(second)]
        assert "synthesis.b16.conv1.second" in first[: -len(second)]
        assert len(set(first)) == len(first), "each row of the table has a name of its own"
        assert not any(layer.endswith(".second") for layer in second)
        assert "synthesis.b16.conv1.blend" in second


@pytest.mark.parametrize("most_nbytes", [0, 1 << 30])
def test_what_would_take_too_much_memory_runs_in_every_frame(most_nbytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_second, "MOST_KEPT_NBYTES", most_nbytes)
    with faked("skip") as (renderer, executor):
        renderer.render(base_request(renderer, 1))
        renderer.render(base_request(renderer, 2))
        assert uses(executor) == [False, bool(most_nbytes)]
        held = executor.bound[-1].held
        assert (held["ws"].shape[0], "second_ws" in held) == ((1, True) if most_nbytes else (3, False))


def test_a_device_without_room_to_keep_them_runs_them_in_every_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    with faked("skip") as (renderer, executor):
        tried = []
        bind = executor.bind

        def bind_what_fits(plan: Plan, *, use_fused: bool = True) -> BoundPlan:
            tried.append(plan.kept_steps > 0)
            if plan.kept_steps:
                raise DeviceMemoryError("The fake GPU has too little memory.")
            return bind(plan, use_fused=use_fused)

        monkeypatch.setattr(executor, "bind", bind_what_fits)
        for first in (1, 2, 3):
            renderer.render(base_request(renderer, first))
        assert tried == [True, False], "once: there is no other plan to evict"
        assert uses(executor) == [False] * 3
        held = executor.bound[-1].held
        assert held["ws"].shape[0] == 3
        assert "second_ws" not in held


def test_pictures_are_the_same_whether_second_latents_are_kept_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, model in MODELS.items():
        found = []
        for most_nbytes in (0, 1 << 30):
            monkeypatch.setattr(kept_second, "MOST_KEPT_NBYTES", most_nbytes)
            with Renderer(model, "cpu") as renderer:
                for first in (1, 2):
                    image = renderer.render(replace(base_request(renderer, first), wants_image=True)).image
                    assert image is not None
                    found.append(image)
        for one, other in zip(found[:2], found[2:], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5 * np.abs(one).max(), err_msg=name)


def test_memory_that_is_kept_counts() -> None:
    with Renderer(MODELS["skip"], "cpu") as renderer:
        request = base_request(renderer)
        before = renderer.memory.plans
        renderer.render(replace(request, edits=replace(request.edits, blends=())))
        plain = renderer.memory.plans - before
        renderer.render(request)
        key = PlanKey("id", "synthesis", 1, 32, edits=PlanEdits(blends=(RowRange(), RowRange(1, 3)), keeps_second=True))
        kept = kept_nbytes(build_plan(MODELS["skip"].spec, key))
        assert kept > 50_000
        assert renderer.memory.plans - before - plain >= kept


def test_a_network_of_the_usual_widths_and_1024_pixels_is_kept() -> None:
    spec = make_spec(NetworkOptions(resolution=1024, channel_base=32768, channel_max=512, w_dim=512))
    key = PlanKey("id", "synthesis", 1, 1024, "fp16", edits=PlanEdits(blends=(RowRange(),) * 3))
    keeping = key_that_keeps(key, lambda one: build_plan(spec, one))
    assert keeping.edits.keeps_second
    assert 3 * 250e6 < kept_nbytes(build_plan(spec, keeping)) < 3 * 300e6


@pytest.mark.parametrize("name", MODELS)
def test_second_latents_run_no_layer_after_the_last_that_is_blended(name: str) -> None:
    spec = MODELS[name].spec
    for last in range(spec.num_ws):
        edits = PlanEdits(blends=(RowRange(0, last),), keeps_second=True)
        plan = build_plan(spec, PlanKey("id", "synthesis", 2, spec.resolution, edits=edits))
        first, second = plan.steps[: plan.kept_steps], plan.steps[plan.kept_steps :]
        assert {step.samples for step in first} == {1}
        assert {step.samples for step in second} == {2}
        written = {name for step in first for name in step.outputs}
        read = {name for step in first for name in step.inputs}
        kept = {buffer.name for buffer in plan.buffers if buffer.role == "kept"}
        blended = {step.inputs[1] for step in second if step.op == "blend_samples"}
        assert kept == blended
        assert written - read - kept <= {"demod"}, "nothing is computed in vain"
