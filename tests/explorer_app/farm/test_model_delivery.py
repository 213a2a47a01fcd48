import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest

from explorer_app.farm import model_delivery
from explorer_app.farm.errors import WorkerLostError
from explorer_app.farm.farm_model import FarmModel
from explorer_app.farm.model_delivery import ModelDelivery
from explorer_app.farm.model_store import ModelStore

MODEL = FarmModel(Path("cats.safetensors"), "cats", "ab" * 32)


class Link:
    """Two workers of one machine, which share a store; an upload takes until `came` is set."""

    def __init__(self) -> None:
        self.came = asyncio.Event()
        self.began = asyncio.Event()
        self.brought: list[list[str]] = []
        self.suffixes: list[str] = []

    async def call(self, worker: str, method: str) -> str:
        assert method == "identity"
        return "machine"

    async def bring_model(self, path: Path, model_id: str, suffix: str, workers: list[str]) -> None:
        self.brought.append(workers)
        self.suffixes.append(suffix)
        self.began.set()
        await self.came.wait()


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_delivery, "_GATHERING_S", 0.0)


async def _two_requests(*, is_later: bool) -> list[list[str]]:
    """The second worker asks while the first one's copy is under way, or says later that it lacks the model."""
    delivery, link = ModelDelivery(MODEL), Link()
    farm: Any = link
    first = asyncio.create_task(delivery.bring(farm, "one", since=delivery.uploads))
    await link.began.wait()
    before = delivery.uploads
    if is_later:
        link.came.set()
        await first
        before = delivery.uploads
    second = asyncio.create_task(delivery.bring(farm, "two", since=before))
    await asyncio.sleep(0)
    link.came.set()
    await asyncio.gather(first, second)
    return link.brought


def test_a_worker_that_asks_while_its_machine_gets_the_model_does_not_get_it_again() -> None:
    assert asyncio.run(_two_requests(is_later=False)) == [["one"]]


def test_a_model_that_a_machine_has_lost_is_brought_again() -> None:
    assert asyncio.run(_two_requests(is_later=True)) == [["one"], ["two"]]


class FailingLink:
    """Workers with a store each; `lost` dies when a model comes."""

    def __init__(self, lost: str) -> None:
        self.lost = lost
        self.whole: list[str] = []

    async def call(self, worker: str, method: str) -> str:
        return f"store of {worker}"

    async def bring_model(self, path: Path, model_id: str, suffix: str, workers: list[str]) -> None:
        if self.lost in workers:
            raise WorkerLostError("A worker ended while it rendered.", has_died=True)
        self.whole += workers


def test_a_worker_gets_the_model_although_another_one_dies_meanwhile() -> None:
    async def bring(lost: str) -> tuple[list[str], list[object]]:
        delivery, link = ModelDelivery(MODEL), FailingLink(lost)
        farm: Any = link
        tasks = [asyncio.create_task(delivery.bring(farm, worker, since=0)) for worker in ("one", "two")]
        ends: list[object] = list(await asyncio.gather(*tasks, return_exceptions=True))
        return link.whole, ends

    assert asyncio.run(bring("two")) == (["one"], [None, None])
    whole, ends = asyncio.run(bring("one"))
    assert isinstance(ends[0], WorkerLostError), "a worker's own death is not hidden"
    assert (whole, ends[1]) == ([], None), "it asks again"


def test_a_worker_gets_the_model_although_another_one_of_its_machine_dies() -> None:
    class SharedStore(FailingLink):
        async def call(self, worker: str, method: str) -> str:
            return "machine"

    async def bring() -> list[str]:
        delivery, link = ModelDelivery(MODEL), SharedStore("two")
        farm: Any = link
        await asyncio.gather(*(delivery.bring(farm, worker, since=0) for worker in ("one", "two")))
        return link.whole

    assert asyncio.run(bring()) == ["one"]


@pytest.mark.parametrize(("name", "suffix"), [("cats.PT", ".pt"), ("cats.ckpt", ".pkl"), ("cats", ".pkl")])
def test_a_model_is_kept_under_a_suffix_that_workers_take(name: str, suffix: str, tmp_path: Path) -> None:
    link = Link()
    link.came.set()
    farm: Any = link
    delivery = ModelDelivery(FarmModel(Path(name), "cats", "ab" * 32))
    asyncio.run(delivery.bring(farm, "one", since=0))
    assert link.suffixes == [suffix]
    store = ModelStore(tmp_path)
    store.begin()
    store.add_piece(0, b"weights")
    model_id = hashlib.sha256(b"weights").hexdigest()
    store.finish(model_id, suffix)
    assert store.candidates(model_id, "cats", name) == [tmp_path / f"{model_id}{suffix}"]
