"""Dataclasses that compile their methods on first use, so that a start of the program does not.

`dataclasses.dataclass` compiles up to eight methods of a frozen class with slots when its module is imported, within a
millisecond. Before its first paint the window imports two hundred such classes, and calls few of their methods.
`dataclass` here gives a class the same fields and methods in a tenth of that time.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen=False, slots=False, eq=True, **options):
        """Return a decorator that does what `dataclasses.dataclass` does with these options."""

        def decorate(made):
            if frozen and slots and not options and _is_plain(made):
                return _deferred(made, eq=eq)
            return dataclasses.dataclass(frozen=frozen, slots=slots, eq=eq, **options)(made)

        return decorate


_GENERATED = (
    "__init__",
    "__repr__",
    "__eq__",
    "__hash__",
    "__setattr__",
    "__delattr__",
    "__getstate__",
    "__setstate__",
)


def _is_plain(made: type[Any]) -> bool:
    """Return whether a class has ordinary fields alone, inherits none, and defines none of the generated methods."""
    is_special = any(
        isinstance(value, dataclasses.Field) and (not value.init or value.kw_only is True)
        for value in made.__dict__.values()
    )
    return not (is_special or dataclasses.is_dataclass(made) or any(name in made.__dict__ for name in _GENERATED))


def _deferred(plain: type[Any], *, eq: bool) -> type[Any]:
    """Return the dataclass of a class, with methods that are compiled on first use."""
    made: type[Any] = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(plain)
    if any(field.kw_only is True or "InitVar" in str(field.type) for field in made.__dataclass_fields__.values()):
        raise TypeError(f"{made.__qualname__} has fields by keyword only, or an InitVar: use dataclasses.dataclass.")
    params = made.__dataclass_params__
    params.init = params.repr = params.frozen = True
    params.eq = eq
    writers: dict[str, Callable[[type[Any]], Callable[..., Any]]] = {"__init__": _init}
    if eq:
        writers |= {"__eq__": _eq, "__hash__": _hash}
    for name, write in writers.items():
        setattr(made, name, _first_call(made, name, write))
    for method in (_repr, _setattr, _delattr, _getstate, _setstate):
        setattr(made, f"_{method.__name__}__", method)
    return made


def _first_call(made: type[Any], name: str, write: Callable[[type[Any]], Callable[..., Any]]) -> Callable[..., Any]:
    """Return a method that compiles the real one on its first call, replaces itself with it and calls it."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        written = write(made)
        written.__qualname__ = f"{made.__qualname__}.{name}"
        setattr(made, name, written)
        return written(self, *args, **options)

    return method


def _compiled(name: str, parameters: str, lines: list[str], names: dict[str, Any]) -> Callable[..., Any]:
    body = "\n ".join(lines or ["pass"])
    exec(f"def {name}({parameters}):\n {body}\n", names)
    written: Callable[..., Any] = names[name]
    return written


def _init(made: type[Any]) -> Callable[..., Any]:
    """Write the constructor; it stores by the slots' descriptors, which the class's `__setattr__` does not refuse."""
    names: dict[str, Any] = {"_made": dataclasses.MISSING}
    parameters, lines = ["_self"], []
    for field in dataclasses.fields(made):
        key, value = field.name, field.name
        names[f"_set_{key}"] = made.__dict__[key].__set__
        if field.default is not dataclasses.MISSING:
            names[f"_default_{key}"] = field.default
            parameters.append(f"{key}=_default_{key}")
        elif field.default_factory is not dataclasses.MISSING:
            names[f"_factory_{key}"] = field.default_factory
            parameters.append(f"{key}=_made")
            value = f"_factory_{key}() if {key} is _made else {key}"
        else:
            parameters.append(key)
        lines.append(f"_set_{key}(_self, {value})")
    if hasattr(made, "__post_init__"):
        lines.append("_self.__post_init__()")
    return _compiled("__init__", ", ".join(parameters), lines, names)


def _values(owner: str, keys: list[str]) -> str:
    """Return the source of a tuple of fields."""
    return f"({''.join(f'{owner}.{key}, ' for key in keys)})"


def _eq(made: type[Any]) -> Callable[..., Any]:
    keys = [field.name for field in dataclasses.fields(made) if field.compare]
    return _compiled(
        "__eq__",
        "_self, _other",
        [
            "if _other.__class__ is not _self.__class__: return NotImplemented",
            f"return {_values('_self', keys)} == {_values('_other', keys)}",
        ],
        {},
    )


def _hash(made: type[Any]) -> Callable[..., Any]:
    fields = dataclasses.fields(made)
    keys = [field.name for field in fields if (field.compare if field.hash is None else field.hash)]
    return _compiled("__hash__", "_self", [f"return hash({_values('_self', keys)})"], {})


def _repr(self: Any) -> str:
    shown = (field.name for field in dataclasses.fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _refuse(self: Any, verb: str, name: str) -> None:
    """Raise unless an undecorated subclass has an attribute of its own."""
    if "__dataclass_fields__" in type(self).__dict__ or name in self.__dataclass_fields__:
        raise dataclasses.FrozenInstanceError(f"cannot {verb} field {name!r}")


def _setattr(self: Any, name: str, value: object) -> None:
    _refuse(self, "assign to", name)
    object.__setattr__(self, name, value)


def _delattr(self: Any, name: str) -> None:
    _refuse(self, "delete", name)
    object.__delattr__(self, name)


def _getstate(self: Any) -> list[Any]:
    """Return the values for `pickle` and `copy`."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _setstate(self: Any, values: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), values, strict=True):
        object.__setattr__(self, field.name, value)
