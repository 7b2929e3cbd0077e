"""A fact: a value read from a host or a server, with its source.

Unknown is a value. A reader that may not open a file, or finds no such file, returns
``Fact(Unknown("why"), source)`` and never guesses. Every consumer has to handle the unknown explicitly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

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
