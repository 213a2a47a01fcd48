"""Restricted interpreter for pickles of protocol 2 to 5, which cannot execute code.

It supports the opcodes that network files use and refuses all others. Imported names are looked up in an allowlist,
never imported; a call makes an inert record. Byte strings and long texts are not copied; only their positions are
stored. All resource use is charged to a `Budget`.

The opcodes are described in the standard library's `pickletools`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from gpu_backend.model.budget import Budget
from gpu_backend.model.numpy_values import ArrayRecord, DType
from gpu_backend.model.pickle_values import kind_of, plain_key
from gpu_backend.model.records import Foreign, Name, Namespace, Span, Table, TensorFlowNetwork, TextSpan
from gpu_backend.model.refusal import AGAIN, Refusal
from gpu_backend.model.source import Source
from gpu_backend.model.watch import Watch

_LONG_TEXT = 4096
"""Texts longer than this, in bytes, are stored by position."""

_MAX_LINE = 256
"""Longest module or attribute name."""

_MAX_INTEGER_BYTES = 64
_MAX_STACK = 50_000
_CHECK_EVERY = 4096
"""Opcodes between two checks for cancellation."""

_U16 = struct.Struct("<H")
_I32 = struct.Struct("<i")
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_F64 = struct.Struct(">d")

_WHOLE = "a whole pickle"


class _Mark:
    """Marks a place on the stack."""


_MARK = _Mark()


class PickleMachine:
    """Reads the pickles that follow one another in bytes [start, stop) of a source.

    Parameters
    ----------
    find_name
        Looks up (module, name) in a closed table; raises Refusal for any other.
    find_persistent
        Makes a record of a persistent id; None refuses them.
    window
        Bytes fetched at a time.
    """

    def __init__(
        self,
        source: Source,
        start: int,
        stop: int,
        *,
        find_name: Callable[[str, str], Name],
        find_persistent: Callable[[object], object] | None,
        budget: Budget,
        watch: Watch,
        window: int = 1 << 16,
    ) -> None:
        self._source = source
        self._stop = stop
        self._find_name = find_name
        self._find_persistent = find_persistent
        self._budget = budget
        self._watch = watch
        self._window = window
        self._base = start
        self._data = b""
        self._at = 0
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    @property
    def position(self) -> int:
        """Place in the source behind the last pickle read."""
        return self._base + self._at

    def load(self) -> object:
        """Read one pickle and return its content as records.

        Raises
        ------
        Refusal
            If it is damaged, names what is not in the table, or exceeds the budget.
        """
        self._stack = []
        self._marks = []
        self._memo = {}
        budget, operations = self._budget, _OPERATIONS
        while True:
            code = self._take(1)[0]
            budget.opcodes -= 1
            if budget.opcodes % _CHECK_EVERY == 0:
                self._watch.check()
                budget.take_operations(0)
            if code == _STOP:
                break
            operation = operations.get(code)
            if operation is None:
                raise Refusal("the pickle operations that network files use", f"found operation 0x{code:02x}")
            operation(self)
        if len(self._stack) != 1 or self._marks:
            raise Refusal("a pickle of one value", f"{len(self._stack)} values were left over")
        value: object = self._stack.pop()
        self._memo = {}
        return value

    # Reading

    def _take(self, count: int) -> bytes:
        at = self._at
        if at + count > len(self._data):
            self._base += at
            self._at = at = 0
            self._data = self._source.read(self._base, min(max(count, self._window), self._stop - self._base))
            if count > len(self._data):
                raise Refusal(_WHOLE, "it ends in the middle", AGAIN)
        self._at = at + count
        return self._data[at : at + count]

    def _skip(self, count: int) -> int:
        start = self.position
        if count > self._stop - start:
            raise Refusal(_WHOLE, f"it announces {count} bytes where {self._stop - start} are left", AGAIN)
        if self._at + count <= len(self._data):
            self._at += count
        else:
            self._base, self._at, self._data = start + count, 0, b""
        return start

    def _line(self) -> str:
        end = self._data.find(b"\n", self._at, self._at + _MAX_LINE + 1)
        if end < 0:  # it may continue after the window
            ahead = min(_MAX_LINE + 1, self._stop - self.position)
            self._take(ahead)
            self._at -= ahead
            end = self._data.find(b"\n", self._at, self._at + ahead)
            if end < 0:
                if ahead <= _MAX_LINE:
                    raise Refusal(_WHOLE, "it ends in the middle", AGAIN)
                raise Refusal("names of at most 256 bytes", "found a longer one")
        line = self._take(end - self._at)
        self._at += 1
        return _decoded(line)

    # The stack

    def _push(self, value: object) -> None:
        self._stack.append(value)
        if len(self._stack) > _MAX_STACK:
            raise Refusal(f"at most {_MAX_STACK} values nested or waiting in a pickle", "this one has more")

    def _push_container(self, value: object) -> None:
        self._budget.take_containers()
        self._push(value)

    def _pop(self) -> Any:
        if not self._stack or self._stack[-1] is _MARK:
            raise Refusal(_WHOLE, "an operation lacks its operands")
        return self._stack.pop()

    def _top(self) -> Any:
        if not self._stack or self._stack[-1] is _MARK:
            raise Refusal(_WHOLE, "an operation lacks its operands")
        return self._stack[-1]

    def _pop_to_mark(self) -> list[Any]:
        if not self._marks:
            raise Refusal(_WHOLE, "an operation lacks its operands")
        place = self._marks.pop()
        items = self._stack[place + 1 :]
        del self._stack[place:]
        return items

    def _mark(self) -> None:
        self._marks.append(len(self._stack))
        self._push(_MARK)

    def _pop_operation(self) -> None:
        if self._stack and self._stack[-1] is _MARK:
            self._marks.pop()
            self._stack.pop()
        else:
            self._pop()

    # Values

    def _protocol(self) -> None:
        protocol = self._take(1)[0]
        if not 2 <= protocol <= 5:
            raise Refusal("a pickle of protocol 2 to 5", f"this one says protocol {protocol}")

    def _frame(self) -> None:
        length = _U64.unpack(self._take(8))[0]
        if length > self._stop - self.position:
            raise Refusal(_WHOLE, f"it announces {length} bytes where {self._stop - self.position} are left", AGAIN)

    def _long(self, count: int) -> None:
        if count > _MAX_INTEGER_BYTES:
            raise Refusal(f"integers of at most {_MAX_INTEGER_BYTES} bytes", f"found one of {count} bytes")
        self._push(int.from_bytes(self._take(count), "little", signed=True))

    def _text(self, count: int) -> None:
        if count > _LONG_TEXT:
            start = self._skip(count)
            self._push(TextSpan(start, start + count))
            return
        self._budget.take_text(count)
        self._push(_decoded(self._take(count)))

    def _bytes(self, count: int) -> None:
        start = self._skip(count)
        self._push(Span(start, start + count))

    def _tuple_of(self, count: int) -> None:
        items = [self._pop() for _ in range(count)]
        self._push_container(tuple(reversed(items)))

    def _append(self, items: list[Any]) -> None:
        target = self._top()
        if isinstance(target, list):
            target.extend(items)
        elif not isinstance(target, Foreign):
            raise Refusal("a list to append to", f"found {kind_of(target)}")

    def _set_items(self, items: list[Any]) -> None:
        target = self._top()
        if len(items) % 2:
            raise Refusal("keys and values in pairs", "found one alone")
        if isinstance(target, dict):
            for key, value in zip(items[::2], items[1::2], strict=True):
                target[plain_key(key)] = value
        elif not isinstance(target, Foreign):
            raise Refusal("a dict to fill", f"found {kind_of(target)}")

    def _set_item(self) -> None:
        value = self._pop()
        self._set_items([self._pop(), value])

    def _dict_from_mark(self) -> None:
        items = self._pop_to_mark()
        self._push_container({})
        self._set_items(items)

    def _add_items(self) -> None:
        items = [plain_key(item) for item in self._pop_to_mark()]
        target = self._top()
        if not isinstance(target, set):
            raise Refusal("a set to fill", f"found {kind_of(target)}")
        target.update(items)

    # Memo

    def _put(self, index: int) -> None:
        self._memo[index] = self._top()

    def _get(self, index: int) -> None:
        if index not in self._memo:
            raise Refusal(_WHOLE, "it refers to a value that it never made")
        self._push(self._memo[index])

    # Names, calls, states

    def _global(self) -> None:
        module = self._line()
        self._push(self._find_name(module, self._line()))

    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if not isinstance(name, str) or not isinstance(module, str) or max(len(name), len(module)) > _MAX_LINE:
            raise Refusal("names of at most 256 bytes", "found something else")
        self._push(self._find_name(module, name))

    def _reduce(self) -> None:
        arguments, target = self._pop(), self._pop()
        if not isinstance(target, Name) or target.make is None or not isinstance(arguments, tuple):
            called = f"'{target}'" if isinstance(target, Name) else kind_of(target)
            raise Refusal("calls of the few functions that network files use", f"it calls {called}")
        self._push_container(target.make(arguments))

    def _reduce_with_keywords(self) -> None:
        keywords = self._pop()
        if keywords != {}:
            raise Refusal("objects made without keywords", f"found {kind_of(keywords)}")
        self._reduce()

    def _build(self) -> None:
        state, target = self._pop(), self._top()
        if isinstance(target, Foreign | TensorFlowNetwork | Namespace):
            target.state = state
        elif isinstance(target, DType | ArrayRecord):
            target.set_state(state)
        elif not isinstance(target, Table):
            raise Refusal("states for the few classes that take one", f"found one for {kind_of(target)}")

    def _persistent(self) -> None:
        if self._find_persistent is None:
            raise Refusal("a pickle that holds its data", "it refers to data elsewhere")
        self._push_container(self._find_persistent(self._pop()))


def _decoded(text: bytes) -> str:
    try:
        return text.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise Refusal("texts in UTF-8", "found something else") from None


_STOP = ord(".")

_OPERATIONS: dict[int, Callable[[PickleMachine], None]] = {
    0x80: lambda m: m._protocol(),
    0x95: lambda m: m._frame(),
    ord("("): lambda m: m._mark(),
    ord("0"): lambda m: m._pop_operation(),
    ord("1"): lambda m: m._pop_to_mark().clear(),
    ord("N"): lambda m: m._push(None),
    0x88: lambda m: m._push(True),
    0x89: lambda m: m._push(False),
    ord("J"): lambda m: m._push(_I32.unpack(m._take(4))[0]),
    ord("K"): lambda m: m._push(m._take(1)[0]),
    ord("M"): lambda m: m._push(_U16.unpack(m._take(2))[0]),
    0x8A: lambda m: m._long(m._take(1)[0]),
    0x8B: lambda m: m._long(_U32.unpack(m._take(4))[0]),
    ord("G"): lambda m: m._push(_F64.unpack(m._take(8))[0]),
    ord("X"): lambda m: m._text(_U32.unpack(m._take(4))[0]),
    0x8C: lambda m: m._text(m._take(1)[0]),
    0x8D: lambda m: m._text(_U64.unpack(m._take(8))[0]),
    ord("B"): lambda m: m._bytes(_U32.unpack(m._take(4))[0]),
    ord("C"): lambda m: m._bytes(m._take(1)[0]),
    0x8E: lambda m: m._bytes(_U64.unpack(m._take(8))[0]),
    0x96: lambda m: m._bytes(_U64.unpack(m._take(8))[0]),
    ord("]"): lambda m: m._push_container([]),
    ord("}"): lambda m: m._push_container({}),
    ord(")"): lambda m: m._push(()),
    0x8F: lambda m: m._push_container(set()),
    ord("l"): lambda m: m._push_container(m._pop_to_mark()),
    ord("d"): lambda m: m._dict_from_mark(),
    ord("t"): lambda m: m._push_container(tuple(m._pop_to_mark())),
    0x85: lambda m: m._tuple_of(1),
    0x86: lambda m: m._tuple_of(2),
    0x87: lambda m: m._tuple_of(3),
    ord("a"): lambda m: m._append([m._pop()]),
    ord("e"): lambda m: m._append(m._pop_to_mark()),
    ord("s"): lambda m: m._set_item(),
    ord("u"): lambda m: m._set_items(m._pop_to_mark()),
    0x90: lambda m: m._add_items(),
    ord("q"): lambda m: m._put(m._take(1)[0]),
    ord("r"): lambda m: m._put(_U32.unpack(m._take(4))[0]),
    0x94: lambda m: m._put(len(m._memo)),
    ord("h"): lambda m: m._get(m._take(1)[0]),
    ord("j"): lambda m: m._get(_U32.unpack(m._take(4))[0]),
    ord("c"): lambda m: m._global(),
    0x93: lambda m: m._stack_global(),
    ord("R"): lambda m: m._reduce(),
    0x81: lambda m: m._reduce(),
    0x92: lambda m: m._reduce_with_keywords(),
    ord("b"): lambda m: m._build(),
    ord("Q"): lambda m: m._persistent(),
}
"""Code -> what it does. INST, OBJ, EXT, PERSID, DUP, the texts of protocol 0 and out-of-band buffers are missing."""
