"""A fact: a value read from a host or a server, with its source.

Unknown is a value. A reader that may not open a file, or finds no such file, returns
``Fact(Unknown("why"), source)`` and never guesses. Every consumer has to handle the unknown explicitly.

Convert model objects into JSON documents: the one rule for ``--json``, the store and bundles.

    dataclass        object with one member per field, in the fields' order; properties are left out
    Fact             {"value": …, "source": …}  or  {"unknown": reason, "source": …}
    Enum             its value
    tuple, list      array;  set and frozenset: sorted array
    mapping          object; keys become strings (a page size 2097152 → "2097152")
    infinity, NaN    null, as ECMA-262's JSON.stringify does: JSON has no such numbers
    path             string

Any other type is a programming error and raises: nothing is printed as ``<object at 0x…>``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Unknown:
    """The reason why a value is not known."""

    reason: str


@dataclass(frozen=True)
class Fact(Generic[T]):
    """A value, or the reason why it is unknown; and its source: a path, query or option."""

    value: T | Unknown
    source: str

    @property
    def is_known(self) -> bool:
        """Whether there is a value."""
        return not isinstance(self.value, Unknown)

    def or_none(self) -> T | None:
        """Return the value, or None when it is unknown."""
        return None if isinstance(self.value, Unknown) else self.value

    def or_else(self, default: T) -> T:
        """Return the value, or ``default`` when it is unknown."""
        return default if isinstance(self.value, Unknown) else self.value


def unknown(reason: str, source: str) -> Fact[T]:
    """Return a fact without a value."""
    return Fact(Unknown(reason), source)


Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


def to_document(thing: object) -> Json:
    """Convert ``thing`` and everything in it into plain JSON types.

    Raises: TypeError with the type that has no JSON form.
    """
    if isinstance(thing, Enum):  # before str and int: StrEnum and IntEnum are both
        return to_document(thing.value)
    if thing is None or isinstance(thing, bool | int | str):
        return thing
    if isinstance(thing, float):
        return thing if math.isfinite(thing) else None
    if isinstance(thing, Fact):
        return _fact_document(thing)
    if dataclasses.is_dataclass(thing):
        return {field.name: to_document(getattr(thing, field.name)) for field in dataclasses.fields(thing)}
    return _container_document(thing)


def _fact_document(fact: Fact[object]) -> Json:
    if isinstance(fact.value, Unknown):
        return {"unknown": fact.value.reason, "source": fact.source}
    return {"value": to_document(fact.value), "source": fact.source}


def _container_document(thing: object) -> Json:
    if isinstance(thing, Mapping):
        return {_key(key): to_document(value) for key, value in thing.items()}
    if isinstance(thing, tuple | list):
        return [to_document(item) for item in thing]
    if isinstance(thing, set | frozenset):
        return [to_document(item) for item in sorted(thing)]
    if isinstance(thing, PurePath):
        return str(thing)
    raise TypeError(f"a {type(thing).__name__} has no JSON form")


def _key(key: object) -> str:
    plain = to_document(key)
    if isinstance(plain, str):
        return plain
    if isinstance(plain, int) and not isinstance(plain, bool):
        return str(plain)
    raise TypeError(f"a {type(key).__name__} cannot be the key of a JSON object")
