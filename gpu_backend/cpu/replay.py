"""Replay of a kernel's torch calls without Python: one TorchScript function for each task and lane.

Python takes a few microseconds for each call of torch, during which no other lane may call. The calls of most kernels
are the same at every run, on the same memory. So after some runs they are recorded, one kernel a run, and compiled as
they are, without optimisations. A function runs without Python's lock. It must write the same bytes as Python did;
where it does not, or where this torch cannot compile it, Python goes on calling. A recorded call takes 6 KB: those
of a StyleGAN2 of 256 x 256 on two lanes take 16 MB.
"""

from __future__ import annotations

import logging
import math
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gpu_backend.cpu.kernel import Kernel
from gpu_backend.cpu.team import Task, Team

_log = logging.getLogger(__name__)

_FIRST_RUN = 3
"""Runs of a plan before the first kernel is recorded: many plans run only once or twice."""
_MOST_KEYS = 4
"""Recordings of a kernel, one for each `Kernel.replay_key`."""


class _CannotReplayError(Exception):
    """A call is none that a TorchScript function can repeat."""


class _Calls:
    """Calls of torch by one lane in one task, as the source of a TorchScript function.

    Tensors that were made before are arguments, and so are views of these: they stay the same at every run. What a
    call returns in memory of its own is a variable.

    Parameters
    ----------
    variables
        Identities of the living variables of all tasks and lanes of a kernel.
    """

    def __init__(self, variables: dict[int, weakref.ref[Tensor]]) -> None:
        self.tensors: list[Tensor] = []
        self._lines: list[str] = []
        self._arguments: dict[int, str] = {}
        self._names: dict[int, str] = {}
        """Identities of the living variables of these calls."""
        self._variables = variables
        self._count = 0

    @property
    def is_empty(self) -> bool:
        return not self._lines

    def source(self, name: str) -> str:
        """Return the source of a function with this name, whose argument is the list of `tensors`."""
        names = [f"t{index}" for index in range(len(self.tensors))]
        arguments = f"{', '.join(names)} = {'t' if len(names) > 1 else 't[0]'}" if names else "pass"
        body = "".join(f"    {line}\n" for line in (arguments, *self._lines))
        return f"def {name}(t: List[Tensor]) -> None:\n{body}"

    def add(self, call: Any, args: Sequence[object], kwargs: dict[str, object], result: object) -> None:
        """Add a call that was made."""
        given = _tensors_in((*args, *kwargs.values()))
        results = [result] if isinstance(result, Tensor) else result
        if not isinstance(results, list | tuple) or not all(isinstance(made, Tensor) for made in results):
            raise _CannotReplayError(f"{call} returns a value to Python")
        schema = call._schema
        if not schema.is_mutable and not any(id(tensor) in self._variables for tensor in given):
            memory = {_memory_of(tensor) for tensor in given} - {0}
            if all(_memory_of(made) in memory for made in results):
                return  # views of fixed memory
        words = [self._text(value) for value in args]
        words += [f"{name}={self._text(value)}" for name, value in kwargs.items() if value is not None]
        line = f"torch.ops.{schema.name.replace('::', '.')}({', '.join(words)})"
        new = [made for made in results if not any(made is tensor for tensor in given)]
        if new and len(new) != len(results):
            raise _CannotReplayError(f"{call} returns old and new tensors")
        if new:
            names = [f"v{self._count + place}" for place in range(len(new))]
            self._count += len(new)
            line = f"{', '.join(names)}{',' if result is not new[0] and len(new) == 1 else ''} = {line}"
            for made, name in zip(new, names, strict=True):
                self._names[id(made)] = name
                self._variables[id(made)] = weakref.ref(made, partial(self._forget, id(made)))
        self._lines.append(line)

    def _text(self, value: object) -> str:
        if isinstance(value, Tensor):
            return self._name(value)
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(self._text, value))}]"
        is_literal = value is None or isinstance(value, bool | int | str | torch.dtype | torch.memory_format)
        if is_literal or (isinstance(value, float) and math.isfinite(value)):
            return repr(value)
        raise _CannotReplayError(f"{value!r} is none of the usual arguments")

    def _name(self, tensor: Tensor) -> str:
        key = id(tensor)
        if key in self._names:
            return self._names[key]
        if key in self._variables:
            raise _CannotReplayError("a tensor that one task makes is used by another")
        if key not in self._arguments:
            self._arguments[key] = f"t{len(self.tensors)}"
            self.tensors.append(tensor)
        return self._arguments[key]

    def _forget(self, key: int, _: object) -> None:
        """Forget a variable that Python freed: another tensor may get its identity."""
        self._names.pop(key, None)
        self._variables.pop(key, None)


class _Recorder(TorchDispatchMode):
    """Adds the calls that this thread makes to `calls`."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler, which takes more than a second

    def __init__(self, calls: _Calls) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls = calls

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[object, ...] = (), kwargs: dict[str, object] | None = None
    ) -> object:
        result = func(*args, **(kwargs or {}))
        self.calls.add(func, args, kwargs or {}, result)
        return result


class _Recording:
    """Functions of a kernel: for each task one a lane, and those of the first lane alone between tasks."""

    def __init__(self, kernel: Kernel, team: Team) -> None:
        """Run the kernel, and record it."""
        self._team = team
        variables: dict[int, weakref.ref[Tensor]] = {}
        tasks: list[list[_Calls]] = [[_Calls(variables)]]
        alone = _Recorder(tasks[0][0])

        def recorded(task: Task) -> Task:
            lanes = [_Calls(variables) for _ in range(team.lanes)]
            after = [_Calls(variables)]
            tasks.extend((lanes, after))
            leader = threading.get_ident()

            def run(lane: int) -> None:
                if threading.get_ident() != leader:
                    with _Recorder(lanes[lane]):
                        task(lane)
                    return
                alone.calls = lanes[lane]
                try:
                    task(lane)
                finally:
                    alone.calls = after[0]

            return run

        with team.wrapping(recorded), alone:
            kernel.run()
        self._tasks = [_compiled(lanes) for lanes in tasks if not all(calls.is_empty for calls in lanes)]

    def run(self) -> None:
        """Do what the kernel does."""
        for functions in self._tasks:
            if len(functions) == 1:
                functions[0]()
            else:
                self._team.run(lambda lane, functions=functions: functions[lane]())  # type: ignore[misc]


class Replay:
    """Runs a kernel, and replays it once it was recorded.

    Parameters
    ----------
    name
        Of the kernel in the log.
    outputs
        What the kernel writes.
    """

    def __init__(self, kernel: Kernel, team: Team, name: str, outputs: Sequence[Tensor]) -> None:
        self._kernel, self._team, self._name, self._outputs = kernel, team, name, outputs
        self._recordings: dict[Hashable, _Recording | None] = {}
        """By key; None where recording failed."""

    def run(self, *, may_record: bool) -> bool:
        """Run the kernel, and return whether it was recorded."""
        key = self._kernel.replay_key()
        recording = self._recordings.get(key)
        if recording is not None:
            recording.run()
            return False
        if not may_record or key is None or key in self._recordings or len(self._recordings) == _MOST_KEYS:
            self._kernel.run()
            return False
        self._recordings[key] = self._recorded()
        return True

    def _recorded(self) -> _Recording | None:
        """Run the kernel, and return its recording if a replay writes the same bytes."""
        try:
            recording = _Recording(self._kernel, self._team)
        except (_CannotReplayError, *_JIT_ERRORS) as error:
            self._kernel.run()  # a lane may have stopped on the way
            _log.info("%s is not replayed: %s", self._name, error)
            return None
        layer, places = self._kernel.layer_output(), {output.data_ptr() for output in self._outputs}
        written = [*self._outputs, *([] if layer is None or layer.data_ptr() in places else [layer])]
        expected = [output.clone() for output in written]
        for output in written:
            if output.is_floating_point():
                output.fill_(math.nan)
        try:
            recording.run()
        except _JIT_ERRORS as error:
            reason = str(error)
        else:
            if all(map(_are_same_bytes, written, expected)):
                return recording
            reason = "its bytes differ"
        self._kernel.run()
        _log.warning("%s is not replayed: %s", self._name, reason)
        return None


class Replays:
    """Replays of the kernels of a plan, recorded one a run."""

    def __init__(self, replays: Sequence[Replay]) -> None:
        self._replays = replays
        self._runs = 0

    def runs(self) -> list[Callable[[], None]]:
        """Return the kernels' parts of the next run, to be called in order."""
        self._runs += 1
        may_record = self._runs > _FIRST_RUN and _can_replay()

        def run(replay: Replay) -> None:
            nonlocal may_record
            if replay.run(may_record=may_record):
                may_record = False

        return [lambda replay=replay: run(replay) for replay in self._replays]  # type: ignore[misc]


_JIT_ERRORS = (RuntimeError, AttributeError, TypeError)
"""What compiling and running TorchScript raises."""


def _can_replay() -> bool:
    """Return whether this torch has TorchScript."""
    return hasattr(torch.jit, "CompilationUnit") and hasattr(torch._C, "ScriptList")


def _compiled(lanes: Sequence[_Calls]) -> list[Callable[[], None]]:
    """Return the functions of a task's lanes."""
    jit: Any = torch.jit
    sources = [calls.source("run") for calls in lanes]
    units = {source: jit.CompilationUnit(source) for source in dict.fromkeys(sources)}
    return [_bound(units[source].run, calls.tensors) for source, calls in zip(sources, lanes, strict=True)]


def _bound(function: Callable[[Any], None], tensors: list[Tensor]) -> Callable[[], None]:
    # A list of TorchScript's own is passed as it is; Python's would be converted at every call, under the lock.
    memory = torch._C.ScriptList(tensors) if tensors else None
    jit: Any = torch.jit
    unoptimized: Callable[[bool], AbstractContextManager[None]] = jit.optimized_execution

    def run() -> None:
        if memory is not None:
            with unoptimized(False):  # for this thread
                function(memory)

    return run


def _tensors_in(values: Sequence[object]) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += _tensors_in(value)
    return found


def _memory_of(tensor: Tensor) -> int:
    """Return the address of a tensor's memory; 0 for packed weights, which have no views."""
    return tensor.untyped_storage().data_ptr() if tensor.layout == torch.strided else 0


def _are_same_bytes(one: Tensor, other: Tensor) -> bool:
    integers = torch.int32 if one.dtype == torch.float32 else one.dtype
    return torch.equal(one.view(integers), other.view(integers))
