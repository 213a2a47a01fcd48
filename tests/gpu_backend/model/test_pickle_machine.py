"""The pickle machine: what it understands, what it refuses, and what it lets a file ask for."""

import pickle
import pickletools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from gpu_backend.errors import CancelledError
from gpu_backend.model.budget import Budget
from gpu_backend.model.names import NameTable
from gpu_backend.model.pickle_machine import _OPERATIONS, PickleMachine
from gpu_backend.model.records import Span, TextSpan
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.source import BytesSource
from gpu_backend.model.watch import Watch


def load(content: bytes, *, window: int = 16, watch: Watch | None = None) -> Any:
    machine = PickleMachine(
        BytesSource(content),
        0,
        len(content),
        find_name=NameTable({("known", "name"): list}, set()).find,
        find_persistent=None,
        budget=Budget(),
        watch=watch or Watch(),
        window=window,
    )
    return machine.load()


VALUES: list[Any] = [
    None,
    True,
    [1, -1, 255, 256, 70000, -(2**31), 2**40, -(2**100)],
    [0.5, float("inf"), -1e300],
    {"a": (1,), "b": (1, 2), "c": (1, 2, 3), "d": (1, 2, 3, 4), "e": ()},
    {"same": ["x" * 300] * 3, "grüße": "ü" * 100, 3: {4.5: None}, ("b", "a"): []},
    [list(range(3000)), {str(index): index for index in range(3000)}],
]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("window", [1, 16, 1 << 16])
def test_plain_values_come_out_as_they_went_in(value: Any, protocol: int, window: int) -> None:
    assert load(pickle.dumps(value, protocol), window=window) == value


def test_sets_come_out_as_they_went_in() -> None:
    assert load(pickle.dumps({"a", 1, None}, 4)) == {"a", 1, None}


def test_byte_strings_and_long_texts_stay_where_they_are() -> None:
    content = pickle.dumps([b"abc", "x" * 5000], 4)
    first, second = load(content)
    assert isinstance(first, Span)
    assert content[first.start : first.stop] == b"abc"
    assert isinstance(second, TextSpan)
    assert content[second.start : second.stop] == b"x" * 5000


def test_a_known_name_is_looked_up_and_its_record_made() -> None:
    assert load(b"\x80\x02cknown\nname\n(K\x01K\x02tR.") == [1, 2]


KNOWN = {"INST", "OBJ", "EXT1", "EXT2", "EXT4", "PERSID", "INT", "LONG", "STRING", "UNICODE", "FLOAT", "GET", "PUT"}
REFUSED = KNOWN | {"DUP", "FROZENSET", "BINSTRING", "SHORT_BINSTRING", "NEXT_BUFFER", "READONLY_BUFFER"}


def test_the_operations_that_are_not_understood_are_these() -> None:
    understood = {chr(code) for code in _OPERATIONS} | {"."}
    assert {opcode.name for opcode in pickletools.opcodes if opcode.code not in understood} == REFUSED


@pytest.mark.parametrize("opcode", [opcode for opcode in pickletools.opcodes if opcode.name in REFUSED])
def test_any_other_operation_refuses_the_file(opcode: Any) -> None:
    with pytest.raises(Refusal, match="operation 0x"):
        load(b"\x80\x04" + opcode.code.encode("latin-1") + b"\x01\x00\x00\x00\n\n\n.")


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"\x80\x04cos\nsystem\n.", "'os system'"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "'os system'"),
        (b"\x80\x04K\x01K\x02\x93.", "found something else"),
        (b"\x80\x04c" + b"a" * 300 + b"\nb\n.", "a longer one"),
        (b"\x80\x04K\x01)R.", "it calls an integer"),
        (b"\x80\x04cknown\nname\n]R.", "it calls 'known name'"),
        (b"\x80\x04])R.", "it calls a list"),
        (b"\x80\x04]}b.", "found one for a list"),
        (b"\x80\x04}}K\x01s.", "plain values as keys"),
        (b"\x80\x04}" + b")" + b"\x85" * 1000 + b"Ns.", "plain values as keys"),
        (b"\x80\x04K\x01Q.", "data elsewhere"),
        (b"\x80\x04\x8a\x41" + b"\x01" * 65 + b".", "64 bytes"),
        (b"\x80\x04\x8b\xff\xff\xff\xff.", "64 bytes"),
        (b"\x80\x06N.", "protocol 6"),
        (b"\x80\x01N.", "protocol 1"),
        (b"\x80\x04h\x07.", "never made"),
        (b"\x80\x04a.", "lacks its operands"),
        (b"\x80\x04(t", "ends in the middle"),
        (b"\x80\x04t.", "lacks its operands"),
        (b"\x80\x04(N.", "left over"),
        (b"\x80\x04X\xff\xff\xff\xffabc.", "4294967295 bytes"),
        (b"\x80\x04X\x01\x00\x00\x00\xff.", "UTF-8"),
        (b"\x80\x04](NNNu.", "pairs"),
        (b"\x80\x04K\x01Na.", "a list to append to"),
    ],
)
def test_nonsense_is_refused(content: bytes, part: str) -> None:
    with pytest.raises(Refusal) as caught:
        load(content)
    assert part in caught.value.sentence("x")


def repeated(before: bytes, pieces: Iterable[bytes]) -> bytes:
    return b"\x80\x04" + before + b"".join(pieces) + b"."


@pytest.mark.parametrize(
    ("before", "piece", "times", "part"),
    [
        (b"N", b"\x94", 510_000, "500,000 pickle operations"),
        (b"]", b"\x8fa", 210_000, "200,000 objects"),
        (b"N", b"\x85", 210_000, "200,000 objects"),
        (b"", b"]", 51_000, "50000 values"),
        (b"]", b"X\x00\x10\x00\x00" + b"a" * 4096 + b"a", 4150, "16 MiB"),
    ],
    ids=["operations", "sets", "tuples", "depth", "text"],
)
def test_a_file_may_not_ask_for_more_than_its_budget(before: bytes, piece: bytes, times: int, part: str) -> None:
    with pytest.raises(Refusal) as caught:
        load(repeated(before, [piece] * times), window=1 << 16)
    assert part in caught.value.sentence("x")


def test_too_many_names_are_refused() -> None:
    names = NameTable({}, set(), admits_foreign=True)
    for index in range(2000):
        names.find("timm.models", f"name{index}")
    with pytest.raises(Refusal, match="2000 names"):
        names.find("timm.models", "one_more")


def test_a_memo_index_takes_no_memory() -> None:
    assert load(b"\x80\x04Nr\xff\xff\xff\xff.") is None


def test_a_long_pickle_looks_at_the_watch() -> None:
    calls = iter([False, False, True])
    with pytest.raises(CancelledError):
        load(repeated(b"N", [b"\x94"] * 100_000), watch=Watch(None, lambda: next(calls)))


def test_reading_needs_no_pickle_module() -> None:
    folder = Path(__file__).parents[3] / "gpu_backend" / "model"
    for path in folder.glob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        strangers = [
            line for line in lines if line.strip().startswith(("import pickle", "from pickle ", "import torch"))
        ]
        assert strangers == [], path
