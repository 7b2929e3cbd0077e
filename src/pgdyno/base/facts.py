"""A fact: something found out about a host or a server, with where it was read.

Unknown is a value. A reader that may not open a file, or finds no such file, returns
``Fact(Unknown("why"), source)`` and never guesses, so that every consumer has to decide what an unknown
means for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Unknown:
    """Why something is not known."""

    reason: str


@dataclass(frozen=True)
class Fact(Generic[T]):
    """A value, or why it is unknown, and the path, query or option it came from."""

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
