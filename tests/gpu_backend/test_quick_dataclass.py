"""Classes whose methods are compiled late are the dataclasses that the standard library makes."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar

import pytest

from gpu_backend import quick_dataclass
from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Late:
    """Fields of every kind."""

    KIND: ClassVar[str] = "late"

    name: str
    size: float = 1.5
    items: list[int] = field(default_factory=list, hash=False)
    note: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.size < 0.0:
            raise ValueError("small")


@dataclasses.dataclass(frozen=True, slots=True)
class Plain:
    """The same, as the standard library makes it."""

    KIND: ClassVar[str] = "late"

    name: str
    size: float = 1.5
    items: list[int] = field(default_factory=list, hash=False)
    note: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """Equal to nothing else."""

    value: int


def same(text: str) -> str:
    return text.replace("Plain", "Late")


def test_values_print_compare_and_hash_as_those_of_the_standard_library() -> None:
    ways: tuple[Callable[[Any], Any], ...] = (
        lambda made: made("a"),
        lambda made: made("a", 2.5, [1], "n"),
        lambda made: made("a", note="other"),
        lambda made: made("b", items=[1]),
    )
    late, plain = [way(Late) for way in ways], [way(Plain) for way in ways]
    assert [repr(value) for value in late] == [same(repr(value)) for value in plain]
    assert [[a == b for a in late] for b in late] == [[a == b for a in plain] for b in plain]
    assert [hash(value) for value in late] == [hash(value) for value in plain]
    assert late[0] != plain[0]
    assert late[0].items is not late[2].items
    assert (Late.KIND, Late.__match_args__) == (Plain.KIND, Plain.__match_args__)
    assert not hasattr(late[0], "__dict__")
    assert Apart(1) != Apart(1)
    assert len({Apart(1), Apart(1)}) == 2


def test_values_cannot_be_changed_and_can_be_replaced() -> None:
    value = Late("a")
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'size'"):
        value.size = 2.0  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'size'"):
        del value.size
    assert dataclasses.replace(value, size=2.0) == Late("a", 2.0)
    assert dataclasses.asdict(value) == {"name": "a", "size": 1.5, "items": [], "note": ""}
    with pytest.raises(ValueError, match="small"):
        Late("a", -1.0)


def test_values_can_be_copied_and_sent_to_another_process() -> None:
    value = Late("a", 2.0, [3], "n")
    for other in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert other == value
        assert other.note == "n"


@pytest.mark.parametrize("words", [(), ("a", 1.0, [], "", 5)])
def test_a_wrong_call_says_what_the_class_is(words: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r"Late\.__init__\(\)"):
        Late(*words)
    with pytest.raises(TypeError, match="unexpected keyword argument 'sise'"):
        Late("a", sise=2.0)  # type: ignore[call-arg]


def test_an_undecorated_subclass_may_have_attributes_of_its_own() -> None:
    class Named(Late):
        def __init__(self, name: str) -> None:
            super().__init__(name.upper())
            self.first = name

    named = Named("x")
    assert (named.name, named.first) == ("X", "x")
    with pytest.raises(dataclasses.FrozenInstanceError):
        named.name = "y"  # type: ignore[misc]


def test_a_method_is_compiled_when_it_is_called_first_and_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    write = quick_dataclass._compiled

    def count(name: str, parameters: str, lines: list[str], names: dict[str, Any]) -> Callable[..., Any]:
        compiled.append(name)
        return write(name, parameters, lines, names)

    monkeypatch.setattr(quick_dataclass, "_compiled", count)

    @dataclass(frozen=True, slots=True)
    class Once:
        value: int

    assert compiled == []
    assert Once(1).value == Once(2).value - 1
    assert compiled == ["__init__"]
    assert {Once(1), Once(1), Once(2)} == {Once(2), Once(1)}
    assert sorted(compiled) == ["__eq__", "__hash__", "__init__"]


def test_classes_that_need_more_are_made_by_the_standard_library_or_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Own:
        value: int

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = object.__hash__

    assert Own(1) == Own(2)

    @dataclass(frozen=True, slots=True)
    class Longer(Late):
        more: int = 0

    assert Longer("a", more=3) == Longer("a", more=3) != Longer("a")

    with pytest.raises(TypeError, match="InitVar"):

        @dataclass(frozen=True, slots=True)
        class Passing:
            value: dataclasses.InitVar[int]
